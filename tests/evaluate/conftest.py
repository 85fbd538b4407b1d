"""Tiny models with random weights, of the two kinds that FactSumm reads facts with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_sentences import SENTENCES


@pytest.fixture(scope="session")
def tiny_tagger(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A DeBERTa-v2 that labels tokens of a unigram vocabulary, as the paper's tagger is one."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForTokenClassification, DebertaV2Tokenizer

    text = " ".join(SENTENCES)
    pieces = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], 0.0)
    pieces |= {"▁" + word: -2.0 for word in text.split() if len(word) % 2}  # the others fall into letters
    pieces |= dict.fromkeys(["▁", *sorted(set(text) - {" "})], -5.0)
    folder = tmp_path_factory.mktemp("tiny_tagger")
    DebertaV2Tokenizer(vocab=list(pieces.items()), unk_id=1, model_max_length=64).save_pretrained(folder)
    labels = ["O", "B-PERSON", "I-PERSON", "B-ORG", "I-ORG"]
    torch.manual_seed(3)
    config = DebertaV2Config(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.6,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
    )
    DebertaV2ForTokenClassification(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_luke(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A LUKE entity pair classifier whose tokenizer lies in the files of its hub models."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LukeConfig, LukeForEntityPairClassification

    folder = tmp_path_factory.mktemp("tiny_luke")
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(SENTENCES, vocab_size=320, special_tokens=special)
    trained.save_model(str(folder))
    n_words = trained.get_vocab_size()
    entities = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
    (Path(folder) / "entity_vocab.json").write_text(json.dumps(entities))
    (Path(folder) / "added_tokens.json").write_text(json.dumps({"<ent>": n_words, "<ent2>": n_words + 1}))
    about = {
        "tokenizer_class": "LukeTokenizer",
        "task": "entity_pair_classification",
        "max_entity_length": 2,
        "model_max_length": 62,
        "additional_special_tokens": ["<ent>", "<ent2>"],
    }
    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(about))
    relations = ["no_relation", "per:employee_of", "org:founded_by", "org:members", "per:origin"]
    torch.manual_seed(1)
    config = LukeConfig(
        vocab_size=n_words + 2,
        entity_vocab_size=4,
        hidden_size=32,
        entity_emb_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.6,
        id2label=dict(enumerate(relations)),
        label2id={relation: i for i, relation in enumerate(relations)},
    )
    LukeForEntityPairClassification(config).save_pretrained(folder)
    return str(folder)
