"""Tokenizers that count."""

from __future__ import annotations

import pytest

from graphcontext.data.tokenizer import ModelTokenizer, Words
from graphcontext.errors import InputError, MissingWeightsError


def test_words_and_marks_are_counted_without_weights():
    assert Words().count("Don't panic: run ls -la") == 9  # Don ' t panic : run ls - la
    assert Words().count("") == 0


def test_a_models_tokenizer_counts_its_tokens_without_special_ones(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<unk>": 0, "<s>": 1, "use": 2, "ss": 3}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>")
    made.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    tokenizer = ModelTokenizer(str(tmp_path))
    assert tokenizer.count("use ss now") == 3
    assert tokenizer.count("use " * 5000) == 5000  # never cut


def test_a_model_that_is_not_here_is_named_at_the_first_count():
    tokenizer = ModelTokenizer("nobody/nothing")
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        tokenizer.count("x")


@pytest.mark.needs_models
def test_smollm2_counts_each_digit():
    assert ModelTokenizer("smollm2").count("8080") == 4


def test_a_folder_without_a_tokenizer_counts_nothing(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="lacks its tokenizer"):
        ModelTokenizer(str(tmp_path)).count("use ss")
