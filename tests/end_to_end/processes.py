"""Whole commands in processes of their own, with a model that answers at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SRC = HERE.parents[1] / "src"
FLAGS = ("--config-dir", str(HERE / "conf"), "--quiet")
TEN = ("dataset.limit=10", "retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1,rougeL]", "llm=echo")
RESULTS = ("questions", "rankings", "contexts", "predictions", "scores")
RESULT_FILES = (*(f"{name}.jsonl" for name in RESULTS), "metrics.json", "config.yaml", "card.json")


def start(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``graphcontext`` in ``folder``, as the first process of a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "graphcontext.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SRC), "HF_HUB_OFFLINE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for a command that must succeed; returns its stdout and stderr."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def run_ten(folder: Path, *more: str, **environment: str) -> Path:
    """Run the ten-item config and return its run folder."""
    out, _ = finish(start(folder, "run", *FLAGS, *TEN, *more, **environment))
    last = out.splitlines()[-1]
    assert last.startswith("run: ")
    return folder / last.removeprefix("run: ")


def results(run: Path, names: Sequence[str] = RESULT_FILES) -> dict[str, bytes]:
    """Return the bytes of every file of a run folder that holds results."""
    return {name: (run / name).read_bytes() for name in names}
