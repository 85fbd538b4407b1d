"""Stands for the command ``vllm``: writes down how it was called and serves an echo. FAKE_VLLM says how it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODE = os.environ.get("FAKE_VLLM", "")
FOLDER = Path(os.environ["FAKE_VLLM_FOLDER"])
WORDS = sys.argv[1:]


def option(name: str) -> str:
    return WORDS[WORDS.index(name) + 1]


def write(name: str, value: Any) -> None:
    (FOLDER / f"{os.getpid()}.{name}").write_text(json.dumps(value))


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        names = [option("--served-model-name")] if MODE != "another" else ["somebody-else"]
        self.say(200, {"data": [{"id": name, "max_model_len": 64} for name in names]} if "models" in self.path else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            self.say(401, {"error": "no key"})
            return
        with (FOLDER / "asked.jsonl").open("a") as stream:
            stream.write(json.dumps({"pid": os.getpid(), "path": self.path, **body}) + "\n")
        if MODE == "dies later":
            print("CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(7)
        text = " ".join(map(str, body["prompt"]))
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 2}
        self.say(200, {"choices": [{"index": 0, "text": text, "finish_reason": "stop"}], "usage": usage})

    def say(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def main() -> None:
    if WORDS == ["--version"]:
        print("INFO platform detected\n0.99.1")
        return
    names = ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "CUDA_VISIBLE_DEVICES")
    write("started", {"words": WORDS, **{name: os.environ.get(name) for name in names}})
    print(f"key {os.environ['VLLM_API_KEY']}", flush=True)
    if MODE == "dies":
        print("loading\nValueError: bfloat16 is not supported\nEngine core initialization failed", flush=True)
        sys.exit(3)
    if MODE == "slow":
        time.sleep(60)
    if MODE == "taken" and len(list(FOLDER.glob("*.started"))) == 1:
        print("OSError: [Errno 98] Address already in use", flush=True)
        sys.exit(1)
    if MODE == "workers":  # as vLLM does: processes of its own
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        write("worker", child.pid)
    ThreadingHTTPServer(("127.0.0.1", int(option("--port"))), Echo).serve_forever()


main()
