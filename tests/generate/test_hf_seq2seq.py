"""Answers by T5 and BART: plain sources, cut ones counted, adapters, keys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from graphcontext import models
from graphcontext.component import check_arguments, draws, fingerprint, instantiate
from graphcontext.config import compose
from graphcontext.errors import InputError, MissingWeightsError, RunError
from graphcontext.generate import seq2seq_model
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.hf_seq2seq import Seq2SeqLLM, source_text
from graphcontext.generate.seq2seq_model import Decoding, Seq2SeqModel
from graphcontext.hashes import hash_folder
from tests.tiny_models import save_tiny_bart, save_tiny_t5

TARGET = "graphcontext.generate.hf_seq2seq.Seq2SeqLLM"


@pytest.fixture(scope="module", params=[save_tiny_bart, save_tiny_t5], ids=["bart", "t5"])
def folder(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("seq2seq") / "model")


@pytest.fixture(autouse=True)
def _free():
    yield
    seq2seq_model.free()


def ask(item: str, text: str) -> ChatRequest:
    return ChatRequest(item, ({"role": "user", "content": text},))


REQUESTS = [ask("a", "list the ports"), ask("b", "how do i list open ports"), ask("c", "use ss")]


def llm(folder, **options) -> Seq2SeqLLM:
    return Seq2SeqLLM(str(folder), **{"device": "cpu", "max_source_length": 16, **options})


def tune(folder, out, seed: int = 1):
    """Save a LoRA adapter with random weights."""
    peft = pytest.importorskip("peft")
    import torch
    from transformers import AutoModelForSeq2SeqLM

    torch.manual_seed(seed)
    base = AutoModelForSeq2SeqLM.from_pretrained(folder)
    targets = ["q", "v"] if base.config.model_type == "t5" else ["q_proj", "v_proj"]
    config = peft.LoraConfig(r=4, lora_alpha=64, target_modules=targets, init_lora_weights=False)
    peft.get_peft_model(base, config).save_pretrained(out)
    return out


def test_the_source_is_plain_text_with_the_system_text_first():
    user = {"role": "user", "content": "who wrote it?\na passage"}
    assert source_text((user,)) == "who wrote it?\na passage"  # KGP: question, newline, passage
    assert source_text((user, {"role": "system", "content": "be brief"})) == "be brief\n\nwho wrote it?\na passage"


@pytest.mark.parametrize("beams", [1, 3])
def test_answers_by_index_and_equal_for_every_batch_size(folder, beams):
    by_batch = []
    for batch_size in (1, 2, 3):
        answers = llm(folder, batch_size=batch_size, beams=beams).chat(REQUESTS, "answer", 5)
        by_batch.append([(r.item, r.text, r.finish, r.n_tokens) for r in answers])
    assert by_batch[0] == by_batch[1] == by_batch[2]
    assert [item for item, *_ in by_batch[0]] == ["a", "b", "c"]


def test_it_writes_what_the_model_writes(folder):
    texts = [r.messages[0]["content"] for r in REQUESTS]
    plain = seq2seq_model.load(str(folder), None, "float32", "cpu").write(texts, Decoding(16, 5), 1)
    assert [r.text for r in llm(folder).chat(REQUESTS, "answer", 5)] == [output.text for output in plain]


def test_tokens_are_counted(folder):
    model = llm(folder)
    assert model.count_tokens("list the ports") == 3
    special = model.length(ask("a", "list the ports")) - 3
    assert special in (1, 2)  # T5: </s>, BART: <s> and </s>
    assert model.chat(REQUESTS, "answer", 5)[0].n_prompt_tokens == 3 + special


def test_a_source_that_is_cut_says_so_and_is_counted(folder, caplog):
    model = llm(folder, max_source_length=5)
    with caplog.at_level(logging.WARNING):
        short, long, _ = model.chat(REQUESTS, "answer", 5)
        model.chat([ask("d", "how do i list files to ports")], "answer", 5)
    assert (short.reason, long.reason) == (None, "input cut at 5 tokens")
    assert long.status == "ok" and long.n_prompt_tokens == 5
    assert model.n_cut == 2
    assert len([r for r in caplog.records if "max_source_length=5" in r.getMessage()]) == 1  # said once


def test_more_positions_than_the_model_has_are_refused(tmp_path):
    bart = save_tiny_bart(tmp_path / "bart")
    with pytest.raises(InputError, match="max_source_length=512, but bart has 64 positions"):
        Seq2SeqLLM(str(bart), device="cpu").chat(REQUESTS, "answer", 5)


def test_answered_requests_are_not_asked_again(folder, workspace, monkeypatch):
    first = llm(folder)
    first.bind(workspace)
    answers = first.chat(REQUESTS, "answer", 5)
    monkeypatch.setattr(Seq2SeqModel, "write", None)
    again = llm(folder)
    again.bind(workspace)
    assert [r.text for r in again.chat(REQUESTS, "answer", 5)] == [r.text for r in answers]


def test_an_adapter_changes_answers_and_calls(folder, tmp_path, workspace):
    adapter = str(tune(folder, tmp_path / "adapter"))
    base, tuned = llm(folder), llm(folder, adapter=adapter)
    for model in (base, tuned):
        model.bind(workspace)
    before = [r.text for r in base.chat(REQUESTS, "answer", 5)]
    assert [r.text for r in tuned.chat(REQUESTS, "answer", 5)] != before
    assert tuned.settings()["adapter"] == models.adapter_identity(adapter)
    assert "adapter" not in base.settings()


class Training:
    """As :class:`graphcontext.train.trained.TrainedAdapter`: its folder is there once it is trained."""

    path: Path | None = None

    @property
    def folder(self) -> Path:
        if self.path is None:
            raise MissingWeightsError("not trained yet")
        return self.path


def test_a_training_gives_its_folder_once_it_is_trained(folder, tmp_path):
    trained = Training()
    model = llm(folder, adapter=trained)
    with pytest.raises(MissingWeightsError, match="not trained yet"):
        model.chat(REQUESTS, "answer", 5)
    trained.path = path = tune(folder, tmp_path / "adapter")
    assert [r.text for r in model.chat(REQUESTS, "answer", 5)] == [
        r.text for r in llm(folder, adapter=str(path)).chat(REQUESTS, "answer", 5)
    ]
    assert model.settings()["adapter"] == models.adapter_identity(str(path))


def test_a_tuned_model_takes_the_place_of_the_base(folder, tmp_path):
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    for weight in model.parameters():
        weight.data *= -1
    model.save_pretrained(tmp_path / "tuned")
    answers = [r.text for r in llm(folder, adapter=str(tmp_path / "tuned")).chat(REQUESTS, "answer", 5)]
    assert answers != [r.text for r in llm(folder).chat(REQUESTS, "answer", 5)]


def test_the_key_holds_what_can_change_an_answer(folder, tmp_path):
    node = {"_target_": TARGET, "model": str(folder), "beams": 2}
    key = fingerprint(node)
    assert key["weights"] == hash_folder(folder) and not draws(node)
    same = {"batch_size": 3, "device": "cuda", "parameters": 1, "plan": {"layers": 1}}
    assert fingerprint(node | same) == key
    adapter = str(tune(folder, tmp_path / "adapter"))
    for change in ({"beams": 3}, {"max_source_length": 8}, {"dtype": "bfloat16"}, {"adapter": adapter}):
        assert fingerprint(node | change) != key
    moved = (tmp_path / "adapter").rename(tmp_path / "moved")
    assert fingerprint(node | {"adapter": str(moved)})["adapter"] == models.adapter_identity(str(moved))


def test_the_calls_hold_what_can_change_an_answer(folder):
    settings = llm(folder).settings()
    for change in ({"beams": 2}, {"max_source_length": 8}, {"dtype": "bfloat16"}, {"repetition_penalty": 2.5}):
        assert llm(folder, **change).settings() != settings
    assert llm(folder, batch_size=1).settings() == settings == llm(folder, length_penalty=2.0).settings()
    assert llm(folder, beams=2).settings() != llm(folder, beams=2, length_penalty=2.0).settings()


@pytest.mark.parametrize("name", ["t5_large", "bart_large"])
def test_a_shipped_config_composes_and_says_that_no_weights_are_here(name, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for scale in ("sample", "small", "paper"):  # no small model stands in for it
        node = compose([f"llm={name}", f"scale={scale}"]).config["roles"]["answer"]
        assert node["_target_"] == TARGET
    check_arguments(Seq2SeqLLM, {k: v for k, v in node.items() if k != "_target_"}, "llm")
    with pytest.raises(MissingWeightsError, match=r"no weights: .*-large@"):
        instantiate(node).chat(REQUESTS, "answer", 5)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("dtype", "auto"),
        ("beams", 0),
        ("repetition_penalty", 0.5),
        ("max_source_length", 2),
        ("batch_size", 0),
        ("device", "tpu"),
        ("adapter", 3),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(argument, value):
    with pytest.raises(InputError, match=rf"{argument}={value}.*allowed"):
        Seq2SeqLLM("m", **{argument: value})


def test_out_of_memory_ends_the_run_with_the_mend(folder, monkeypatch):
    def full(*arguments, **more):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    model = llm(folder)
    loaded = seq2seq_model.load(str(folder), None, "float32", "cpu")
    loaded.load_weights()
    monkeypatch.setattr(loaded.weights, "generate", full)
    with pytest.raises(RunError, match="lower batch_size"):
        model.chat(REQUESTS, "answer", 5)
