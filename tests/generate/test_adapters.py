"""Adapters and tuned models: loaded whole or not at all, on the base they were trained on."""

from __future__ import annotations

import json
import shutil
from pathlib import PurePosixPath

import pytest

from graphcontext import models
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate import adapters, causal_model, seq2seq_model
from graphcontext.generate.adapters import check_base, is_full, load_adapter, merge, template_digest
from graphcontext.whole import load_tokenizer, load_weights
from tests.tiny_models import save_tiny_bart, save_tiny_llama, save_tiny_t5

peft = pytest.importorskip("peft")

KINDS = {  # save a base model, class that reads it, task, modules that LoRA changes
    "llama": (save_tiny_llama, "AutoModelForCausalLM", "CAUSAL_LM", ["q_proj", "v_proj"]),
    "t5": (save_tiny_t5, "AutoModelForSeq2SeqLM", "SEQ_2_SEQ_LM", ["q", "v"]),
    "bart": (save_tiny_bart, "AutoModelForSeq2SeqLM", "SEQ_2_SEQ_LM", ["q_proj", "v_proj"]),
}
IDS = [[5, 6, 7, 2]]


@pytest.fixture(autouse=True)
def _free():
    yield
    seq2seq_model.free()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def base(kind, tmp_path):
    return KINDS[kind][0](tmp_path / kind)


def logits(model):
    import torch

    ids = torch.tensor(IDS)
    given = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with torch.inference_mode():
        return model.eval()(input_ids=ids, **given).logits


def save_adapter(kind, base, folder, **options):
    """Save a LoRA adapter of rank 4 with random weights; returns the tuned model's logits."""
    import torch

    _, reader, task, targets = KINDS[kind]
    torch.manual_seed(1)
    chosen = {"r": 4, "target_modules": targets, "init_lora_weights": False, "task_type": task} | options
    tuned = peft.get_peft_model(load_weights(reader, base), peft.LoraConfig(**chosen))
    tuned.save_pretrained(folder)
    return logits(tuned)


@pytest.fixture
def adapter(kind, base, tmp_path):
    save_adapter(kind, base, tmp_path / "adapter")
    return tmp_path / "adapter"


def load(kind, base, adapter):
    """Return the weights as a run loads them."""
    if kind == "llama":
        model = causal_model.load(str(base), None, str(adapter), "float32", "none", "cpu")
    else:
        model = seq2seq_model.load(str(base), None, "float32", "cpu", str(adapter))
    model.load_weights()
    return model.weights


def manifest(folder, base, **changes):
    """Write what ``graphcontext train`` writes beside an adapter."""
    named = models.identity(str(base)) | {"revision": None}
    said = {"base": named, "template": template_digest(load_tokenizer(base)), "kind": "lora"}
    (folder / "manifest.json").write_text(json.dumps(said | changes))


def rewrite(file, change):
    from safetensors.numpy import load_file, save_file

    weights = load_file(file)
    change(weights)
    save_file(weights, file, metadata={"format": "pt"})


class TestT25:
    """T25: saved, loaded as adapter and as merged: logits within 1e-4; missing or unexpected keys are an error."""

    def test_loaded_and_merged_give_the_saved_logits(self, kind, base, tmp_path):
        saved = save_adapter(kind, base, tmp_path / "adapter")
        plain = logits(load_weights(KINDS[kind][1], base))
        loaded = load(kind, base, tmp_path / "adapter")
        assert (logits(loaded) - saved).abs().max() < 1e-4 < (plain - saved).abs().max()
        merged = merge(loaded)
        assert (logits(merged) - saved).abs().max() < 1e-4
        merged.save_pretrained(tmp_path / "merged")  # a model folder of its own
        assert is_full(tmp_path / "merged")
        assert (logits(load_weights(KINDS[kind][1], tmp_path / "merged")) - saved).abs().max() < 1e-4

    def test_a_missing_an_unknown_and_a_changed_weight_are_errors(self, kind, base, adapter):
        file = adapter / "adapter_model.safetensors"
        whole = file.read_bytes()
        for change, message in [
            (lambda w: w.pop(sorted(w)[0]), "1 weights missing, 0 unknown"),
            (lambda w: w.update({"base_model.model.other.lora_A.weight": w[min(w)]}), "0 weights missing, 1 unknown"),
            (lambda w: w.update({min(w): w[min(w)][:2]}), r"1 weights of another shape, first .*lora_A.*: \[2, "),
        ]:
            rewrite(file, change)
            with pytest.raises(InputError, match=message):
                load(kind, base, adapter)
            file.write_bytes(whole)

    def test_an_adapter_of_more_layers_is_an_error(self, tmp_path):
        deep = save_tiny_t5(tmp_path / "deep", num_layers=2)
        save_adapter("t5", deep, tmp_path / "adapter")
        with pytest.raises(InputError, match=r"0 weights missing, .* unknown, first .*block\.1"):
            load("t5", save_tiny_t5(tmp_path / "t5"), tmp_path / "adapter")

    @pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
    @pytest.mark.parametrize("content", [b"", b"garbage", b"{}"])
    def test_a_damaged_file_is_one_line(self, kind, base, adapter, name, content):
        (adapter / name).write_bytes(content)
        with pytest.raises(InputError, match=r"adapter .* cannot be loaded: ") as caught:
            load(kind, base, adapter)
        assert "\n" not in str(caught.value)

    def test_a_cut_weight_file_is_one_line(self, kind, base, adapter):
        file = adapter / "adapter_model.safetensors"
        file.write_bytes(file.read_bytes()[:-8])
        with pytest.raises(InputError, match=r"adapter .* cannot be loaded: "):
            load(kind, base, adapter)

    def test_a_pickled_weight_file_is_read_as_weights_alone(self, base, kind, adapter):
        import torch
        from safetensors.torch import load_file

        safe = adapter / "adapter_model.safetensors"
        expected = logits(load(kind, base, adapter))
        torch.save(load_file(safe), adapter / "adapter_model.bin")
        safe.unlink()
        causal_model.free()
        seq2seq_model.free()
        assert (logits(load(kind, base, adapter)) == expected).all()
        (adapter / "adapter_model.bin").write_bytes(b"garbage")
        causal_model.free()
        seq2seq_model.free()
        with pytest.raises(InputError, match="cannot be loaded"):
            load(kind, base, adapter)
        torch.save({"w": PurePosixPath("/")}, adapter / "adapter_model.bin")  # pickled code
        with pytest.raises(InputError, match=r"adapter_model\.bin is damaged, or holds more than tensors"):
            load(kind, base, adapter)

    def test_a_weight_that_is_no_number_is_named(self, kind, base, adapter):
        name = "base_model.model"

        def spoil(weights):
            first = sorted(weights)[0]
            weights[first][0, 0] = float("nan")

        rewrite(adapter / "adapter_model.safetensors", spoil)
        with pytest.raises(InputError, match=rf"1 weights are no numbers, first {name}"):
            load(kind, base, adapter)


@pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers`")
def test_embeddings_saved_with_an_adapter_are_taken_and_needed_by_none(tmp_path):
    base = save_tiny_llama(tmp_path / "llama")
    saved = save_adapter("llama", base, tmp_path / "adapter", target_modules=["q_proj", "embed_tokens"])
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    assert (logits(load("llama", base, tmp_path / "adapter")) - saved).abs().max() < 1e-4
    rewrite(file, lambda w: w.pop(next(name for name in w if "base_layer" in name)))  # save_embedding_layers=False
    causal_model.free()
    assert (logits(load("llama", base, tmp_path / "adapter")) - saved).abs().max() < 1e-4


def test_other_kinds_of_adapters_and_tasks_are_named(tmp_path):
    base, folder = save_tiny_t5(tmp_path / "t5"), tmp_path / "adapter"
    save_adapter("t5", base, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    for change, message in [
        ({"peft_type": "PROMPT_TUNING"}, r"is of the kind PROMPT_TUNING; allowed: LORA"),
        ({"task_type": "CAUSAL_LM"}, r"is for the task CAUSAL_LM; allowed for this model: SEQ_2_SEQ_LM"),
        ({"target_modules": ["query"]}, "cannot be loaded: Target modules"),
    ]:
        (folder / "adapter_config.json").write_text(json.dumps(config | change))
        with pytest.raises(InputError, match=message) as caught:
            load("t5", base, folder)
        assert "\n" not in str(caught.value)


def test_a_folder_without_weights_and_one_that_is_not_there_are_named(kind, base, adapter, tmp_path):
    (adapter / "adapter_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"lacks adapter_model\.safetensors"):
        load(kind, base, adapter)
    with pytest.raises(MissingWeightsError, match="no such folder"):
        load(kind, base, tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"lacks adapter_config\.json; expected a PEFT adapter or a model folder"):
        load_adapter(None, str(tmp_path))


class TestBase:
    def test_what_was_trained_here_goes_on_its_own_base_alone(self, kind, base, adapter, tmp_path):
        manifest(adapter, base)
        assert load(kind, base, adapter) is not None
        other = shutil.copytree(base, tmp_path / "other")
        rewrite(other / "model.safetensors", lambda w: w.update({min(w): w[min(w)] + 1}))
        with pytest.raises(InputError, match=r"adapter was trained on \w+ \(.{12}\), and llm.model is other \("):
            load(kind, other, adapter)

    def test_another_chat_template_is_refused(self, tmp_path):
        base, folder = save_tiny_llama(tmp_path / "llama"), tmp_path / "adapter"
        save_adapter("llama", base, folder)
        manifest(folder, base, template="of another text")
        with pytest.raises(InputError, match="llama has another chat template than it had when"):
            load("llama", base, folder)

    @pytest.mark.parametrize("content", [b"{", b"[]", b'{"base": {}, "template": ""}', b'{"base": {"weights": ""}}'])
    def test_a_damaged_manifest_is_one_line(self, tmp_path, content):
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(InputError, match=r"manifest\.json is damaged"):
            check_base(tmp_path, {"model": "m", "weights": "w"}, "t")

    def test_of_a_foreign_adapter_two_hub_names_are_compared(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "local" / "model").mkdir(parents=True)
        for named, model, is_refused in [
            ("org/one", "org/two", True),
            ("org/one", "org/one", False),
            ("local/model", "org/two", False),  # a folder here
            ("/data/one", "org/two", False),  # a folder elsewhere
            ("a/b/c", "org/two", False),
            ("one", "org/two", False),
            ("org/one", "smollm2", False),
            (None, "org/two", False),
        ]:
            (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": named}))
            wanted = {"model": model, "weights": "w"}
            if is_refused:
                with pytest.raises(InputError, match=r"was trained on org/one, and llm\.model is org/two"):
                    check_base(tmp_path, wanted, "t")
            else:
                check_base(tmp_path, wanted, "t")
                is_open = (named, model) == ("org/one", "smollm2")
                assert ("nothing here tells whether they are the same model" in capsys.readouterr().err) == is_open


class TestFull:
    """A folder that was tuned as a whole takes the place of the base's weights; the tokenizer stays the base's."""

    @pytest.fixture
    def tuned(self, kind, base, tmp_path):
        model = load_weights(KINDS[kind][1], base)
        for weight in model.parameters():
            weight.data += 0.01
        model.save_pretrained(tmp_path / "tuned")
        manifest(tmp_path / "tuned", base, kind="full")
        return tmp_path / "tuned", logits(model)

    def test_its_weights_are_read_in_place_of_the_base(self, kind, base, tuned):
        folder, expected = tuned
        assert is_full(folder) and (logits(load(kind, base, folder)) == expected).all()

    def test_it_is_refused_on_another_base(self, kind, base, tuned, tmp_path):
        other = shutil.copytree(base, tmp_path / "other")
        rewrite(other / "model.safetensors", lambda w: w.update({min(w): w[min(w)] + 1}))
        with pytest.raises(InputError, match="was trained on"):
            load(kind, other, tuned[0])

    def test_one_of_another_kind_is_refused_without_a_manifest_too(self, tmp_path):
        t5, bart = save_tiny_t5(tmp_path / "t5"), save_tiny_bart(tmp_path / "bart")
        with pytest.raises(InputError, match=r"bart has model_type=bart, and t5 t5: it is no tuning of it"):
            load("t5", t5, bart)

    def test_a_weight_that_is_missing_is_an_error(self, kind, base, tuned):
        rewrite(tuned[0] / "model.safetensors", lambda w: w.pop(next(n for n in w if "layer_norm" in n or "norm" in n)))
        with pytest.raises(InputError, match="weights are missing"):
            load(kind, base, tuned[0])

    def test_what_is_full(self, tmp_path):
        assert not is_full(tmp_path)
        (tmp_path / "config.json").write_text("{}")
        assert not is_full(tmp_path)  # no weights
        (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"")
        assert is_full(tmp_path)
        (tmp_path / "adapter_config.json").write_text("{}")
        assert not is_full(tmp_path)


class TestIdentity:
    def test_an_adapter_is_named_by_its_config_and_weights_and_nothing_beside_them(self, tmp_path):
        save_adapter("llama", save_tiny_llama(tmp_path / "llama"), tmp_path / "adapter")
        folder = tmp_path / "adapter"
        before = models.adapter_identity(str(folder))
        for name in ("manifest.json", "metrics.csv", "done.json", "README.md", "checkpoints/last.pt"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("{}")
        assert models.adapter_identity(str(folder)) == before
        rewrite(folder / "adapter_model.safetensors", lambda w: w.update({min(w): w[min(w)] + 1}))
        changed = models.adapter_identity(str(folder))
        (folder / "adapter_config.json").write_text("{}")
        assert len({before, changed, models.adapter_identity(str(folder))}) == 3

    def test_a_whole_model_is_named_by_its_config_and_weights(self, tmp_path):
        folder = save_tiny_t5(tmp_path / "t5")
        before = models.adapter_identity(str(folder))
        (folder / "metrics.csv").write_text("step,loss")
        assert models.adapter_identity(str(folder)) == before
        rewrite(folder / "model.safetensors", lambda w: w.update({min(w): w[min(w)] + 1}))
        assert models.adapter_identity(str(folder)) != before

    def test_what_is_neither_is_named(self, tmp_path):
        with pytest.raises(InputError, match="is neither: expected a PEFT adapter"):
            models.adapter_identity(str(tmp_path))
        assert models.adapter_identity("gcg/sft") == "unresolved:gcg/sft"


def test_the_merge_of_a_weight_that_is_no_number_is_refused(tmp_path):
    base = save_tiny_t5(tmp_path / "t5")
    save_adapter("t5", base, tmp_path / "adapter")
    rewrite(tmp_path / "adapter" / "adapter_model.safetensors", lambda w: [part.fill(3e38) for part in w.values()])
    with pytest.raises(InputError, match="the adapter cannot be merged"):
        merge(load("t5", base, tmp_path / "adapter"))


def test_without_a_manifest_the_template_is_not_asked(tmp_path):
    adapters.check_base(tmp_path, {"model": "m", "weights": "w"}, "t")
