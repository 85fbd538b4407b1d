"""The Python API: ``run``, ``train``, ``ask`` and ``table`` do what the commands of these names do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext.config import Composed
from graphcontext.config import compose as _compose
from graphcontext.files import check_folder
from graphcontext.prepare import check_ready
from graphcontext.run_folder import Run
from graphcontext.runs import execute


def compose(*overrides: str, config_dir: str | None = None) -> Composed:
    """Compose and resolve a config: ``compose("retriever=bm25", "dataset.limit=5").config``."""
    return _compose(overrides, config_dir=config_dir)


def run(*overrides: str, config_dir: str | None = None, root: str | Path = ".", quiet: bool = True) -> Run:
    """Run one config and return its run folder.

    Args:
        overrides: as on the command line; none is ``scale=sample experiment=gcg/graph_context_gen``.
        config_dir: a conf tree of your own.
        root: the working folder, which gets ``store/`` and ``runs/``.
        quiet: no progress bars.

    Raises:
        InputError: a wrong key or value, or a model or data set that is not on this machine.
        RunError: every item failed, or the disk is full.
    """
    config = _compose(overrides, config_dir=config_dir).config
    check_ready(config, root)
    return execute(config, root, quiet)


def train(*overrides: str, config_dir: str | None = None, root: str | Path = ".", quiet: bool = True) -> Any:
    """Train an adapter; returns a :class:`graphcontext.train.fit.Trained`, whose ``path`` ``llm.adapter=`` takes.

    Args:
        overrides: as on the command line; none is ``scale=sample experiment=gcg/sft``.
        config_dir: a conf tree of your own.
        root: the working folder, which gets ``store/``.
        quiet: no progress bar.

    Raises:
        InputError: a wrong key or value, nothing to train on, too little memory, a loss that is no number.
    """
    from graphcontext.train.command import train as _train

    return _train(list(overrides), config_dir, Path(root), quiet)


def merge(words: list[str], *overrides: str, config_dir: str | None = None, root: str | Path = ".") -> Path:
    """Write a model folder with an adapter in its weights: ``merge(["gcg/sft"])``, ``merge([ADAPTER, FOLDER])``."""
    from graphcontext.train.command import merge as _merge

    return _merge(words, list(overrides), config_dir, Path(root))


def ask(
    question: str, *overrides: str, config_dir: str | None = None, root: str | Path = ".", quiet: bool = True
) -> Any:
    """Answer one question from a data set's pool; returns a :class:`graphcontext.ask.Asked`."""
    from graphcontext.ask import ask as _ask

    return _ask(question, _compose(overrides, config_dir=config_dir).config, root, quiet)


def table(name: str, *overrides: str, config_dir: str | None = None, root: str | Path = ".", quiet: bool = True) -> Any:
    """Compute what a table lacks and write it; returns a :class:`graphcontext.table.cells.Made`."""
    from graphcontext.table.make import make

    check_folder(Path(root) / "results")
    return make(name, overrides, config_dir, Path(root), quiet)
