from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from example import Example


def test_the_best_passage_comes_last():
    corpus = Corpus.of([Passage("a", "", "", "best"), Passage("b", "", "", "worst")])
    ranking = Ranking("q", (Scored("a", 2.0), Scored("b", 1.0)))
    [context] = Example().enhance([Question("q", "?", corpus.id)], [ranking], {corpus.id: corpus})
    assert [unit.text for unit in context.units] == ["worst", "best"]
