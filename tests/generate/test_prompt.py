"""Prompts: what is filled in, and where the texts come from."""

from __future__ import annotations

import pytest

from graphcontext.enhance.llm_extractor import LLMExtractor
from graphcontext.errors import InputError
from graphcontext.generate.llm import LLMGenerator
from graphcontext.generate.prompt import Prompt


def test_question_and_context_are_filled_in():
    prompt = Prompt("Be brief.", "Facts: {context}\nQ: {question}", "Q: {question}")
    assert prompt.render("why?", "a fact") == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Facts: a fact\nQ: why?"},
    )


def test_without_context_the_other_text_is_used():
    prompt = Prompt("", "Facts: {context}\nQ: {question}", "Q: {question}")
    assert prompt.render("why?", " ") == ({"role": "user", "content": "Q: why?"},)


def test_without_another_text_the_context_is_empty():
    assert Prompt("", "[{context}] {question}").render("why?")[0]["content"] == "[] why?"


def test_braces_in_question_and_context_stay():
    prompt = Prompt("", 'As {"json": []}: {context} | {question}')
    (message,) = prompt.render("awk '{print $1}' {context}", "${HOME} {question}")
    assert message["content"] == """As {"json": []}: ${HOME} {question} | awk '{print $1}' {context}"""


@pytest.mark.parametrize(
    ("name", "content"),
    [("p.yaml", "user: |-\n  Answer: {question}"), ("p.json", '{"user": "Answer: {question}"}')],
)
def test_a_file_replaces_the_texts_it_names_and_its_content_is_the_key(tmp_path, name, content):
    file = tmp_path / name
    file.write_text(content)
    prompt = Prompt("system", "old {question}", path=str(file))
    assert prompt.render("q")[1]["content"] == "Answer: q"
    assert prompt.system == "system"
    before = Prompt.identity({"path": str(file)})
    file.write_text(content.replace("Answer", "Reply"))
    assert Prompt.identity({"path": str(file)}) != before
    assert Prompt.identity({"path": None}) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("usr: x {question}", "no key usr; did you mean user"),
        ("user: 3", "user is int"),
        ("- a", "holds list"),
        ("user: [", "prompt.path"),
        ("user: no field", "neither"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, content, message):
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(InputError, match=message):
        Prompt("", "{question}", path=str(tmp_path / "p.yaml"))


def test_no_file_no_field():
    with pytest.raises(InputError, match="is not a file"):
        Prompt("", "{question}", path="nowhere.yaml")
    with pytest.raises(InputError, match="neither"):
        Prompt("", "Answer")


def test_a_prompt_without_context_still_asks_the_question(tmp_path):
    with pytest.raises(InputError, match=r"prompt\.user_without_context lacks \{question\}"):
        Prompt("", "{context} {question}", "Answer.")
    (tmp_path / "p.yaml").write_text("user_without_context: 'Say {context}'")
    with pytest.raises(InputError, match=r"user_without_context \(prompt\.path=.*p\.yaml\) lacks \{question\}"):
        Prompt("", "{question}", path=str(tmp_path / "p.yaml"))


def test_who_takes_a_prompt_says_what_it_must_show(stub):
    llm, ask, read = stub(lambda request: None), Prompt("", "Answer {question}"), Prompt("", "Facts of {context}")
    LLMGenerator(llm, ask, 8)
    LLMExtractor(llm, read, 8, 8)
    with pytest.raises(InputError, match=r"prompt\.user lacks \{question\}; an answer needs it"):
        LLMGenerator(llm, read, 8)
    with pytest.raises(InputError, match=r"prompt\.user lacks \{context\}; an extraction needs it"):
        LLMExtractor(llm, ask, 8, 8)
