from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.retrieve.agents.state import State
from example import Example


def test_the_passage_adds_its_first_words():
    corpus = Corpus.of([Passage("a", "", "ext4 keeps a journal", "")])
    [evidence] = Example(n_words=1).evidence([State(Question("q", "What?", corpus.id), corpus, (0,))])
    assert evidence.text == "What? ext4"
