"""Stages: what is computed once, what is counted as failed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcontext.config import compose
from graphcontext.data.records import Corpus, Graph, Passage, Prediction, Question, Ranking, Scored
from graphcontext.errors import InputError, RunError
from graphcontext.evaluate.overlap import Rouge
from graphcontext.files import read_lines
from graphcontext.graph.storage import load_graph, save_graph
from graphcontext.pipeline import Pipeline, check_rankings
from graphcontext.run_folder import find
from graphcontext.runs import execute
from graphcontext.store import Store, Workspace

ECHO = str(Path(__file__).parent / "end_to_end" / "conf")
FAST = ["dataset.limit=10", "retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1,rougeL]", "llm=echo"]


def config(*more: str) -> dict[str, Any]:
    return compose([*FAST, *more], config_dir=ECHO).config


def test_t02_a_run_needs_no_network_and_its_folder_is_whole(tmp_path: Path) -> None:
    run = execute(config(), tmp_path, quiet=True)  # sockets are blocked in the whole session
    names = {p.name for p in run.path.iterdir()}
    lines = {f"{n}.jsonl" for n in ("questions", "rankings", "contexts", "predictions", "scores", "calls")}
    assert names == lines | {"config.yaml", "manifest.json", "metrics.json", "card.json", "rankings.trec"}
    ids = [q.id for q in run.questions()]
    assert len(ids) == len(set(ids)) == 10
    for records in (run.rankings(), run.contexts(), run.predictions()):
        assert [r.id for r in records] == ids
    assert list(run.scores()) == ids and run.metrics["n"] == 10
    assert run.metrics["metrics"]["rouge1"]["signature"].startswith("rouge1")
    for name in lines - {"questions.jsonl", "calls.jsonl"}:
        assert all({"id", "status"} <= row.keys() for row in read_lines(run.path / name)), name
    assert run.manifest["seeds"] == {"seed": 0, "sample_index": 0, "dataset": 0}
    assert set(run.manifest["stages"]) == {"corpus", "ranking", "context", "prediction", "score:rouge1", "score:rougeL"}
    assert run.config == config() and find(run.path.name[:5], tmp_path) == run
    assert "rouge1" in run.summary() and "n=10" in run.summary()


def test_t51_the_old_run_is_kept_beside_the_new(tmp_path: Path) -> None:
    first = execute(config(), tmp_path, quiet=True)
    before = (first.path / "rankings.jsonl").read_bytes()
    second = execute(config("retriever.top_k=1"), tmp_path, quiet=True)
    assert first.path != second.path and (first.path / "rankings.jsonl").read_bytes() == before
    assert {len(r.passages) for r in second.rankings()} == {1}


class Judge(Rouge):
    """A metric that raises on two questions."""

    bad: tuple[str, ...] = ()

    def score(self, questions, predictions, rankings, contexts):  # type: ignore[no-untyped-def]
        for question in questions:
            if question.id in self.bad:
                raise ValueError("no verdict in the reply")
        return [{"rouge1": 1.0 if p.prediction else 0.0} for p in predictions]


@pytest.mark.batch_raises
def test_t21_failed_in_judging_and_empty_stay_in_the_mean(tmp_path: Path, monkeypatch) -> None:
    from graphcontext.generate.llm import LLMGenerator

    plain = config("metric=[rouge1]")
    ids = [q.id for q in Pipeline(plain, Workspace(Store(tmp_path / "store"))).data().questions]
    generate = LLMGenerator.generate

    def one_is_empty(self: Any, questions: Any, contexts: Any) -> list[Prediction]:
        found = generate(self, questions, contexts)
        return [dataclasses.replace(p, prediction="", status="empty") if p.id == ids[9] else p for p in found]

    monkeypatch.setattr(LLMGenerator, "generate", one_is_empty)
    plain["metric"]["rouge1"]["_target_"] = f"{__name__}.Judge"
    monkeypatch.setattr(Judge, "bad", (ids[2], ids[5]))
    run = execute(plain, tmp_path, quiet=True)
    found = run.metrics
    assert (found["n"], found["n_failed"], found["n_empty"]) == (10, 2, 1)
    assert found["metrics"]["rouge1"]["value"] == pytest.approx(0.7)  # 7 of 10
    rows = {row["id"]: row for row in read_lines(run.path / "scores.jsonl")}
    assert rows[ids[2]] == {
        "id": ids[2],
        "status": "failed",
        "reason": "metric rouge1: ValueError: no verdict in the reply (test_pipeline.py:68)",
        "rouge1": 0.0,
    }
    assert rows[ids[9]]["status"] == "empty"
    monkeypatch.setattr(Judge, "bad", ())  # failed is retried
    assert execute(plain, tmp_path, quiet=True).metrics["metrics"]["rouge1"]["value"] == pytest.approx(0.9)


@pytest.mark.parametrize("rows", [[{"rouge1": 1.0}] * 9, [{"rouge1": 1.0}] * 11, [{"rougeL": 1.0}] * 10])
def test_t49_a_metric_must_score_each_question(tmp_path: Path, monkeypatch, rows: list[dict[str, float]]) -> None:
    monkeypatch.setattr(Rouge, "score", lambda *_: rows)
    with pytest.raises(RunError, match=f"metric rouge1 gave {len(rows)} scores for 10 questions"):
        execute(config("metric=[rouge1]"), tmp_path, quiet=True)


@pytest.mark.batch_raises
def test_some_failed_answers_are_counted_and_retried(tmp_path: Path, monkeypatch) -> None:
    from graphcontext.generate.llm import LLMGenerator

    generate = LLMGenerator.generate

    bad = [q.id for q in Pipeline(config(), Workspace(Store(tmp_path / "store"))).data().questions][4]

    def one_raises(self: Any, questions: Any, contexts: Any) -> list[Prediction]:
        if bad in [q.id for q in questions]:
            raise ZeroDivisionError("bad item")
        return generate(self, questions, contexts)

    monkeypatch.setattr(LLMGenerator, "generate", one_raises)
    run = execute(config(), tmp_path, quiet=True)
    assert (run.metrics["n"], run.metrics["n_failed"]) == (10, 1)
    failed = next(p for p in run.predictions() if p.id == bad)
    assert failed.status == "failed" and failed.reason.startswith("ZeroDivisionError: bad item (test_pipeline.py:")
    assert set(run.scores()[bad].values()) == {0.0}
    monkeypatch.setattr(LLMGenerator, "generate", generate)
    again = execute(config(), tmp_path, quiet=True)
    assert again.path == run.path and again.metrics["n_failed"] == 0
    assert len(read_lines(again.path / "calls.jsonl")) == 10  # the nine were not asked again


def test_wrong_arguments_are_named_before_anything_is_read(tmp_path: Path) -> None:
    wrong = config()
    wrong["retriever"]["top_k"] = 0
    with pytest.raises(InputError, match=r"retriever.*top_k=0"):
        execute(wrong, tmp_path, quiet=True)
    assert not (tmp_path / "store").exists()


def test_graphs_are_saved_without_pickle_and_with_equal_bytes(tmp_path: Path) -> None:
    arrays = {"indptr": np.array([0, 1, 2]), "indices": np.array([1, 0], np.int32), "weights": np.ones(2, np.float32)}
    graph = Graph("c", **arrays, facts={"n_edges": 1, "threshold": 0.8})
    for name in ("a.npz", "b.npz"):
        save_graph(tmp_path / name, graph)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    back = load_graph(tmp_path / "a.npz")
    assert (back.corpus_id, back.directed, back.facts) == ("c", False, {"n_edges": 1, "threshold": 0.8})
    for name, array in arrays.items():
        assert np.array_equal(getattr(back, name), array) and getattr(back, name).dtype == array.dtype


# -- secrets -------------------------------------------------------------------------------------


def test_t48_no_written_file_holds_a_key(tmp_path: Path, monkeypatch) -> None:
    import httpx

    from graphcontext.table.expand import compose_cached

    secret = "sk-4f1a-not-to-be-written"
    monkeypatch.setenv("MY_KEY", secret)
    sent: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["authorization"])
        if len(sent) == 2:  # a server that repeats the key in an error
            return httpx.Response(400, text=f"bad request with {request.headers['authorization']}")
        reply = {"message": {"content": "Use ss -tlnp."}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [reply], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})

    client = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **_: client(transport=httpx.MockTransport(handle)))
    remote = ["llm=openai", "llm.base_url=http://127.0.0.1:9/v1", "llm.api_key_env=MY_KEY", "dataset.limit=3"]
    composed = compose_cached([*FAST, *remote], config_dir=ECHO)
    run = execute(composed.config, tmp_path, quiet=True)
    assert set(sent) == {f"Bearer {secret}"} and run.metrics["n_failed"] == 1
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert {"config.yaml", "manifest.json", "calls.jsonl", "predictions.jsonl"} <= {p.name for p in written}
    assert [p for p in written if secret.encode() in p.read_bytes()] == []
    assert "api_key_env: MY_KEY" in (run.path / "config.yaml").read_text()
    assert json.loads((run.path / "metrics.json").read_text())["n"] == 3


def test_metrics_are_numbers(tmp_path: Path) -> None:
    run = execute(config("metric=[rouge1]"), tmp_path, quiet=True)
    low, high = run.metrics["metrics"]["rouge1"]["ci95"]
    assert not math.isnan(low) and 0 <= low <= run.metrics["metrics"]["rouge1"]["value"] <= high <= 1


def test_generator_none_measures_retrieval_alone(tmp_path: Path) -> None:
    """Metrics of answers are not scored, and not as zeros either."""
    run = execute(config("generator=none", "metric=[rouge1]"), tmp_path, quiet=True)
    assert run.metrics["n_empty"] == 0 and run.metrics["metrics"] == {}
    assert "not scored, since generator=none gives no answers: rouge1" in run.summary()


def ranked(*hits: tuple[str, Any]) -> list[Ranking]:
    return [Ranking("q", tuple(Scored(name, score) for name, score in hits))]


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        (ranked(("a", math.nan)), "passage a: the score is nan; scores are finite numbers"),
        (ranked(("a", math.inf)), "the score is inf"),
        (ranked(("a", "high")), "the score is 'high'"),
        (ranked(("a", 1.0), ("a", 0.5)), "passage a is ranked twice"),
        (ranked(("z", 1.0)), "passage z: there is no such passage"),
    ],
)
def test_what_a_retriever_returns_is_checked(rankings: list[Ranking], message: str) -> None:
    corpora = {"c": Corpus("c", (Passage("a", "", "", ""), Passage("b", "", "", "")))}
    with pytest.raises(RunError, match=message):
        check_rankings(rankings, [Question("q", "?", "c")], corpora)
    assert check_rankings(ranked(("b", 2), ("a", 1.0)), [Question("q", "?", "c")], corpora)


def test_nothing_is_retrieved_from_a_pool_without_passages(tmp_path: Path) -> None:
    rows = [{"id": f"p{q}", "text": f"what is {q}?", "answer": q} for q in "abcdefgh"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"id": q, "question": f"what is {q}?", "answers": [q]} for q in "abcdefgh"]
    (tmp_path / "own" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    own = ["dataset=jsonl", f"dataset.path={tmp_path / 'own'}", "split=train"]
    workspace = Workspace(Store(tmp_path / "store"), quiet=True)
    with pytest.raises(InputError, match=r"split=train: no passage is left to retrieve .*; retriever=none"):
        Pipeline(config(*own), workspace).data()
    assert len(Pipeline(config(*own, "retriever=none"), workspace).data().questions) == 5
