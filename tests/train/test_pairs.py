"""Training pairs come from the stages of a run: its prompt, its context, the first gold answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext.errors import InputError
from graphcontext.stage import Stages
from graphcontext.store import Store, Workspace
from graphcontext.train.pairs import made_from, read_pairs, read_texts
from tests.train import tiny


@pytest.fixture
def read(tmp_path, words):
    def read(*more, side="train"):
        workspace = Workspace(Store(tmp_path / "store"), quiet=True)
        stages = Stages(workspace)
        return read_pairs(tiny.composed(*words(*more)), side, workspace, stages), stages

    return read


def test_each_side_has_its_questions_in_the_prompt_of_the_format(read):
    (pairs, _), (held_out, _) = read(), read(side="validation")
    assert [p.id for p in pairs] == [f"q{i}" for i in range(12)]
    assert [p.id for p in held_out] == [f"q{i}" for i in range(12, 17)]
    assert pairs[0].messages[-1] == {"role": "assistant", "content": "Answer:"}
    assert [m["content"] for m in pairs[0].messages[:-1] if m["content"]] == [tiny.question(0, "ports").strip()]
    assert pairs[0].answer.strip() == "use the tool for ports" and pairs[0].reason is None


def test_the_context_of_a_run_is_in_the_prompt(read):
    pairs, stages = read("retriever=tfidf", "prompt@generator.prompt=answer")
    assert all("the tool for" in str(p.messages) for p in pairs)
    assert "ranking" in stages.seen and "context" in stages.seen


def test_most_pairs(read):
    assert len(read("trainer.pairs=5")[0]) == 5 and len(read("trainer.held_out=2", side="validation")[0]) == 2


def test_a_question_without_a_gold_answer_says_so(read, tmp_path):
    data = tiny.save_data(tmp_path / "data")
    rows = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
    rows[0]["answers"], rows[1]["answers"] = [], [" ", "the second"]
    (data / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = {p.id: p for p in read(f"dataset.path={data}")[0]}
    assert pairs["q1"].answer == "the second" and pairs["q2"].reason is None
    assert "q0" not in pairs or pairs["q0"].reason == "no gold answer"


def test_a_generator_without_a_prompt_is_refused(read):
    with pytest.raises(InputError, match="training pairs need the prompt of generator=llm"):
        read("experiment=gcg/graph_context_gen", "retriever=none", "enhancer=none", "generator=none")


def test_texts_are_all_passages_the_last_tenth_held_out(tmp_path, words):
    workspace = Workspace(Store(tmp_path / "store"), quiet=True)
    config = tiny.composed(*words("trainer.data=text"))
    train, held_out = read_texts(config, workspace, Stages(workspace))
    assert len(train) == 18 and len(held_out) == 1  # 19 passages
    assert sorted(name for name, _ in [*train, *held_out]) == sorted(f"p{i}" for i in range(19))
    assert all("the tool for" in text for _, text in train)
    few = tiny.composed(*words("trainer.data=text", "trainer.pairs=3"))
    assert read_texts(few, workspace, Stages(workspace))[0] == train[:3]


def save_answered(folder: Path) -> Path:
    """The tiny data set, each question with its answer a passage of the corpus too."""
    data = tiny.save_data(folder)
    questions = [json.loads(line) for line in (data / "questions.jsonl").read_text().splitlines()]
    with (data / "corpus.jsonl").open("a") as stream:
        for q in questions:
            stream.write(json.dumps({"id": f"a{q['id']}", "text": q["question"], "answer": q["answers"][0]}) + "\n")
    return data


def test_t42_neither_texts_nor_contexts_hold_a_question_that_is_scored_later(tmp_path, words, read):
    data = save_answered(tmp_path / "data")
    config = tiny.composed(*words("trainer.data=text", f"dataset.path={data}"))
    workspace = Workspace(Store(tmp_path / "texts"), quiet=True)
    train, held_out = read_texts(config, workspace, Stages(workspace))
    assert sorted(name for name, _ in [*train, *held_out]) == sorted(f"p{i}" for i in range(19))
    shown = [f"dataset.path={data}", "retriever=tfidf", "retriever.top_k=19", "prompt@generator.prompt=answer"]
    for side, later in (("train", (*tiny.HELD_OUT, *tiny.SCORED)), ("validation", tiny.SCORED)):
        prompts = str([p.messages for p in read(*shown, side=side)[0]])
        assert "the tool for" in prompts
        assert not [noun for noun in later if f"how do i list {noun}" in prompts]


def test_what_a_side_was_made_from_is_named_by_its_bytes(read):
    first = made_from({"train": read()[1]})
    assert first == made_from({"train": read()[1]}) and len(first["train"]) == 64
    assert first != made_from({"train": read("trainer.pairs=5")[1]})
