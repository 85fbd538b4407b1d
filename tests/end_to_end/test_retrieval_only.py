"""Retrieval measured alone, on a data set of the user's own with gold passages: scores and TREC files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import InputError
from graphcontext.files import read_lines

DATASET = '''
from graphcontext.data.loaded import Loaded
from graphcontext.data.records import Corpus, Passage, Question


class Own:
    """Three questions on three passages; the second has two gold passages, the third none."""

    def __init__(self, name: str, marked: bool = True):
        self.name, self.marked = name, marked

    def load(self):
        texts = {"sockets": "ss lists open sockets", "disk": "df shows free disk space", "usage": "du shows disk usage"}
        corpus = Corpus.of([Passage(i, "", text, text) for i, text in texts.items()])
        gold = {"open sockets": ("sockets",), "disk space": ("disk", "usage"), "kernel": ()}
        questions = [
            Question(f"q {n}", text, corpus.id, ("an answer",), supports=ids if self.marked else ())
            for n, (text, ids) in enumerate(gold.items())
        ]
        return Loaded(tuple(questions), {corpus.id: corpus}, {"scored_candidates": 3})

    def select(self, questions):
        return tuple(questions)
'''
WORDS = ("experiment=gcg/text_gen", "retriever=tfidf", "retriever.top_k=2", "generator=none", "tokenizer=words")


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "supported.py").write_text(DATASET)
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    yaml = "# graphcontext run dataset=own\n_target_: supported.Own\nname: own\nmarked: true\n"
    (tmp_path / "conf" / "dataset" / "own.yaml").write_text(yaml)
    return str(tmp_path / "conf")


@pytest.mark.end_to_end
def test_rankings_are_scored_without_a_model_and_written_for_trec_eval(conf: str) -> None:
    metric = "metric=[recall@k,precision@k,ndcg@k,mrr,rouge1]"
    cut = [f"metric.{name}@k.k=2" for name in ("recall", "precision", "ndcg")]
    run = api.run(*WORDS, "dataset=own", metric, *cut, "metric.recall@k.ks=[1]", config_dir=conf)
    done = run.metrics
    values = {name: m["value"] for name, m in done["metrics"].items()}
    # q 0: sockets first of 1 gold; q 1: disk, usage; q 2: no gold passage, so 0; recall@1: all, half, none
    expected = {"recall@k": 2 / 3, "recall@1": 1.5 / 3, "precision@k": 1.5 / 3, "ndcg@k": 2 / 3, "mrr": 2 / 3}
    assert values == pytest.approx(expected)
    assert (done["n"], done["n_failed"]) == (3, 0)
    assert "without gold passages, so 0 in retrieval metrics: 1 of 3 questions" in run.summary()
    assert "not scored, since generator=none gives no answers: rouge1" in run.summary()
    assert read_lines(run.path / "scores.jsonl")[1]["recall@1"] == 0.5
    lines = (run.path / "rankings.trec").read_text().splitlines()
    rankings = [json.loads(line) for line in (run.path / "rankings.jsonl").read_text().splitlines()]
    assert [line.split()[2] for line in lines] == [hit["id"] for row in rankings for hit in row["passages"]]
    assert lines[0].split()[:4] == ["q%200", "Q0", "sockets", "1"]
    assert (run.path / "qrels.trec").read_text() == "q%200 0 sockets 1\nq%201 0 disk 1\nq%201 0 usage 1\n"


@pytest.mark.end_to_end
def test_without_gold_passages_it_is_refused_before_retrieval(conf: str) -> None:
    words = (*WORDS, "dataset=own", "dataset.marked=false")
    with pytest.raises(InputError, match=r"metric mrr needs .* supports .*; data set own has none"):
        api.run(*words, "metric=[mrr]", config_dir=conf)
    assert not Path("store/ranking").exists()
    run = api.run(*words, "metric=[]", config_dir=conf)
    assert (run.path / "rankings.trec").is_file() and not (run.path / "qrels.trec").exists()
