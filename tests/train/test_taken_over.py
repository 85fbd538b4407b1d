"""A training whose process slept until another took it over: it writes nothing more, whatever it was about to write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import RunError
from graphcontext.train import checkpoint, fit, result
from graphcontext.train.steps import Steps
from tests.train import tiny

QUICK = ("trainer.max_steps=4", "trainer.max_tokens=40", "trainer.validations=3", "trainer.checkpoint_minutes=1e-9")


def take_over(folder: Path) -> None:
    """Put another's lock and checkpoints where ours are."""
    folder.with_name(f"{folder.name}.lock").write_text(json.dumps({"host": "node17", "pid": 12, "nonce": "other"}))
    (folder / "checkpoints").mkdir(exist_ok=True)
    for name in ("best-1.pt", "best-4.pt", "last.pt"):
        (folder / "checkpoints" / name).write_text("theirs")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (Steps, "_validate", 0),  # before the first step
        (checkpoint, "gather", 0),  # before the best weights are written
        (checkpoint, "gather", 1),  # before the checkpoint is
        (checkpoint, "gather", 4),
        (fit, "write_result", 0),
        (result, "final_weights", 0),  # before the adapter is written
        (result, "plot", 0),  # before config and manifest are
    ],
)
@pytest.mark.parametrize("adapter", ["lora", "full"])
def test_nothing_more_is_written(words, tmp_path, monkeypatch, owner, name, after, adapter):
    seen: list[dict[str, bytes]] = []
    called = [0]
    function = getattr(owner, name)

    def slept(*given, **named):
        found = function(*given, **named) if name != "write_result" else None
        called[0] += 1
        if called[0] == after + 1:
            folder = tiny.folder_of(tmp_path)
            take_over(folder)
            seen.append(bytes_of(folder))
        return found if name != "write_result" else function(*given, **named)

    monkeypatch.setattr(owner, name, slept)
    with pytest.raises(RunError, match=r"^adapter/\w+ was taken over by node17 pid 12 while this process slept"):
        given = words(*QUICK) if adapter == "lora" else [w for w in words(*QUICK, "adapter=full") if "rank" not in w]
        api.train(*given, root=tmp_path)
    assert bytes_of(tiny.folder_of(tmp_path)) == seen[0]
