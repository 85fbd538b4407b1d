from example import Example


def test_what_is_asked_is_not_in_the_pool():
    loaded = Example("example", None, 0).load()
    [corpus] = loaded.corpora.values()
    assert {q.corpus_id for q in loaded.questions} == {corpus.id}
    assert not {q.text for q in loaded.questions} & {p.match_text for p in corpus.passages}
    assert len(Example("example", 1, 0).select(loaded.questions)) == 1
