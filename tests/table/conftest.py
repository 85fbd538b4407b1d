"""One small table, made once for all tests of tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from instant import InstantLLM

from graphcontext import api
from graphcontext.table.make import Made

CONF = str(Path(__file__).parent / "conf")
SIX = "dataset.limit=6"


@pytest.fixture(scope="session")
def made_and_asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Made, list[str]]:
    InstantLLM.asked.clear()
    folder = tmp_path_factory.mktemp("tables")
    return folder, api.table("tests/tiny", SIX, config_dir=CONF, root=folder), list(InstantLLM.asked)


@pytest.fixture(scope="session")
def folder(made_and_asked: tuple[Path, Made, list[str]]) -> Path:
    """A working folder that several tests share, ``made`` in it first: what one computed, another finds."""
    return made_and_asked[0]


@pytest.fixture(scope="session")
def made(made_and_asked: tuple[Path, Made, list[str]]) -> Made:
    """The table ``tests/tiny`` over six questions."""
    return made_and_asked[1]


@pytest.fixture(scope="session")
def asked(made_and_asked: tuple[Path, Made, list[str]]) -> list[str]:
    """What the model was asked for ``made``."""
    return made_and_asked[2]
