"""What a training experiment makes, an adapter or an encoder: its key is known before it exists, from its training
inputs alone.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.component import components, instantiate, locate
from graphcontext.conf_tree import chosen_groups, options, trains
from graphcontext.errors import InputError, MissingDataError, MissingWeightsError, did_you_mean

TARGET = "graphcontext.train.trained.TrainedAdapter"
STAGE = "adapter"  # of the store
BASE = ("model", "revision", "dtype", "system_role")  # of an llm: what a training starts from
ENCODES = ("model", "revision", "pooling", "max_length", "query_prefix", "passage_prefix", "normalize", "dtype")
ADAPTER, WEIGHTS = "llm.adapter", "encoder.weights"  # the keys of a run that take a training
WITHOUT = {ADAPTER: "the base model", WEIGHTS: "the untrained one"}
PLAIN = re.compile(r"(?:[A-Za-z/~_]|\.{1,2}/)[\w./~-]*")  # text that needs no quotes in an override
WORDS = ("null", "true", "false", "nan", "inf", "yes", "no", "on", "off")  # what YAML takes for no text
NOT_THE_POOL = ("dataset.limit", "dataset.seed", "dataset.side")  # which questions a run scores


class TrainedAdapter:
    """What ``graphcontext train`` makes of an experiment: a folder of the store.

    Args:
        experiment: a training experiment (``gcg/sft``).
        overrides: what it is composed of besides its YAML: scale, base model and data set of the run.
        config_dir: a conf tree of the user's own.
        taken_as: the key of a run that names it, for messages.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"experiment", "overrides", "config_dir", "taken_as"})

    def __init__(
        self, experiment: str, overrides: Sequence[str], config_dir: str | None = None, taken_as: str = ADAPTER
    ) -> None:
        self.experiment, self.overrides, self.config_dir = experiment, tuple(overrides), config_dir
        self.taken_as = taken_as
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
        """The folder of the adapter or encoder.

        Raises:
            MissingWeightsError: it is not trained yet; the message has the line to type.
        """
        if self._folder is not None:  # a key is dear: it looks at the files of the data set
            return self._folder
        path = self.root / STAGE / self.key
        if not (path / "done.json").is_file():
            mend = f"or {self.taken_as}=null for {WITHOUT[self.taken_as]}"
            raise MissingWeightsError(f"{self.taken_as}={self.experiment} is not trained yet: {self.command}, {mend}")
        self._folder = path
        return path

    @property
    def is_trained(self) -> bool:
        """Whether it is there; False too where its data set is not, and it has no key."""
        try:
            return (self.root / STAGE / self.key / "done.json").is_file()
        except MissingDataError:
            return False

    @property
    def what(self) -> str:
        """What it is: an adapter or an encoder."""
        return "encoder" if self.taken_as == WEIGHTS else "adapter"

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


def bind_trained(config: dict[str, Any], choices: dict[str, Any], given: Sequence[Any], config_dir: str | None) -> None:
    """Put a node in place of each ``llm.adapter`` and ``encoder.weights`` that names a training experiment.

    A folder stays as it is. The training has the run's scale, its data set unless the experiment names one itself, and
    as base the model of the role, or of the encoder, that takes its result.

    Args:
        config: resolved; changed in place.
        choices: group → option of the run.
        given: parsed overrides (:class:`graphcontext.overrides.Parsed`) in order of precedence, lowest first.
        config_dir: a conf tree of the user's own.

    Raises:
        InputError: neither a folder nor a training experiment, or one that trains the other kind of model.
    """
    for role, llm in config.get("roles", {}).items():
        name = llm.get("adapter")
        if _is_training(name, ADAPTER, config_dir):
            own_data = "dataset" in chosen_groups(name, config_dir)
            words = _overrides(role, choices, given, own_data)
            if "llm" in (config.get("agent") or {}) and _trains_evidence(name, words, config_dir):
                words.append(f"agent={choices['agent']}")
            node = _node(name, ADAPTER, words, config_dir)
            _replace(config, {**llm}, {**llm, "adapter": node})
    _check_own(config, "", config_dir)
    if config.get("trainer", {}).get("data") == "bi_encoder":  # it starts from a base without weights, or is refused
        return
    encoders = [node for node in components(config) if "pooling" in node and isinstance(node.get("weights"), str)]
    for encoder in {json.dumps(node, sort_keys=True): {**node} for node in encoders}.values():
        name = encoder["weights"]
        if _is_training(name, WEIGHTS, config_dir):
            words = _encoder_overrides(name, encoder, choices, given, config_dir)
            _replace(config, encoder, {**encoder, "weights": _node(name, WEIGHTS, words, config_dir)})


def _check_own(node: Any, path: str, config_dir: str | None) -> None:
    """Refuse a training experiment as the adapter of one component: by its role its base is known.

    Raises:
        InputError: with the key that takes it.
    """
    if not isinstance(node, (dict, list)):
        return
    if isinstance(node, dict) and "model" in node and _is_training(name := node.get("adapter"), ADAPTER, config_dir):
        mend = f"{ADAPTER}={name} for all roles, roles.answer.adapter={name} for one"
        raise InputError(f"{path}.adapter={name}: this key takes a folder; a training experiment: {mend}")
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        _check_own(value, f"{path}.{key}" if path else str(key), config_dir)


def _is_training(name: Any, key: str, config_dir: str | None) -> bool:
    """Tell whether the value of ``llm.adapter`` or ``encoder.weights`` is a training experiment, not a folder or null.

    Raises:
        InputError: it is a text and neither.
    """
    if not isinstance(name, str) or (os.path.isdir(os.path.expanduser(name)) and not trains(name, config_dir)):
        return False
    if not trains(name, config_dir):
        _refuse(key, name, config_dir)
    return True


def _node(name: str, key: str, overrides: list[str], config_dir: str | None) -> dict[str, Any]:
    """Return the node of a training, which is composed once: its faults are the run's.

    Raises:
        InputError: it trains nothing, the other kind of model, or by a key or value that is not allowed.
    """
    config = _compose(name, tuple(overrides), _absolute(config_dir))
    if getattr(locate(config["adapter"]["_target_"], "adapter"), "kind", None) == "none":
        raise InputError(f"{key}={name} trains nothing (adapter=none): {key}=null is {WITHOUT[key]}")
    is_encoder = config["trainer"]["data"] == "bi_encoder"
    if is_encoder != (key == WEIGHTS):
        what, mend = ("an encoder", WEIGHTS) if is_encoder else ("a language model", ADAPTER)
        raise InputError(f"{key}={name} trains {what}: {mend}={name}")
    try:
        for part in ("trainer", "adapter", *(["bi_encoder"] if is_encoder else [])):
            instantiate(config[part], part)
    except InputError as error:
        raise type(error)(f"{key}={name}: {error}") from error
    found = {"_target_": TARGET, "experiment": name, "config_dir": _absolute(config_dir), "overrides": overrides}
    return found | ({"taken_as": key} if key != ADAPTER else {})


def _refuse(key: str, name: str, config_dir: str | None) -> None:
    if name.startswith((".", "/", "~")):
        raise MissingWeightsError(f"{key}={name}: no such folder")
    known = [option for option in options("experiment", config_dir) if trains(option, config_dir)]
    what = "neither a folder nor a training experiment"
    raise MissingWeightsError(f"{key}={name}: {what}{did_you_mean(name, known)}, or null for {WITHOUT[key]}")


def _encoder_overrides(
    name: str, encoder: dict[str, Any], choices: dict[str, Any], given: Sequence[Any], config_dir: str | None
) -> list[str]:
    """Return what of a run's composition enters the training of an encoder: its base is the run's own encoder."""
    groups = {"scale": choices["scale"]}
    values: dict[str, Any] = {}
    if "dataset" not in chosen_groups(name, config_dir):
        groups["dataset"] = choices["dataset"]
        values = {k: v for p in given for k, v in p.values if k.startswith("dataset.") and k not in NOT_THE_POOL}
    words = [f"{k}={v}" for k, v in groups.items()] + [f"{k}={_text(v)}" for k, v in values.items()]
    own = _compose(name, tuple(words), _absolute(config_dir))["encoder"]
    return words + [f"encoder.{k}={_text(encoder[k])}" for k in ENCODES if encoder.get(k) != own.get(k)]


def _trains_evidence(name: str, words: list[str], config_dir: str | None) -> bool:
    """Tell whether an agent's prompt is learnt: that of the run's own agent, whichever role takes the result."""
    return bool(_compose(name, tuple(words), _absolute(config_dir))["trainer"]["data"] == "evidence")


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
