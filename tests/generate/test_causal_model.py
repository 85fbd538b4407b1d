"""Prompts with one BOS, placement, quantisation, adapters, decoding."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

from graphcontext.errors import InputError
from graphcontext.generate import causal_model
from graphcontext.generate.adapters import load_adapter
from graphcontext.generate.causal_model import (
    CausalModel,
    cut_at_stop,
    device_map,
    load,
    quantization_config,
    without_system,
)

USER = [{"role": "user", "content": "list the ports"}]
NO_BOS = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}assistant"


def loaded(folder) -> CausalModel:
    return load(str(folder), None, None, "auto", "none", "cpu")


def words(model: CausalModel, ids: list[int]) -> str:
    return model.tokenizer.decode(ids, skip_special_tokens=False)


def test_t23_a_template_that_adds_bos_and_a_tokenizer_that_adds_bos_give_one(tiny_llama):
    model = loaded(tiny_llama)
    assert model.adds_bos
    assert words(model, model.encode(USER, True)) == "<s> user list the ports assistant"


def test_t23_a_template_without_bos_gets_the_tokenizers(make_tiny_llama):
    model = loaded(make_tiny_llama(template=NO_BOS))
    assert words(model, model.encode(USER, True)) == "<s> user list the ports assistant"


def test_t23_a_template_that_adds_two_is_refused_at_start(make_tiny_llama):
    folder = make_tiny_llama(template="{{ bos_token }}" + "{{ bos_token }}" + NO_BOS)
    with pytest.raises(InputError, match="two BOS"):
        loaded(folder)


def test_a_model_without_bos_gets_none(make_tiny_llama):
    model = loaded(make_tiny_llama(template=NO_BOS, tokenizer_adds_bos=False))
    assert words(model, model.encode(USER, True)) == "user list the ports assistant"


def test_without_a_template_messages_are_joined(make_tiny_llama):
    model = loaded(make_tiny_llama(template=None))
    assert words(model, model.encode(USER, True)) == "<s> list the ports <unk> <unk>"  # "Answer", ":"
    system = [{"role": "system", "content": "use ss"}, *USER]  # GPT-NeoX and other models that are no chat models
    for system_role in (True, False):
        assert words(model, model.encode(system, system_role)) == "<s> use ss list the ports <unk> <unk>"


def test_a_template_without_system_role_gets_the_system_text_in_the_first_user_message():
    messages = [{"role": "system", "content": "Be brief."}, *USER]
    assert without_system(messages) == [{"role": "user", "content": "Be brief.\n\nlist the ports"}]
    assert messages[1]["content"] == "list the ports"


def test_one_process_loads_a_model_once_until_it_is_freed(tiny_llama):
    first = loaded(tiny_llama)
    assert loaded(tiny_llama) is first
    causal_model.free()
    assert loaded(tiny_llama) is not first


def test_padding_does_not_change_greedy_answers(tiny_llama):
    model = loaded(tiny_llama)
    model.load_weights()
    texts = ("list", "how do i list the ports")
    prompts = [model.encode([{"role": "user", "content": t}], True) for t in texts]
    together = model.generate(prompts, 6, 0.0, 1.0, [0, 1])
    alone = [model.generate([p], 6, 0.0, 1.0, [0])[0] for p in prompts]
    assert together == alone


def test_a_draw_depends_on_its_own_seed_and_not_on_its_batch(tiny_llama):
    model = loaded(tiny_llama)
    model.load_weights()
    prompt = model.encode(USER, True)
    a, b, again = model.generate([prompt, prompt, prompt], 8, 1.0, 0.9, [7, 8, 7])
    assert a == again
    assert a != b
    assert model.generate([prompt], 8, 1.0, 0.9, [7]) == [a]


def test_a_tiny_nucleus_is_greedy(tiny_llama):
    model = loaded(tiny_llama)
    model.load_weights()
    prompt = model.encode(USER, True)
    assert model.generate([prompt], 8, 1.0, 1e-6, [7]) == model.generate([prompt], 8, 0.0, 1.0, [7])


def test_an_answer_ends_before_its_stop_token():
    assert cut_at_stop([5, 6, 2, 3, 3], [2]) == ([5, 6], "stop")
    assert cut_at_stop([5, 6, 7], [2]) == ([5, 6, 7], "length")


class TestT44Placement:
    """T44: WORLD_SIZE=2 → this rank's GPU, never "auto"."""

    def test_a_rank_loads_on_its_own_gpu(self, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_RANK", "1")
        assert device_map("auto", on_gpu=True) == {"": 1}
        assert device_map("auto", on_gpu=False) == {"": "cpu"}

    def test_a_quantised_load_passes_this_rank(self, monkeypatch, tiny_llama):
        """bitsandbytes and the GPU are mocked: what matters is what from_pretrained is given."""
        import torch
        import transformers

        seen = {}

        class Stop(RuntimeError):
            pass

        def from_pretrained(folder, **arguments):
            seen.update(arguments)
            raise Stop

        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_RANK", "1")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(causal_model, "quantization_config", lambda kind, dtype: (kind, dtype))
        monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", from_pretrained)
        model = CausalModel(tiny_llama, None, "auto", "4bit", "auto")
        with pytest.raises(Stop):
            model.load_weights()
        assert seen["device_map"] == {"": 1}
        assert seen["quantization_config"] == ("4bit", torch.bfloat16)

    def test_one_process_spreads_over_its_gpus(self, monkeypatch):
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        assert device_map("auto", on_gpu=True) == "auto"
        assert device_map("cuda:1", on_gpu=True) == {"": "cuda:1"}
        assert device_map("cpu", on_gpu=False) == {"": "cpu"}

    def test_a_group_of_another_size_is_refused(self, monkeypatch):
        import torch

        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_RANK", "0")
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
        with pytest.raises(InputError, match="has 3 processes, WORLD_SIZE says 2"):
            device_map("auto", on_gpu=True)

    def test_a_rank_without_number_is_refused(self, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        with pytest.raises(InputError, match="LOCAL_RANK"):
            device_map("auto", on_gpu=True)


def test_quantisation_without_bitsandbytes_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"graphcontext\[quantization\]"):
        quantization_config("4bit", None)


def test_an_adapter_without_peft_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"graphcontext\[train\]"):
        load_adapter(None, "folder")


def test_a_gpu_that_is_not_there_is_named(tiny_llama, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="torch sees no GPU"):
        CausalModel(tiny_llama, None, "auto", "none", "cuda:0").load_weights()


class TestT25Adapter:
    """T25: an adapter is loaded whole or not at all."""

    @pytest.fixture
    def adapter(self, tiny_llama, tmp_path):
        peft = pytest.importorskip("peft")
        import torch
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained(tiny_llama)
        config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        torch.manual_seed(1)
        tuned = peft.get_peft_model(base, config).eval()
        tuned.save_pretrained(tmp_path / "adapter")
        ids = torch.tensor([[1, 5, 6, 7]])
        with torch.inference_mode():
            return tmp_path / "adapter", ids, tuned(input_ids=ids).logits

    def test_the_loaded_adapter_gives_the_saved_logits(self, tiny_llama, adapter):
        import torch

        folder, ids, logits = adapter
        model = load(str(tiny_llama), None, str(folder), "float32", "none", "cpu")
        model.load_weights()
        with torch.inference_mode():
            assert (model.weights(input_ids=ids).logits - logits).abs().max() < 1e-4

    def test_a_missing_weight_is_an_error(self, tiny_llama, adapter):
        from safetensors.torch import load_file, save_file

        folder, _, _ = adapter
        weights = load_file(folder / "adapter_model.safetensors")
        weights.pop(sorted(weights)[0])
        save_file(weights, folder / "adapter_model.safetensors")
        with pytest.raises(InputError, match="1 weights missing"):
            load(str(tiny_llama), None, str(folder), "float32", "none", "cpu").load_weights()

    @pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
    @pytest.mark.parametrize("content", [b"", b"garbage", b"{}"])
    def test_a_damaged_adapter_is_one_line(self, tiny_llama, adapter, name, content):
        folder, _, _ = adapter
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=r"adapter .* cannot be loaded: ") as caught:
            load(str(tiny_llama), None, str(folder), "float32", "none", "cpu").load_weights()
        assert "\n" not in str(caught.value)

    def test_a_folder_without_adapter_is_an_error(self, tiny_llama, tmp_path):
        with pytest.raises(InputError, match=r"adapter_config\.json"):
            load(str(tiny_llama), None, str(tmp_path), "float32", "none", "cpu").load_weights()


@pytest.fixture
def broken(tiny_llama, tmp_path):
    return shutil.copytree(tiny_llama, tmp_path / "broken")


def rewrite(folder, change) -> None:
    """Write the weights back after ``change`` altered them."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def drop_a_layer(weights) -> None:
    for name in [name for name in weights if name.startswith("model.layers.1.")]:
        del weights[name]


def test_a_layer_that_is_missing_is_an_error_not_random(broken):
    rewrite(broken, drop_a_layer)
    with pytest.raises(InputError, match=r"broken: 9 weights are missing, such as model\.layers\.1\..*, …; the folder"):
        loaded(broken).load_weights()


def test_a_weight_of_another_shape_is_an_error_not_random(broken):
    rewrite(broken, lambda weights: weights.update({"model.norm.weight": weights["model.norm.weight"][:3]}))
    with pytest.raises(InputError, match=r"1 weights have another shape .*such as model\.norm\.weight"):
        loaded(broken).load_weights()


def test_an_encoder_is_no_language_model(broken):
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=80, max_position_embeddings=32, **sizes)).save_pretrained(broken)
    with pytest.raises(InputError, match=r"weights are missing, such as cls\..*another kind of model"):
        loaded(broken).load_weights()


def test_a_head_tied_to_the_embedding_is_not_missing(broken):
    config = json.loads((broken / "config.json").read_text()) | {"tie_word_embeddings": True}
    (broken / "config.json").write_text(json.dumps(config))
    rewrite(broken, lambda weights: weights.pop("lm_head.weight"))
    model = loaded(broken)
    model.load_weights()
    assert model.generate([[1, 4]], 2, 0.0, 1.0, [0])


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"{}", b"version https://git-lfs.github.com/spec/v1"]
)
def test_a_damaged_file_is_one_line_with_its_folder(broken, name, content):
    if (name, content) == ("tokenizer_config.json", b"{}"):
        return  # nothing is damaged: the tokenizer has no special names
    (broken / name).write_bytes(content)
    with pytest.raises(InputError, match=r"model folder .*broken") as caught:
        loaded(broken).load_weights()
    assert "\n" not in str(caught.value)


def test_a_chat_template_that_fails_is_one_line(make_tiny_llama):
    for template in ("{% for m in messages %}", "{{ raise_exception('no such role') }}"):
        with pytest.raises(InputError, match=r"llama: its chat template fails: ") as caught:
            loaded(make_tiny_llama(template=template))
        assert "\n" not in str(caught.value)
