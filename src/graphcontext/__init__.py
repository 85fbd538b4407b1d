"""graphcontext: graph-structured context for LLM question answering.

The Python API does what the commands ``run``, ``ask`` and ``table`` do::

    import graphcontext as gc
    result = gc.run("experiment=gcg/graph_context_gen")
    print(result.metrics["metrics"]["bertscore_f1"]["value"], result.path)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["ask", "compose", "run", "table"]

if TYPE_CHECKING:
    from graphcontext.api import ask, compose, run, table


def __getattr__(name: str) -> Any:
    if name in __all__:
        from graphcontext import api

        return getattr(api, name)
    raise AttributeError(f"module 'graphcontext' has no attribute {name!r}")
