"""Two processes on one store: each stage is computed once, both print the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from processes import FLAGS, TEN, finish, results, run_ten, start

from graphcontext.files import read_lines

pytestmark = pytest.mark.end_to_end


def test_t22_two_processes_compute_each_stage_once(tmp_path: Path) -> None:
    together, alone = tmp_path / "together", tmp_path / "alone"
    together.mkdir()
    alone.mkdir()
    log = together / "log"
    words = ("run", *FLAGS, *TEN, "dataset.limit=5", "llm.seconds=0.1")
    both = [start(together, *words, ECHO_LOG=str(log)) for _ in range(2)]
    (first, _), (second, _) = [finish(process) for process in both]
    assert first == second and "n=5  failed=0" in first
    assert len(log.read_text().split()) == len(set(log.read_text().split())) == 5  # no question was asked twice
    run = together / first.splitlines()[-1].removeprefix("run: ")
    asked = Counter(row["item"] for row in read_lines(run / "calls.jsonl"))
    assert sorted(asked.values()) == [1] * 5
    for name in ("predictions", "rankings", "contexts", "scores"):
        assert len({row["id"] for row in read_lines(run / f"{name}.jsonl")}) == 5
        assert len(read_lines(run / f"{name}.jsonl")) == 5
    done = [p.parent.name for p in (together / "store").glob("*/*/done.json")]
    assert len(done) == len(set(done)) == 6  # corpus, ranking, context, prediction, two scores
    assert not list((together / "store").rglob("*.lock"))
    assert results(run) == results(run_ten(alone, "dataset.limit=5", "llm.seconds=0.1"))


def test_runs_of_two_configs_share_what_they_have_in_common(tmp_path: Path) -> None:
    both = [start(tmp_path, "run", *FLAGS, *TEN, f"packing.max_tokens={n}") for n in (100, 200)]
    assert len({finish(process)[0].splitlines()[-1] for process in both}) == 2
    found = Counter(p.parents[1].name for p in (tmp_path / "store").glob("*/*/done.json"))
    assert (found["corpus"], found["ranking"], found["context"], found["prediction"]) == (1, 1, 2, 2)
