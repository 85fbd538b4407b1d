"""The config trees: the shipped one and the user's, their groups and the options of each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from graphcontext.errors import InputError, did_you_mean

TRAIN_GROUPS = ("adapter", "trainer", "debug")  # chosen by ``train`` (conf/train.yaml), not by a run


def conf_dir() -> Path:
    """Return the folder of the shipped configs: beside the package when installed, else the repository's."""
    beside = Path(__file__).parent / "conf"
    return beside if beside.is_dir() else Path(__file__).parents[2] / "conf"


def conf_dirs(config_dir: str | None = None) -> list[Path]:
    """Return the config trees, the user's first. The user's folder's parent goes on the import path.

    Raises:
        InputError: no such folder, or an option in it has the name of a shipped one.
    """
    if config_dir is None:
        return [conf_dir()]
    user = Path(os.path.expanduser(config_dir)).resolve()
    if not user.is_dir():
        raise InputError(f"--config-dir {config_dir}: no such folder")
    if user == conf_dir().resolve():
        return [conf_dir()]
    for path in sorted(user.rglob("*.yaml")):
        name = path.relative_to(user)
        if (conf_dir() / name).is_file():
            raise InputError(f"--config-dir {config_dir}: {name} has the name of a shipped config; rename yours")
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


def trains(experiment: str, config_dir: str | None = None) -> bool:
    """Tell whether an experiment is of ``train``: its YAML chooses an adapter or a trainer, or sets a key of one."""
    import yaml

    for root in conf_dirs(config_dir):
        path = root / "experiment" / f"{experiment}.yaml"
        if path.is_file():
            try:
                read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            except (yaml.YAMLError, UnicodeDecodeError):
                return False  # composing it says what is wrong
            if not isinstance(read, dict):
                return False
            chosen = [key for d in read.get("defaults") or [] if isinstance(d, dict) for key in d]
            named = {key.removeprefix("override ").strip("/") for key in chosen} | set(read)
            return bool(named & set(TRAIN_GROUPS))
    return False


def groups(config_dir: str | None = None) -> list[str]:
    """Return the names of all config groups."""
    return sorted({p.name for root in conf_dirs(config_dir) for p in root.iterdir() if p.is_dir()})


def chosen_groups(experiment: str, config_dir: str | None = None) -> dict[str, str]:
    """Return group → option of what an experiment's YAML chooses."""
    import yaml

    for root in conf_dirs(config_dir):
        path = root / "experiment" / f"{experiment}.yaml"
        if path.is_file():
            try:
                defaults = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("defaults", [])
            except yaml.YAMLError:
                return {}  # composing it says what is wrong
            pairs = [pair for d in defaults if isinstance(d, dict) for pair in d.items()]
            return {k.removeprefix("override ").strip("/"): str(option) for k, option in pairs}
    return {}
