"""The key of a training: what can change its weights, and nothing else."""

from __future__ import annotations

import copy

import pytest
import yaml

from graphcontext.errors import InputError, MissingDataError
from graphcontext.train.key import base, side_of, training_key
from tests.train import tiny


@pytest.fixture(scope="module")
def plain_config(data, llama):
    return tiny.composed(*tiny.words(data, llama))


@pytest.fixture
def key(words, plain_config):
    """Return the key of the tiny training with further words; values are set without composing anew."""

    def key(*more):
        if any("." not in word.partition("=")[0] or "@" in word for word in more):
            return training_key(tiny.composed(*words(*more)))
        config = copy.deepcopy(plain_config)
        for word in more:
            name, _, value = word.partition("=")
            *path, last = name.replace("llm.", "generator.llm.").split(".")
            node = config
            for part in path:
                node = node[part]
            assert last in node
            node[last] = yaml.safe_load(value)
        return training_key(config)

    return key


EXECUTION = [
    ["trainer.micro_batch_size=1"],
    ["trainer=ddp", "trainer.devices=4", "trainer.nodes=2"],
    ["trainer=fsdp"],
    ["trainer=gpu"],
    ["trainer.precision=float32"],
    ["trainer.gradient_checkpointing=true"],
    ["trainer.workers=3"],
    ["trainer.checkpoint_minutes=9"],
    ["trainer.wandb=offline"],
    ["trainer.profile=true"],
    ["llm.temperature=0.7", "llm.repetition_penalty=1.5", "llm.batch_size=1", "generator.max_new_tokens=7"],
    ["metric=[rouge1]"],
    ["split=validation"],  # of a run
    ["dataset.limit=1"],  # of a run too: trainer.pairs says how many pairs
]
RECIPE = [
    ["trainer.learning_rate=0.02"],
    ["trainer.epochs=2.0"],
    ["trainer.max_steps=2"],
    ["trainer.batch_size=8"],
    ["trainer.max_tokens=32"],
    ["trainer.loss_on=all"],
    ["trainer.bucket=false"],
    ["trainer.pairs=6"],
    ["trainer.held_out=2"],  # chooses which weights are kept
    ["trainer.keep=last"],
    ["trainer.data=text"],
    ["adapter.rank=2"],
    ["adapter=qlora"],
    ["seed=1"],
    ["generator.prompt.user='{question}!'"],
    ["prompt@generator.prompt=answer"],
    ["generator.numbered=true"],
    ["retriever=tfidf"],
    ["llm.system_role=false"],
    ["llm.dtype=bfloat16"],
]


def test_how_it_is_computed_does_not_change_it(key):
    plain = key()
    assert {tuple(more): key(*more) == plain for more in EXECUTION} == {tuple(more): True for more in EXECUTION}


def test_whatever_changes_weights_changes_it_to_another_each(key):
    found = {tuple(more): key(*more) for more in ([], *RECIPE)}
    assert len(set(found.values())) == len(RECIPE) + 1, found


def test_another_data_set_and_another_base_model_change_it(key, tmp_path, words):
    plain = key()
    other = tiny.save_data(tmp_path / "data")
    assert key(f"dataset.path={other}") == plain  # the same bytes elsewhere
    (other / "questions.jsonl").write_text((other / "questions.jsonl").read_text().replace("ports", "parts"))
    assert key(f"dataset.path={other}") != plain
    assert key(f"llm.model={tiny.save_llama(tmp_path / 'llama', hidden_size=16)}") != plain


def test_of_text_questions_and_prompt_do_not_enter(key):
    text = key("trainer.data=text")
    assert key("trainer.data=text", "generator.prompt.user='{question}!'", "retriever=tfidf") == text
    assert key("trainer.data=text", "trainer.learning_rate=0.02") != text


def test_without_the_data_there_is_no_key(key, tmp_path):
    with pytest.raises(MissingDataError):
        key(f"dataset.path={tmp_path / 'nowhere'}")


def test_sides(words):
    config = tiny.composed(*words("trainer.pairs=7", "trainer.held_out=3"))
    train, held_out = side_of(config, "train"), side_of(config, "validation")
    assert (train["split"], train["dataset"]["side"], train["dataset"]["limit"]) == ("train", "train", 7)
    assert (held_out["dataset"]["side"], held_out["dataset"]["limit"]) == ("validation", 3)
    assert config["dataset"]["side"] == "test"  # unchanged


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["llm=gpt_3_5_turbo", "scale=paper"], r"gpt-3\.5-turbo\S* cannot be trained here: it is no model of transf"),
        (["llm.adapter=gcg/sft"], r"llm\.adapter=gcg/sft: a training starts from the base model; llm\.adapter=null"),
        (["llm.serve=llama_cpp"], r"llm\.serve=llama_cpp: a training starts from the base model; llm\.serve=null"),
        (["generator=none"], "generator"),
    ],
)
def test_what_cannot_be_trained(words, more, message):
    given = [word for word in words() if not (word.startswith("llm") and more[0].startswith("llm=gpt"))]
    with pytest.raises(InputError, match=message) as caught:
        base(tiny.composed(*given, *more))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
