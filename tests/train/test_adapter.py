"""What is trained of a model: targets of each architecture, float32 weights, 4-bit bases, refusals."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from graphcontext.errors import InputError
from graphcontext.generate.causal_model import CausalModel
from graphcontext.train.adapter import FullTuning, LoRA, NoAdapter, QLoRA, linear_layers
from graphcontext.whole import load_weights
from tests.tiny_models import save_tiny_bart, save_tiny_llama, save_tiny_t5

LLAMA = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
KINDS = {
    "llama": (save_tiny_llama, "AutoModelForCausalLM", LLAMA),
    "t5": (save_tiny_t5, "AutoModelForSeq2SeqLM", {"q", "k", "v", "o", "wi", "wo"}),
    "bart": (save_tiny_bart, "AutoModelForSeq2SeqLM", {"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"}),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def network(kind, tmp_path):
    save, reader, _ = KINDS[kind]
    return load_weights(reader, save(tmp_path / kind))


def lora(**changes):
    return LoRA(**{"rank": 4, "alpha": 8, "dropout": 0.0} | changes)


def trained(network):
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


class TestLoRA:
    def test_all_linear_layers_but_the_output_are_targets_whatever_they_are_called(self, network, kind):
        assert linear_layers(network) == KINDS[kind][2]

    def test_adapters_alone_are_trained_and_training_starts_from_the_base(self, network, kind):
        network.eval()
        ids = torch.tensor([[5, 6, 7]])
        given = {"decoder_input_ids": ids} if network.config.is_encoder_decoder else {}
        with torch.no_grad():
            before = network(input_ids=ids, **given).logits
            wrapped = lora().wrap(network).eval()
            assert (wrapped(input_ids=ids, **given).logits == before).all()
        found = trained(wrapped)
        assert found and all("lora_" in name and w.dtype == torch.float32 for name, w in found.items())
        assert all((w == 0).all() == ("lora_B" in name) for name, w in found.items())

    def test_adapters_of_a_half_precision_base_are_in_float32(self, tmp_path):
        network = load_weights("AutoModelForCausalLM", save_tiny_llama(tmp_path / "m"), dtype=torch.bfloat16)
        assert {w.dtype for w in trained(lora().wrap(network)).values()} == {torch.float32}

    def test_chosen_targets_alone_get_one(self, network, kind):
        name = sorted(KINDS[kind][2])[0]
        found = trained(lora(targets=[name]).wrap(network))
        assert found and all(f".{name}." in n for n in found)

    def test_an_unknown_target_is_named_with_what_is_meant(self, tmp_path):
        network = load_weights("AutoModelForCausalLM", save_tiny_llama(tmp_path / "m"))
        message = r"adapter\.targets: q_porj: LlamaForCausalLM has no linear layer of that name; did you mean q_proj\?"
        with pytest.raises(InputError, match=message):
            lora(targets=["v_proj", "q_porj"]).wrap(network)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rank": 0}, r"adapter\.rank=0; allowed: 1 and more"),
            ({"alpha": 0}, r"adapter\.alpha=0; allowed: above 0"),
            ({"alpha": float("nan")}, r"adapter\.alpha=nan; allowed: above 0"),
            ({"alpha": float("inf")}, r"adapter\.alpha=inf; allowed: above 0, and finite"),
            ({"targets": [1]}, r"adapter\.targets=\[1\]; allowed: a list of names"),
            ({"dropout": 1.0}, r"adapter\.dropout=1\.0; allowed: 0 to below 1"),
            ({"targets": []}, r"adapter\.targets=\[\]; allowed: a list of names"),
            ({"targets": "q_proj"}, r"adapter\.targets='q_proj'; allowed: a list of names"),
        ],
    )
    def test_wrong_values(self, changes, message):
        with pytest.raises(InputError, match=message):
            lora(**changes)

    def test_without_peft_the_extra_is_named(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(InputError, match=r"pip install 'graphcontext\[train\]'"):
            lora().wrap(None)

    def test_the_weight_file_is_under_a_twentieth_of_a_small_model(self):
        """SmolLM2-135M's shape on the meta device, the adapter of conf/adapter/lora.yaml."""
        shape = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
        shape |= {"num_key_value_heads": 3, "vocab_size": 49152, "tie_word_embeddings": True}
        with torch.device("meta"):
            network = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **shape))
            whole = sum(w.numel() for w in network.parameters())
            part = sum(w.numel() for w in trained(lora(rank=16, alpha=32).wrap(network)).values())
        assert whole == 134_515_008 and part == 4_884_480
        assert part < 0.05 * whole  # both in float32


class TestQLoRA:
    def test_on_a_cpu_the_loss_falls_and_adapters_alone_have_gradients(self, tmp_path):
        pytest.importorskip("bitsandbytes")
        model = CausalModel(save_tiny_llama(tmp_path / "m", hidden_size=64), None, "float32", "4bit", "cpu")
        model.load_weights()
        network = QLoRA(rank=4, alpha=8, dropout=0.0).wrap(model.weights).train()
        kinds = {type(m).__name__ for m in network.modules()}
        assert "Linear4bit" in kinds
        frozen = {n: w.detach().clone() for n, w in network.named_parameters() if not w.requires_grad}
        optimizer = torch.optim.AdamW(trained(network).values(), lr=0.02)
        ids, losses = torch.tensor([[1, 5, 6, 7, 8, 2]]), []
        for _ in range(8):
            loss = network(input_ids=ids, labels=ids).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] - 0.1 and losses == sorted(losses, reverse=True)
        got = {n for n, w in network.named_parameters() if w.grad is not None}
        assert got == set(trained(network)) and all("lora_" in n for n in got)
        assert all((w == frozen[n]).all() for n, w in network.named_parameters() if n in frozen)
        assert {w.dtype for w in trained(network).values()} == {torch.float32}


def test_full_tuning_trains_all_weights_in_float32(network):
    wrapped = FullTuning().wrap(network.to(torch.bfloat16))
    assert set(trained(wrapped)) == {n for n, _ in wrapped.named_parameters()}
    assert {w.dtype for w in wrapped.parameters()} == {torch.float32}


def test_no_adapter_trains_nothing(network):
    assert trained(NoAdapter().wrap(network)) == {}


def test_a_validation_on_a_cpu_does_not_take_the_gradients_of_a_4_bit_model(tmp_path):
    folder = save_tiny_llama(tmp_path / "llama", hidden_size=64, intermediate_size=128)
    adapter = QLoRA(4, 8, 0.0)
    model = CausalModel(folder, None, "float32", adapter.quantization, "cpu")
    model.load_weights()
    network = adapter.wrap(model.weights)
    ids = torch.tensor([[1, 5, 6, 7, 8, 2]])

    def gradients():
        network.train().zero_grad()
        network(input_ids=ids, labels=ids).loss.backward()
        return {name: p.grad.clone() for name, p in network.named_parameters() if p.requires_grad}

    before = gradients()
    with torch.no_grad():
        network.eval()(input_ids=ids)
    after = gradients()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert any("layers.0" in name and grad.abs().sum() > 0 for name, grad in after.items() if "lora_B" in name)
