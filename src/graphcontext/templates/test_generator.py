from graphcontext.data.records import Context, Question, Unit
from example import Example


def test_the_context_begins_the_answer():
    questions = [Question("q", "?", "c", ("gold",)), Question("r", "?", "c")]
    contexts = [Context("q", (Unit("u", "one two three", "p"),)), Context("r", ())]
    answered, blank = Example(n_words=2).generate(questions, contexts)
    assert (answered.prediction, answered.status, answered.references) == ("one two", "ok", ("gold",))
    assert blank.status == "empty"
