"""Composition: Hydra configs, a scale's replacements, and the user's overrides, in two passes.

Precedence: command line > table cell > experiment > scale replacement > component YAML. Hydra composes the
choices once; those that the user did not type are replaced by what the scale names for them; Hydra composes
again; then values are set. Every key is checked before: a mistyped one never reaches a run.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.component import check_type
from graphcontext.conf_tree import TRAIN_GROUPS, conf_dirs, trains
from graphcontext.errors import InputError, did_you_mean
from graphcontext.overrides import ROLES, check_secrets, parse

STAGES = ("dataset", "graph", "retriever", "enhancer", "packing", "generator")  # one component each
_PASSES: dict[Any, Any] = {}  # what Hydra composed in this process
ROOT_KINDS = {"seed": "int", "sample_index": "int", "budget.hours": "float | None"}


@dataclass(frozen=True)
class Composed:
    """A resolved configuration.

    Args:
        config: plain dicts and values, every interpolation resolved.
        choices: group (``llm@roles.answer`` …) → option, after the scale's replacements.
        wanted: the same before them: what the paper's row names.
        overrides: what was given, in order.
        skipped: values that were not set since this config has no such key (``lenient`` only).
    """

    config: dict[str, Any]
    choices: dict[str, Any]
    wanted: dict[str, Any]
    overrides: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def substitutions(self) -> dict[str, tuple[str, str]]:
        """Return group → (wanted, used) for each choice that the scale replaced."""
        changed: dict[str, tuple[str, str]] = {}
        for group, used in self.choices.items():
            want = self.wanted.get(group)
            if want is not None and want != used:
                changed[group] = (str(want), str(used))
        return changed


def compose(
    overrides: list[str] | tuple[str, ...] = (),
    cell: list[str] | tuple[str, ...] = (),
    config_dir: str | None = None,
    lenient: bool = False,
    primary: str = "config",
) -> Composed:
    """Compose one run's configuration, or one training's.

    Args:
        overrides: what the user typed (``retriever=bm25``, ``retriever.top_k=5``, ``llm=smollm2`` …).
        cell: the overrides of a table cell; they give way to the user's.
        config_dir: a conf tree of the user's own.
        lenient: record values whose key this config lacks (a table's rows have different components) instead
            of refusing them.
        primary: ``config``, a run; ``train``, a training.

    Raises:
        InputError: an unknown group, option or key, a value that does not parse, or an adapter that is neither
            null, nor a folder, nor a training experiment.
    """
    from graphcontext.data.splits import check_side
    from graphcontext.train.trained import bind_trained

    typed = parse(overrides, config_dir)
    celled = parse(cell, config_dir)
    chosen = {**celled.groups, **typed.groups}
    if primary == "config":
        _check_run(chosen, [key for key, _ in (*celled.values, *typed.values)], config_dir)
    first = _hydra(chosen, config_dir, primary)
    wanted = _choices(first)
    replaced = _replacements(first, wanted, typed.groups)
    composed = _hydra({**chosen, **replaced}, config_dir, primary) if replaced else first
    _drop_unchosen_metrics(composed)
    skipped = []
    for key, value in [*celled.values, *typed.values]:
        try:
            _set(composed, key, value)
        except InputError:
            if not lenient:
                raise
            skipped.append(key)
    resolved, choices = _resolve(composed), _choices(composed)
    for key, kinds in ROOT_KINDS.items():
        parent, _, last = key.rpartition(".")
        check_type(key, (resolved[parent] if parent else resolved)[last], kinds)
    if not -(2**63) <= resolved["seed"] < 2**64:
        raise InputError(f"seed={resolved['seed']}; allowed: whole numbers from -2^63 to below 2^64")
    hours = resolved["budget"]["hours"]
    if hours is not None and not 0 < hours < float("inf"):
        raise InputError(f"budget.hours={hours}; allowed: above 0, or null for no limit")
    check_side(resolved["split"])
    for name in STAGES:
        if not isinstance(resolved.get(name), dict) or "_target_" not in resolved[name]:
            raise InputError(f"{name}={choices.get(name)}: its YAML names no class (_target_: package.module.Class)")
    bind_trained(resolved, choices, [celled, typed], config_dir)
    return Composed(resolved, choices, wanted, (*cell, *overrides), tuple(skipped))


def _check_run(chosen: dict[str, str], keys: list[str], config_dir: str | None) -> None:
    """Refuse what belongs to ``train`` alone."""
    experiment = chosen.get("experiment")
    if experiment and trains(experiment, config_dir):
        taken = f"llm.adapter={experiment} (an encoder: encoder.weights={experiment})"
        mend = f"graphcontext train experiment={experiment}; then {taken} in a run"
        raise InputError(f"experiment={experiment} trains: {mend}")
    for key in (*chosen, *keys):
        if key.partition(".")[0] in TRAIN_GROUPS:
            mend = "graphcontext train … makes an adapter, a run takes it: llm.adapter=PATH or a training experiment"
            raise InputError(f"{key}: a run has no such key, only train has; {mend}")


def _hydra(chosen: dict[str, str], config_dir: str | None, primary: str) -> Any:
    """Let Hydra compose the given group choices, equal ones of unchanged YAML once; the result has interpolations."""
    files = [path for root in conf_dirs(config_dir) for path in sorted(root.rglob("*.yaml"))]
    stats = [(str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns) for path in files for stat in [path.stat()]]
    key = (primary, tuple(chosen.items()), tuple(stats))
    if key not in _PASSES:  # 140 ms, against 4 for a copy
        _PASSES[key] = _compose(chosen, config_dir, primary)
    return copy.deepcopy(_PASSES[key])


def _compose(chosen: dict[str, str], config_dir: str | None, primary: str) -> Any:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    roots = conf_dirs(config_dir)
    given = [f"{k}={v}" for k, v in chosen.items()]
    if len(roots) > 1:
        given.append(f"hydra.searchpath=['file://{roots[0]}']")
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(roots[-1])):
            return hydra_compose(primary, overrides=given, return_hydra_config=True)
    except UnicodeDecodeError as error:
        raise InputError(f"a YAML is not UTF-8: {_not_utf8(roots)}") from error
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise InputError(" ".join(line.strip() for line in lines[:4])) from error
    finally:
        GlobalHydra.instance().clear()


def _drop_unchosen_metrics(composed: Any) -> None:
    """Take away what an experiment says of a metric (``recall@k: {k: 30}``) that another ``metric=`` left out."""
    from omegaconf import open_dict

    chosen = str(composed.hydra.runtime.choices.get("metric"))
    for name in [n for n, node in composed.metric.items() if "_target_" not in node]:
        if name not in re.split(r"[^\w@]+", chosen):
            with open_dict(composed):
                del composed.metric[name]


def _not_utf8(roots: list[Path]) -> str:
    """Return the first config that cannot be decoded."""
    for path in sorted(path for root in roots for path in root.rglob("*.yaml")):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            return f"{path} (byte {error.start})"
    return "one of the config tree's"


def _choices(composed: Any) -> dict[str, Any]:
    """Return group → option; list choices (metric) as their text; Hydra's own groups left out."""
    raw = dict(composed.hydra.runtime.choices)
    return {k: v for k, v in raw.items() if not k.startswith("hydra/") and v is not None}


def _replacements(composed: Any, wanted: dict[str, Any], typed: dict[str, str]) -> dict[str, str]:
    """Return the choices that the scale replaces, but for those that the user typed.

    What an option chooses within itself (``extractor@extractor.parts.rebel``) stays or goes with that option.
    """
    replaced: dict[str, str] = {}
    table = composed.scale.get("replace") or {}
    for key, option in wanted.items():
        if key.partition("@")[2].partition(".")[0] in wanted:
            continue
        instead = (table.get(key.partition("@")[0]) or {}).get(option)
        if instead is not None and key not in typed:
            replaced[key] = instead
    return replaced


def _set(composed: Any, key: str, value: Any) -> None:
    """Set one value in the composed config; the key must exist. ``llm.KEY`` sets it for every role that has it."""
    from omegaconf import OmegaConf, open_dict

    keys = [key]
    if key.startswith("llm."):
        keys = [f"roles.{role}.{key[4:]}" for role in ROLES]
        keys = [k for k in keys if _has(composed, k)] or keys[:1]
    for name in keys:
        if name.partition(".")[0] == "hydra" or not _has(composed, name):
            raise InputError(f"{key}: no such key{_nearest(composed, name)}")
        _check_kind(composed, name, value)
        _own_copies(composed, name)
        with open_dict(composed):
            OmegaConf.update(composed, name, value, merge=False, force_add=True)


def _own_copies(composed: Any, key: str) -> None:
    """Give each node above ``key`` that refers to another (``llm: ${roles.answer}``) a copy of its own to change."""
    from omegaconf import OmegaConf, open_dict

    node = composed
    for part in key.split(".")[:-1]:
        if OmegaConf.is_interpolation(node, part):
            own = OmegaConf.create(OmegaConf.to_container(node[part], resolve=False))
            with open_dict(composed):
                node[part] = own
        node = node[part]


def _check_kind(composed: Any, key: str, value: Any) -> None:
    """Refuse a value for a node that has keys of its own; null is for components that another one may do without."""
    from omegaconf.errors import OmegaConfBaseException

    node, last = _parent(composed, key)
    try:
        old = node.get(last)
    except OmegaConfBaseException:
        return
    optional = value is None and "_target_" in node
    if hasattr(old, "keys") and not (optional or isinstance(value, dict) or str(value).startswith("${")):
        inner = ", ".join(k for k in old if k != "_target_")
        raise InputError(f"{key}={value}: {key} has keys of its own: {inner}")


def _parent(composed: Any, key: str) -> tuple[Any, str]:
    node = composed
    parts = key.split(".")
    for part in parts[:-1]:
        node = node.get(part) if hasattr(node, "get") else None
        if node is None:
            break
    return node, parts[-1]


def _has(composed: Any, key: str) -> bool:
    node, last = _parent(composed, key)
    return hasattr(node, "keys") and last in node


def _nearest(composed: Any, key: str) -> str:
    node, last = _parent(composed, key)
    if hasattr(node, "keys"):
        hint = did_you_mean(last, [k for k in node if k not in ("_target_", "hydra")], most=20)
    else:
        hint = did_you_mean(key.split(".")[0], [k for k in composed if k != "hydra"], most=30)
    elsewhere = [f"{stage}.{last}" for stage in STAGES if last != "_target_" and _has(composed, f"{stage}.{last}")]
    if elsewhere and not hint.startswith("; "):  # llm.max_new_tokens is the generator's
        hint = f"; did you mean {' or '.join(elsewhere)}?{hint}"
    return hint


def _resolve(composed: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        raw = OmegaConf.to_container(composed, resolve=False)
        plain = {k: v for k, v in raw.items() if k != "hydra"}
        check_secrets(plain)  # before a value of the environment takes the place of its name
        resolved: Any = OmegaConf.to_container(OmegaConf.create(plain), resolve=True)
    except OmegaConfBaseException as error:
        where = getattr(error, "full_key", None) or "config"
        mend = "; \\${…} is the text itself" if "nterpolation" in str(error) else ""
        raise InputError(f"{where}: {str(error).splitlines()[0]}{mend}") from error
    check_secrets(resolved)
    return resolved
