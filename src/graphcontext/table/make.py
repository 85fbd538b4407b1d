"""``table``: what the table lacks is run, then each kind of table is written by its own module."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

from graphcontext.table import expand
from graphcontext.table.cells import Made


def make(name: str, overrides: Iterable[str], config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Make the table ``name``.

    Args:
        name: ``gcg/t3``.
        overrides: Hydra overrides for every cell, ``table.rows=``, ``table.baseline=``.
        config_dir: a conf tree of the user's own.
        root: the working folder, which gets ``store/``, ``runs/`` and ``results/``.
        quiet: no progress.

    Raises:
        InputError: an unknown table, row or override, or data that the user named and that is not there.
    """
    wish = expand.request(name, list(overrides), config_dir, root)
    module = importlib.import_module(f"graphcontext.table.{wish.spec.kind}")
    return module.make(wish, config_dir, root, quiet)
