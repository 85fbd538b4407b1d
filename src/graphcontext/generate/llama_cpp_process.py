"""The process of a llama.cpp server: ``python llama_cpp_process.py JSON`` serves one GGUF file on loopback until ended.

No import of ours: it runs from any folder.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any


def serve(told: dict[str, Any], key: str) -> None:
    """Serve until the process is ended."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = told["path"], {told["name"]}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], told["port"], [key]
    params.n_ctx, params.n_parallel = told["context"], 1
    params.cache_prompt, params.cache_ram_mib = False, 0
    params.ui, params.endpoint_slots, params.cors_origins, params.offline = False, False, "", True
    if not told["on_gpu"]:
        params.n_gpu_layers = 0
    server = xllamacpp.Server(params)
    print(f"serving {told['path']} at {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), os.environ["GRAPHCONTEXT_SERVE_KEY"])
