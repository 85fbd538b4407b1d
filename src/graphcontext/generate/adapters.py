"""What a training made: an adapter (PEFT) that goes on its base model, or a whole model in place of it.

Either is refused where it does not belong: on another base, with another chat template, or with a weight too many,
too few or of another shape.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.files import digest
from graphcontext.model_files import ADAPTER_WEIGHTS
from graphcontext.whole import load_config, load_weights

CONFIG = "adapter_config.json"
MANIFEST = "manifest.json"
KINDS = ("LORA",)  # of PEFT: what is added to the weights themselves, and so can be merged into them
TASKS = {"AutoModelForCausalLM": "CAUSAL_LM", "AutoModelForSeq2SeqLM": "SEQ_2_SEQ_LM"}


def load_tuned(
    kind: str, folder: Path, adapter: str | None, base: Mapping[str, Any], template: str, **arguments: Any
) -> Any:
    """Return the model in ``folder`` with an adapter on it, or the fully tuned one in place of it.

    Args:
        kind: the class of transformers that reads it, such as ``AutoModelForCausalLM``.
        folder: the base model's folder, whose tokenizer is used in any case.
        adapter: folder of the adapter or of the tuned model; None gives the base model.
        base: what names the base model's weights (:func:`graphcontext.models.identity`).
        template: digest of its chat template (:func:`template_digest`).
        arguments: of ``from_pretrained``.

    Raises:
        InputError: what :func:`check_base`, :func:`load_adapter` and :func:`graphcontext.whole.load_weights` refuse.
    """
    if not adapter:
        return load_weights(kind, folder, **arguments)
    tuned = Path(os.path.expanduser(adapter))
    check_base(tuned, base, template)
    if is_full(tuned):
        _check_same_kind(tuned, folder)
        return load_weights(kind, tuned, **arguments)
    _read_config(adapter, TASKS[kind])  # before gigabytes are read
    return load_adapter(load_weights(kind, folder, **arguments), adapter)


def is_full(folder: Path) -> bool:
    """Tell whether ``folder`` holds a whole model: a config and weights of its own, and no adapter."""
    if (folder / CONFIG).is_file() or not (folder / "config.json").is_file():
        return False
    return any(folder.glob("model*.safetensors")) or any(folder.glob("pytorch_model*.bin"))


def template_digest(tokenizer: Any) -> str:
    """Return the digest of a tokenizer's chat template, of null where it has none."""
    return digest(tokenizer.chat_template)


def check_base(folder: Path, base: Mapping[str, Any], template: str) -> None:
    """Check that what ``folder`` holds was trained on this base model.

    A folder that was trained here says in ``manifest.json`` on which weights and with which chat template. Of another
    only the name of its base is known: two different hub names are refused, a local folder's name says nothing.

    Args:
        folder: an adapter's folder, or a tuned model's.
        base: what names the base model (:func:`graphcontext.models.identity`): ``model``, ``weights``.
        template: digest of its chat template (:func:`template_digest`).

    Raises:
        InputError: it was trained on other weights or with another template, or its manifest is damaged.
    """
    manifest = _json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    if "base" not in manifest:  # trained elsewhere
        _check_name(folder, str(base["model"]))
        return
    trained_on = manifest["base"]
    if not isinstance(trained_on, dict) or "weights" not in trained_on or "template" not in manifest:
        raise InputError(f"llm.adapter={folder}: {MANIFEST} is damaged: it lacks base.weights or template")
    if trained_on["weights"] != base["weights"]:
        got = f"{base['model']} ({str(base['weights'])[:12]})"
        wanted = f"{trained_on.get('model')} ({str(trained_on['weights'])[:12]})"
        raise InputError(f"llm.adapter={folder} was trained on {wanted}, and llm.model is {got}; allowed: the former")
    if manifest["template"] != template:
        got = f"{base['model']} has another chat template than it had when llm.adapter={folder} was trained"
        raise InputError(f"{got}; train it again, or restore tokenizer_config.json")


def _check_name(folder: Path, model: str) -> None:
    if not (folder / CONFIG).is_file():
        return
    named = _json(folder / CONFIG).get("base_model_name_or_path")
    if all(_is_hub_name(name) for name in (named, model)) and named != model:
        raise InputError(f"llm.adapter={folder} was trained on {named}, and llm.model is {model}; allowed: the former")
    if _is_hub_name(named) and named != model:
        told = "nothing here tells whether they are the same model"
        print(f"llm.adapter={folder} was trained on {named}, and llm.model is {model}: {told}", file=sys.stderr)


def _is_hub_name(name: Any) -> bool:
    if not isinstance(name, str) or name.count("/") != 1 or name.startswith((".", "/", "~")):
        return False
    return not Path(name).is_dir()


def _check_same_kind(tuned: Path, folder: Path) -> None:
    """Check that the base model's tokenizer fits a tuned model: both of one kind and with one vocabulary."""
    ours, its = load_config(folder), load_config(tuned)
    for name in ("model_type", "vocab_size"):
        got, wanted = getattr(its, name, None), getattr(ours, name, None)
        if got != wanted:
            raise InputError(f"llm.adapter={tuned} has {name}={got}, and {folder.name} {wanted}: it is no tuning of it")


def load_adapter(model: Any, adapter: str) -> Any:
    """Return the model with a LoRA adapter on it; a weight that is missing, unknown or of another shape is an error.

    Embeddings that were saved with an adapter take the place of the base's.

    Raises:
        InputError: peft is not installed, the folder is no adapter of LoRA, or its weights do not fit the model.
    """
    is_seq2seq = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    config = _read_config(adapter, "SEQ_2_SEQ_LM" if is_seq2seq else "CAUSAL_LM")
    peft = import_peft(f"llm.adapter={adapter}")
    from safetensors import SafetensorError

    config.base_model_name_or_path = None  # checked by check_base; a local path of whoever trained it says nothing
    faults = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, EOFError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say of weights is raised below
            adapted = peft.get_peft_model(model, config)
            weights = peft.utils.load_peft_weights(os.path.expanduser(adapter), device="cpu")
            _check_weights(adapted, weights, adapter)
            report = peft.set_peft_model_state_dict(adapted, weights)
    except pickle.UnpicklingError as error:
        what = f"{ADAPTER_WEIGHTS[1]} is damaged, or holds more than tensors"
        raise InputError(f"adapter {adapter} cannot be loaded: {what}; nothing of it was run") from error
    except (*faults, SafetensorError) as error:
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError:  # of the device: memory, a fault
            raise
        raise InputError(f"adapter {adapter} cannot be loaded: {_line(error)}") from error
    if report.unexpected_keys:
        raise InputError(f"adapter {adapter} does not fit the model: it has no {report.unexpected_keys[0]}")
    return adapted


def import_peft(what: str) -> Any:
    """Return the package peft; bitsandbytes, which it imports, tells of a kernel that nothing here uses.

    Raises:
        InputError: it is not installed; ``what`` needs it.
    """
    if importlib.util.find_spec("peft") is None:
        raise InputError(f"{what} needs the package peft: pip install 'graphcontext[train]'")
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    import peft

    return peft


def merge(model: Any) -> Any:
    """Return the base model with the adapter added to its weights, W + (alpha / rank) · B A.

    Raises:
        InputError: a merged weight is no finite number.
    """
    try:
        return model.merge_and_unload(safe_merge=True)
    except ValueError as error:
        raise InputError(f"the adapter cannot be merged: {_line(error)}") from error


def _read_config(adapter: str, task: str) -> Any:
    """Return the PEFT config in a folder that has weights beside it."""
    peft = import_peft(f"llm.adapter={adapter}")

    folder = Path(os.path.expanduser(adapter))
    if not folder.is_dir():
        raise MissingWeightsError(f"llm.adapter={adapter}: no such folder")
    if not (folder / CONFIG).is_file():
        raise InputError(f"llm.adapter={adapter} lacks {CONFIG}; expected a PEFT adapter or a model folder")
    if not any((folder / name).is_file() for name in ADAPTER_WEIGHTS):
        raise InputError(f"llm.adapter={adapter} lacks {ADAPTER_WEIGHTS[0]}")
    kind = str(_json(folder / CONFIG).get("peft_type", "LORA")).rpartition(".")[2]
    if kind not in KINDS:
        raise InputError(f"llm.adapter={adapter} is of the kind {kind}; allowed: {', '.join(KINDS)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = peft.PeftConfig.from_pretrained(str(folder))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"adapter {adapter} cannot be loaded: {CONFIG}: {_line(error)}") from error
    if not isinstance(config, peft.LoraConfig):
        raise InputError(f"adapter {adapter} cannot be loaded: {CONFIG} names no peft_type")
    if config.task_type not in (None, task):
        raise InputError(f"llm.adapter={adapter} is for the task {config.task_type}; allowed for this model: {task}")
    return config


def _check_weights(adapted: Any, weights: Mapping[str, Any], adapter: str) -> None:
    """Compare the adapter's weights with those that the model takes, by name and shape."""
    peft = import_peft(f"llm.adapter={adapter}")

    needed = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    known = needed | peft.get_peft_model_state_dict(adapted, save_embedding_layers=True)
    missing, unknown = sorted(set(needed) - set(weights)), sorted(set(weights) - set(known))
    if missing or unknown:
        counts = f"{len(missing)} weights missing, {len(unknown)} unknown, first {(missing + unknown)[0]}"
        raise InputError(f"adapter {adapter} does not fit the model: {counts}")
    changed = [name for name in sorted(weights) if weights[name].shape != known[name].shape]
    if changed:
        shapes = f"{list(weights[changed[0]].shape)}, the model's {list(known[changed[0]].shape)}"
        counts = f"{len(changed)} weights of another shape, first {changed[0]}: {shapes}"
        raise InputError(f"adapter {adapter} does not fit the model: {counts}")
    broken = [name for name in sorted(weights) if not weights[name].isfinite().all()]
    if broken:
        raise InputError(f"adapter {adapter}: {len(broken)} weights are no numbers, first {broken[0]}")


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"adapter {file.parent} cannot be loaded: {file.name} is damaged: {_line(error)}") from error
    if not isinstance(found, dict):
        raise InputError(f"adapter {file.parent} cannot be loaded: {file.name} is damaged: no JSON object")
    return found


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
