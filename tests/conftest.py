"""What all tests share: absent models and data skip with a reason, or fail where they are required."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphcontext.models import EMBEDDED, is_available

ROOT = Path(__file__).parents[1]
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # T02: whatever a test does, no hub
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
DATA = Path(os.environ.get("GRAPHCONTEXT_DATA", ROOT / "data")).expanduser().resolve()
REQUIRED = set(filter(None, os.environ.get("GRAPHCONTEXT_REQUIRE", "").split(",")))


def _absent() -> dict[str, str | None]:
    lacking = [m for m in EMBEDDED if not is_available(m)]
    no_data = None if (DATA / "stackexchange").is_dir() else f"no real data: {DATA}/stackexchange is no folder"
    return {
        "needs_models": f"no weights: {', '.join(lacking)} (graphcontext prepare)" if lacking else None,
        "needs_data": no_data,
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = _absent()
    for item in items:
        for mark, reason in absent.items():
            if reason and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Turn a skip for absent models, data or Slurm into a failure where GRAPHCONTEXT_REQUIRE names them."""
    report = yield
    for name in REQUIRED:
        if report.skipped and item.get_closest_marker(f"needs_{name}"):
            report.outcome = "failed"
            report.longrepr = f"GRAPHCONTEXT_REQUIRE={name}, but skipped: {report.longrepr[-1]}"
    return report


@pytest.fixture
def data_root() -> Path:
    """The folder of real data (``GRAPHCONTEXT_DATA``)."""
    return DATA


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own: store/, runs/ and results/ never mix."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _batches_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    """A batch that raises is computed item by item, which hides a fault of our own: no test may meet one unawares."""
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("graphcontext.items")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    if seen and not request.node.get_closest_marker("batch_raises"):
        pytest.fail(f"{seen[0]} (mark: batch_raises)")
