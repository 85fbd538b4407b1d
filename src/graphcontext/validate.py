"""``validate``: compose and bind every config of every group; report all faults at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from graphcontext.component import fingerprint, instantiate
from graphcontext.conf_tree import TRAIN_GROUPS, conf_dirs, groups, options, trains
from graphcontext.config import Composed, compose
from graphcontext.errors import InputError, MissingDataError
from graphcontext.table.claims import read_claims
from graphcontext.table.expand import cells, request
from graphcontext.table.spec import load_spec
from graphcontext.train.key import base, side_of
from graphcontext.train.pairs import needs_prompt
from graphcontext.train.together import check_together

BOUND = (
    *("dataset", "graph", "retriever", "enhancer", "packing", "generator"),
    *("metric", "roles", "entity_extractor", "fact_extractor", "linker", "agent"),
)
SCALES = ("sample", "small", "paper")


def validate_all(config_dir: str | None = None) -> tuple[int, list[str]]:
    """Compose and bind every option of every group, every experiment and every table at every scale.

    What trains (options of :data:`TRAIN_GROUPS`, experiments that choose one) is composed as ``train`` does it.

    Returns:
        The number of configs checked and the faults, each ``what: why``. A package that is missing because it
        belongs to an extra is not a fault.
    """
    checked = 0
    faults: list[str] = []
    for group in groups(config_dir):
        for option in _options(group, config_dir):
            for overrides in _overrides(group, option):
                checked += 1
                as_train = group in TRAIN_GROUPS or (group == "experiment" and trains(option, config_dir))
                fault = check(overrides, config_dir, "train" if as_train else "config")
                if fault:
                    faults.append(f"{group}/{option} ({' '.join(overrides)}): {fault}")
    for name in _options("table", config_dir):
        for scale in SCALES:
            count, found = _check_table(name, scale, config_dir)
            checked += count
            faults += [f"table {name} scale={scale}: {fault}" for fault in found]
    for name in _options("claims", config_dir):
        read, wrong = read_claims(name, config_dir)
        checked += len(read.claims) if read else 0
        faults += wrong
    return checked, faults + _first_lines(config_dir)


def _options(group: str, config_dir: str | None) -> list[str]:
    """Return the options of a group, none for a folder without YAML (an empty one, ``__pycache__``)."""
    found = any(any((root / group).rglob("*.yaml")) for root in conf_dirs(config_dir))
    return options(group, config_dir) if found else []


def _overrides(group: str, option: str) -> list[list[str]]:
    """Return the ways in which an option is composed: experiments and what trains at every scale, others once."""
    if group in ("table", "claims", "prompt"):  # prompts are bound with the components that hold them
        return []
    if group == "experiment" or group in TRAIN_GROUPS:
        return [[f"{group}={option}", f"scale={scale}"] for scale in SCALES]
    if group == "metric":
        return [[f"metric=[{option}]", "scale=paper"]]
    if group == "scale":
        return [[f"scale={option}"]]
    return [[f"{group}={option}", "scale=paper"]]


def check(overrides: list[str], config_dir: str | None = None, primary: str = "config") -> str | None:
    """Return why this config cannot be composed and bound, or None; ``primary`` as of :func:`compose`."""
    bound = bind_training if primary == "train" else bind
    return _fault(lambda: bound(compose(overrides, config_dir=config_dir, primary=primary)))


def _fault(attempt: Callable[[], None]) -> str | None:
    """Return what is wrong in one line; a package that is missing since it belongs to an extra is not a fault."""
    try:
        attempt()
    except InputError as error:
        return None if "which is not installed" in str(error) else str(error)
    except Exception as error:  # noqa: BLE001 - a constructor of the user's own may raise anything
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def bind(composed: Composed) -> None:
    """Construct every component of a config; constructors check their arguments and load nothing."""
    for name in BOUND:
        instantiate(composed.config[name], name)
    for name in ("retriever", "enhancer", "generator", "packing", "metric"):
        with contextlib.suppress(MissingDataError):  # its files are not on this machine: no fault of the config
            fingerprint(composed.config[name])


def bind_training(composed: Composed) -> None:
    """Construct every component of a training, its data sets of both sides, and check what has to fit together."""
    config = composed.config
    bind(composed)
    settings, adapter = (instantiate(config[name], name) for name in ("trainer", "adapter"))
    base(config)
    check_together(config, settings, adapter)
    for side in ("train", "validation"):
        instantiate(side_of(config, side)["dataset"], "dataset")
    if settings.data == "pairs":
        needs_prompt(instantiate(config["generator"], "generator"))
    for name in ("trainer", "adapter"):
        fingerprint(config[name])


def _check_table(name: str, scale: str, config_dir: str | None) -> tuple[int, list[str]]:
    try:
        spec = load_spec(name, config_dir)
        if spec.kind == "card":
            return 1, []
        found = cells(request(name, [f"scale={scale}"], config_dir), config_dir)
    except InputError as error:
        return 1, [str(error)]
    faults = {cell.row.name: _fault(lambda cell=cell: bind(cell.composed)) for cell in found}
    return len(found), [f"row {name}: {fault}" for name, fault in faults.items() if fault]


def _first_lines(config_dir: str | None) -> list[str]:
    """Every YAML opens with a comment that names its command."""
    faults = []
    for root in conf_dirs(config_dir):
        for path in sorted(root.rglob("*.yaml")):
            head = path.read_text(errors="replace").splitlines()[:2]
            if not any(line.startswith("#") and "graphcontext" in line for line in head):
                faults.append(f"{_short(path, root)}: its first lines do not name the command that uses it")
    return faults


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root))
