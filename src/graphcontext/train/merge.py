"""``train merge``: the base model with an adapter in its weights, as a model folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.component import instantiate
from graphcontext.errors import InputError
from graphcontext.files import check_held, digest, open_up, write_atomic, writing
from graphcontext.generate import adapters
from graphcontext.generate.causal_model import CausalModel
from graphcontext.generate.seq2seq_model import Seq2SeqModel
from graphcontext.hashes import changed_file, hash_files
from graphcontext.lease import Lease
from graphcontext.prepare import check_trained
from graphcontext.store import Store, Workspace
from graphcontext.train.trained import TrainedAdapter
from graphcontext.whole import load_config

MADE = "merged.json"
SCRATCH = ".merge-"  # begins the name of what is being made
OLD = 24 * 3600.0  # seconds after which nobody makes it any more


def merge(node: dict[str, Any], target: Path | None, root: Path) -> Path:
    """Write a model folder with W + (α / r) · B A as weights, and the tokenizer of the base; returns its path.

    The base is read unquantised, in the dtype of the LLM's config: an adapter that was trained on 4-bit weights is
    added to those that they were made from. What was merged before is taken as it is; where it is damaged, it is made
    again below the store, and refused elsewhere.

    Args:
        node: config of an LLM with an adapter.
        target: the folder to make; None: below the store.
        root: the working folder.

    Raises:
        InputError: the target is there already and is something else or damaged, or the adapter is not what was stored
            or does not fit its base.
    """
    llm = instantiate(node, "llm", Workspace(Store(root / "store")))
    if isinstance(trained := getattr(llm, "trained", None), TrainedAdapter):
        check_trained(trained)
    adapter = str(llm.adapter)
    base = models.identity(node["model"], node.get("revision"))
    made_of = {"base": base, "adapter": models.adapter_identity(adapter), "dtype": node.get("dtype", "auto")}
    own = target is None
    target = target or root / "store" / "merged" / digest(made_of)[:32]
    if _is_merged(target, made_of, own):
        return target
    with Lease(target.with_name(f"{target.name}.lock"), guards=target):
        if _is_merged(target, made_of, own):  # by another meanwhile
            return target
        model = _load(models.resolve(node["model"], node.get("revision")), adapter, node)
        network = model.weights if adapters.is_full(Path(adapter)) else adapters.merge(model.weights)
        with writing(target):
            _sweep(target)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{SCRATCH}{target.name}-") as scratch:
                made = Path(scratch) / "model"
                network.save_pretrained(str(made))
                model.tokenizer.save_pretrained(str(made))
                about = made_of | {"files": hash_files(made)}
                write_atomic(made / MADE, json.dumps(about, indent=1))
                open_up(made)
                check_held(target)
                if own and target.exists():
                    shutil.rmtree(target)
                os.rename(made, target)
    return target


def _is_merged(target: Path, made_of: dict[str, Any], own: bool) -> bool:
    """Tell whether a folder is there and is what a merge of these left there.

    Raises:
        InputError: there is something else, where it is not our ``own`` place.
    """
    if not target.exists():
        return False
    wrong = _wrong(target, made_of)
    if wrong is not None and not own:
        raise InputError(f"{target} {wrong}; name another folder, or remove it")
    return wrong is None


def _wrong(target: Path, made_of: dict[str, Any]) -> str | None:
    """Return why a folder is not what a merge of these left there, None where it is."""
    try:
        said = json.loads((target / MADE).read_text(encoding="utf-8"))
        files = dict(said.pop("files"))  # one of an earlier version names none: it cannot be checked
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return "is there already"
    if said != made_of:
        return "is there already"
    changed = changed_file(target, files)
    return f"is damaged: {changed} is not what was merged" if changed else None


def _sweep(target: Path) -> None:
    """Remove what killed merges left beside a folder whose lease is held: its own, and any other that is old."""
    for left in target.parent.glob(f"{SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # another has just ended
            is_own = left.name[:-8] == f"{SCRATCH}{target.name}-"  # tempfile adds eight letters
            if is_own or time.time() - left.stat().st_mtime > OLD:
                shutil.rmtree(left, ignore_errors=True)


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
