"""Composition: Hydra configs, a scale's replacements, and the user's overrides, in two passes.

Precedence: command line > table cell > experiment > scale replacement > component YAML. Hydra composes the
choices once; those that the user did not type are replaced by what the scale names for them; Hydra composes
again; then values are set. Every key is checked before: a mistyped one never reaches a run.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError, did_you_mean

ROLES = ("answer", "agent", "extractor", "reporter", "planner", "judge", "grader")


@dataclass(frozen=True)
class Composed:
    """A resolved configuration.

    Args:
        config: plain dicts and values, every interpolation resolved.
        choices: group (``llm@roles.answer`` …) → option, after the scale's replacements.
        wanted: the same before them: what the paper's row names.
        overrides: what was given, in order.
    """

    config: dict[str, Any]
    choices: dict[str, Any]
    wanted: dict[str, Any]
    overrides: tuple[str, ...] = ()

    @property
    def substitutions(self) -> dict[str, tuple[str, str]]:
        """Return group → (wanted, used) for each choice that the scale replaced."""
        changed: dict[str, tuple[str, str]] = {}
        for group, used in self.choices.items():
            want = self.wanted.get(group)
            if want is not None and want != used:
                changed[group] = (str(want), str(used))
        return changed


@dataclass
class _Parsed:
    groups: dict[str, str] = field(default_factory=dict)  # group[@package] → value text
    values: list[tuple[str, Any]] = field(default_factory=list)  # dotted key, value


def conf_dir() -> Path:
    """Return the folder of the shipped configs: beside the package when installed, else the repository's."""
    beside = Path(__file__).parent / "conf"
    return beside if beside.is_dir() else Path(__file__).parents[2] / "conf"


def conf_dirs(config_dir: str | None = None) -> list[Path]:
    """Return the config trees, the user's first. The user's folder's parent goes on the import path."""
    if config_dir is None:
        return [conf_dir()]
    user = Path(config_dir).expanduser().resolve()
    if not user.is_dir():
        raise InputError(f"--config-dir {config_dir}: no such folder")
    if str(user.parent) not in sys.path:
        sys.path.insert(0, str(user.parent))
    return [user, conf_dir()]


def options(group: str, config_dir: str | None = None) -> list[str]:
    """Return the options of a config group, sorted; InputError with the list of groups if there is none."""
    found: set[str] = set()
    for root in conf_dirs(config_dir):
        folder = root / group
        found |= {str(p.relative_to(folder).with_suffix("")) for p in folder.rglob("*.yaml")}
    if not found:
        raise InputError(f"no config group {group!r}{did_you_mean(group, groups(config_dir), most=40)}")
    return sorted(found)


def groups(config_dir: str | None = None) -> list[str]:
    """Return the names of all config groups."""
    return sorted({p.name for root in conf_dirs(config_dir) for p in root.iterdir() if p.is_dir()})


def compose(
    overrides: list[str] | tuple[str, ...] = (),
    cell: list[str] | tuple[str, ...] = (),
    config_dir: str | None = None,
) -> Composed:
    """Compose one run's configuration.

    Args:
        overrides: what the user typed (``retriever=bm25``, ``retriever.top_k=5``, ``llm=smollm2`` …).
        cell: the overrides of a table cell; they give way to the user's.
        config_dir: a conf tree of the user's own.

    Raises:
        InputError: an unknown group, option or key, a value that does not parse.
    """
    typed = _parse(overrides, config_dir)
    celled = _parse(cell, config_dir)
    chosen = {**celled.groups, **typed.groups}
    first = _hydra(chosen, config_dir)
    wanted = _choices(first)
    replaced = _replacements(first, wanted, typed.groups)
    composed = _hydra({**chosen, **replaced}, config_dir) if replaced else first
    for key, value in [*celled.values, *typed.values]:
        _set(composed, key, value)
    return Composed(_resolve(composed), _choices(composed), wanted, tuple([*cell, *overrides]))


def _parse(overrides: list[str] | tuple[str, ...], config_dir: str | None) -> _Parsed:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parsed = _Parsed()
    known = groups(config_dir)
    parser = OverridesParser.create()
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key or key[0] in "+~":
            raise InputError(f"{text!r}: an override is KEY=VALUE")
        group = key.partition("@")[0]
        if group in known:
            _check_options(group, value, config_dir)
            for expanded in _expand_group(key):
                parsed.groups[expanded] = value
            continue
        if key.split(".")[-1].endswith("path"):
            value = os.path.expanduser(value.strip("'\""))
            text = f"{key}='{value}'" if value not in ("null", "") else f"{key}=null"
        try:
            override = parser.parse_override(text)
        except HydraException as error:
            raise InputError(f"{text!r} does not parse: {str(error).splitlines()[0]}") from error
        if override.is_sweep_override():
            raise InputError(f"{text!r} sweeps several values: only run -m and submit do; or quote it: {key}='…'")
        parsed.values.append((key, override.value()))
    return parsed


def _expand_group(key: str) -> list[str]:
    """Return the group keys that one typed key sets: ``llm`` sets every role."""
    if key == "llm":
        return [f"llm@roles.{role}" for role in ROLES]
    group, _, package = key.partition("@")
    if group == "llm" and package.removeprefix("roles.") not in ROLES:
        raise InputError(f"{key}: no such role{did_you_mean(package.removeprefix('roles.'), ROLES)}")
    return [key]


def _check_options(group: str, value: str, config_dir: str | None) -> None:
    allowed = options(group, config_dir)
    names = re.split(r"\s*,\s*", value.strip("[] ")) if value.startswith("[") else [value]
    if not value.startswith("[") and "," in value:
        raise InputError(f"{group}={value} sweeps several options: only run -m and submit do")
    for name in names:
        if name and name not in allowed:
            raise InputError(f"{group}={name}: no such {group}{did_you_mean(name, allowed, most=30)}")


def _hydra(chosen: dict[str, str], config_dir: str | None) -> Any:
    """Let Hydra compose the given group choices; the result still holds interpolations."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    roots = conf_dirs(config_dir)
    given = [f"{k}={v}" for k, v in chosen.items()]
    if len(roots) > 1:
        given.append(f"hydra.searchpath=[file://{roots[0]}]")
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(roots[-1])):
            return hydra_compose("config", overrides=given, return_hydra_config=True)
    except HydraException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise InputError(" ".join(lines[:3])) from error
    finally:
        GlobalHydra.instance().clear()


def _choices(composed: Any) -> dict[str, Any]:
    """Return group → option; list choices (metric) as their text; Hydra's own groups left out."""
    raw = dict(composed.hydra.runtime.choices)
    return {k: v for k, v in raw.items() if not k.startswith("hydra/") and v is not None}


def _replacements(composed: Any, wanted: dict[str, Any], typed: dict[str, str]) -> dict[str, str]:
    """Return the choices that the scale replaces, those that the user typed excepted."""
    replaced: dict[str, str] = {}
    table = composed.scale.get("replace") or {}
    for key, option in wanted.items():
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
        if not _has(composed, name):
            raise InputError(f"{key}: no such key{_nearest(composed, name)}")
        with open_dict(composed):
            OmegaConf.update(composed, name, value, merge=False, force_add=True)


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
        return did_you_mean(last, [k for k in node if k not in ("_target_", "hydra")], most=20)
    top = [k for k in composed if k != "hydra"]
    return did_you_mean(key.split(".")[0], top, most=30)


def _resolve(composed: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        plain = {k: OmegaConf.to_container(composed, resolve=False)[k] for k in composed if k != "hydra"}
        return OmegaConf.to_container(OmegaConf.create(plain), resolve=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise InputError(f"config: {str(error).splitlines()[0]}") from error
