"""The encoder that is trained: its tokenizer at once, its weights when they are needed."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.files import write_atomic
from graphcontext.retrieve import encoder_model
from graphcontext.retrieve.encoder_model import IGNORED_WEIGHTS, pooled, read_layout
from graphcontext.train.bi_encoder import Asked, BiEncoder
from graphcontext.train.examples import Examples
from graphcontext.train.outline import Counts
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.strategy import device_of
from graphcontext.whole import load_config, load_tokenizer, load_weights

CACHED = 1 << 16  # texts whose tokens are kept


class EncoderBase:
    """A transformer with pooling, read the way :class:`graphcontext.retrieve.encoder.SentenceEncoder` reads it.

    The result is a folder of that form: transformer, tokenizer, ``modules.json`` with pooling, so that
    sentence-transformers reads it too.

    Args:
        node: config of the encoder.
        adapter: component that says what is trained.
        settings: of the training.
        loss: what is learnt.

    Raises:
        InputError: a model that is not whole. Of it only the tokenizer is loaded yet.
    """

    is_seq2seq = False
    what, unit = "encoder", "an example"

    def __init__(self, node: dict[str, Any], adapter: Any, settings: TrainerSettings, loss: BiEncoder) -> None:
        self.node, self.adapter, self.settings, self.loss = node, adapter, settings, loss
        device_of(settings)
        self.folder: Path = models.resolve(node["model"], node.get("revision"))
        self.layout = read_layout(self.folder)
        self.tokenizer = load_tokenizer(self.layout.transformer)
        config, chosen = load_config(self.layout.transformer), node.get("pooling", "auto")
        self.max_length = encoder_model.length_of(self.layout, config, self.tokenizer, node.get("max_length"))
        self.pooling = self.layout.pooling if chosen == "auto" else chosen
        self.normalize = bool(node.get("normalize", True))
        self._passage = functools.lru_cache(CACHED)(self._read_passage)

    @property
    def kind(self) -> str:
        return self.adapter.kind

    @property
    def name(self) -> str:
        return str(self.node["model"])

    @property
    def pad(self) -> int:
        return self.tokenizer.pad_token_id or 0

    def encode(self, found: Sequence[Asked], settings: TrainerSettings) -> Examples:
        """Return the examples with token ids; texts beyond their limits are cut."""
        made = Examples()
        for asked in found:
            if asked.reason:
                made.skipped[asked.reason] += 1
                continue
            limits = [self.loss.question_tokens, *[settings.max_tokens] * (self.loss.hops - 1)]
            queries = [self._ids("query", text, most) for text, most in zip(asked.queries, limits)]
            targets = [self._passage(text) for text in asked.targets]
            made.cut += any(is_cut for _, is_cut in queries + targets)
            made.examples.append(self._contrast(asked, [q for q, _ in queries], [t for t, _ in targets]))
        return made

    def counts(self, sides: dict[str, Examples]) -> Counts:
        """Return the counts of examples that are made, for the plan; there is one or more on the training side."""
        lengths = [e.length for e in sides["train"].examples]
        held = len(sides["validation"].examples)
        return Counts(len(lengths), held, sum(lengths) / len(lengths), 0.0, max(lengths), 0)

    def module(self, settings: TrainerSettings, course: Any, sides: dict[str, Examples], seed: int, start: int) -> Any:
        """Return the Lightning module."""
        from graphcontext.train.contrast import ContrastiveTuning

        return ContrastiveTuning(self, settings, course, sides, seed, start)

    def collate(self, examples: Sequence[tuple[Any, bool]]) -> dict[str, Any]:
        """Return the ids alone: the module takes its examples from the plan of batches."""
        return {"ids": [example.id if learnt else None for example, learnt in examples]}

    def load(self) -> Any:
        """Load the weights and return the transformer with what is trained of it."""
        network = self.adapter.wrap(self.plain())
        if self.settings.gradient_checkpointing:
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return network.train()

    def plain(self) -> Any:
        """Return the untrained transformer in float32, without a head that no embedding depends on."""
        import torch

        network = load_weights("AutoModel", self.layout.transformer, IGNORED_WEIGHTS, dtype=torch.float32)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None
        return network

    def embed(self, network: Any, texts: Sequence[Sequence[int]], device: Any) -> Any:
        """Return the pooled states (n_texts, dim) float32 of token ids, with their gradient."""
        ids, mask = encoder_model.padded(texts, self.pad)
        return pooled(network, ids.to(device), mask.to(device), self.pooling)

    def write_beside(self, folder: Path) -> None:
        """Write what makes a folder with trained weights an encoder: tokenizer, pooling, length."""
        load_tokenizer(self.layout.transformer).save_pretrained(str(folder))  # anew: it has cut nothing yet
        steps = {"Transformer": "", "Pooling": "1_Pooling"} | ({"Normalize": "2_Normalize"} if self.normalize else {})
        modules = [
            {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for n, (kind, path) in enumerate(steps.items())
        ]
        width = load_config(self.layout.transformer).hidden_size
        modes = {f"pooling_mode_{name}": name.startswith(self.pooling) for name in ("cls_token", "mean_tokens")}
        lengths = {"max_seq_length": self.max_length, "do_lower_case": self.layout.lower_case}
        for path in steps.values():
            (folder / path).mkdir(exist_ok=True)
        for name, content in (
            ("modules.json", modules),
            ("1_Pooling/config.json", {"word_embedding_dimension": width, **modes}),
            ("sentence_bert_config.json", lengths),
        ):
            write_atomic(folder / name, json.dumps(content, indent=1))

    def facts(self) -> dict[str, Any]:
        """Return what names the base in the manifest of a trained encoder."""
        named = models.identity(self.node["model"], self.node.get("revision"))
        return {
            "what": self.what,
            "base": {**named, "revision": self.node.get("revision")},
            "kind": self.kind,
            "pooling": self.pooling,
            "normalize": self.normalize,
        }

    def _contrast(self, asked: Asked, queries: list[tuple[int, ...]], targets: list[tuple[int, ...]]) -> Any:
        from graphcontext.train.contrast import Contrast

        length = sum(map(len, queries + targets)) + self.loss.negatives * max(map(len, targets))
        golds = tuple(self.passage(text) for text in asked.golds)
        return Contrast(asked.id, tuple(queries), tuple(targets), golds, asked.others, length)

    def passage(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a passage, cut."""
        return self._passage(text)[0]

    def _read_passage(self, text: str) -> tuple[tuple[int, ...], bool]:
        return self._ids("passage", text, self.loss.passage_tokens)

    def _ids(self, side: str, text: str, most: int) -> tuple[tuple[int, ...], bool]:
        """Return the token ids of a text with its prefix, and whether they were cut."""
        text = (self.node.get(f"{side}_prefix") or "") + text
        text = text.lower() if self.layout.lower_case else text
        most = min(most, self.settings.max_tokens, self.max_length)
        ids = self.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        if len(ids) <= most:
            return tuple(ids), False
        return tuple(self.tokenizer(text, truncation=True, max_length=most, padding=False)["input_ids"]), True
