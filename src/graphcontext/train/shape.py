"""The shape of a transformer: how many weights it has, and how many of them an adapter trains.

Counted by formula from ``config.json`` or from the planning figures of an llm's YAML: no weights are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphcontext import models
from graphcontext.errors import InputError, did_you_mean

FIGURES = ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocabulary")  # of a YAML's ``plan:``
ENCODERS = ("bert", "roberta", "xlm-roberta", "mpnet")  # sentence encoders: no logits
UNGATED = ("gpt_neox", "phi")  # decoders without a gate in their feed-forward part
RELATIVE_BUCKETS = 32  # of T5's attention bias
POSITIONS = {"bart": 1026, "bert": 515}  # rows of learnt positions; of RoBERTa with its one type of tokens


class UnknownShape(InputError):
    """Neither ``config.json`` nor the llm's YAML says what the model's layers are."""


@dataclass(frozen=True)
class Shape:
    """Sizes of an architecture.

    Args:
        family: ``llama`` (decoder; RMS norms), ``t5`` or ``bart`` (encoder and decoder), or ``bert`` (encoder alone).
        layers: of the decoder; of the encoder alone.
        encoder_layers: 0 without an encoder.
        hidden, intermediate, heads, kv_heads, head_dim, vocabulary: as usual.
        tied: the output layer shares the embedding's weights.
        gated: the feed-forward part has a gate.
        positions: rows of each learned position table.
        known: number of weights as stated, where the formula does not hold for this architecture.
        stored: type of the weights' file.
    """

    family: str
    layers: int
    encoder_layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    gated: bool
    positions: int = 0
    known: int | None = None
    stored: str = "float32"


@dataclass(frozen=True)
class Adapter:
    """What is trained: ``none``, ``lora`` or ``qlora`` (with rank, dropout and targets; null: all linear), ``full``."""

    kind: str
    rank: int = 0
    dropout: float = 0.0
    targets: tuple[str, ...] | None = None

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> Adapter:
        """Return the adapter that a resolved config node describes.

        Raises:
            InputError: its class is no adapter.
        """
        from graphcontext.component import locate
        from graphcontext.train.adapter import check_class

        adapter: Any = locate(node["_target_"], "adapter")
        check_class(adapter)
        targets = None if node.get("targets") is None else tuple(node["targets"])
        return cls(adapter.kind, node.get("rank", 0), node.get("dropout", 0.0), targets)

    @property
    def low_rank(self) -> bool:
        return self.kind in ("lora", "qlora")


def shape_of(node: Mapping[str, Any]) -> Shape:
    """Return the shape of an llm node's model: of its ``config.json`` where it is here, else of the YAML's figures.

    Raises:
        UnknownShape: the model is not here, or of an unknown kind, and its YAML lacks a figure.
    """
    name, revision = node.get("model"), node.get("revision")
    if isinstance(name, str) and models.is_available(name, revision):
        path = models.resolve(name, revision) / "config.json"
        if path.is_file():
            found = from_config(json.loads(path.read_text(encoding="utf-8")))
            if found is not None:
                return found
    return from_figures(node)


def from_config(config: Mapping[str, Any]) -> Shape | None:
    """Return the shape that a ``config.json`` describes, None where it names its sizes in another way.

    A decoder that is no Llama but names its sizes as one (Mistral, Qwen) is taken for one: its biases are left out.
    """
    kind = config.get("model_type")
    stored = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    vocabulary, tied = config.get("vocab_size", 0), config.get("tie_word_embeddings", kind in ("t5", "bart"))
    if kind in ("t5", "mt5"):
        heads, layers = config["num_heads"], config["num_layers"]
        decoder, gated = config.get("num_decoder_layers") or layers, "gated" in config.get("feed_forward_proj", "relu")
        sizes = (config["d_model"], config["d_ff"], heads, heads, config["d_kv"], vocabulary)
        return Shape("t5", decoder, layers, *sizes, tied, gated, stored=stored)
    if kind == "bart":
        width, heads = config["d_model"], config["decoder_attention_heads"]
        sizes = (width, config["decoder_ffn_dim"], heads, heads, width // heads, vocabulary)
        rows = config["max_position_embeddings"] + 2
        layers = (config["decoder_layers"], config["encoder_layers"])
        return Shape("bart", *layers, *sizes, tied, False, rows, None, stored)
    if kind in ENCODERS:
        width, heads = config["hidden_size"], config["num_attention_heads"]
        sizes = (width, config["intermediate_size"], heads, heads, width // heads, vocabulary)
        rows = config["max_position_embeddings"] + config.get("type_vocab_size", 0)
        return Shape("bert", config["num_hidden_layers"], 0, *sizes, True, False, rows, None, stored)
    if {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"} <= set(config):
        width, heads = config["hidden_size"], config["num_attention_heads"]
        kv_heads = config.get("num_key_value_heads") or heads
        head_dim = config.get("head_dim") or width // heads
        sizes = (width, config["intermediate_size"], heads, kv_heads, head_dim, vocabulary)
        return Shape("llama", config["num_hidden_layers"], 0, *sizes, tied, kind not in UNGATED, stored=stored)
    return None


def from_figures(node: Mapping[str, Any]) -> Shape:
    """Return the shape by the ``plan:`` of an llm's YAML; of the families it may be, the one nearest to ``parameters``.

    Raises:
        UnknownShape: a figure is missing.
    """
    plan = node.get("plan") or {}
    missing = [name for name in FIGURES if not plan.get(name)]
    if missing:
        where = f"llm {node.get('model')}: no config.json of a known kind is here, and its YAML lacks plan.{missing[0]}"
        raise UnknownShape(f"{where}: what it takes to train it cannot be planned")
    sizes = {name: plan[name] for name in FIGURES}
    stated, encoder = node.get("parameters"), plan.get("encoder_layers", 0)
    families = ("t5", "bart") if encoder else ("bert",) if plan.get("family") == "bert" else ("llama",)
    stored = node.get("dtype", "float32")
    stored = "float32" if stored == "auto" else stored
    every = [
        Shape(f, encoder_layers=encoder, tied=tied, gated=gated, positions=POSITIONS.get(f, 0), stored=stored, **sizes)
        for f in families
        for tied in ((True,) if f == "bert" else (False, True))
        for gated in (True, False)
    ]
    if stated is None:
        return every[0]
    best = min(every, key=lambda shape: abs(parameters(shape) - stated))
    return best if parameters(best) == stated else replace(best, known=stated)


def linears(shape: Shape) -> dict[str, tuple[int, int, int]]:
    """Return name → (how many, inputs, outputs) of the linear layers of the blocks."""
    attentions, blocks = shape.encoder_layers + shape.layers, shape.encoder_layers + shape.layers
    attentions += shape.layers if shape.encoder_layers else 0  # over the encoder's output
    h, i, q, kv = shape.hidden, shape.intermediate, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if shape.family == "t5":
        inner = ("wi_0", "wi_1") if shape.gated else ("wi",)
        found = {"q": (attentions, h, q), "k": (attentions, h, kv), "v": (attentions, h, kv), "o": (attentions, q, h)}
        return found | {name: (blocks, h, i) for name in inner} | {"wo": (blocks, i, h)}
    out = "out_proj" if shape.family in ("bart", "bert") else "o_proj"
    found = {"q_proj": (attentions, h, q), "k_proj": (attentions, h, kv), "v_proj": (attentions, h, kv)}
    found[out] = (attentions, q, h)
    if shape.family in ("bart", "bert"):
        return found | {"fc1": (blocks, h, i), "fc2": (blocks, i, h)}
    gate = {"gate_proj": (blocks, h, i)} if shape.gated else {}
    return found | gate | {"up_proj": (blocks, h, i), "down_proj": (blocks, i, h)}


def block_weights(shape: Shape) -> int:
    """Return the weights of all linear layers of the blocks, which is what 4-bit quantisation packs."""
    return sum(n * fan_in * fan_out for n, fan_in, fan_out in linears(shape).values())


def embedding_weights(shape: Shape) -> int:
    """Return the weights of the embedding and, where it has its own, of the output layer."""
    return shape.vocabulary * shape.hidden * (1 if shape.tied else 2)


def parameters(shape: Shape) -> int:
    """Return how many weights the model has."""
    return shape.known if shape.known is not None else block_weights(shape) + embedding_weights(shape) + _others(shape)


def _others(shape: Shape) -> int:
    """Return the weights of norms, biases and position tables."""
    h, layers, encoder = shape.hidden, shape.layers, shape.encoder_layers
    if shape.family == "llama":
        return 2 * layers * h + h
    if shape.family == "bert":  # a norm has a weight and a bias; one more stands after the embeddings
        biases = sum(n * fan_out for n, _, fan_out in linears(shape).values())
        return 2 * (2 * layers + 1) * h + biases + shape.positions * h
    norms = (2 * encoder + 3 * layers) * h
    if shape.family == "t5":
        return norms + 2 * h + 2 * RELATIVE_BUCKETS * shape.heads
    biases = sum(n * fan_out for n, _, fan_out in linears(shape).values())
    return 2 * norms + 2 * 2 * h + biases + 2 * shape.positions * h


def targeted(shape: Shape, adapter: Adapter) -> dict[str, tuple[int, int, int]]:
    """Return the linear layers (:func:`linears`) that get a low-rank adapter.

    Raises:
        InputError: a target that the model does not have.
    """
    there = linears(shape)
    if not adapter.low_rank:
        return {}
    for name in adapter.targets or ():
        if name not in there:
            raise InputError(f"adapter.targets: {name}: no linear layer of that name{did_you_mean(name, there)}")
    return {name: size for name, size in there.items() if adapter.targets is None or name in adapter.targets}


def trainable(shape: Shape, adapter: Adapter) -> int:
    """Return how many weights are trained: of LoRA r · (in + out) for each target."""
    if adapter.kind == "full":
        return parameters(shape)
    return sum(n * adapter.rank * (fan_in + fan_out) for n, fan_in, fan_out in targeted(shape, adapter).values())
