"""The neighbourhood of seeds: as sets say it, in a fixed order, judged whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Corpus, Graph, Passage, Question
from graphcontext.errors import InputError
from graphcontext.evaluate.retrieval import RetrievalMetric
from graphcontext.pipeline import check_rankings
from graphcontext.retrieve.neighbourhood import Neighbourhood, neighbourhood


def graph_of(n: int, edges: set[tuple[int, int]], corpus: str = "c") -> Graph:
    """Directed edges; an undirected one is given both ways."""
    rows, columns = zip(*sorted(edges)) if edges else ((), ())
    matrix = csr_array((np.ones(len(rows), np.float32), (list(rows), list(columns))), shape=(n, n))
    return Graph(corpus, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, directed=True)


def corpus_of(*texts: str) -> Corpus:
    return Corpus("c", tuple(Passage(f"p{i}", "", text, text) for i, text in enumerate(texts)))


# p0 "red fox" -> p3 -> p4; p1 "fox" -> p2; p5 alone
CORPUS = corpus_of("red fox", "fox den", "hill", "lake", "sea", "sky")
GRAPH = graph_of(6, {(0, 3), (3, 4), (1, 2), (2, 1), (3, 0)})
QUESTION = Question("q", "red fox", "c", supports=("p4", "p0"))


def ids(n_seeds: int, hops: int, question: Question = QUESTION) -> list[str]:
    [ranking] = Neighbourhood(n_seeds, hops).retrieve([question], {"c": CORPUS}, {"c": GRAPH})
    check_rankings([ranking], [question], {"c": CORPUS})
    return [hit.id for hit in ranking.passages]


def test_seeds_come_first_then_hop_by_hop_by_index():
    assert ids(1, 0) == ["p0"]
    assert ids(1, 1) == ["p0", "p3"]
    assert ids(1, 2) == ["p0", "p3", "p4"]
    assert ids(2, 1) == ["p0", "p1", "p2", "p3"]  # both words, then one; 2 is p1's neighbour, 3 is p0's
    assert ids(2, 9) == ["p0", "p1", "p2", "p3", "p4"]  # p5 is not reached


def test_scores_fall_from_hop_to_hop():
    [ranking] = Neighbourhood(2, 2).retrieve([QUESTION], {"c": CORPUS}, {"c": GRAPH})
    scores = [hit.score for hit in ranking.passages]
    assert scores == sorted(scores, reverse=True)
    assert scores[2:] == [-1.0, -1.0, -2.0]


def test_a_question_without_a_seed_is_empty():
    question = Question("q", "zebra", "c")
    [ranking] = Neighbourhood(5, 1).retrieve([question], {"c": CORPUS}, {"c": GRAPH})
    assert (ranking.status, ranking.passages) == ("empty", ())


def test_the_visited_set_is_judged_whole():
    rankings = Neighbourhood(1, 2).retrieve([QUESTION], {"c": CORPUS}, {"c": GRAPH})  # p0 p3 p4 of supports p4 p0
    row = {}
    for measure in ("sf_em", "precision"):
        row |= RetrievalMetric(measure, None).score([QUESTION], [], rankings, [])[0]
    assert row == {"sf_em": 1.0, "precision@k": pytest.approx(2 / 3)}
    rankings = Neighbourhood(1, 1).retrieve([QUESTION], {"c": CORPUS}, {"c": GRAPH})
    assert RetrievalMetric("sf_em", None).score([QUESTION], [], rankings, []) == [{"sf_em": 0.0}]


EDGES = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30)


@given(EDGES, st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True), st.integers(0, 4))
def test_equals_breadth_first_search_on_sets(edges, seeds, hops):
    shells = neighbourhood(graph_of(9, edges), np.array(seeds), hops)
    seen, frontier = set(seeds), set(seeds)
    expected = [list(seeds)]
    for _ in range(hops):
        frontier = {b for a, b in edges if a in frontier} - seen
        seen |= frontier
        expected.append(sorted(frontier))
    found = [shell.tolist() for shell in shells]
    assert found == expected[: len(found)]
    assert not any(expected[len(found) :])  # what is left out is empty


@given(EDGES, st.integers(1, 3))
def test_more_hops_and_more_edges_only_add(edges, hops):
    def reached(pairs: set, far: int) -> set[int]:
        return set(np.concatenate(neighbourhood(graph_of(9, pairs), np.array([0, 4]), far)).tolist())

    assert reached(edges, hops) <= reached(edges, hops + 1)
    assert reached(set(sorted(edges)[::2]), hops) <= reached(edges, hops)


def test_chunks_and_order_of_questions_change_nothing():
    other = Question("r", "sky fox", "c")
    both = Neighbourhood(2, 1).retrieve([QUESTION, other], {"c": CORPUS}, {"c": GRAPH})
    alone = [Neighbourhood(2, 1).retrieve([q], {"c": CORPUS}, {"c": GRAPH})[0] for q in (other, QUESTION)]
    assert both == alone[::-1]


def test_wrong_arguments_and_graphs_are_refused():
    for arguments in ({"n_seeds": 0}, {"hops": -1}, {"hops": True}):
        with pytest.raises(InputError, match=next(iter(arguments))):
            Neighbourhood(**arguments)
    with pytest.raises(InputError, match="5 nodes for 6 passages"):
        Neighbourhood().retrieve([QUESTION], {"c": CORPUS}, {"c": graph_of(5, set())})
    with pytest.raises(InputError, match="choose one with graph="):
        Neighbourhood().retrieve([QUESTION], {"c": CORPUS}, {})


def test_the_option_builds():
    config = compose(["retriever=neighbourhood"]).config
    built = instantiate(config["retriever"], "retriever")
    assert (built.n_seeds, built.hops) == (5, 1)
