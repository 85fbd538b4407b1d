"""``train merge``: the base model with an adapter in its weights, as a model folder of its own."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.component import instantiate
from graphcontext.errors import InputError
from graphcontext.files import digest, write_atomic, writing
from graphcontext.generate import adapters
from graphcontext.generate.causal_model import CausalModel
from graphcontext.generate.seq2seq_model import Seq2SeqModel
from graphcontext.prepare import check_trained
from graphcontext.store import Store, Workspace
from graphcontext.train.trained import TrainedAdapter
from graphcontext.whole import load_config

MADE = "merged.json"


def merge(node: dict[str, Any], target: Path | None, root: Path) -> Path:
    """Write a model folder with W + (α / r) · B A as weights, and the tokenizer of the base; returns its path.

    The base is read unquantised, in the dtype of the LLM's config: an adapter that was trained on 4-bit weights is
    added to those that they were made from.

    Args:
        node: config of an LLM with an adapter.
        target: the folder to make; None: below the store.
        root: the working folder.

    Raises:
        InputError: the target is there already and is something else, or the adapter is not what was stored or does
            not fit its base.
    """
    llm = instantiate(node, "llm", Workspace(Store(root / "store")))
    if isinstance(trained := getattr(llm, "trained", None), TrainedAdapter):
        check_trained(trained)
    adapter = str(llm.adapter)
    base = models.identity(node["model"], node.get("revision"))
    made_of = {"base": base, "adapter": models.adapter_identity(adapter), "dtype": node.get("dtype", "auto")}
    target = target or root / "store" / "merged" / digest(made_of)[:32]
    if target.exists():
        if _made_of(target) == made_of:
            return target
        raise InputError(f"{target} is there already; name another folder, or remove it")
    folder = models.resolve(node["model"], node.get("revision"))
    model = _load(folder, adapter, node)
    network = model.weights if adapters.is_full(Path(adapter)) else adapters.merge(model.weights)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".merge-") as scratch:
            made = Path(scratch) / "model"
            network.save_pretrained(str(made))
            model.tokenizer.save_pretrained(str(made))
            write_atomic(made / MADE, json.dumps(made_of, indent=1))
            os.rename(made, target)  # fails where another has made it meanwhile
    return target


def _made_of(target: Path) -> Any:
    """Return what a folder says it was merged of, None where it says nothing."""
    try:
        return json.loads((target / MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _load(folder: Path, adapter: str, node: dict[str, Any]) -> Any:
    """Load base and adapter as evaluation does, on the CPU."""
    dtype, name = node.get("dtype", "auto"), (node["model"], node.get("revision"))
    model: Any
    if load_config(folder).is_encoder_decoder:
        model = Seq2SeqModel(folder, dtype, "cpu", adapter, name)
    else:
        model = CausalModel(folder, adapter, dtype, "none", "cpu", name)
    model.load_weights()
    return model
