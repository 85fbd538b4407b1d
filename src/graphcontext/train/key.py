"""The key of a training: everything that can change its weights, known before anything is computed."""

from __future__ import annotations

import copy
from typing import Any

from graphcontext.component import fingerprint, locate
from graphcontext.errors import InputError
from graphcontext.files import digest
from graphcontext.keys import corpus_key, keys
from graphcontext.train.trained import BASE as TAKEN
from graphcontext.train.trained import ENCODES

VERSION = 1  # raised when the same inputs give other weights
BASE = ("_target_", *TAKEN)  # of an llm: decoding does not enter a training
ENCODER = ("_target_", *ENCODES)
_ANSWERS = ("llm", "max_new_tokens")  # of an asker: what answers, and how long it may
PLAIN: dict[str, dict[str, Any]] = {  # askers whose messages the prompt alone decides, at these values of the rest
    "graphcontext.generate.llm.LLMGenerator": {"numbered": False},
    "graphcontext.retrieve.agents.llm.LLMAgent": {},
}


def training_key(config: dict[str, Any]) -> str:
    """Return the key of a training's result.

    Args:
        config: resolved, composed with ``primary="train"``.

    Raises:
        MissingDataError: the data set is not on this machine.
    """
    prompt, kind = None, config["trainer"]["data"]
    if kind == "text":
        data = [corpus_key(side_of(config, "train"))]
    else:
        read = [keys(side_of(config, side)) for side in ("train", "validation")]
        data = [known.context if kind == "pairs" else known.questions for known in read]
        prompt = None if kind == "bi_encoder" else _asked(asker(config))
    parts = ("adapter", "trainer", *(["bi_encoder"] if kind == "bi_encoder" else []))
    recipe = [fingerprint(config[name]) for name in parts]
    return digest(["training", VERSION, data, prompt, recipe, base_facts(config), config["seed"]])


def asker(config: dict[str, Any]) -> dict[str, Any]:
    """Return the node of the component whose prompt is learnt: the generator, or the agent of a traversal."""
    return config["agent" if config["trainer"]["data"] == "evidence" else "generator"]


def _asked(asking: dict[str, Any]) -> Any:
    """Return what decides how questions are put, besides the contexts: the prompt, or the whole component.

    Results made before other arguments counted are found: where these say nothing, the prompt stands alone.
    """
    rest = {k: v for k, v in asking.items() if k not in ("_target_", "prompt", *_ANSWERS)}
    if PLAIN.get(asking["_target_"]) == rest:
        return fingerprint(asking.get("prompt"))
    return fingerprint(asking, frozenset(_ANSWERS))


def base(config: dict[str, Any]) -> dict[str, Any]:
    """Return the node of the model that is trained: the one that answers, that writes evidence, or the encoder.

    Raises:
        InputError: it is not a model that can be trained here.
    """
    if config["trainer"]["data"] == "bi_encoder":
        return _encoder(config["encoder"])
    asking = asker(config)
    node = asking.get("llm") or config["roles"]["answer"]
    if config["trainer"]["data"] == "evidence" and "llm" not in asking:
        raise InputError(f"agent={asking['_target_'].rpartition('.')[2]} asks no model; agent=causal, seq2seq or chat")
    if not getattr(locate(node["_target_"]), "trainable", False):
        what = node.get("model") or node["_target_"].rpartition(".")[2]
        raise InputError(f"llm: {what} cannot be trained here: it is no model of transformers (graphcontext list llm)")
    if node.get("adapter") or node.get("serve"):
        key = "adapter" if node.get("adapter") else "serve"
        value = node[key]["experiment"] if isinstance(node[key], dict) else node[key]
        raise InputError(f"llm.{key}={value}: a training starts from the base model; llm.{key}=null")
    return node


def _encoder(node: dict[str, Any]) -> dict[str, Any]:
    """Return the node of an encoder that is trained.

    Raises:
        InputError: it is no model of transformers, or is trained already.
    """
    if not getattr(locate(node["_target_"]), "trainable", False):
        raise InputError(f"encoder: {node['_target_'].rpartition('.')[2]} cannot be trained here (list encoder)")
    if node.get("weights"):
        raise InputError(f"encoder.weights={node['weights']}: a training starts from the model; encoder.weights=null")
    return node


def base_facts(config: dict[str, Any]) -> dict[str, Any]:
    """Return what of the base model enters the key."""
    if config["trainer"]["data"] == "bi_encoder":  # its weights are trained in float32, whatever it is used in
        return fingerprint({k: v for k, v in base(config).items() if k in ENCODER} | {"dtype": "float32"})
    return fingerprint({k: v for k, v in base(config).items() if k in BASE})


def side_of(config: dict[str, Any], side: str) -> dict[str, Any]:
    """Return the config of the run whose contexts are the pairs of one side.

    Args:
        config: of the training.
        side: ``train`` or ``validation``.
    """
    changed = copy.deepcopy(config)
    changed["split"] = side
    dataset = changed["dataset"]
    if "side" not in dataset:
        raise InputError(f"dataset={dataset.get('name')} has no sides, so nothing to train on")
    dataset["side"] = side
    dataset["limit"] = config["trainer"]["pairs" if side == "train" else "held_out"]
    return changed
