"""Tables of kind ``settings``: what the paper says of each hyperparameter, and what the config sets (gcg/t5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphcontext.component import instantiate
from graphcontext.data.card import escaped
from graphcontext.errors import InputError, did_you_mean
from graphcontext.table import page
from graphcontext.table.cells import Made
from graphcontext.table.expand import Request, compose_cached, dataset_cell
from graphcontext.table.lines import declare
from graphcontext.table.render import markdown_table
from graphcontext.train.trained import ADAPTER, WEIGHTS

VIEW = {"settings": ..., "training": None}
ABSENT = "not run (no config has it)"


def make(wish: Request, config_dir: str | None, root: Path, quiet: bool) -> Made:
    """Write one line per setting of ``view.settings``: label, the paper's value, ours at the paper's and this scale.

    A setting names the ``key`` in the composed config of the table's first row, or with ``of: training`` in that of
    the training experiment ``view.training`` on the same data and model (of several, ``view.training`` maps names for
    ``of`` to experiments); one without a key says why in ``ours``. Nothing is run.
    """
    view = wish.spec.viewed()
    lines = declare(wish, config_dir, root)
    used, paper, scale = lines.lines[0].cell.composed.config, lines.lines[0].paper.config, lines.scale
    configs = {"run": (paper, used)}
    trainings = view["training"] if isinstance(view["training"], dict) else {"training": view["training"]}
    for name, experiment in trainings.items():
        if experiment is None:
            continue
        cell = lines.lines[0].cell
        tuned = [*cell.row.overrides, f"{_taken_as(experiment, config_dir)}={experiment}"]
        base = [f"experiment={cell.row.experiment}", *dataset_cell(cell.column)]
        asked = (["scale=paper"], wish.overrides)
        runs = [compose_cached(given, [*base, *tuned], config_dir, lenient=True, root=root) for given in asked]
        configs[name] = tuple(_training(run.config, experiment) for run in runs)
    heads = ["setting", "paper", "scale=paper"] + ([f"scale={scale}"] if scale != "paper" else []) + ["key"]
    rows, data = [], []
    for setting in view["settings"]:
        known = _setting(wish.spec.name, setting)
        if known["of"] not in configs:
            hint = did_you_mean(str(known["of"]), configs)
            raise InputError(f"table {wish.spec.name}: view.settings: of: {known['of']}{hint}")
        if known["key"] is None:
            ours = here = known["ours"] or ABSENT
        else:
            ours, here = (_value(config, known["key"], wish.spec.name) for config in configs[known["of"]])
        shown = [known["label"], known["paper"], ours] + ([here] if scale != "paper" else []) + [known["key"] or "–"]
        rows.append([escaped(str(value)) for value in shown])
        data.append(
            {
                "label": known["label"],
                "key": known["key"],
                "reported": known["paper"],
                "paper_scale": ours,
                "here": here,
            }
        )
    parts = [*page.head(lines.command, wish.spec.title, f"scale {scale}", f"table {wish.spec.name}", wish.spec.paper)]
    parts.append(markdown_table(heads, rows, n_left=len(heads)))
    if wish.spec.notes:
        parts.append("Notes\n\n" + "\n".join(f"{i}. {escaped(note)}" for i, note in enumerate(wish.spec.notes, 1)))
    about = {"table": wish.spec.name, "title": wish.spec.title, "scale": scale, "generated": lines.command}
    content: dict[str, Any] = {**about, "footnotes": list(wish.spec.notes), "cells": [], "settings": data}
    path, markdown = page.write_files(lines.stem, "\n\n".join(parts) + "\n", content)
    return Made(path, markdown, None, 0)


def _setting(table: str, given: dict[str, Any]) -> dict[str, Any]:
    known = {"label": None, "key": None, "paper": "not stated", "of": "run", "ours": None}
    for key in given:
        if key not in known:
            raise InputError(f"table {table}: view.settings: no such key {key!r}{did_you_mean(key, known)}")
    return {**known, **given}


def _taken_as(experiment: str, config_dir: str | None) -> str:
    """Return the key of a run that takes what an experiment trains."""
    trained = compose_cached([f"experiment={experiment}"], (), config_dir, primary="train").config
    return WEIGHTS if trained["trainer"]["data"] == "bi_encoder" else ADAPTER


def _training(config: dict[str, Any], experiment: str) -> dict[str, Any]:
    """Return the config of the training whose result a run takes."""
    held = [config["encoder"].get("weights"), config["roles"]["answer"].get("adapter")]
    node = next(node for node in held if isinstance(node, dict) and node["experiment"] == experiment)
    return instantiate(node).compose()


def _value(config: dict[str, Any], key: str, table: str) -> Any:
    """Return the value at a dotted key, by its model or class where it is a component."""
    node: Any = config
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            hint = did_you_mean(part, node) if isinstance(node, dict) else ""
            raise InputError(f"table {table}: view.settings: the config has no {key}{hint}")
        node = node[part]
    if isinstance(node, dict):
        return node.get("model") or str(node.get("_target_", "")).rpartition(".")[2]
    return "null" if node is None else node
