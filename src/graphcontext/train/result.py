"""The result of a training: a plain PEFT folder (or a model folder), with what it was made from beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import yaml

from graphcontext.errors import InputError
from graphcontext.files import digest, put_below, write_atomic
from graphcontext.manifest import provenance
from graphcontext.train.base import Base
from graphcontext.train.checkpoint import Position
from graphcontext.train.key import asker
from graphcontext.train.report import plot, write_csv
from graphcontext.train.steps import Seats, final_state
from graphcontext.train.strategy import precision_of
from graphcontext.train.training import Training
from graphcontext.train.world import rank


def write_result(training: Training, module: Any, position: Position) -> dict[str, Any]:
    """Write the adapter, its manifest, the CSV and the picture; returns the manifest's facts."""
    config, settings, base = training.config, training.settings, training.base
    of_best = settings.keep == "best" and position.best is not None
    facts = {
        **base.facts(),
        "steps": position.step,
        "of_steps": training.course.total,
        "kept_step": position.best_step if of_best else position.step,
        "held_out_loss": {"base": position.base, "best": position.best},
        **({"held_out_mrr": ranked} if (ranked := _mrr(position, of_best)) else {}),
        "examples": {side: found.facts() for side, found in training.sides.items()},
        "precision": precision_of(settings)[0],
        "ranks": settings.world,
        "sessions": position.sessions,
        "seed": config["seed"],
    }
    if rank() == 0:
        seats = Seats(training.folder)
        if base.kind != "none":
            weights = final_weights(seats, settings.keep, position)
            facts["trained_parameters"] = sum(weight.numel() for weight in weights.values())
            if base.kind == "full":
                write_model(base, weights, training.folder)
            else:
                write_adapter(base, module, weights, training.folder)
        write_csv(seats.csv, position.rows)
        title = f"{base.kind} on {base.name}, {facts['examples']['train']['pairs']} examples"
        plot(training.folder / "loss.png", position.rows, title, facts["kept_step"], base.unit)
        write_atomic(training.folder / "config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
        asked = {} if base.what == "encoder" else {"prompt": digest(asker(config).get("prompt"))}
        about = {**facts, **asked, **provenance()}
        write_atomic(training.folder / "manifest.json", json.dumps(about, indent=1, ensure_ascii=False))
    return facts


def _mrr(position: Position, of_best: bool) -> dict[str, float] | None:
    """Return the mean reciprocal rank on held-out questions of the base and of the kept weights, where it was taken."""
    found = {row["step"]: row["held_out_mrr"] for row in position.rows if row.get("held_out_mrr") is not None}
    return {"base": found[0], "kept": found[position.best_step if of_best else max(found)]} if found else None


def final_weights(seats: Seats, keep: str, position: Position) -> dict[str, Any]:
    """Return name → the weight that is kept.

    Raises:
        InputError: one is no number.
    """
    weights = {name: parts["weight"] for name, parts in final_state(seats, keep, position).items()}
    if not all(torch.isfinite(weight).all() for weight in weights.values()):
        raise InputError("the trained weights are no numbers; lower trainer.learning_rate, or set trainer.clip")
    return weights


def write_adapter(base: Base, module: Any, weights: dict[str, Any], folder: Path) -> None:
    """Write ``adapter_config.json`` and ``adapter_model.safetensors``."""
    from safetensors.torch import save

    network = module.network if module.network is not None else base.load()
    config = network.peft_config["default"]
    about = config.to_dict() | {"inference_mode": True, "base_model_name_or_path": base.name}
    about["revision"] = base.node.get("revision")
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in about.items()}
    named = {name.replace(".default.", "."): weight.contiguous() for name, weight in sorted(weights.items())}
    write_atomic(folder / "adapter_model.safetensors", save(named, metadata={"format": "pt"}))
    write_atomic(folder / "adapter_config.json", json.dumps(plain, indent=1, sort_keys=True, default=str))


def write_model(base: Base, weights: dict[str, Any], folder: Path) -> None:
    """Write a model folder that transformers reads: all weights, config, tokenizer."""
    network = base.plain()  # another one: that of the training may be sharded
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(weights[name])
    with put_below(folder) as made:
        network.save_pretrained(str(made))
        base.write_beside(made)
