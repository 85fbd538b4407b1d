"""A loaded encoder: tokenizer, transformer and pooling as its sentence-transformers folder declares them.

A model is loaded once per process and shared by every component that names it; :func:`free` lets it go.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphcontext.errors import InputError
from graphcontext.whole import load_tokenizer, load_weights

POOLINGS = ("mean", "cls")
DTYPES = ("float32", "bfloat16", "float16")
IGNORED_WEIGHTS = ("pooler.", "position_ids")  # no embedding depends on them

_LOADED: dict[tuple[Any, ...], EncoderModel] = {}


@dataclass(frozen=True)
class Layout:
    """What a model folder says of itself.

    Args:
        transformer: folder that holds config, weights and tokenizer.
        pooling: ``mean`` or ``cls``.
        max_length: tokens that a text is cut to, None where nothing is said.
        lower_case: lower-case texts before the tokenizer sees them.
    """

    transformer: Path
    pooling: str
    max_length: int | None
    lower_case: bool


@dataclass(frozen=True)
class EncoderModel:
    """Tokenizer and transformer in memory. ``dim`` is the width of an embedding."""

    tokenizer: Any
    transformer: Any
    pooling: str
    max_length: int
    lower_case: bool
    device: str
    dim: int

    def tokenise(self, texts: list[str]) -> list[list[int]]:
        """Return the token ids of each text, special tokens included, cut to ``max_length``."""
        if self.lower_case:
            texts = [text.lower() for text in texts]
        encoded = self.tokenizer(texts, truncation=True, max_length=self.max_length, padding=False)
        return encoded["input_ids"]

    def embed(self, tokens: list[list[int]]) -> np.ndarray:
        """Return the pooled last hidden states (n_texts, dim) float32, not normalised."""
        import torch

        ids, mask = padded(tokens, self.tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            return pooled(self.transformer, ids.to(self.device), mask.to(self.device), self.pooling).cpu().numpy()


def padded(tokens: Sequence[Sequence[int]], pad: int) -> tuple[Any, Any]:
    """Return token ids and mask (n_texts, longest) of texts."""
    import torch

    longest = max(1, max(len(t) for t in tokens))
    ids = torch.full((len(tokens), longest), pad)
    mask = torch.zeros((len(tokens), longest), dtype=torch.long)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = torch.tensor(text, dtype=torch.long)
        mask[row, : len(text)] = 1
    return ids, mask


def pooled(transformer: Any, ids: Any, mask: Any, pooling: str) -> Any:
    """Return the pooled last hidden states (n_texts, dim) float32, with their gradient where there is one."""
    hidden = transformer(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    if pooling == "cls":
        return hidden[:, 0] * mask[:, :1]  # a text without any token has the zero vector
    shown = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * shown).sum(dim=1) / shown.sum(dim=1).clamp(min=1)


def load(folder: Path, pooling: str, max_length: int | None, dtype: str, device: str) -> EncoderModel:
    """Return the encoder in ``folder`` (:func:`graphcontext.models.resolve`), from memory where this process has it.

    Raises:
        InputError: weights are missing, or the folder pools or projects in another way.
    """
    named = (str(folder.resolve()), pooling, max_length, dtype, device)
    if named not in _LOADED:
        _LOADED[named] = _load(folder, pooling, max_length, dtype, device)
    return _LOADED[named]


def free() -> None:
    """Let all loaded encoders go and give the accelerator's memory back."""
    if not _LOADED:
        return
    _LOADED.clear()
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def read_layout(folder: Path) -> Layout:
    """Read modules.json, the pooling's config and sentence_bert_config.json; without them, mean pooling."""
    steps = _read_json(folder / "modules.json", default=[])
    where = {step["type"].rpartition(".")[2]: step["path"] for step in steps}
    unknown = sorted(set(where) - {"Transformer", "Pooling", "Normalize"})
    if unknown:
        allowed = "allowed: Transformer, Pooling, Normalize"
        raise InputError(f"encoder {folder}: modules.json names a {unknown[0]} step; {allowed}")
    transformer = folder / where.get("Transformer", "")
    pooling = "mean"
    if "Pooling" in where:
        pooling = _declared_pooling(folder / where["Pooling"] / "config.json")
    lengths = _read_json(transformer / "sentence_bert_config.json", default={})
    return Layout(transformer, pooling, lengths.get("max_seq_length"), bool(lengths.get("do_lower_case")))


def _load(folder: Path, pooling: str, max_length: int | None, dtype: str, device: str) -> EncoderModel:
    import torch

    layout = read_layout(folder)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = load_tokenizer(layout.transformer)
    transformer = load_weights("AutoModel", layout.transformer, IGNORED_WEIGHTS, dtype=getattr(torch, dtype))
    return EncoderModel(
        tokenizer,
        transformer.eval().to(device),
        layout.pooling if pooling == "auto" else pooling,
        length_of(layout, transformer.config, tokenizer, max_length),
        layout.lower_case,
        device,
        transformer.config.hidden_size,
    )


def length_of(layout: Layout, config: Any, tokenizer: Any, asked: int | None) -> int:
    """Return the tokens that a text is cut to: what is asked for, else what the folder says, within its positions."""
    limit = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    if config.model_type in ("roberta", "xlm-roberta", "mpnet"):
        limit -= 2  # their positions start after the padding index
    return min(asked or layout.max_length or limit, limit)


def _declared_pooling(path: Path) -> str:
    """Return ``mean`` or ``cls`` from a pooling's config, in the older or the newer form."""
    declared = _read_json(path, default=None)
    if declared is None:
        raise InputError(f"encoder folder lacks {path}, which modules.json names")
    chosen = [declared["pooling_mode"]] if "pooling_mode" in declared else []
    names = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    chosen += [names.get(k, k) for k, on in declared.items() if k.startswith("pooling_mode_") and on is True]
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise InputError(
            f"encoder pooling {', '.join(map(str, chosen))} in {path}; allowed: one of {', '.join(POOLINGS)}"
        )
    return chosen[0]


def _read_json(path: Path, default: Any) -> Any:
    if not path.is_file():
        return default
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
