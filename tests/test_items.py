"""Per-item work: resumed at every byte, failed items retried and counted, nothing dropped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError, RunError
from graphcontext.files import jsonl, read_lines
from graphcontext.items import run_items, score_items

QUESTIONS = [Question(str(n), f"q{n}", "c", (f"gold {n}",)) for n in range(5)]


@dataclass
class Work:
    """Answers in upper case; remembers what it was asked, fails where told."""

    failing: set[str] = field(default_factory=set)
    raising: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)

    def __call__(self, batch: list[Question]) -> list[Prediction]:
        self.asked.append([q.id for q in batch])
        for question in batch:
            if question.id in self.raising:
                raise ZeroDivisionError(f"item {question.id}\nsecond line")
        return [self._answer(q) for q in batch]

    def _answer(self, q: Question) -> Prediction:
        if q.id in self.failing:
            return Prediction(q.id, q.text, "", q.references, status="failed", reason="parse")
        return Prediction(q.id, q.text, q.text.upper(), q.references, n_tokens=1)


def run(path: Path, work: Work, chunk: int = 2) -> list[Prediction]:
    return run_items(path, QUESTIONS, work, Prediction, chunk)


def test_records_come_in_the_order_of_the_items_in_fixed_chunks(tmp_path: Path) -> None:
    path, work = tmp_path / "predictions.jsonl", Work()
    done = run(path, work)
    assert [p.prediction for p in done] == ["Q0", "Q1", "Q2", "Q3", "Q4"]
    assert work.asked == [["0", "1"], ["2", "3"], ["4"]]
    assert path.read_text() == jsonl(done)
    assert [p.name for p in tmp_path.iterdir()] == ["predictions.jsonl"]  # no .part is left


def test_a_cut_chunk_is_computed_whole_but_only_its_missing_line_is_new(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    kept = Prediction("2", "q2", "kept from before", ("gold 2",))
    (tmp_path / "predictions.jsonl.part").write_text(jsonl([kept]))
    work = Work()
    done = run(path, work)
    assert work.asked == [["0", "1"], ["2", "3"], ["4"]]
    assert [p.prediction for p in done] == ["Q0", "Q1", "kept from before", "Q3", "Q4"]


def test_a_finished_file_is_not_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    run(path, Work())
    before, work = path.read_bytes(), Work()
    run(path, work)
    assert work.asked == [] and path.read_bytes() == before


def test_failed_is_retried_and_empty_is_not(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    first = run(path, Work(failing={"3"}))
    assert [p.status for p in first] == ["ok", "ok", "ok", "failed", "ok"]
    rows = read_lines(path)
    rows[0] |= {"status": "empty", "prediction": ""}
    path.write_text(jsonl(rows))
    work = Work()
    again = run(path, work)
    assert work.asked == [["2", "3"]]
    assert [p.status for p in again] == ["empty", "ok", "ok", "ok", "ok"]


@pytest.mark.batch_raises
def test_an_item_that_raises_is_recorded_and_the_others_are_kept(tmp_path: Path, caplog) -> None:
    work = Work(raising={"1", "4"})
    done = run(tmp_path / "p.jsonl", work)
    assert [p.status for p in done] == ["ok", "failed", "ok", "ok", "failed"]
    assert done[1].reason.startswith("ZeroDivisionError: item 1 (test_items.py:")
    assert done[1].references == ("gold 1",) and done[1].question == "q1"
    assert work.asked == [["0", "1"], ["0"], ["1"], ["2", "3"], ["4"]]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("prediction stage: a batch of 2 raised (ZeroDivisionError: item 1 (")


@pytest.mark.parametrize("error", [InputError("no weights: x"), RunError("401: the server refused the key")])
def test_an_error_of_the_whole_run_stops_it_and_keeps_what_was_done(tmp_path: Path, error: Exception) -> None:
    path, work = tmp_path / "p.jsonl", Work()

    def until_third(batch: list[Question]) -> list[Prediction]:
        if batch[0].id == "2":
            raise error
        return work(batch)

    with pytest.raises(type(error)):
        run_items(path, QUESTIONS, until_third, Prediction, 2)
    assert not path.exists()
    assert [row["id"] for row in read_lines(tmp_path / "p.jsonl.part")] == ["0", "1"]


@pytest.mark.parametrize("wrong", [lambda rows: rows[:-1], lambda rows: rows[::-1], lambda rows: rows + rows[:1]])
def test_a_component_that_drops_repeats_or_turns_items_is_named(tmp_path: Path, wrong) -> None:
    work = Work()
    with pytest.raises(RunError, match="records for 2 items, or in another order"):
        run_items(tmp_path / "p.jsonl", QUESTIONS, lambda batch: wrong(work(batch)), Prediction, 2)


def test_t11_cut_at_every_byte_a_run_ends_in_the_same_bytes(tmp_path: Path, monkeypatch) -> None:
    path, part = tmp_path / "p.jsonl", tmp_path / "p.jsonl.part"
    expected = jsonl(run(path, Work())).encode()
    path.unlink()
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for cut in range(len(expected) + 1):
        part.write_bytes(expected[:cut])
        whole = len(read_lines(part))
        work = Work()
        run(path, work)
        assert path.read_bytes() == expected, f"cut at byte {cut}"
        assert not part.exists()
        # only chunks that miss a line are computed: items 0-1, 2-3, 4
        assert len(work.asked) == [3, 3, 2, 2, 1, 0][whole]
        path.unlink()


def test_t11_killed_before_the_part_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    expected = jsonl(run(path, Work())).encode()
    (tmp_path / "p.jsonl.part").write_bytes(expected)
    work = Work()
    run(path, work)
    assert work.asked == [] and path.read_bytes() == expected and not (tmp_path / "p.jsonl.part").exists()


def test_progress_tells_every_item_once(tmp_path: Path) -> None:
    told: list[int] = []
    run_items(tmp_path / "p.jsonl", QUESTIONS, Work(), Prediction, 2, told.append)
    assert told == [2, 2, 1]


def test_no_items_give_an_empty_file(tmp_path: Path) -> None:
    assert run_items(tmp_path / "p.jsonl", [], Work(), Prediction) == []
    assert (tmp_path / "p.jsonl").read_text() == ""


def test_records_survive_the_way_through_json(tmp_path: Path) -> None:
    done = run(tmp_path / "p.jsonl", Work(failing={"0"}))
    row = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert row["status"] == "failed" and row["reason"] == "parse" and row["references"] == ["gold 0"]
    assert done[0].references == ("gold 0",)


class Generous:
    """Gives every item 1."""

    def score(self, questions, predictions, rankings, contexts):
        return [{"judge": 1.0, "judge_votes": 3.0} for _ in questions]


def test_a_failed_prediction_scores_zero_whatever_the_metric_gives() -> None:
    items = [(q, p, None, None) for q, p in zip(QUESTIONS[:2], Work(failing={"1"})(QUESTIONS[:2]))]
    assert score_items("judge", Generous().score, items) == [
        {"id": "0", "status": "ok", "judge": 1.0, "judge_votes": 3.0},
        {"id": "1", "status": "failed", "judge": 0.0, "judge_votes": 0.0},
    ]
