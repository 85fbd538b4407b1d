"""Two-hop dense retrieval, against all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.retrieve.mdr import MDR, nearest_by_product


class Plane:
    """An encoder of texts "x,y": the sum of the points that are joined by "+"."""

    def __init__(self):
        self.calls = []

    def encode(self, texts, kind="passage"):
        self.calls.append((kind, len(texts)))
        points = [[[float(v) for v in point.split(",")] for point in t.split("+")] for t in texts]
        return np.array([np.sum(p, axis=0) for p in points], np.float32).reshape(len(texts), 2)


def corpus(*points, pages=0):
    texts = [""] * pages + [f"{x},{y}" for x, y in points]
    return Corpus.of([Passage(f"p{n}", "", t, t, kind=None if t else "page") for n, t in enumerate(texts)])


def ask(pool, x, y, i="q"):
    return Question(i, f"{x},{y}", pool.id)


def retrieve(pool, *questions, **options):
    return MDR(Plane(), **{"joiner": "+", **options}).retrieve(questions, {pool.id: pool}, {})


def ids(ranking):
    return [p.id for p in ranking.passages]


def test_pairs_by_the_product_of_their_scores():
    # q (1, 0). First hop: p0 (4, 1) 4, p1 (3, 3) 3. Second: from q + p0 = (5, 1): p1 18, p2 (0, 2) 2; from q + p1 =
    # (4, 3): p0 19, p2 6. Pairs: p0 p1 72, p1 p0 57, p1 p2 18, p0 p2 8.
    pool = corpus((4, 1), (3, 3), (0, 2))
    ranking = retrieve(pool, ask(pool, 1, 0), n_first=2, n_second=2, top_k=3)[0]
    assert [(p.id, p.score) for p in ranking.passages] == [("p0", 72), ("p1", 72), ("p2", 18)]
    assert [(s.path, s.chosen) for s in ranking.steps] == [
        ((), ("p0", "p1")),
        (("p0",), ("p1",)),
        (("p1",), ("p0", "p2")),
    ]
    assert [(s.evidence, s.n_candidates) for s in ranking.steps] == [("1,0", 3), ("1,0+4,1", 2), ("1,0+3,3", 2)]


def test_pairs_in_the_order_they_are_found():
    # As above: p0 p1, p0 p2, p1 p0, p1 p2; three pairs are kept.
    pool = corpus((4, 1), (3, 3), (0, 2))
    ranking = retrieve(pool, ask(pool, 1, 0), n_first=2, n_second=2, top_k=3, rank="generation")[0]
    assert [(p.id, p.score) for p in ranking.passages] == [("p0", 72), ("p1", 72), ("p2", 8)]
    assert [(s.path, s.chosen) for s in ranking.steps[1:]] == [(("p0",), ("p1", "p2")), (("p1",), ("p0",))]


def test_two_negative_products_make_no_good_pair():
    # q (1, 0). p1 (−1, 0): −1, and from q + p1 = (0, 0) everything is 0. p0 (1, 0): 1, then from (2, 0) p2 (.5, 0): 1.
    pool = corpus((1, 0), (-1, 0), (0.5, 0), (-3, 0))
    ranking = retrieve(pool, ask(pool, 1, 0), n_first=4, n_second=1, top_k=1)[0]
    assert ids(ranking) == ["p0"]  # one pair, of it one passage
    far = retrieve(pool, ask(pool, 1, 0), n_first=4, n_second=3, top_k=12)[0]
    assert far.steps[1].path == ("p0",) and min(p.score for p in far.passages) == 0


def test_a_single_passage_is_a_ranking_without_pairs():
    pool = corpus((2, 0), pages=1)
    ranking = retrieve(pool, ask(pool, 1, 0))[0]
    assert [(p.id, p.score) for p in ranking.passages] == [("p1", 2.0)]
    assert [(s.path, s.chosen) for s in ranking.steps] == [((), ("p1",))]


def test_page_nodes_and_empty_corpora():
    pool, none = corpus((1, 0), (2, 0), pages=2), corpus()
    questions = [ask(pool, 1, 0), Question("e", "1,0", none.id)]
    rankings = MDR(Plane(), joiner="+").retrieve(questions, {pool.id: pool, none.id: none}, {})
    assert ids(rankings[0]) == ["p3", "p2"]
    assert (rankings[1].status, rankings[1].reason) == ("empty", "the corpus has no passage")
    assert MDR(Plane()).retrieve([], {}, {}) == []


def test_second_hops_of_all_questions_are_encoded_at_once():
    left, right = corpus((1, 0), (2, 0)), corpus((0, 1), (0, 2), (1, 1))
    encoder = Plane()
    questions = [ask(left, 1, 0, "a"), ask(right, 1, 0, "b"), ask(left, 0, 1, "c")]
    MDR(encoder, n_first=2, joiner="+").retrieve(questions, {left.id: left, right.id: right}, {})
    assert encoder.calls == [("query", 3), ("passage", 2), ("passage", 3), ("query", 6)]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"rank": "produkt"}, "retriever.rank=produkt.*product"), ({"n_second": 0}, "retriever.n_second=0")],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(InputError, match=said):
        MDR(Plane(), **options)


POINTS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=9)


@settings(deadline=None)
@given(POINTS, st.tuples(st.integers(-3, 3), st.integers(-3, 3)), st.integers(1, 5), st.integers(1, 4))
def test_equal_to_all_pairs_one_by_one(points, q, n_first, n_second):
    pool = corpus(*points)

    def product(a, b):
        return a[0] * b[0] + a[1] * b[1]

    def nearest(query, k, without=None):
        others = [i for i in range(len(points)) if i != without]
        return sorted(others, key=lambda i: (-product(query, points[i]), i))[:k]

    pairs = []
    for first in nearest(q, n_first):
        joined = (q[0] + points[first][0], q[1] + points[first][1])
        for second in nearest(joined, n_second, first):
            score = max(product(q, points[first]), 0) * max(product(joined, points[second]), 0)
            pairs.append((first, second, score))
    pairs.sort(key=lambda pair: -pair[2])
    expected = list(dict.fromkeys(f"p{i}" for first, second, _ in pairs[:4] for i in (first, second)))[:4]
    asked = [ask(pool, *q), ask(pool, 1, 1, "other")]
    ranking = retrieve(pool, *asked, n_first=n_first, n_second=n_second, top_k=4)[0]
    assert ids(ranking) == expected
    assert ranking == retrieve(pool, asked[0], n_first=n_first, n_second=n_second, top_k=4)[0]


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_nearest_by_product_is_a_stable_sort_whatever_the_lengths(seed, k):
    random = np.random.default_rng(seed)
    pool = random.normal(size=(10, 16)).astype(np.float32) * random.uniform(0.01, 100, (10, 1)).astype(np.float32)
    pool[7], pool[3] = pool[1], pool[1]  # equal texts: by index
    queries = random.normal(size=(3, 16)).astype(np.float32) * 50
    without = np.array([0, 1, 9])
    indices, products = nearest_by_product(queries, pool, k, without)
    for q in range(3):
        exact = (queries[q].astype(np.float64) * pool.astype(np.float64)).sum(axis=1)
        order = [i for i in np.argsort(-exact, kind="stable") if i != without[q]][:k]
        assert indices[q].tolist() == order and products[q].tolist() == exact[order].tolist()
    assert nearest_by_product(queries, pool[:1], 3, np.zeros(3, int))[0].shape == (3, 0)
