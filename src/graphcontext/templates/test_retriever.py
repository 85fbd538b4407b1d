from graphcontext.data.records import Corpus, Passage, Question
from example import Example


def test_the_longest_passage_comes_first():
    corpus = Corpus.of([Passage("a", "", "short", ""), Passage("b", "", "much longer", "")])
    [ranking] = Example(top_k=1).retrieve([Question("q", "?", corpus.id)], {corpus.id: corpus}, {})
    assert [hit.id for hit in ranking.passages] == ["b"]
