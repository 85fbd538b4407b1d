"""What ``graphcontext train`` does with its words; what is heavy is imported when the words are right."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from graphcontext.conf_tree import trains
from graphcontext.config import compose
from graphcontext.errors import InputError
from graphcontext.files import check_folder
from graphcontext.models import has_gpu
from graphcontext.train.together import build
from graphcontext.train.world import check_world

NEEDED = {"pytorch_lightning": "pytorch-lightning", "peft": "peft"}


def check_extra() -> None:
    """Raise an InputError where a package that training needs is not installed."""
    for module, package in NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(f"train needs the package {package}: pip install 'graphcontext[train]'")


def with_trainer(overrides: list[str]) -> list[str]:
    """Return a training's words, with the GPU where there is one and no trainer is named."""
    if any(word.startswith("trainer=") for word in overrides) or not has_gpu():
        return list(overrides)
    print("trainer=gpu: there is a GPU and no trainer= was given", file=sys.stderr)
    return [*overrides, "trainer=gpu"]


def train(overrides: list[str], config_dir: str | None, root: Path, quiet: bool) -> Any:
    """Compose a training and do it; where no trainer is named, the GPU is taken if there is one.

    Returns:
        A :class:`graphcontext.train.fit.Trained`.
    """
    composed = compose(with_trainer(overrides), (), config_dir, primary="train")
    experiment = str(composed.choices.get("experiment"))
    if not trains(experiment, config_dir) and not quiet:
        what = f"experiment={experiment} names no adapter, so adapter={composed.choices.get('adapter')}"
        print(f"{what}; what its retriever and enhancer give stands in the prompts", file=sys.stderr)
    check_extra()
    settings, _ = build(composed.config)  # before seconds of imports
    check_world(settings)
    from graphcontext.train.fit import train as fit

    return fit(composed.config, root, quiet, experiment)


def merge(words: list[str], overrides: list[str], config_dir: str | None, root: Path) -> Path:
    """Write a standalone model folder: the base with an adapter merged into its weights.

    Args:
        words: the adapter (a folder or a training experiment), and where to (default: beside it in the store).
        overrides: of the run that would take it: scale, llm, data set.

    Raises:
        InputError: no adapter or two, one that is not what was stored, or no place for a folder.
    """
    if not 1 <= len(words) <= 2:
        raise InputError(f"train merge needs ADAPTER [PATH]: a folder or a training experiment, got {words or 'none'}")
    for word in overrides:
        if word.partition("=")[0].rpartition(".")[2] == "adapter":
            raise InputError(f"train merge {words[0]}: {word} names another; the first word is the adapter")
    target = Path(os.path.expanduser(words[1])) if len(words) > 1 else None
    if target is not None:
        check_folder(target.parent)
        store = (root / "store").resolve()
        if target.resolve().is_relative_to(store):
            raise InputError(f"{target} lies among the artefacts of {store}; name a folder elsewhere, or none")
    check_extra()
    from graphcontext.train.merge import merge as write

    config = compose([*overrides, f"llm.adapter='{words[0]}'"], (), config_dir).config
    return write(config["roles"]["answer"], target, root)
