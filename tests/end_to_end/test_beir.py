"""A BEIR folder as it is: retrieval scored on its qrels, TREC files with its ids, no answers needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import InputError


@pytest.fixture
def beir(tmp_path: Path) -> str:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    texts = {"MED-1": "ss lists open sockets", "MED-2": "df shows free disk space", "MED-3": "du shows disk usage"}
    passages = [{"_id": name, "title": "", "text": text, "metadata": {}} for name, text in texts.items()]
    asked = [{"_id": "PLAIN-1", "text": "open sockets"}, {"_id": "PLAIN-2", "text": "disk usage"}]
    for name, rows in (("corpus", passages), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["query-id\tcorpus-id\tscore", "PLAIN-1\tMED-1\t2", "PLAIN-2\tMED-3\t1", "PLAIN-2\tMED-9\t1"]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return str(folder)


@pytest.mark.end_to_end
def test_retrieval_on_beir(beir: str) -> None:
    words = ("dataset=jsonl", f"dataset.path={beir}", "retriever=bm25", "retriever.top_k=1", "enhancer=none")
    run = api.run(*words, "generator=none", "tokenizer=words", "metric=[recall@k,mrr]", "metric.recall@k.k=1")
    values = {name: m["value"] for name, m in run.metrics["metrics"].items()}
    assert values == {"recall@k": pytest.approx((1 + 1 / 2) / 2), "mrr": 1.0}  # MED-9 is gold, but not there
    ranked = [line.split()[:3] for line in (run.path / "rankings.trec").read_text().splitlines()]
    assert ranked == [["PLAIN-1", "Q0", "MED-1"], ["PLAIN-2", "Q0", "MED-3"]]
    assert (run.path / "qrels.trec").read_text().splitlines()[::2] == ["PLAIN-1 0 MED-1 2", "PLAIN-2 0 MED-9 1"]
    card = json.loads((run.path / "card.json").read_text())
    assert (card["layout"], card["counts"]["gold passages that are not in the corpus"]) == ("BEIR", 1)


@pytest.mark.end_to_end
def test_a_cut_off_beyond_the_rankings_is_refused_before_retrieval(beir: str) -> None:
    words = ("dataset=jsonl", f"dataset.path={beir}", "retriever=bm25", "enhancer=none", "generator=none")
    metric = ("tokenizer=words", "metric=[ndcg@k]")
    with pytest.raises(InputError, match=r"^metric.ndcg@k.k=10, retriever.top_k=2: .* set retriever.top_k=3 or"):
        api.run(*words, *metric)
    assert not Path("store/ranking").exists()
    assert api.run(*words, *metric, "retriever.top_k=3").metrics["metrics"]["ndcg@k"]["value"] > 0


@pytest.mark.end_to_end
def test_answers_without_gold_ones_score_0_and_say_so(beir: str) -> None:
    words = ("dataset=jsonl", f"dataset.path={beir}", "retriever=bm25", "enhancer=none", "tokenizer=words")
    run = api.run(*words, "generator=answerbot", "generator.encoder=null", "metric=[rouge1]")
    assert run.metrics["metrics"]["rouge1"]["value"] == 0
    assert "without gold answers, so 0 in metrics of answers: 2 of 2 questions" in run.summary()
