"""Run folders: what they hold, how they are found, and runs side by side of which one fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.config import compose
from graphcontext.errors import RunError
from graphcontext.files import read_lines
from graphcontext.run_facts import describe
from graphcontext.run_folder import Run
from graphcontext.runs import execute, execute_all

CONF = str(Path(__file__).parent / "table" / "conf")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    words = ("experiment=tests/base", "dataset.limit=3")
    return api.run(*words, config_dir=CONF, root=tmp_path_factory.mktemp("runs"))


def test_a_run_folder_holds_what_the_contract_names(run: Run) -> None:
    assert len(run.path.name) == 12 and run.path.parent.name == "runs"
    config = run.config
    assert config["retriever"]["top_k"] == 2 and "${" not in (run.path / "config.yaml").read_text()
    rows = {n: read_lines(run.path / f"{n}.jsonl") for n in ("rankings", "contexts", "predictions", "scores", "calls")}
    ids = [q.id for q in run.questions()]
    assert len(ids) == 3
    for name in ("rankings", "contexts", "predictions", "scores"):
        assert [row["id"] for row in rows[name]] == ids and {row["status"] for row in rows[name]} == {"ok"}
    assert set(rows["rankings"][0]["passages"][0]) == {"id", "score"}
    assert {"units", "n_tokens", "n_cut"} <= set(rows["contexts"][0])
    assert set(rows["contexts"][0]["units"][0]) == {"id", "text", "source"}
    assert {"question", "prediction", "references", "n_tokens"} <= set(rows["predictions"][0])
    assert {"rouge1", "rougeL"} <= set(rows["scores"][0])
    assert sorted(row["item"] for row in rows["calls"]) == sorted(ids)


def test_the_metrics_have_the_contracts_keys(run: Run) -> None:
    metrics = run.metrics
    assert {"n", "n_failed", "n_empty", "n_truncated", "metrics"} <= set(metrics)
    assert (metrics["n"], metrics["n_failed"], metrics["n_empty"]) == (3, 0, 0)
    for name, value in metrics["metrics"].items():
        assert set(value) == {"value", "ci95", "signature"} and value["signature"].startswith(name)
        scores = [row[name] for row in run.scores().values()]
        assert value["value"] == pytest.approx(sum(scores) / 3)
        assert 0 <= value["ci95"][0] <= value["value"] <= value["ci95"][1] <= 1
    assert run.summary().startswith("n=3  failed=0  empty=0  truncated=0\nrouge1  0.")


def test_the_same_config_is_the_same_run(run: Run) -> None:
    before = {p.name: p.read_bytes() for p in run.path.iterdir() if p.name != "manifest.json"}
    words = ("experiment=tests/base", "dataset.limit=3")
    again = api.run(*words, config_dir=CONF, root=run.path.parents[1])
    assert again.path == run.path
    assert {p.name: p.read_bytes() for p in run.path.iterdir() if p.name != "manifest.json"} == before


@pytest.mark.batch_raises
def test_a_run_that_fails_stands_in_its_place(tmp_path: Path) -> None:
    def config(experiment: str) -> dict:
        return compose([f"experiment=tests/{experiment}", "dataset.limit=3"], config_dir=CONF).config

    jobs = [(name, config(name)) for name in ("refusing", "buggy", "extract")]
    refused, buggy, extract = execute_all(jobs, tmp_path, quiet=True)
    assert isinstance(refused, RunError) and "the server refused the key" in str(refused)
    assert isinstance(buggy, RunError) and "all 3 items failed, the first because: ValueError" in str(buggy)
    assert isinstance(extract, Run) and extract.metrics["n"] == 3
    with pytest.raises(RunError, match="refused the key"):
        execute(config("refusing"), tmp_path, quiet=True)
    (folder,) = [p for p in (tmp_path / "runs").iterdir() if p != extract.path]  # the buggy run's: each item's reason
    failed = Run(folder)
    assert (failed.metrics["n"], failed.metrics["n_failed"]) == (3, 3)
    assert all("ValueError" in row["reason"] for row in read_lines(folder / "scores.jsonl"))
    assert failed.metrics["metrics"]["rouge1"]["value"] == 0


def test_what_stands_under_a_run() -> None:
    graph = {
        "threshold": 0.43215,
        "threshold_rule": "mean_degree:8",
        "n_edges": 456,
        "n_nodes": 114,
        "mean_degree": 8.0,
    }
    known = {"graphs": {"c": graph}, "fallbacks": {"cosine": 3}, "n_units_cut": 2, "reasons": {"no triples": 1}}
    lines = describe(known, 12)
    assert "threshold=0.432" in lines[0] and "edges=456" in lines[0] and "mean_degree:8" in lines[0]
    assert "fall-back to cosine: 3 of 12 questions (25%)" in lines
    assert "context units cut to fit the budget: 2" in lines and any("1 of 12" in line for line in lines)
    assert describe({"fallbacks": {}, "n_units_cut": 0, "reasons": {}}, 12) == []


@pytest.mark.needs_models
def test_pagerank_ranks_otherwise_than_cosine_on_the_shipped_sample(tmp_path: Path) -> None:
    def top(experiment: str) -> dict[str, set[str]]:
        words = (f"experiment=gcg/{experiment}", "generator=none", "metric=[rouge1]", "tokenizer=words")
        run = api.run(*words, root=tmp_path)
        assert run.metrics["facts"]["fallbacks"].get("cosine", 0) <= 12
        return {ranking.id: {p.id for p in ranking.passages} for ranking in run.rankings()}

    dense, ppr = top("text_gen"), top("graph_gen")
    other = [item for item in dense if dense[item] != ppr[item]]
    print(f"PageRank's top 2 differ from cosine's for {len(other)} of {len(dense)} questions")
    assert len(dense) == 24 and all(len(passages) == 2 for passages in (*dense.values(), *ppr.values()))
    assert len(other) >= 0.1 * len(dense)


def test_what_gold_and_corpora_lack_stands_under_the_numbers(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("# Title\n\nA page on rivers.\n")
    row = {"id": "1", "question": "What is on page 1?", "supports": ["a.md#pages=1"], "split": "test"}
    (tmp_path / "d" / "q.jsonl").write_text(json.dumps(row) + "\n")
    words = ("dataset=folder", f"dataset.path={tmp_path / 'd'}", "dataset.questions=q.jsonl", "enhancer=none")
    words += ("metric=[struct_em]", "generator=none", "retriever=tfidf")
    lines = api.run(*words, root=tmp_path).summary().splitlines()
    assert "with a gold passage that is not in the corpus, so never found: 1 of 1 questions" in lines
    assert "passages ranked: 1.0 a question" in lines  # top_k asks for more
    assert "struct_em_asked: of questions whose supports are pages or tables, of which there are none here" in lines


def test_the_padding_is_said_with_how_many_corpora_came_out_otherwise(tmp_path: Path) -> None:
    words = ("dataset=multihop_sample", "dataset.n_passages=100000", "dataset.limit=2", "enhancer=none")
    words += ("metric=[sf_em]", "generator=none", "retriever=tfidf", "retriever.top_k=30")
    [line] = [at for at in api.run(*words, root=tmp_path).summary().splitlines() if "padded" in at]
    assert line.endswith("100000 passages, pad_seed 0 (2 questions short of n_passages, as the file holds no more)")
