"""What each agent looks for next, and what becomes of a model's answers, kills and other prompts."""

from __future__ import annotations

import numpy as np
import pytest

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatResponse, answer
from graphcontext.generate.prompt import Prompt
from graphcontext.retrieve.agents.llm import LLMAgent
from graphcontext.retrieve.agents.mdr import MDRAgent
from graphcontext.retrieve.agents.random import RandomAgent
from graphcontext.retrieve.agents.state import Evidence, State
from graphcontext.retrieve.agents.tfidf import TfidfAgent
from graphcontext.retrieve.traversal import Traversal
from graphcontext.store import CallLog, Store, Workspace

TEXTS = {"a": "river town", "b": "a castle", "c": "river mill", "d": "old mill"}
POOL = Corpus.of([Passage(id, "", text, f"Title: {text}") for id, text in TEXTS.items()])
CORPORA = {POOL.id: POOL}
QUESTION = Question("q", "Which river?", POOL.id)
PROMPT = Prompt("", "{question} | {context}")


def state(*path: int, question: Question = QUESTION) -> State:
    return State(question, POOL, path)


class Model:
    """Answers each request by ``reply(its text)`` and counts requests and batches; dies before answer ``dies``."""

    batch_size = 8
    workers = 1

    def __init__(self, reply, workspace=None, dies=None, name="A"):
        self.reply, self.workspace, self.dies, self.name = reply, workspace, dies, name
        self.asked: list[tuple[str, str]] = []
        self.batches: list[int] = []

    def settings(self):
        return {"model": self.name}

    def draws_random(self):
        return False

    def length(self, request):
        return 1

    def complete(self, requests, seeds, max_new_tokens):
        self.batches.append(len(requests))
        responses = []
        for request in requests:
            if len(self.asked) == self.dies:
                raise KeyboardInterrupt
            text = request.messages[-1]["content"]
            self.asked.append((request.item, text))
            reply = self.reply(text)
            responses.append(reply if isinstance(reply, ChatResponse) else ChatResponse(request.item, reply, "stop"))
        return responses

    def chat(self, requests, role, max_new_tokens, check=None):
        assert role == "agent" and max_new_tokens == 48
        return answer(self, requests, role, max_new_tokens, check)


def failed(reason: str) -> ChatResponse:
    return ChatResponse("", "", status="failed", reason=reason)


def test_tfidf_looks_for_the_question():
    assert TfidfAgent(None).evidence([state(0), state(0, 2)]) == [Evidence("Which river?")] * 2
    with pytest.raises(InputError, match=r"agent.schedule=\[\]; allowed: a list of whole numbers of at least 1"):
        TfidfAgent([])
    with pytest.raises(InputError, match=r"schedule=\[3, 0\]"):
        TfidfAgent([3, 0])


def test_random_is_the_same_for_the_same_path_whoever_is_asked_beside_it():
    agent, every = RandomAgent(), np.arange(4)
    states = [state(0), state(0, 2), state(0, question=Question("other", "?", POOL.id))]
    own = [agent.scores([s], [Evidence("")], [every])[0] for s in states]
    np.testing.assert_array_equal(own, agent.scores(states, [Evidence("")] * 3, [every] * 3))
    assert len({tuple(row) for row in own}) == 3 and all(((row >= 0) & (row < 1)).all() for row in own)
    agent.bind(Workspace(Store("store"), seed=1))
    assert not np.array_equal(agent.scores([state(0)], [Evidence("")], [every])[0], own[0])
    assert RandomAgent.draws({})


class Encoder:
    """Counts letters: (n of "r", n of "m"); notes what it encoded."""

    def __init__(self):
        self.queries: list[str] = []
        self.n_pools = 0

    def encode(self, texts, kind):
        if kind == "query":
            self.queries += texts
        else:
            self.n_pools += 1
        return np.array([[text.count("r"), text.count("m")] for text in texts], np.float32)


def test_mdr_scores_by_the_dot_product_with_question_and_path():
    # "Which river? river mill": r 4, m 1. a "river town" (2, 0) → 8; b "a castle" 0; d "old mill" (0, 1) → 1
    agent = MDRAgent(Encoder())
    evidence = agent.evidence([state(2), state(2, 0)])
    assert [e.text for e in evidence] == ["Which river? river mill", "Which river? river mill river town"]
    scores = agent.scores([state(2)], evidence[:1], [np.array([0, 1, 3])])
    assert scores[0].tolist() == [8, 0, 1] and agent.encoder.queries == ["Which river? river mill"]
    assert agent.scores([], [], []) == []
    retriever = Traversal(agent, top_k=1, branching=1, use_graph=False)
    for _ in range(2):  # the passages are encoded once
        [ranking] = retriever.retrieve([Question("q", "mill", POOL.id)], CORPORA, {})
    # Of c and d, which both hold "mill" and a second word that no other of the two has, c has the commoner "river":
    # "mill" weighs more in it. From c "mill river mill" (2, 2): a 4, b 0, d 2.
    assert [hit.id for hit in ranking.passages] == ["c", "a"] and agent.encoder.n_pools == 1


def test_a_model_is_shown_question_and_path_and_all_states_at_once():
    model = Model(lambda text: f" next of {text}\n")
    agent = LLMAgent(model, PROMPT, 48)
    found = agent.evidence([state(0), state(1, 2)])
    assert [e.text for e in found] == ["next of Which river? | river town", "next of Which river? | a castle"]
    asked = {"q/a": "Which river? | river town", "q/b/c": "Which river? | a castle\nriver mill"}
    assert dict(model.asked) == asked and model.batches == [2]
    request = agent.request("q/1", QUESTION.text, ["river town"])
    assert request.messages == ({"role": "user", "content": "Which river? | river town"},)


def test_answers_that_are_none():
    replies = iter([" \n", failed("window 512"), "\nmill\n\nQuestion: and another"])
    agent = LLMAgent(Model(lambda text: next(replies)), PROMPT, 48)
    assert agent.evidence([state(0), state(1), state(2)]) == [
        Evidence("", "empty", "no evidence"),
        Evidence("", "failed", "agent: window 512"),
        Evidence("mill"),
    ]
    assert not agent.repeatable  # the model does not say that it is


@pytest.mark.parametrize(
    ("prompt", "n", "said"),
    [
        (Prompt("", "{question}"), 48, "lacks {context}; the next evidence needs it"),
        (Prompt("", "{context}"), 48, "lacks {question}"),
        (PROMPT, 0, r"agent.max_new_tokens=0; allowed: 1 and more"),
    ],
)
def test_what_an_agent_refuses(prompt, n, said):
    with pytest.raises(InputError, match=said):
        LLMAgent(Model(str), prompt, n)


def questions(n: int) -> list[Question]:
    return [Question(f"q{i}", "Which river mill?", POOL.id) for i in range(n)]


def traverse(model: Model, asked: list[Question], prompt: Prompt = PROMPT):
    """Two seeds a question, one neighbour each."""
    agent = LLMAgent(model, prompt, 48)
    return Traversal(agent, top_k=2, branching=1, use_graph=False).retrieve(asked, CORPORA, {})


def test_all_calls_of_all_questions_fill_batches():
    model = Model(lambda text: "old mill")
    rankings = traverse(model, questions(4))
    assert len(model.asked) == len(set(model.asked)) == 8 and model.batches == [8]
    # Seeds c (river mill), then a, which holds one of the two; from each to the nearest to "old mill".
    assert all([hit.id for hit in ranking.passages] == ["c", "d", "a"] for ranking in rankings)


def test_t11_killed_after_three_of_ten_calls_the_other_seven_are_asked(tmp_path):
    def run(dies=None, folder=tmp_path / "one"):
        folder.mkdir(exist_ok=True)
        workspace = Workspace(Store(folder), CallLog(folder / "calls.jsonl"))
        model = Model(lambda text: text.split()[-1], workspace, dies)
        model.batch_size = 1
        return model, lambda: traverse(model, questions(5))

    _, undisturbed = run(folder=tmp_path / "two")
    killed, go = run(dies=3)
    with pytest.raises(KeyboardInterrupt):
        go()
    again, go = run()
    assert go() == undisturbed()
    assert len(killed.asked) == 3 and len(again.asked) == 7 and not set(killed.asked) & set(again.asked)


def test_t12_another_model_or_prompt_asks_anew(tmp_path):
    def run(name="A", prompt=PROMPT):
        workspace = Workspace(Store(tmp_path), CallLog(tmp_path / "calls.jsonl"))
        model = Model(lambda text: f"{name} {text}", workspace, name=name)
        return traverse(model, questions(1), prompt), len(model.asked)

    first, n = run()
    assert n == 2 and run() == (first, 0)
    second, n = run("B")
    assert n == 2 and second[0].steps[1].evidence.startswith("B ") and first[0].steps[1].evidence.startswith("A ")
    assert run(prompt=Prompt("Be brief.", "{question} | {context}"))[1] == 2


def test_t21_failed_calls_are_counted_and_the_rest_goes_on():
    # Ten questions of two calls: every call of two questions fails, one call of a third.
    def reply(text):
        question = text.partition(" ")[0]
        return failed("refused") if question in ("q1?", "q2?") or text.startswith("q3? river | river town") else "mill"

    asked = [Question(f"q{i}", f"q{i}? river", POOL.id) for i in range(10)]
    rankings = traverse(Model(reply), asked)
    assert [r.status for r in rankings].count("failed") == 2 and rankings[1].reason == "agent: refused"
    assert rankings[3].status == "ok" and rankings[3].reason == "agent failed for 1 of 2 passages"
    assert rankings[3].retry is True and rankings[4].reason is None
