"""BERTScore: greedy matching of contextual token vectors, each distinct text encoded once."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError
from graphcontext.evaluate.pairs import Pair, answer_pairs, best_reference
from graphcontext.whole import load_tokenizer, load_weights

REFERENCE = "bert-score 0.3.13"
RAW = ("bertscore_f1", "bertscore_p", "bertscore_r")
VALUES = ("f1", "precision", "recall")  # of RAW, as a baseline names them
MEMORY_LIMIT = 512 * 2**20  # bytes of token vectors kept for the next row of a table


@dataclass(frozen=True, eq=False)
class Tokens:
    """One text's unit token vectors (n_tokens, dim), and which of them are no [CLS] or [SEP] (n_tokens,)."""

    vectors: Any
    counted: Any


class BERTScore:
    """BERTScore F1 per question (Zhang et al. 2020; GraphContextGen Table 3), equal to bert-score 0.3.13.

    With x, y the unit vectors of prediction and reference tokens at layer ``num_layers``:
    P = mean_x max_y xᵀy, R = mean_y max_x xᵀy, F1 = 2PR / (P + R), without idf weights. [CLS] and [SEP] can
    be matched but do not count in the means. Several references: the best by F1, with its own P and R. Where
    a side is blank or has no token the score is 0 and the model isn't called.

    Raw values are high for any two texts: unrelated English ones score about .83 under roberta-large. With
    ``rescaled`` each becomes (x − b) / (1 − b), with b the package's mean over random pairs of texts under that
    model and layer, and at least 0: no more alike than chance. So no answer scores below an empty or failed one.

    Emits ``bertscore_f1``, ``bertscore_p`` and ``bertscore_r`` per question, or the same names with ``_rescaled``
    after them. The two metrics of one answer encode it once.

    Differs from bert-score: padding is never a match (there a token whose every cosine is negative scores 0
    in a padded batch), and P and R are of the reference with the best F1 rather than each the best of its
    own. Rescaled values below 0 are 0. RoBERTa's blank before the first word is kept; bert-score 0.3.13 loses it
    under transformers 5.

    Args:
        model: hub name, local folder, or embedded name such as ``minilm``.
        revision: commit of a hub model; None for a folder or an embedded model.
        num_layers: layer whose vectors are compared, 1 … the model's depth (roberta-large: 17).
        rescaled: give rescaled values.
        baseline: ``layer`` that it is of, and b as ``precision``, ``recall`` and ``f1``; None where none is known.
        batch_size: texts per forward pass.
        device: torch device.

    Raises:
        InputError: a number is out of range, or ``rescaled`` without a baseline of this layer.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})

    def __init__(
        self,
        model: str,
        revision: str | None,
        num_layers: int,
        rescaled: bool = False,
        baseline: dict[str, float] | None = None,
        batch_size: int = 16,
        device: str = "cpu",
    ) -> None:
        for key, value in (("num_layers", num_layers), ("batch_size", batch_size)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"bertscore {key}={value!r}: a whole number of at least 1 is needed")
        if baseline is not None and set(baseline) != {"layer", *VALUES}:
            raise InputError(f"bertscore baseline={baseline!r}: layer, precision, recall and f1 are needed, or null")
        if rescaled and (baseline is None or baseline["layer"] != num_layers):
            raise InputError(
                f"no baseline of {model} at layer {num_layers} is known to rescale by; use bertscore_f1, or "
                "a model that has one: bertscore=roberta_large"
            )
        self.model = model
        self.revision = revision
        self.num_layers = num_layers
        self.rescaled = rescaled
        self.baseline = baseline
        self.batch_size = batch_size
        self.device = device

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the facts that name the weights in a cache key."""
        floor = {"floor": "0"} if config.get("rescaled") else {}
        return models.identity(config["model"], config["revision"]) | floor

    @property
    def names(self) -> tuple[str, ...]:
        """The names of F1, precision and recall."""
        return tuple(f"{name}_rescaled" for name in RAW) if self.rescaled else RAW

    @property
    def signature(self) -> str:
        """Model with the first digits of its hash, layer, weighting and rescaling, as sacrebleu has it."""
        weights = models.signature(self.model, self.revision)
        is_rescaled = self.rescaled and self.baseline
        rescaling = f"rescaled by {self.baseline['f1']}, at least 0" if is_rescaled else "no-rescale"
        return f"{self.names[0]}|{weights}|L{self.num_layers}|no-idf|{rescaling}|{REFERENCE}"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each prediction against its question's references; a failed or empty one scores 0.

        Raises:
            MissingWeightsError: the model is not on this machine.
            InputError: the model has fewer layers than ``num_layers``.
        """
        pairs = tuple(_stripped(pair) for pair in answer_pairs(questions, predictions))
        if not any(pair.prediction and pair.references for pair in pairs):
            return [dict.fromkeys(self.names, 0.0) for _ in pairs]
        encoder = _load(str(models.resolve(self.model, self.revision)), self.num_layers, self.device)
        rows = (tuple(row.values()) for row in encoder.match(pairs, self.batch_size))
        return [dict(zip(self.names, self._rescale(values), strict=True)) for values in rows]

    def _rescale(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """Return F1, precision and recall as this metric gives them."""
        if not self.rescaled or self.baseline is None:
            return values
        return tuple(max(0.0, (x - self.baseline[v]) / (1 - self.baseline[v])) for x, v in zip(values, VALUES))


class _Encoder:
    """A transformer cut after ``num_layers`` layers, with its tokenizer and the batches it encoded last."""

    def __init__(self, folder: str, num_layers: int, device: str) -> None:
        model = load_weights("AutoModel", Path(folder), ("pooler.", "position_ids"), dtype="float32")
        model = model.encoder if hasattr(model, "decoder") and hasattr(model, "encoder") else model
        depth = model.config.num_hidden_layers
        if num_layers > depth:
            raise InputError(f"bertscore num_layers={num_layers}: the model has {depth} layers")
        stack = getattr(model, "encoder", None)
        if hasattr(stack, "layer"):
            stack.layer = stack.layer[:num_layers]  # the layers above are never read
        self.device = device
        self.num_layers = num_layers
        self.model = model.to(device).eval()
        # As bert-score does, a byte-level model sees a blank before the first word.
        extra = {"add_prefix_space": True} if model.config.model_type in {"roberta", "gpt2"} else {}
        self.tokenizer = load_tokenizer(Path(folder), **extra)
        positions = getattr(model.config, "max_position_embeddings", 512)
        reserved = model.config.pad_token_id + 1 if model.config.model_type == "roberta" else 0
        self.max_tokens = min(self.tokenizer.model_max_length, positions - reserved)
        self.done: OrderedDict[tuple[str, ...], dict[str, Tokens]] = OrderedDict()
        self.matched: tuple[Any, list[dict[str, float]]] = (None, [])

    def match(self, pairs: tuple[Pair, ...], batch_size: int) -> list[dict[str, float]]:
        """Return the raw values of each pair's best reference; those of the last pairs are remembered.

        References form batches of their own: a table's rows share them, so one encoding serves all rows.
        """
        if self.matched[0] != (pairs, batch_size):
            scored = [pair for pair in pairs if pair.prediction]
            references = {text for pair in scored for text in pair.references}
            vectors = self.encode(references, batch_size)
            vectors |= self.encode({pair.prediction for pair in scored if pair.references} - references, batch_size)
            rows = [best_reference(pair, RAW, lambda p, r: _match(vectors[p], vectors[r])) for pair in pairs]
            self.matched = ((pairs, batch_size), rows)
        return self.matched[1]

    def encode(self, texts: set[str], batch_size: int) -> dict[str, Tokens]:
        """Return each text's token vectors; batches are a fixed partition of the texts sorted by length."""
        if not texts:
            return {}
        tokenized = self.tokenizer(sorted(texts), truncation=True, max_length=self.max_tokens)["input_ids"]
        lengths = dict(zip(sorted(texts), tokenized, strict=True))
        ordered = sorted(lengths, key=lambda text: (len(lengths[text]), text))
        found: dict[str, Tokens] = {}
        for start in range(0, len(ordered), batch_size):
            batch = tuple(ordered[start : start + batch_size])
            if batch not in self.done:
                self._remember(batch, self._forward([lengths[text] for text in batch]))
            self.done.move_to_end(batch)
            found |= self.done[batch]
        return found

    def _forward(self, batch: list[list[int]]) -> list[Tokens]:
        import torch

        longest = max(len(ids) for ids in batch)
        ids = torch.full((len(batch), longest), self.tokenizer.pad_token_id or 0)  # (n_texts, n_tokens)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = 1
        with torch.inference_mode():
            output = self.model(ids.to(self.device), attention_mask=mask.to(self.device), output_hidden_states=True)
        hidden = output.hidden_states[self.num_layers].float().cpu()  # (n_texts, n_tokens, dim)
        special = torch.tensor([self.tokenizer.cls_token_id, self.tokenizer.sep_token_id])
        results = []
        for row, tokens in enumerate(batch):
            vectors = torch.nn.functional.normalize(hidden[row, : len(tokens)], dim=-1)
            results.append(Tokens(vectors, ~torch.isin(ids[row, : len(tokens)], special)))
        return results

    def _remember(self, batch: tuple[str, ...], tokens: list[Tokens]) -> None:
        self.done[batch] = dict(zip(batch, tokens, strict=True))
        size = sum(t.vectors.nbytes for kept in self.done.values() for t in kept.values())
        while size > MEMORY_LIMIT and len(self.done) > 1:
            _, dropped = self.done.popitem(last=False)
            size -= sum(t.vectors.nbytes for t in dropped.values())


@functools.lru_cache(maxsize=1)
def _load(folder: str, num_layers: int, device: str) -> _Encoder:
    return _Encoder(folder, num_layers, device)


def release() -> None:
    """Free the model and the token vectors that this process keeps for the next row."""
    _load.cache_clear()


def _stripped(pair: Pair) -> Pair:
    references = tuple(text.strip() for text in pair.references)
    return Pair(pair.prediction.strip(), tuple(text for text in references if text))


def _match(prediction: Tokens, reference: Tokens) -> tuple[float, float, float]:
    """Return (F1, P, R) of one pair of texts."""
    if not prediction.counted.any() or not reference.counted.any():
        return (0.0, 0.0, 0.0)
    cosines = prediction.vectors @ reference.vectors.T  # (n_prediction_tokens, n_reference_tokens)
    precision = float(cosines.max(dim=1).values[prediction.counted].mean())
    recall = float(cosines.max(dim=0).values[reference.counted].mean())
    total = precision + recall
    return (2 * precision * recall / total if total > 0 else 0.0, precision, recall)
