"""Retrieval interleaved with a chain of thought."""

from __future__ import annotations

import pytest
from tests.generate.conftest import StubLLM

from graphcontext.data.records import Corpus, Graph, Passage, Question, Ranking, Scored
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatResponse
from graphcontext.generate.prompt import Prompt
from graphcontext.retrieve.ircot import IRCoT
from graphcontext.retrieve.tfidf import TFIDF
from graphcontext.store import CallLog, Store, Workspace

PROMPT = Prompt("", "{context}\nQ: {question}\nA:")
TEXTS = {
    "film": "Glass Lanterns was directed by Solheim",
    "noise": "Glass Lanterns is on sale",
    "birth": "Solheim was born in Vardal",
    "fair": "Vardal has a fair",
    "far": "something else",
}
POOL = Corpus.of([Passage(i, i, text, f"{i}: {text}") for i, text in TEXTS.items()])
QUESTION = Question("q", "director of Glass Lanterns", POOL.id)


def chain(*sentences):
    """A model that writes these sentences, one a call; a status of its own for those that are pairs."""
    left = list(sentences)

    def reply(request):
        said = left.pop(0)
        text, status = said if isinstance(said, tuple) else (said, "ok")
        return ChatResponse(request.item, text, "stop", 10, 4, status=status, reason="HTTP 500" if text == "" else None)

    return StubLLM(reply)


def build(llm, **options):
    options = {"top_k": 4, "n_per_step": 2, "max_steps": 5, "max_new_tokens": 20, **options}
    return IRCoT(options.pop("retriever", TFIDF(5)), llm, PROMPT, **options)


def retrieve(llm, question=QUESTION, **options):
    return build(llm, **options).retrieve([question], {POOL.id: POOL}, {})[0]


def test_each_sentence_is_the_next_query():
    # The question finds film and noise; "Solheim … Vardal" birth, film (there already) and fair: the budget is full.
    ranking = retrieve(chain("Solheim went to Vardal. And more."))
    assert [{p.id for p in part} for part in (ranking.passages[:2], ranking.passages[2:])] == [
        {"film", "noise"},
        {"birth", "fair"},
    ]
    assert [p.score for p in ranking.passages] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert [(s.evidence, len(s.chosen), s.n_candidates) for s in ranking.steps] == [
        (QUESTION.text, 2, 5),
        ("Solheim went to Vardal.", 2, 5),
    ]
    assert (ranking.status, ranking.reason, ranking.retry) == ("ok", None, None)


def test_the_model_sees_what_was_found_and_its_own_sentences():
    seen = []

    def reply(request):
        seen.append(request.messages[-1]["content"])
        return ChatResponse(request.item, "A Solheim did it.", "stop")

    retrieve(StubLLM(reply), Question("q", "on sale", POOL.id), n_per_step=1, top_k=3)
    noise, birth = "noise: Glass Lanterns is on sale", "birth: Solheim was born in Vardal"
    assert seen[0] == f"{noise}\nQ: on sale\nA:"
    assert seen[1] == f"{noise}\n\n{birth}\nQ: on sale\nA: A Solheim did it."
    assert len(seen) == 2  # the third passage, film, fills the budget


def test_the_chain_ends_with_an_answer():
    ranking = retrieve(chain("So the Answer is: Vardal.", "never asked"))
    assert len(ranking.passages) == 2
    last = ranking.steps[-1]
    assert (last.evidence, last.chosen, last.reason) == ("So the Answer is: Vardal.", (), "answered")


def test_the_chain_ends_after_max_steps_or_without_a_sentence():
    llm = chain(*["something"] * 9)
    retrieve(llm, max_steps=2, n_per_step=1)
    assert llm.asked == ["q", "q"]
    assert len(retrieve(chain("  ")).passages) == 2


def test_the_mark_of_a_list_is_no_sentence():
    ranking = retrieve(chain("1. Solheim did it.", "2."), n_per_step=1)
    assert [step.evidence for step in ranking.steps][1:] == ["Solheim did it."]


def test_a_small_corpus_is_retrieved_whole_without_another_call():
    pair = Corpus.of(POOL.passages[:2])
    llm = chain()
    ranking = build(llm).retrieve([Question("q", "Glass Lanterns", pair.id)], {pair.id: pair}, {})[0]
    assert len(ranking.passages) == 2 and llm.asked == []
    none = Corpus.of([])
    ranking = build(llm).retrieve([Question("q", "Glass", none.id)], {none.id: none}, {})[0]
    assert (ranking.status, ranking.reason) == ("empty", "the corpus has no passage")


def test_a_call_that_fails_at_once_fails_the_ranking_and_a_later_one_ends_it():
    failed = retrieve(chain(("", "failed")))
    assert (failed.status, failed.passages) == ("failed", ())
    assert failed.reason == "chain of thought failed: HTTP 500"
    cut = retrieve(chain("Solheim.", ("", "failed")), n_per_step=1)
    assert (cut.status, cut.reason, cut.retry, len(cut.passages)) == ("ok", "chain of thought failed", True, 2)
    greedy = chain("Solheim.", ("", "failed"))
    greedy.repeatable = True
    assert retrieve(greedy, n_per_step=1).retry is None


def test_nothing_found_is_empty():
    ranking = retrieve(chain("Nothing.", "The answer is none."), question=Question("q", "xyz", POOL.id))
    assert (ranking.status, ranking.reason) == ("empty", "no word of the question occurs in the corpus")


class Graphed:
    """A retriever that needs a graph, falls back, and says why."""

    needs_graph = True

    def retrieve(self, questions, corpora, graphs):
        assert graphs
        found = tuple(Scored(i, 1.0) for i in TEXTS)
        return [Ranking(q.id, found, reason="stopped", fallback="cosine") for q in questions]


def test_what_the_retriever_says_is_said_once():
    graph = {POOL.id: Graph(POOL.id, None, None, None)}
    ranking = build(chain("One."), retriever=Graphed()).retrieve([QUESTION], {POOL.id: POOL}, graph)[0]
    assert (ranking.reason, ranking.fallback, len(ranking.passages)) == ("stopped", "cosine", 4)
    for target, needs in ((f"{__name__}.Graphed", True), ("graphcontext.retrieve.tfidf.TFIDF", False)):
        assert IRCoT.needs_graph({"retriever": {"_target_": target}}) is needs


def test_questions_take_their_steps_together_and_apart_alike():
    def reply(request):
        first = request.messages[-1]["content"].endswith("A:")
        return ChatResponse(request.item, f"Solheim {request.item}." if first else "The answer is it.", "stop")

    questions = [Question(f"q{n}", text, POOL.id) for n, text in enumerate(["Glass", "Vardal fair", "else"])]
    llm = StubLLM(reply, batch_size=8)
    together = build(llm, n_per_step=1).retrieve(questions, {POOL.id: POOL}, {})
    assert [sorted(batch) for batch in llm.batches] == [["q0", "q1", "q2"]] * 2
    apart = [build(StubLLM(reply), n_per_step=1).retrieve([q], {POOL.id: POOL}, {})[0] for q in questions]
    assert together == apart


def test_t11_sentences_that_were_written_are_not_asked_for_again(tmp_path):
    workspace = Workspace(Store(tmp_path / "store"), CallLog(tmp_path / "calls.jsonl"))

    def reply(request):
        if request.messages[-1]["content"].endswith("A:"):
            return ChatResponse(request.item, "Solheim.", "stop")
        raise KeyboardInterrupt

    killed = StubLLM(reply)
    killed.bind(workspace)
    with pytest.raises(KeyboardInterrupt):
        retrieve(killed, n_per_step=1)
    again, whole = chain("The answer is it."), chain("Solheim.", "The answer is it.")
    again.bind(Workspace(Store(tmp_path / "store"), CallLog(tmp_path / "calls.jsonl")))
    assert retrieve(again, n_per_step=1) == retrieve(whole, n_per_step=1)
    assert again.asked == ["q"] and whole.asked == ["q", "q"]


def test_calls_are_counted_for_the_plan():
    config = {"top_k": 30, "n_per_step": 5, "max_steps": 5}
    assert IRCoT.calls(config) == 5 and IRCoT.passages_per_call(config) == 15  # 5, 10, 15, 20, 25
    assert IRCoT.calls({**config, "max_steps": 2}) == 2 and IRCoT.calls({**config, "n_per_step": 30}) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retriever": TFIDF(3)}, "retriever.retriever.top_k=3: allowed is at least top_k=4"),
        ({"max_steps": 0}, "max_steps=0"),
    ],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(InputError, match=said):
        build(chain(), **options)


def test_a_prompt_without_the_passages_is_refused():
    with pytest.raises(InputError, match=r"lacks \{context\}; a chain of thought needs it"):
        IRCoT(TFIDF(30), chain(), Prompt("", "{question}"))
