"""TF-IDF retrieval against scikit-learn's defaults."""

import math

import numpy as np
import pytest

from graphcontext.data.records import Corpus, Passage, Question, content_id
from graphcontext.retrieve.tfidf import TFIDF

TEXTS = [
    "Mount an NTFS drive at boot: fstab or systemd?",
    "How do I mount a network drive? The drive is slow, slow.",
    "ssh: permission denied (publickey)",
    "Ubuntu don't boot après l'update — naïve fix",
    "a b c",
    "",
]


def corpus(texts, title=""):
    return Corpus.of([Passage(content_id(title, t, str(n)), title, t, t) for n, t in enumerate(texts)])


def ask(pool, *texts):
    return [Question(f"q{n}", text, pool.id) for n, text in enumerate(texts)]


def test_scores_by_hand():
    # idf = ln((1+2)/(1+df)) + 1: shared "disk" 1, "full" and "quota" ln 1.5 + 1 = 1.4055.
    # Both are (1, 1.4055)/1.7249; the question "disk full" equals the first: 1, and 1/1.7249² = .3361.
    pool = corpus(["disk full", "disk quota"])
    ranking = TFIDF(top_k=2).retrieve(ask(pool, "Disk full!"), {pool.id: pool}, {})[0]
    rare = math.log(1.5) + 1
    np.testing.assert_allclose([p.score for p in ranking.passages], [1, 1 / (1 + rare**2)])
    assert [p.id for p in ranking.passages] == [p.id for p in pool.passages]


def test_equal_to_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    from sklearn.metrics.pairwise import cosine_similarity

    queries = ["mount drive at boot", "slow slow network", "Permission DENIED", "naïve l'update", "drive"]
    vectoriser = text.TfidfVectorizer()
    passages = vectoriser.fit_transform(TEXTS)
    expected = cosine_similarity(vectoriser.transform(queries), passages)
    pool = corpus(TEXTS)
    rankings = TFIDF(top_k=6).retrieve(ask(pool, *queries), {pool.id: pool}, {})
    for row, ranking in zip(expected, rankings, strict=True):
        order = [i for i in np.argsort(-row, kind="stable") if row[i] > 0]
        assert [p.id for p in ranking.passages] == [pool.passages[i].id for i in order]
        np.testing.assert_allclose([p.score for p in ranking.passages], row[order], atol=1e-12)


def test_t03_two_passages_with_one_title_are_both_retrievable():
    pool = Corpus.of([Passage(content_id("Green", t), "Green", f"Green\n{t}", t) for t in ("a colour", "an album")])
    first, second = TFIDF(top_k=1).retrieve(ask(pool, "green colour", "green album"), {pool.id: pool}, {})
    assert first.passages[0].id != second.passages[0].id
    assert len(TFIDF(top_k=2).retrieve(ask(pool, "green"), {pool.id: pool}, {})[0].passages) == 2


def test_equal_scores_rank_by_index():
    pool = corpus(["disk"] * 5)
    ranking = TFIDF(top_k=3).retrieve(ask(pool, "disk"), {pool.id: pool}, {})[0]
    assert [p.id for p in ranking.passages] == [p.id for p in pool.passages[:3]]


def test_a_question_without_a_match_and_an_empty_pool_are_empty():
    pool, nothing, wordless = corpus(["disk full"]), corpus([]), corpus(["", "?"])
    corpora = {c.id: c for c in (pool, nothing, wordless)}
    questions = [Question("1", "zfs", pool.id), Question("2", "", pool.id), Question("3", "disk", nothing.id)]
    questions += [Question("4", "disk", pool.id), Question("5", "disk", wordless.id)]
    rankings = TFIDF(top_k=2).retrieve(questions, corpora, {})
    assert [r.id for r in rankings] == ["1", "2", "3", "4", "5"]
    assert [r.status for r in rankings] == ["empty", "empty", "empty", "ok", "empty"]
    assert rankings[2].reason == "the corpus has no passage"


def test_the_batch_does_not_change_a_ranking():
    pool = corpus(TEXTS)
    questions = ask(pool, *TEXTS, *reversed(TEXTS))
    rankings = [TFIDF(3, batch_size=b).retrieve(questions, {pool.id: pool}, {}) for b in (1, 5, 64)]
    assert rankings[0] == rankings[1] == rankings[2]
