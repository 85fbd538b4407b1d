from graphcontext.data.records import Corpus, Passage
from example import Example


def test_titles_that_share_a_long_word_are_joined():
    titles = ("kernel panic", "panic button", "the button")
    corpus = Corpus.of([Passage(str(i), title, "", "") for i, title in enumerate(titles)])
    graph = Example().build(corpus)
    rows = [graph.indices[a:b].tolist() for a, b in zip(graph.indptr, graph.indptr[1:])]
    assert rows == [[1], [0, 2], [1]] and graph.facts["n_edges"] == 2
