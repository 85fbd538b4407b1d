"""Windows of nouns and edit distance, against a loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.retrieve.knn import KNN, best_by_window, windows


class Capitals:
    """Takes the words that begin with a capital for nouns."""

    def nouns(self, texts):
        return [" ".join(w for w in text.split() if w[:1].isupper()) for text in texts]


class Letters:
    """An encoder that counts the letters A, B, C and all others."""

    def __init__(self):
        self.pools, self.encoded = [], []

    def pool(self, texts, kind="passage"):
        self.pools.append(list(texts))

    def encode(self, texts, kind="passage"):
        self.encoded.append((kind, list(texts)))
        rows = [[t.count("A"), t.count("B"), t.count("C"), sum(c not in "ABC " for c in t)] for t in texts]
        return np.array(rows, np.float32).reshape(len(texts), 4)


def corpus(*texts):
    return Corpus.of([Passage(f"p{n}", "", t, t, kind=None if t else "page") for n, t in enumerate(texts)])


def retrieve(pool, *texts, encoder=None, **options):
    options = {"top_k": 4, "n_levenshtein": 2, **options}
    questions = [Question(f"q{n}", text, pool.id) for n, text in enumerate(texts)]
    return KNN(encoder or Letters(), Capitals(), **options).retrieve(questions, {pool.id: pool}, {})


def ids(ranking):
    return [p.id for p in ranking.passages]


def test_windows_of_four_stride_two_cover_every_word():
    assert windows(["a", "b", "c", "d", "e", "f"], 4, 2) == ("a b c d", "c d e f")
    assert windows(list("abcdefg"), 4, 2) == ("a b c d", "c d e f", "e f g")
    assert windows(["a", "b", "c"], 4, 2) == ("a b c",)
    assert windows(["a", "b"], 1, 1) == ("a", "b")


def test_a_passage_is_as_near_as_its_best_window():
    # Nouns of the question: A. p0: windows "B B A A" (cosine .71), "A A A A" (1); p1: "A B" (.71); p2: "B" (0).
    pool = corpus("B B and then A A A A", "A by B", "B alone")
    ranking = retrieve(pool, "is it A", top_k=2, n_levenshtein=0)[0]
    assert [(p.id, round(p.score, 2)) for p in ranking.passages] == [("p0", 1.0), ("p1", 0.71)]


def test_the_nearest_come_first_then_the_smallest_distances_that_are_not_among_them():
    # By nouns: p0 (A) and p1 (A); by distance to "any A": p0 0, p3 "any x" 1, p4 "any xy" 2, p1 and p2 more.
    pool = corpus("any A", "A in a longer text", "B and more of B", "any x", "any xy")
    ranking = retrieve(pool, "any A")[0]
    assert [(p.id, p.score) for p in ranking.passages] == [("p0", 1.0), ("p1", 1.0), ("p3", -1.0), ("p4", -2.0)]
    assert ids(retrieve(pool, "any A", order="code")[0]) == ["p1", "p0", "p3", "p4"]
    assert ids(retrieve(pool, "any A", n_levenshtein=4)[0])[:2] == ["p0", "p3"]


def test_where_few_passages_hold_a_noun_more_come_by_distance():
    pool = corpus("any x", "no noun at all", "A")
    ranking = retrieve(pool, "any A", top_k=3, n_levenshtein=1)[0]
    assert ids(ranking) == ["p2", "p0", "p1"]
    none = corpus("x", "y", "z")  # 3, 2 and 3 characters away from "y A"
    assert [(p.id, p.score) for p in retrieve(none, "y A", top_k=2, n_levenshtein=1)[0].passages] == [
        ("p1", -2.0),
        ("p0", -3.0),
    ]
    alone = retrieve(none, "y A", top_k=2, n_levenshtein=0)[0]
    assert (alone.passages, alone.status, alone.reason) == ((), "empty", "no passage holds a noun")


def test_a_question_without_nouns_is_counted_and_read_as_it_is():
    encoder = Letters()
    pool = corpus("A", "B")
    assert retrieve(pool, "which", "A or not", encoder=encoder)[0].fallback == "question_text"
    assert encoder.encoded[0] == ("query", ["which", "A"])
    whole = retrieve(pool, "which", encoder=encoder, query="text")[0]
    assert whole.fallback is None and ("query", ["which"]) in encoder.encoded


def test_page_nodes_are_not_retrieved_and_windows_of_all_corpora_are_encoded_once():
    left, right = corpus("", "A B C A B C", "A"), corpus("A", "A B C A")
    questions = [Question("1", "A", left.id), Question("2", "C", right.id), Question("3", "A", corpus("").id)]
    corpora = {c.id: c for c in (left, right, corpus(""))}
    encoder = Letters()
    rankings = KNN(encoder, Capitals(), top_k=3, n_levenshtein=1).retrieve(questions, corpora, {})
    assert ids(rankings[0]) == ["p2", "p1"] and ids(rankings[1]) == ["p1", "p0"]
    assert (rankings[2].status, rankings[2].reason) == ("empty", "the corpus has no passage")
    assert encoder.pools == [["A", "A B C A", "C A B C"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": "noun"}, "retriever.query=noun.*nouns"),
        ({"order": "worst"}, "retriever.order=worst"),
        ({"n_levenshtein": 5}, "n_levenshtein=5: allowed is 0 to top_k=4"),
        ({"stride": 5}, "stride=5: allowed is 1 to window=4"),
    ],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(InputError, match=said):
        KNN(Letters(), Capitals(), **{"top_k": 4, "n_levenshtein": 2, **options})


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def by_loop(pool, text, k, n_levenshtein):
    """KGP's two parts, one window and one passage at a time."""

    def unit(t):
        vector = Letters().encode([t])[0].astype(np.float64)
        return vector / (np.linalg.norm(vector) or 1)

    query = unit(Capitals().nouns([text])[0] or text)
    scores = {}
    for i, passage in enumerate(pool.passages):
        words = Capitals().nouns([passage.match_text])[0].split()
        cosines = [unit(" ".join(words[s : s + 4])) @ query for s in range(0, max(1, len(words) - 2), 2) if words]
        if cosines:
            scores[i] = round(max(cosines), 6)
    near = sorted(scores, key=lambda i: (-scores[i], i))[: k - n_levenshtein]
    rest = sorted(range(len(pool.passages)), key=lambda i: (levenshtein(text, pool.passages[i].match_text), i))
    return [f"p{i}" for i in [*near, *[i for i in rest if i not in near]][:k]]


WORDS = st.sampled_from(["A", "B", "C", "x", "yy"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), min_size=1)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.sampled_from(["A", "A B x", "C C yy", "x yy"]))
def test_equal_to_a_loop(texts, asked):
    pool = corpus(*texts)
    together = retrieve(pool, asked, "B", top_k=6, n_levenshtein=3)
    assert ids(together[0]) == by_loop(pool, asked, 6, 3)
    assert together[0] == retrieve(pool, asked, top_k=6, n_levenshtein=3)[0]


def test_equal_windows_tie_whatever_the_size_of_the_product():
    random = np.random.default_rng(0)
    pool = random.normal(size=(60, 384)).astype(np.float32)
    pool[40:] = pool[:20]  # passages 20 … 29 hold the windows of passages 0 … 9
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    indices, scores = best_by_window(pool[[3]], pool, np.full(30, 2), 4)[0]
    assert indices[:2].tolist() == [1, 21] and scores[0] == scores[1]
