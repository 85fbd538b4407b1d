"""Encoder–decoder models: loading whole or not at all, batches, beams, cut inputs and outputs."""

from __future__ import annotations

import pytest

from graphcontext import runs
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate import seq2seq_model
from graphcontext.generate.seq2seq_model import Decoding, Seq2SeqModel, load
from tests.tiny_models import save_tiny_bart, save_tiny_t5

TEXTS = ["list the ports", "", "how do i list open ports", "the answer is here"]
SHORT = Decoding(16, 6)


@pytest.fixture(scope="module", params=[save_tiny_bart, save_tiny_t5], ids=["bart", "t5"])
def folder(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("seq2seq") / "model")


@pytest.fixture
def bart(tmp_path):
    return save_tiny_bart(tmp_path / "bart")


@pytest.fixture(autouse=True)
def _free():
    yield
    seq2seq_model.free()


def loaded(folder) -> Seq2SeqModel:
    return load(str(folder), None, "float32", "cpu")


@pytest.mark.parametrize("beams", [1, 3])
def test_the_output_does_not_depend_on_the_batch(folder, beams):
    model, decoding = loaded(folder), Decoding(16, 6, beams, 0.0)
    alone = [model.write([text], decoding, 1)[0] for text in TEXTS]
    assert len({output.text for output in alone}) > 1
    for batch_size in (2, 3, 8):
        assert model.write(TEXTS, decoding, batch_size) == alone
    assert model.write(TEXTS[::-1], decoding, 2) == alone[::-1]


def test_equal_texts_are_written_once_and_given_back_to_each(folder, monkeypatch):
    model, seen = loaded(folder), []
    generate = Seq2SeqModel._generate

    def counted(self, sources, decoding):
        seen.extend(sources)
        return generate(self, sources, decoding)

    monkeypatch.setattr(Seq2SeqModel, "_generate", counted)
    first, second, third = model.write(["list the ports", "the answer", "list the ports"], SHORT, 1)
    assert first == third != second and len(seen) == 2
    assert model.write([], SHORT, 1) == []


def test_greedy_is_the_argmax_of_each_step(folder):
    """The reference: without cache and padding, one token at a time."""
    import torch

    model = loaded(folder)
    (output,) = model.write(["list the ports"], SHORT, 1)
    source = torch.tensor([model.tokenizer("list the ports").input_ids])
    ids = [model.weights.generation_config.decoder_start_token_id]
    with torch.inference_mode():
        for _ in range(6):
            logits = model.weights(input_ids=source, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
            ids.append(int(logits.argmax()))
    stop = ids.index(2) if 2 in ids else None
    assert output.text == model.tokenizer.decode(ids[1:stop], skip_special_tokens=True).strip()


def test_more_beams_find_no_less_likely_output(folder):
    import torch

    model = loaded(folder)

    def log_probability(text: str, beams: int) -> float:
        (pair,) = model._generate([model.ids(text)], Decoding(16, 4, beams, 0.0))
        labels = torch.tensor([pair[0] + [2] * (pair[1] == "stop")])
        with torch.inference_mode():
            logits = model.weights(input_ids=torch.tensor([model.ids(text)]), labels=labels).logits
        return float(logits.log_softmax(-1).gather(2, labels.unsqueeze(-1)).sum())

    model.load_weights()
    found = [(log_probability(text, 1), log_probability(text, 24)) for text in TEXTS]
    assert all(wide >= greedy - 1e-4 for greedy, wide in found)


def test_a_long_input_is_cut_and_counted_and_ends_as_inputs_do(folder):
    model = loaded(folder)
    text = "how do i list open ports"  # 6 words, and </s>, and BART's <s>
    n = model.count(text)
    assert n == len(model.tokenizer(text).input_ids)
    (cut,) = model.write([text], Decoding(5, 6), 1)
    kept = "how do i list" if n == 7 else "how do i"  # 5 tokens with </s>, with <s> and </s>
    (short,) = model.write([kept], Decoding(5, 6), 1)
    assert cut.n_cut == n - 5
    assert (cut.text, short.n_cut) == (short.text, 0)


def test_an_output_that_the_limit_ended_is_not_taken_for_a_whole_one(bart):
    model = loaded(bart)
    assert model.load_weights() is None and model.weights.generation_config.forced_eos_token_id == 2
    (output,) = model.write(["list the ports"], Decoding(16, 3), 1)
    assert (output.finish, output.n_tokens) == ("length", 3)  # forced, the third would be </s>


def test_an_output_ends_before_its_end_of_sequence(bart):
    model = loaded(bart)
    model.load_weights()
    model.weights.final_logits_bias[0, 2] = 1e4  # </s> first
    assert model.write(["list the ports"], SHORT, 1)[0] == seq2seq_model.Output("", "stop", 0)


def test_markers_are_kept_where_they_are_asked_for(bart):
    model = loaded(bart)
    model.load_weights()
    subject = model.tokenizer.convert_tokens_to_ids("<subj>")
    model.weights.final_logits_bias[0, subject] = 1e4
    assert model.write(["list"], Decoding(16, 2), 1, keep_markers=True)[0].text == "<subj> <subj>"
    assert model.write(["list"], Decoding(16, 2), 1)[0].text == ""


def test_a_repetition_penalty_forbids_repeating(bart):
    model = loaded(bart)
    model.load_weights()
    (free,) = model._generate([model.ids("list the ports")], Decoding(16, 8))
    (held,) = model._generate([model.ids("list the ports")], Decoding(16, 8, repetition_penalty=1e6))
    assert len(set(free[0])) < len(free[0]) and len(set(held[0])) == len(held[0])


def test_one_process_loads_a_model_once_until_models_are_freed(folder):
    first = loaded(folder)
    assert loaded(folder) is first
    runs.free_models()
    assert loaded(folder) is not first


def test_more_positions_than_the_model_has_are_refused(bart, tmp_path):
    for decoding in (Decoding(65, 6), Decoding(16, 65)):
        with pytest.raises(InputError, match="length=65, but bart has 64 positions"):
            loaded(bart).write(["list"], decoding, 1)
    t5 = save_tiny_t5(tmp_path / "t5")
    assert loaded(t5).write(["list " * 100], Decoding(200, 2), 1)[0].n_cut == 0  # its positions are relative


def test_a_layer_that_is_missing_is_an_error_not_random(folder):
    from safetensors.numpy import load_file, save_file

    file = folder / "model.safetensors"
    whole = load_file(file)
    save_file({k: v for k, v in whole.items() if "decoder" not in k}, file, metadata={"format": "pt"})
    try:
        with pytest.raises(InputError, match=r"weights are missing, such as .*decoder"):
            loaded(folder).load_weights()
    finally:
        save_file(whole, file, metadata={"format": "pt"})


def test_what_is_no_encoder_decoder_is_named(tmp_path):
    from tests.tiny_models import save_tiny_llama

    with pytest.raises(InputError, match="holds a llama; expected one with encoder and decoder"):
        loaded(save_tiny_llama(tmp_path / "llama"))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{}", b"garbage"])
def test_a_damaged_file_is_one_line_with_its_folder(bart, name, content):
    (bart / name).write_bytes(content)
    with pytest.raises(InputError, match=r"model folder .*bart") as caught:
        loaded(bart).load_weights()
    assert "\n" not in str(caught.value)


def test_missing_weights_and_a_missing_gpu_are_named(bart, monkeypatch):
    import torch

    with pytest.raises(MissingWeightsError, match="no weights: nobody/nothing"):
        load("nobody/nothing", None, "float32", "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="torch sees no GPU"):
        load(str(bart), None, "float32", "cuda:0").load_weights()


def test_wrong_values_are_named():
    for wrong, message in [
        ((2, 6), "max_source_length=2"),
        ((16, 0), "max_target_length=0"),
        ((16, 6, 0), "beams=0"),
        ((16, 6, 1, 1.0, 0.5), r"repetition_penalty=0\.5"),
    ]:
        with pytest.raises(InputError, match=message):
            Decoding(*wrong)
