"""An adapter that a training experiment makes: its key is known before it exists, from its training inputs alone."""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.conf_tree import chosen_groups, options, trains
from graphcontext.errors import MissingDataError, MissingWeightsError, did_you_mean
from graphcontext.models import adapter_identity

TARGET = "graphcontext.train.trained.TrainedAdapter"
STAGE = "adapter"  # of the store
BASE = ("model", "revision", "dtype", "system_role")  # of an llm: what a training starts from
PLAIN = re.compile(r"(?:[A-Za-z/~_]|\.{1,2}/)[\w./~-]*")  # text that needs no quotes in an override
WORDS = ("null", "true", "false", "nan", "inf", "yes", "no", "on", "off")  # what YAML takes for no text
NOT_THE_POOL = ("dataset.limit", "dataset.seed", "dataset.side")  # which questions a run scores


class TrainedAdapter:
    """What ``graphcontext train`` makes of an experiment: a folder of the store.

    Args:
        experiment: a training experiment (``gcg/sft``).
        overrides: what it is composed of besides its YAML: scale, base model and data set of the run.
        config_dir: a conf tree of the user's own.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"experiment", "overrides", "config_dir"})

    def __init__(self, experiment: str, overrides: Sequence[str], config_dir: str | None = None) -> None:
        self.experiment, self.overrides, self.config_dir = experiment, tuple(overrides), config_dir
        self.root = Path("store")
        self._folder: Path | None = None

    def bind(self, workspace: Any) -> None:
        """Look into the run's store."""
        self.root, self._folder = workspace.store.root, None

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the key of the training."""
        return {"training": _key(config["experiment"], tuple(config["overrides"]), config.get("config_dir"))}

    @property
    def key(self) -> str:
        """The key of the training.

        Raises:
            MissingDataError: the data set is not on this machine.
        """
        return _key(self.experiment, self.overrides, self.config_dir)

    @property
    def folder(self) -> Path:
        """The folder of the adapter.

        Raises:
            MissingWeightsError: it is not trained yet; the message has the line to type.
        """
        if self._folder is not None:  # a key is dear: it looks at the files of the data set
            return self._folder
        path = self.root / STAGE / self.key
        if not (path / "done.json").is_file():
            mend = "or llm.adapter=null for the base model"
            raise MissingWeightsError(f"llm.adapter={self.experiment} is not trained yet: {self.command}, {mend}")
        self._folder = path
        return path

    def weights_hash(self) -> str:
        """Return the hash of the trained weights: what an answered call depends on, which the key does not say."""
        return adapter_identity(str(self.folder))

    @property
    def is_trained(self) -> bool:
        """Whether it is there; False too where its data set is not, and it has no key."""
        try:
            return (self.root / STAGE / self.key / "done.json").is_file()
        except MissingDataError:
            return False

    @property
    def words(self) -> list[str]:
        """The words of ``graphcontext train`` that make it."""
        own = ["--config-dir", self.config_dir] if self.config_dir else []
        return [f"experiment={self.experiment}", *self.overrides, *own]

    @property
    def command(self) -> str:
        return " ".join(["graphcontext train", *map(shlex.quote, self.words)])

    def compose(self) -> dict[str, Any]:
        """Return the resolved config of the training."""
        return _compose(self.experiment, self.overrides, self.config_dir)


@functools.lru_cache(maxsize=64)
def _compose(experiment: str, overrides: tuple[str, ...], config_dir: str | None) -> dict[str, Any]:
    from graphcontext.config import compose

    return compose([f"experiment={experiment}", *overrides], (), config_dir, primary="train").config


def _key(experiment: str, overrides: tuple[str, ...], config_dir: str | None) -> str:
    from graphcontext.train.key import training_key

    return training_key(_compose(experiment, overrides, config_dir))


def bind_adapters(
    config: dict[str, Any], choices: dict[str, Any], given: Sequence[Any], config_dir: str | None
) -> None:
    """Put a node in place of each ``adapter`` that names a training experiment; a folder stays as it is.

    The training has the run's scale, its data set unless the experiment names one itself, and as base the model of the
    role that takes the adapter.

    Args:
        config: resolved; changed in place.
        choices: group → option of the run.
        given: parsed overrides (:class:`graphcontext.overrides.Parsed`) in order of precedence, lowest first.
        config_dir: a conf tree of the user's own.

    Raises:
        InputError: neither a folder nor a training experiment.
    """
    for role, llm in config.get("roles", {}).items():
        name = llm.get("adapter")
        if not isinstance(name, str) or (os.path.isdir(os.path.expanduser(name)) and not trains(name, config_dir)):
            continue
        if not trains(name, config_dir):
            _refuse(name, config_dir)
        node = {"_target_": TARGET, "experiment": name, "config_dir": _absolute(config_dir)}
        node["overrides"] = _overrides(role, choices, given, "dataset" in chosen_groups(name, config_dir))
        _compose(name, tuple(node["overrides"]), node["config_dir"])  # its faults are the run's
        _replace(config, {**llm}, {**llm, "adapter": node})


def _refuse(name: str, config_dir: str | None) -> None:
    if name.startswith((".", "/", "~")):
        raise MissingWeightsError(f"llm.adapter={name}: no such folder")
    known = [option for option in options("experiment", config_dir) if trains(option, config_dir)]
    what = "neither a folder nor a training experiment"
    raise MissingWeightsError(f"llm.adapter={name}: {what}{did_you_mean(name, known)}, or null for the base model")


def _absolute(config_dir: str | None) -> str | None:
    return None if config_dir is None else str(Path(os.path.expanduser(config_dir)).resolve())


def _overrides(role: str, choices: dict[str, Any], given: Sequence[Any], own_data: bool) -> list[str]:
    """Return what of a run's composition enters the training of its adapter; its data unless it names its own."""
    values: dict[str, Any] = {}
    for key, value in (pair for parsed in given for pair in parsed.values):
        head, _, last = key.rpartition(".")
        if head in ("llm", f"roles.{role}") and last in BASE:
            values[f"llm.{last}"] = value
        elif key.startswith("dataset.") and key not in NOT_THE_POOL:
            values |= {} if own_data else {key: value}
        elif key == "limits.context_tokens":
            values[key] = value
    groups = {"scale": choices["scale"], "llm": choices[f"llm@roles.{role}"], "dataset": choices["dataset"]}
    if own_data:
        del groups["dataset"]
    if role == "agent":
        groups["agent"] = choices["agent"]
    typed = given[-1].groups
    groups |= {key: typed[key] for key in ("encoder", "graph", "extractor", "one_hop") if key in typed}
    return [f"{k}={v}" for k, v in groups.items()] + [f"{k}={_text(v)}" for k, v in values.items()]


def _text(value: Any) -> str:
    """Return a value as an override has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)


def _replace(node: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Put ``new`` in place of every node equal to ``old``."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        if value == old:
            node[key] = {**new}
        else:
            _replace(value, old, new)
