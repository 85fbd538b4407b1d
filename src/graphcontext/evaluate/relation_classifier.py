"""The relation between two mentions of a sentence, by LUKE."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from graphcontext import models
from graphcontext.evaluate.batched_model import BatchedModel
from graphcontext.evaluate.entity_tagger import Entity
from graphcontext.whole import load_tokenizer, load_weights

MARKS = 20  # tokens that two mentions add: four marks, and what a word falls into that an edge of a mention cuts
Mentions = tuple[str, Entity, Entity]  # sentence, subject, object


class RelationClassifier(BatchedModel):
    """Names the relation of ordered pairs of mentions by LUKE (Yamada et al. 2020; FactSumm's second model).

    The likeliest class of ``LukeForEntityPairClassification`` over the sentence and the two spans.

    Args:
        model: hub name or local folder of a LUKE entity pair classifier, such as the one tuned on TACRED.
        revision: commit of a hub model; null: what is in the cache, named by its commit in the key.
        batch_size: pairs per forward pass (execution).
        device: ``auto``, ``cpu`` or ``cuda`` (execution).

    Raises:
        InputError: ``batch_size`` below 1; at the first call, a damaged model folder.
        MissingWeightsError: at the first call, the model is not on this machine.
    """

    version: ClassVar[int] = 1

    def extract(self, pairs: Sequence[Mentions]) -> list[str]:
        """Return the relation of each pair, ``no_relation`` among them."""
        loaded = self._load()
        ordered = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), i))  # equal lengths, little padding
        found: dict[int, str] = {}
        for start in range(0, len(ordered), self.batch_size):
            batch = ordered[start : start + self.batch_size]
            found |= dict(zip(batch, loaded.classify([pairs[i] for i in batch]), strict=True))
        return [found[i] for i in range(len(pairs))]

    def fits(self, sentence: str) -> bool:
        """Tell whether the model can read the whole sentence with the marks around two mentions."""
        return self._load().length(sentence) <= self._load().max_tokens

    def _load(self) -> _Luke:
        return _load(str(models.resolve(self.model, self.revision)), models.device(self.device))


class _Luke:
    """The entity pair classifier in memory."""

    def __init__(self, folder: str, device: str) -> None:
        self.device = device
        kind = "LukeForEntityPairClassification"
        self.model = load_weights(kind, Path(folder), ("position_ids", "pooler."), dtype="float32").to(device).eval()
        self.tokenizer = load_tokenizer(Path(folder), task="entity_pair_classification")
        positions = self.model.config.max_position_embeddings - self.model.config.pad_token_id - 1  # as RoBERTa's
        self.max_tokens = min(self.tokenizer.model_max_length, positions)

    def length(self, sentence: str) -> int:
        return len(self.tokenizer.backend_tokenizer.encode(sentence).ids) + MARKS

    def classify(self, pairs: list[Mentions]) -> list[str]:
        import torch

        texts = [sentence for sentence, _, _ in pairs]
        spans = [[(a.start, a.end), (b.start, b.end)] for _, a, b in pairs]
        encoded = self.tokenizer(texts, entity_spans=spans, padding=True, return_tensors="pt").to(self.device)
        with torch.inference_mode():
            logits = self.model(**encoded).logits  # (n_pairs, n_relations)
        return [self.model.config.id2label[i] for i in logits.argmax(dim=-1).tolist()]


@functools.lru_cache(maxsize=1)
def _load(folder: str, device: str) -> _Luke:
    return _Luke(folder, device)


def release() -> None:
    """Free the model that this process keeps."""
    _load.cache_clear()
