"""Named entities with their places and kinds, by a token classifier."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.evaluate.batched_model import BatchedModel
from graphcontext.whole import load_tokenizer, load_weights


@dataclass(frozen=True)
class Entity:
    """A mention: characters ``start`` to ``end`` of its sentence, without blanks around it, and its kind."""

    start: int
    end: int
    kind: str


class EntityTagger(BatchedModel):
    """Finds the named entities of sentences by a transformer that labels tokens (FactSumm's first model).

    Each token takes its likeliest label; neighbours of one kind form an entity, which a ``B-`` label ends: what
    transformers' token-classification pipeline calls ``simple``. Tokens beyond the model's length are not read.

    Args:
        model: hub name or local folder of a token classifier with labels ``O``, ``B-KIND``, ``I-KIND``.
        revision: commit of a hub model; null: what is in the cache, named by its commit in the key.
        batch_size: sentences per forward pass (execution).
        device: ``auto``, ``cpu`` or ``cuda`` (execution).

    Raises:
        InputError: ``batch_size`` below 1; at the first call, a damaged model folder.
        MissingWeightsError: at the first call, the model is not on this machine.
    """

    version: ClassVar[int] = 1

    def entities(self, sentences: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each sentence, in order."""
        loaded = self._load()
        ordered = sorted(set(sentences), key=lambda s: (len(s), s))  # equal lengths, little padding
        found: dict[str, list[Entity]] = {}
        for start in range(0, len(ordered), self.batch_size):
            batch = ordered[start : start + self.batch_size]
            found |= dict(zip(batch, loaded.tag(batch), strict=True))
        return [found[sentence] for sentence in sentences]

    def fits(self, sentence: str) -> bool:
        """Tell whether the model can read the whole sentence."""
        loaded = self._load()
        return len(loaded.tokenizer(sentence, verbose=False)["input_ids"]) <= loaded.max_tokens

    def _load(self) -> _Tagger:
        return _load(str(models.resolve(self.model, self.revision)), models.device(self.device))


class _Tagger:
    """The token classifier in memory."""

    def __init__(self, folder: str, device: str) -> None:
        self.device = device
        self.model = load_weights("AutoModelForTokenClassification", Path(folder), ("position_ids",), dtype="float32")
        self.model.to(device).eval()
        self.tokenizer = load_tokenizer(Path(folder))
        positions = getattr(self.model.config, "max_position_embeddings", 512)
        offset = self.model.config.pad_token_id + 1 if self.model.config.model_type == "roberta" else 0
        self.max_tokens = min(self.tokenizer.model_max_length, positions - offset)

    def tag(self, sentences: list[str]) -> list[list[Entity]]:
        import torch

        encoded = self.tokenizer(
            sentences,
            truncation=True,
            max_length=self.max_tokens,
            padding=True,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        offsets = encoded.pop("offset_mapping").tolist()  # (n_sentences, n_tokens, 2)
        special = encoded.pop("special_tokens_mask").tolist()
        with torch.inference_mode():
            logits = self.model(**encoded.to(self.device)).logits  # (n_sentences, n_tokens, n_labels)
        names = self.model.config.id2label
        labels = [[names[i] for i in row] for row in logits.argmax(dim=-1).tolist()]
        return [
            group([(a, b, label) for (a, b), label, skip in zip(*rows) if not skip], sentence)
            for *rows, sentence in zip(offsets, labels, special, sentences)
        ]


def group(tokens: Sequence[tuple[int, int, str]], sentence: str) -> list[Entity]:
    """Join labelled tokens (start, end, label) to entities.

    >>> group([(0, 3, "B-PERSON"), (3, 8, "I-PERSON"), (8, 15, "O"), (15, 19, "B-ORG")], "Ada King joined IBM")
    [Entity(start=0, end=8, kind='PERSON'), Entity(start=16, end=19, kind='ORG')]
    """
    runs: list[list[Any]] = []
    for start, end, label in tokens:
        begins, _, kind = label.partition("-") if label[:2] in ("B-", "I-") else ("I", "", label)
        if runs and runs[-1][2] == kind and begins != "B":
            runs[-1][1] = end
        else:
            runs.append([start, end, kind])
    found = []
    for start, end, kind in runs:
        text = sentence[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
        if kind != "O" and start < end:
            found.append(Entity(start, end, kind))
    return found


@functools.lru_cache(maxsize=1)
def _load(folder: str, device: str) -> _Tagger:
    return _Tagger(folder, device)


def release() -> None:
    """Free the model that this process keeps."""
    _load.cache_clear()
