"""Tiny Llama, T5, BART and BERT models with random weights, and a word tokenizer trained on the fly (0.02 s)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TEXTS = ("how do i list open ports", "use ss to list the ports", "the answer is here", "user assistant")
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)
TEXT = "how do i list open ports use ss to the answer is here lsof lists files daemon starts services"
MARKERS = ("<triplet>", "<subj>", "<obj>")  # of REBEL


def save_tiny_llama(
    folder: Path,
    template: str | None = TEMPLATE,
    tokenizer_adds_bos: bool = True,
    texts: Sequence[str] = TEXTS,
    **changes: Any,
) -> Path:
    """Save a Llama of two layers with random weights and a tokenizer of the words of ``texts``."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special))
    if tokenizer_adds_bos:
        words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.chat_template = template
    config = {
        "vocab_size": words.get_vocab_size(),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 3,
    }
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**config | changes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tokenizer(folder: Path, markers: Iterable[str] = MARKERS, begins: bool = False) -> Any:
    """Save and return a tokenizer of words; an input ends in ``</s>`` and, where asked, begins with ``<s>``."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {word: i for i, word in enumerate([*special, *dict.fromkeys(TEXT.split())])}
    fast = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    fast.add_special_tokens([AddedToken(word, special=True) for word in [*special, *markers]])
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    single = "<s> $A </s>" if begins else "$A </s>"
    fast.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(s, vocabulary[s]) for s in ("<s>", "</s>")]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, **names)
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_tiny_bart(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Save a BART of one layer each with random weights; its config decodes like that of a summariser."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = save_tokenizer(folder, begins=True)
    config = {
        "vocab_size": len(tokenizer),
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 64,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
        "forced_eos_token_id": 2,
        "init_std": 1.0,
    }
    torch.manual_seed(seed)
    model = BartForConditionalGeneration(BartConfig(**config | changes))
    model.generation_config.max_length = 20
    model.generation_config.num_beams = 4
    model.generation_config.early_stopping = True
    model.save_pretrained(folder)
    return folder


def save_tiny_t5(folder: Path, seed: int = 0, markers: Iterable[str] = MARKERS, **changes: Any) -> Path:
    """Save a T5 of one layer each with random weights."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = save_tokenizer(folder, markers)
    config = {
        "vocab_size": len(tokenizer),
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 1,
        "num_heads": 2,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        "initializer_factor": 4.0,
    }
    torch.manual_seed(seed)
    T5ForConditionalGeneration(T5Config(**config | changes)).save_pretrained(folder)
    return folder


def save_tiny_bert(folder: Path, texts: Sequence[str] = TEXTS, **changes: Any) -> Path:
    """Save a BERT of two layers with random weights, with the pooling of a sentence encoder and words of ``texts``."""
    import json

    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words.train_from_iterator([text.lower() for text in texts], trainers.WordLevelTrainer(special_tokens=special))
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    words.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=words, **named).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    config = {"vocab_size": words.get_vocab_size(), "max_position_embeddings": 64, **sizes, **changes}
    BertModel(BertConfig(**config)).save_pretrained(folder)
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [{"idx": i, "path": p, "type": f"sentence_transformers.models.{k}"} for i, (k, p) in enumerate(kinds)]
    (folder / "1_Pooling").mkdir()
    for name, content in (
        ("modules.json", modules),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}),
        ("sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": True}),
    ):
        (folder / name).write_text(json.dumps(content))
    return folder
