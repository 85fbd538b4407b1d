"""``train merge``: a folder is made once, held against what was made, and leaves nothing beside it."""

from __future__ import annotations

import os
import threading
import time

import pytest

from graphcontext import api
from graphcontext.errors import InputError
from graphcontext.train import merge as module
from graphcontext.train.merge import merge


@pytest.fixture
def node(llama, tmp_path):
    """The config of an LLM with an untrained adapter of LoRA."""
    import peft

    from graphcontext.whole import load_weights

    chosen = {"r": 2, "target_modules": ["q_proj"], "init_lora_weights": False, "task_type": "CAUSAL_LM"}
    tuned = peft.get_peft_model(load_weights("AutoModelForCausalLM", llama), peft.LoraConfig(**chosen))
    tuned.save_pretrained(tmp_path / "adapter")
    words = ["llm=smollm2", f"llm.model={llama}", f"llm.adapter='{tmp_path / 'adapter'}'"]
    return api.compose(*words).config["roles"]["answer"]


@pytest.fixture
def loads(monkeypatch):
    """What was loaded, and what happens before it is."""
    seen, real = [], module._load

    def load(*given):
        seen.append(given)
        if loads.before:
            loads.before.pop()()
        return real(*given)

    def loads():
        return len(seen)

    loads.before = []
    monkeypatch.setattr(module, "_load", load)
    return loads


def spoil(target, name):
    (target / name).write_bytes((target / name).read_bytes()[:-4])


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "merged.json"])
def test_a_damaged_one_of_ours_is_made_again(node, tmp_path, loads, name):
    target = merge(node, None, tmp_path)
    whole = {p.name: p.read_bytes() for p in target.iterdir()}
    assert merge(node, None, tmp_path) == target and loads() == 1
    spoil(target, name)
    assert merge(node, None, tmp_path) == target and loads() == 2
    assert {p.name: p.read_bytes() for p in target.iterdir()} == whole
    assert [p.name for p in target.parent.iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.safetensors", "out is damaged: model.safetensors is not what was merged; name another folder, or rem"),
        ("merged.json", "out is there already; name another folder, or remove it"),
    ],
)
def test_a_damaged_one_that_the_user_named_is_refused(node, tmp_path, loads, name, message):
    target = merge(node, tmp_path / "out", tmp_path)
    assert merge(node, target, tmp_path) == target and loads() == 1
    spoil(target, name)
    left = (target / name).read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        merge(node, target, tmp_path)
    assert "\n" not in str(caught.value) and (target / name).read_bytes() == left and loads() == 1


@pytest.mark.parametrize("named", [False, True])
def test_of_two_at_once_the_second_takes_what_the_first_made(node, tmp_path, loads, named):
    target, found = tmp_path / "out" if named else None, []
    other = threading.Thread(target=lambda: found.append(merge(node, target, tmp_path)))

    def start_another():
        other.start()
        other.join(0.5)  # it would have time to look

    loads.before.append(start_another)
    first = merge(node, target, tmp_path)
    other.join()
    assert found == [first] and loads() == 1
    assert (first / "model.safetensors").is_file()


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_others_may_read_it_as_the_umask_says(node, tmp_path, mask):
    before = os.umask(mask)
    try:
        target = merge(node, tmp_path / "out", tmp_path)
    finally:
        os.umask(before)
    modes = {p.name: p.stat().st_mode & 0o777 for p in (target, *target.iterdir())}
    assert modes == {name: (0o777 if name == "out" else 0o666) & ~mask for name in modes} and len(modes) > 4


def test_what_killed_merges_left_is_swept_and_what_others_make_is_not(node, tmp_path):
    parent = tmp_path / "models"
    old = time.time() - 2 * module.OLD
    for name, when in ((".merge-out-0a_b1c2d", None), (".merge-out-2-0a_b1c2d", None), (".merge-q1w2e3r4", old)):
        (parent / name / "model").mkdir(parents=True)
        if when is not None:
            os.utime(parent / name, (when, when))
    merge(node, parent / "out", tmp_path)
    assert sorted(p.name for p in parent.iterdir()) == [".merge-out-2-0a_b1c2d", "out"]
