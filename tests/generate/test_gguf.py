"""Conversion of GGUF files: refused inputs, and the embedded model as converted."""

from __future__ import annotations

import json

import pytest

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.generate.gguf import convert_gguf


def test_a_file_that_is_not_there_or_no_gguf_is_named(tmp_path):
    with pytest.raises(InputError, match=r"x\.gguf is not a file"):
        convert_gguf(tmp_path / "x.gguf", tmp_path / "out")
    (tmp_path / "y.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"y\.gguf is not a GGUF file"):
        convert_gguf(tmp_path / "y.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_left_alone(tmp_path):
    (tmp_path / "z.gguf").write_bytes(b"GGUF")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        convert_gguf(tmp_path / "z.gguf", tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_a_broken_file_leaves_nothing_behind(tmp_path):
    (tmp_path / "z.gguf").write_bytes(b"GGUF" + b"\0" * 64)
    with pytest.raises(Exception):  # noqa: B017 - whatever transformers says of it
        convert_gguf(tmp_path / "z.gguf", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["z.gguf"]


@pytest.mark.needs_models
def test_the_converted_model_has_its_template_and_splits_digits():
    from transformers import AutoTokenizer

    folder = models.resolve("smollm2")
    config = json.loads((folder / "config.json").read_text())
    assert config["dtype"] == "float32"
    assert "quantization_config" not in config
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (
        *("<|im_start|>", "<|im_end|>"),
        "<|im_end|>",
    )
    assert tokenizer.chat_template
    text = "v1.23  port  8080"
    # with GPT-2's splitting alone the two blanks before the number would be two tokens
    assert tokenizer.tokenize(text)[-5:] == ["ĠĠ", "8", "0", "8", "0"]
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
