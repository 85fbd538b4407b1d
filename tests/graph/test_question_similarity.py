"""The question–question graph."""

import json

import numpy as np
import pytest

from graphcontext.data.records import Corpus, Passage
from graphcontext.errors import InputError
from graphcontext.graph.question_similarity import QuestionSimilarity


class Angles:
    """An encoder whose text is an angle in degrees: cos of two texts is the cosine of their difference."""

    def encode(self, texts, kind="passage"):
        radians = np.radians([float(t) for t in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def corpus(*angles):
    return Corpus.of([Passage(f"p{n}", "", str(a), str(a)) for n, a in enumerate(angles)])


def test_edges_are_the_pairs_above_the_threshold():
    # cos 20° = .94, cos 30° = .87, cos 50° = .64: above .8 are 0–20 and 20–50.
    graph = QuestionSimilarity(Angles(), threshold=0.8).build(corpus(0, 20, 50, 180))
    assert graph.indptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.weights.tolist() == [1, 1, 1, 1]
    assert graph.facts["threshold"] == 0.8
    assert graph.facts["threshold_rule"] == "fixed"
    assert (graph.facts["n_edges"], graph.facts["isolated"], graph.facts["components"]) == (2, 1, 2)
    assert (graph.indptr.dtype, graph.indices.dtype, graph.weights.dtype) == (np.int64, np.int32, np.float32)
    json.dumps(graph.facts)


def test_a_calibrated_threshold_keeps_the_density():
    # Mean degree 1 over 4 nodes: 2 edges. Pairs by cosine: 0–5, 5–20 (15°), 0–20, 20–60 …; the third is τ.
    graph = QuestionSimilarity(Angles(), threshold="mean_degree:1").build(corpus(0, 5, 20, 60))
    assert graph.facts["threshold"] == pytest.approx(np.cos(np.radians(20)), abs=1e-6)
    assert graph.facts["threshold_rule"] == "mean_degree:1"
    assert graph.facts["mean_degree"] == 1.0
    assert graph.indices.tolist() == [1, 0, 2, 1]


def test_the_graph_does_not_depend_on_the_tile():
    angles = np.random.default_rng(0).uniform(0, 90, 60).round(1)
    graphs = [
        QuestionSimilarity(Angles(), "mean_degree:4", tile_rows=r, tile_columns=c).build(corpus(*angles))
        for r, c in [(1, 1), (7, 3), (1024, 4096)]
    ]
    for graph in graphs[1:]:
        np.testing.assert_array_equal(graph.indices, graphs[0].indices)
        assert graph.facts == graphs[0].facts


def test_weighted_edges_carry_the_cosine():
    graph = QuestionSimilarity(Angles(), threshold=-0.5, weighted=True).build(corpus(0, 60, 100))
    np.testing.assert_allclose(graph.weights, np.cos(np.radians([60, 60, 40, 40])), atol=1e-6)  # 100° is below 0
    assert graph.facts["threshold"] == 0.0


def test_t30_an_empty_pool_and_a_single_question():
    assert QuestionSimilarity(Angles(), 0.8).build(corpus()).n_nodes == 0
    assert QuestionSimilarity(Angles(), "mean_degree:8").build(corpus(3)).facts["n_edges"] == 0


@pytest.mark.parametrize("threshold", [1, -1, 1.5, "0.8", "mean_degree:", "mean_degree:x", None, True])
def test_other_thresholds_are_refused(threshold):
    with pytest.raises(InputError, match=r"graph.threshold=.*mean_degree:8"):
        QuestionSimilarity(Angles(), threshold)
