"""Triples that a model names, and what becomes of answers that hold none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Passage
from graphcontext.enhance.llm_extractor import LLMExtractor, parse_triples
from graphcontext.generate.chat import ChatResponse, answer
from graphcontext.generate.prompt import Prompt
from graphcontext.store import CallLog, Store, Workspace

PASSAGES = [Passage("p", "", "", "ss lists sockets")]


class Model:
    """Gives the same text to every request, and counts them."""

    batch_size = workers = 1

    def __init__(self, text: str, finish: str = "stop", workspace: Workspace | None = None):
        self.text, self.finish, self.workspace = text, finish, workspace
        self.asked: list[str] = []

    def settings(self):
        return {}

    def draws_random(self):
        return False

    def length(self, request):
        return 1

    def complete(self, requests, seeds, max_new_tokens):
        self.asked += [r.messages[-1]["content"] for r in requests]
        return [ChatResponse(r.item, self.text, self.finish) for r in requests]

    def chat(self, requests, role, max_new_tokens, check=None):
        return answer(self, requests, role, max_new_tokens, check)


def extract(model: Model, max_triples: int = 9):
    (extraction,) = LLMExtractor(model, Prompt("", "Text: {context}"), 64, max_triples).extract(PASSAGES)
    return extraction


def test_the_passage_is_asked_about_and_its_triples_come_back():
    model = Model("ss | lists | sockets\nss | lists | sockets\nsudo | runs | ss")
    extraction = extract(model)
    assert model.asked == ["Text: ss lists sockets"]
    assert extraction.triples == (("ss", "lists", "sockets"), ("sudo", "runs", "ss"))
    assert extract(model, max_triples=1).triples == (("ss", "lists", "sockets"),)


@pytest.mark.parametrize(
    ("text", "finish", "status", "reason"),
    [
        ("[]", "stop", "empty", None),
        ("not json", "stop", "failed", "parse"),
        ('{"triples": [["a", "b", "c"], ["d"', "length", "failed", "truncated"),
        ('{"triples": [["a", "b", "c"], ["d"', "stop", "failed", "truncated"),
    ],
)
def test_t14_empty_unparseable_and_truncated_are_three_things(text, finish, status, reason):
    extraction = extract(Model(text, finish))
    assert (extraction.triples, extraction.status) == ((), status)
    assert (extraction.reason or "").partition(":")[0] == (reason or "")


@pytest.mark.parametrize(("text", "calls"), [("[]", 1), ("not json", 2), ("a | b | c", 1)])
def test_t14_a_failed_answer_is_asked_again_an_empty_one_is_not(tmp_path, text, calls):
    workspace = Workspace(Store(tmp_path), CallLog(tmp_path / "calls.jsonl"))
    model = Model(text, workspace=workspace)
    assert extract(model) == extract(model)
    assert len(model.asked) == calls


@pytest.mark.parametrize(
    "text",
    [
        '[["a", "b", "c"]]',
        '```json\n[["a", "b", "c"]]\n```',
        'Here is the JSON: [["a", "b", "c"]] as asked.',
        '{"triples": [{"head": "a", "relation": "b", "tail": "c"}]}',
        '["a", "b", "c"]',
        "- a | b | c",
        "1. a | b | c",
        'Facts:\n"a" | b | c',
    ],
)
def test_each_form_is_read(text):
    assert parse_triples(text).triples == (("a", "b", "c"),)


def test_malformed_lines_and_entries_are_counted():
    parsed = parse_triples("a | b | c\nSure!\nd | e\n | f | g")
    assert (parsed.triples, parsed.n_malformed) == ((("a", "b", "c"),), 3)
    assert parse_triples('[["a", "b", "c"], ["d"], 7]').n_malformed == 2
    assert extract(Model("a | b | c\nd | e")).reason == "1 malformed"


def test_of_cut_lines_the_whole_ones_count():
    parsed = parse_triples("a | b | c\nd | e | f", was_cut=True)
    assert (parsed.triples, parsed.n_malformed, parsed.fault) == ((("a", "b", "c"),), 1, None)


def test_a_failed_call_is_a_failed_extraction():
    model = Model("")
    model.complete = lambda requests, seeds, n: [
        ChatResponse(r.item, "", status="failed", reason="HTTP 503") for r in requests
    ]
    extraction = extract(model)
    assert (extraction.status, extraction.reason) == ("failed", "HTTP 503")


@given(st.text(max_size=80), st.booleans())
def test_no_answer_breaks_the_parser(text, was_cut):
    parsed = parse_triples(text, was_cut)
    assert parsed.fault is None or parsed.triples == ()
    assert all(len(t) == 3 and all(t) for t in parsed.triples)
