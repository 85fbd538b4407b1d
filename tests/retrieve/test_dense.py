"""Dense retrieval by exact cosine."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphcontext
from graphcontext.data.records import Corpus, Passage, Question, content_id
from graphcontext.errors import InputError
from graphcontext.retrieve.dense import Dense


class Angles:
    """An encoder whose text is an angle in degrees."""

    def __init__(self):
        self.kinds = []

    def encode(self, texts, kind="passage"):
        self.kinds.append(kind)
        radians = np.radians([float(t.split()[-1]) for t in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def corpus(*angles, title=""):
    return Corpus.of([Passage(content_id(title, str(n), str(a)), title, str(a), "") for n, a in enumerate(angles)])


def test_nearest_first_in_question_order():
    left, right = corpus(0, 30, 90), corpus(180, 170)
    questions = [Question("1", "40", left.id), Question("2", "171", right.id), Question("3", "80", left.id)]
    encoder = Angles()
    rankings = Dense(encoder, 2).retrieve(questions, {left.id: left, right.id: right}, {})
    found = [[p.id for p in r.passages] for r in rankings]
    ids = [[p.id for p in c.passages] for c in (left, right)]
    assert found == [[ids[0][1], ids[0][0]], [ids[1][1], ids[1][0]], [ids[0][2], ids[0][1]]]
    assert rankings[0].passages[0].score == pytest.approx(np.cos(np.radians(10)))
    assert encoder.kinds == ["query", "passage", "passage"]


def test_t03_two_passages_with_one_title_and_text_are_both_retrievable():
    pool = corpus(10, 10, title="Green")
    ranking = Dense(Angles(), 2).retrieve([Question("1", "10", pool.id)], {pool.id: pool}, {})[0]
    assert [p.id for p in ranking.passages] == [p.id for p in pool.passages]


def test_a_page_node_is_never_retrieved():
    pool = Corpus.of([Passage("page", "", " ", "1", kind="page"), *corpus(10, 80).passages])
    questions = [Question("1", "75", pool.id)]
    ranking = Dense(Angles(), 3).retrieve(questions, {pool.id: pool}, {})[0]  # Angles cannot read a blank text
    assert [p.id for p in ranking.passages] == [pool.passages[2].id, pool.passages[1].id]
    pages = Corpus.of([pool.passages[0]])
    alone = Dense(Angles(), 3).retrieve([Question("1", "75", pages.id)], {pages.id: pages}, {})[0]
    assert (alone.status, alone.reason) == ("empty", "the corpus has no passage")


def test_an_empty_pool_is_empty_and_no_question_is_no_ranking():
    pool = corpus()
    ranking = Dense(Angles(), 2).retrieve([Question("1", "10", pool.id)], {pool.id: pool}, {})[0]
    assert (ranking.status, ranking.reason) == ("empty", "the corpus has no passage")
    assert Dense(Angles(), 2).retrieve([], {}, {}) == []


def test_t01_retrievers_import_without_torch_and_faiss():
    modules = ["none", "tfidf", "bm25", "dense", "ppr", "golden", "knn", "mdr", "ircot", "encoder"]
    code = "import sys; sys.modules.update(torch=None, faiss=None, transformers=None); " + "; ".join(
        f"import graphcontext.retrieve.{m}" for m in modules
    )
    source = str(Path(graphcontext.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": source})


class Lengths(Angles):
    """The same, each vector as long as its text says before the angle."""

    def encode(self, texts, kind="passage"):
        return super().encode(texts, kind) * np.array([[float(t.split()[0])] for t in texts], np.float32)


def test_by_dot_product_a_long_vector_is_nearer():
    # the question lies at 10 degrees: cosines 1, 0.98; products 1, 3 · 0.98
    pool = Corpus.of([Passage(str(n), "", text, "") for n, text in enumerate(("1 10", "3 20"))])
    asked = [Question("1", "1 10", pool.id)]
    found = {s: Dense(Lengths(), 2, s).retrieve(asked, {pool.id: pool}, {})[0].passages for s in ("cosine", "dot")}
    assert [[p.id for p in found[s]] for s in ("cosine", "dot")] == [["0", "1"], ["1", "0"]]
    assert found["dot"][0].score == pytest.approx(3 * np.cos(np.radians(10)))
    with pytest.raises(InputError, match=r"retriever\.similarity=dit.*did you mean dot"):
        Dense(Lengths(), 2, "dit")
