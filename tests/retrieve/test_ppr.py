"""PageRank retrieval: what it finds that cosine does not, and its two counted fall-backs."""

import numpy as np
import pytest

from graphcontext.data.records import Corpus, Graph, Passage, Question
from graphcontext.errors import InputError
from graphcontext.graph.question_similarity import QuestionSimilarity
from graphcontext.retrieve.dense import Dense
from graphcontext.retrieve.ppr import PPR


class Angles:
    """An encoder whose text is an angle in degrees."""

    def encode(self, texts, kind="passage"):
        radians = np.radians([float(t) for t in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def setting(*angles, threshold=0.8):  # cos 36.9° = .8
    pool = Corpus.of([Passage(f"p{n}", "", str(a), "") for n, a in enumerate(angles)])
    graph = QuestionSimilarity(Angles(), threshold).build(pool)
    return pool, {pool.id: pool}, {pool.id: graph}


def ask(pool, *angles):
    return [Question(f"q{a}", str(a), pool.id) for a in angles]


def test_a_hub_beats_the_nearest_passage():
    # The question at 0 has neighbours −30 (cosine .87, alone) and 33, 35, 36 (.84 to .81, joined to each
    # other): cosine ranks −30 first, PageRank the group.
    pool, corpora, graphs = setting(-30, 33, 35, 36)
    questions = ask(pool, 0)
    dense = Dense(Angles(), 2).retrieve(questions, corpora, graphs)[0]
    ppr = PPR(Angles(), 2).retrieve(questions, corpora, graphs)[0]
    assert [p.id for p in dense.passages] == ["p0", "p1"]
    assert [p.id for p in ppr.passages] == ["p1", "p2"]  # symmetric: equal scores, by index
    assert ppr.passages[0].score == ppr.passages[1].score
    assert ppr.fallback is None


def test_a_passage_two_hops_away_is_reached():
    # Question 0, neighbour 30, and 60 only through 30: the path of length 2 gets mass, −90 none.
    pool, corpora, graphs = setting(-90, 30, 60)
    ranking = PPR(Angles(), 2).retrieve(ask(pool, 0), corpora, graphs)[0]
    # a = x_q, b, c on the path q–1–2: b = .85 (a + c), c = .425 b, so b = .85 a/(1 − .36125); a + b + c = 1.
    b_per_a = 0.85 / (1 - 0.85 * 0.425)
    a = 1 / (1 + b_per_a * 1.425)
    assert [p.id for p in ranking.passages] == ["p1", "p2"]
    np.testing.assert_allclose([p.score for p in ranking.passages], [a * b_per_a, a * b_per_a * 0.425], atol=1e-6)


def test_a_question_without_neighbours_falls_back_to_cosine():
    pool, corpora, graphs = setting(0, 10, 20)
    ranking = PPR(Angles(), 2).retrieve(ask(pool, 90), corpora, graphs)[0]
    assert (ranking.status, ranking.fallback) == ("ok", "cosine")
    assert [p.id for p in ranking.passages] == ["p2", "p1"]
    assert ranking.passages[0].score == pytest.approx(np.cos(np.radians(70)))


def test_too_few_reached_are_filled_by_cosine_with_score_zero():
    pool, corpora, graphs = setting(0, 80, 150, 100)
    ranking = PPR(Angles(), 3).retrieve(ask(pool, 5), corpora, graphs)[0]
    assert ranking.fallback == "cosine_fill"
    assert [p.id for p in ranking.passages] == ["p0", "p1", "p3"]
    assert [p.score > 0 for p in ranking.passages] == [True, False, False]


def test_rankings_keep_the_questions_order_and_do_not_depend_on_each_other():
    pool, corpora, graphs = setting(*range(0, 180, 4), threshold=0.98)
    questions = ask(pool, *range(3, 200, 2))
    together = PPR(Angles(), 4).retrieve(questions, corpora, graphs)
    assert [r.id for r in together] == [q.id for q in questions]
    assert together == [PPR(Angles(), 4).retrieve([q], corpora, graphs)[0] for q in questions]


def test_pools_smaller_than_k():
    pool, corpora, graphs = setting(0)
    assert len(PPR(Angles(), 5).retrieve(ask(pool, 3), corpora, graphs)[0].passages) == 1
    pool, corpora, graphs = setting()
    assert PPR(Angles(), 5).retrieve(ask(pool, 3), corpora, graphs)[0].status == "empty"
    assert PPR(Angles(), 5).retrieve([], corpora, graphs) == []


def test_a_calibrated_graph_joins_questions_by_the_threshold_it_used():
    pool, corpora, graphs = setting(0, 10, 30, 90, threshold="mean_degree:1")  # edges 0–10 and 10–30: τ = cos 30°
    near, far = PPR(Angles(), 1).retrieve(ask(pool, 119, 121), corpora, graphs)
    assert (near.fallback, far.fallback) == (None, "cosine")


def test_a_graph_that_does_not_fit_is_named():
    pool, corpora, graphs = setting(0, 10)
    with pytest.raises(InputError, match="needs a graph of corpus"):
        PPR(Angles()).retrieve(ask(pool, 3), corpora, {})
    other = Graph(pool.id, np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    with pytest.raises(InputError, match="has 1 nodes for 2 passages"):
        PPR(Angles()).retrieve(ask(pool, 3), corpora, {pool.id: other})
    graphs[pool.id].facts.pop("threshold")
    with pytest.raises(InputError, match="graph=question_similarity"):
        PPR(Angles()).retrieve(ask(pool, 3), corpora, graphs)


def test_stopping_at_max_iter_is_marked():
    pool, corpora, graphs = setting(0, 10, 20)
    rankings = PPR(Angles(), max_iter=2).retrieve(ask(pool, 3, 5), corpora, graphs)
    assert [r.reason for r in rankings] == ["PageRank stopped at max_iter=2"] * 2
    assert [r.reason for r in PPR(Angles()).retrieve(ask(pool, 3, 5), corpora, graphs)] == [None, None]


def test_values_out_of_range_are_refused():
    with pytest.raises(InputError, match="damping=1"):
        PPR(Angles(), damping=1)


def test_a_page_node_passes_mass_on_but_is_not_retrieved():
    # Question 0 – text 30 – page – text 90, which only the page leads to; the texts' cosine is below the threshold.
    texts = [("page", ""), ("near", "30"), ("far", "90"), ("apart", "-100")]
    pool = Corpus.of([Passage(i, "", text, "", kind=None if text else "page") for i, text in texts])
    graph = Graph(
        pool.id,
        np.array([0, 2, 3, 4, 4]),
        np.array([1, 2, 0, 0], np.int32),
        np.ones(4, np.float32),
        facts={"threshold": 0.8},
    )
    ranking = PPR(Angles(), 3).retrieve(ask(pool, 0), {pool.id: pool}, {pool.id: graph})[0]  # Angles reads no blank
    assert [p.id for p in ranking.passages] == ["near", "far", "apart"]
    assert [p.score > 0 for p in ranking.passages] == [True, True, False]
    assert ranking.fallback == "cosine_fill"
