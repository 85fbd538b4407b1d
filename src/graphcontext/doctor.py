"""``doctor``: what a run needs, each ✓ or ✗ with the mend, before anything is computed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphcontext.component import instantiate, locate, used
from graphcontext.config import Composed
from graphcontext.errors import GraphContextError, InputError, MissingDataError, MissingWeightsError
from graphcontext.files import check_folder
from graphcontext.generate.completions import read_key
from graphcontext.generate.server import SERVERS
from graphcontext.manifest import library_version
from graphcontext.models import home, resolve
from graphcontext.prepare import missing_adapters, missing_gguf, needed_models, unnamed_models, unsound, untrained

LEAST_DISK_GIB = 2.0
STAGES = ("graph", "retriever", "enhancer", "packing", "generator", "metric")


@dataclass(frozen=True)
class Line:
    """One thing examined; ``mend`` says what to do where it is not good."""

    good: bool
    what: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{'✓' if self.good else '✗'} {self.what}" + (f"  →  {self.mend}" if self.mend and not self.good else "")


def examine(runs: list[tuple[str, Composed]]) -> list[Line]:
    """Examine the machine and what the runs need.

    Args:
        runs: (label, config) of each run (:func:`graphcontext.table.expand.configs`).
    """
    lines = [_python(), *_libraries(), _disk(Path(".")), _disk(home())]
    lines += [*_folders(), _gpu()]
    seen: dict[str, Line] = {}
    for _, composed in runs:
        for part in (_arguments, _models, _servers, _data, _sources, _secrets, _training):
            for line in part(composed):
                seen.setdefault(line.what, line)
    return [*lines, *seen.values()]


def _python() -> Line:
    version = ".".join(map(str, sys.version_info[:3]))
    return Line(sys.version_info >= (3, 11), f"Python {version}", "graphcontext needs 3.11 or newer")


def _libraries() -> Iterable[Line]:
    for name in ("torch", "transformers", "accelerate", "hydra-core", "lxml", "numba", "spacy", "scipy"):
        version = library_version(name)
        yield Line(version is not None, f"{name} {version or 'missing'}", f"pip install {name}")
    extras = {"pytorch-lightning": "train", "peft": "train", "bitsandbytes": "quantization", "wandb": "wandb"}
    for name, extra in extras.items():
        version = library_version(name)
        if version is None:
            yield Line(True, f"{name} not installed: only for pip install 'graphcontext[{extra}]'")


def _disk(folder: Path) -> Line:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 2**30
    writable = os.access(folder, os.W_OK)
    what = f"{folder.resolve()}: {free:.0f} GiB free" + ("" if writable else ", not writable")
    return Line(free >= LEAST_DISK_GIB and writable, what, "free some space, or work in another folder")


def _folders() -> Iterable[Line]:
    """Examine the places of what commands write; nothing is said of one that is a folder or can be made."""
    for name in ("store", "runs", "results"):
        try:
            check_folder(Path(name))
        except InputError as error:
            yield Line(False, str(error))


def _gpu() -> Line:
    try:
        import torch
    except ImportError:
        return Line(False, "torch cannot be imported", "make install")
    if not torch.cuda.is_available():
        return Line(True, f"no GPU: models run on {torch.get_num_threads()} CPU threads in float32")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Line(True, f"GPU: {', '.join(names)}")


def _arguments(composed: Composed) -> Iterable[Line]:
    """Examine what the components of the stages say of their arguments; of the data set :func:`_data` does."""
    for name in STAGES:
        try:
            instantiate(composed.config[name], name)
        except (MissingWeightsError, MissingDataError):
            continue  # said with the models and the data
        except GraphContextError as error:
            yield Line(False, str(error))


def _training(composed: Composed) -> Iterable[Line]:
    """Examine what ``train`` looks at before it reads its pairs; nothing where it is a run."""
    if "trainer" not in composed.config:
        return
    from graphcontext.train import cost
    from graphcontext.train.shape import UnknownShape
    from graphcontext.train.strategy import device_of
    from graphcontext.train.together import build

    config = {**composed.config, "trainer": {**composed.config["trainer"]}}
    try:
        device = device_of(build(config)[0])
        config["trainer"]["gpu"] = None  # another machine's
        planned = cost.training_cost("training", config)
    except (MissingWeightsError, MissingDataError, UnknownShape):
        return  # said above; what such a model takes is not known
    except GraphContextError as error:
        yield Line(False, str(error))
        return
    what = f"training of {planned.kind} on {planned.model}, {device}: about {planned.needed:.1f} GiB"
    yield Line(True, what) if planned.fits else Line(False, cost.too_large(planned))


def _models(composed: Composed) -> Iterable[Line]:
    for model, revision in needed_models(composed.config):
        try:
            resolve(model, revision)
        except InputError as error:
            yield Line(False, f"model {model}: {error}", "graphcontext prepare, with the same words")
        else:
            yield Line(True, f"model {model}")
    for name in unnamed_models(composed.config):
        yield Line(False, f"model of {name}: none is public", "train one, and name its folder (generator.model=FOLDER)")
    for adapter in missing_adapters(composed.config):
        mend = "llm.adapter= or encoder.weights= takes a folder, a training experiment, or null"
        yield Line(False, f"adapter {adapter}: no such folder", mend)
    for training in untrained(composed.config):
        what = f"{training.what} {training.experiment}: not trained yet"
        yield Line(False, what, f"{training.command}; table does it too")
    for reason in unsound(composed.config):
        yield Line(False, reason)


def _servers(composed: Composed) -> Iterable[Line]:
    kinds = {str(node["serve"]): node for node in used(composed.config) if node.get("serve") in SERVERS}
    for kind, node in kinds.items():
        lacking = SERVERS[kind].lacks(node)
        yield Line(True, f"llm.serve={kind} {SERVERS[kind].version()}") if lacking is None else Line(False, *lacking)
    for model, reason in missing_gguf(composed.config).items():
        mend = "graphcontext prepare (an embedded model)"
        yield Line(False, f"model {model} for llm.serve=llama_cpp: {reason}", mend)


def _data(composed: Composed) -> Iterable[Line]:
    node = composed.config["dataset"]
    name = node.get("name", composed.choices.get("dataset"))
    try:
        instantiate(node, "dataset")
        identity = getattr(locate(node["_target_"]), "identity", None)
        if identity is not None:
            identity(node)
    except GraphContextError as error:
        yield Line(False, f"data set {name}: {error}", "set dataset.path or GRAPHCONTEXT_DATA")
    else:
        yield Line(True, f"data set {name}")


def _sources(composed: Composed) -> Iterable[Line]:
    """Examine what components need besides models and the data set: those with ``neighbours``."""
    for node in used(composed.config):
        cls = locate(node["_target_"])
        if not hasattr(cls, "neighbours") or not hasattr(cls, "identity"):
            continue
        what = f"one-hop triples {node.get('name', cls.__name__)}"
        try:
            cls.identity(node)
        except GraphContextError as error:
            yield Line(False, f"{what}: {error}")
        else:
            yield Line(True, what)


def _secrets(composed: Composed) -> Iterable[Line]:
    for node in used(composed.config):
        variable = node.get("api_key_env")
        if variable:
            try:
                good, mend = read_key(variable) is not None, f"export {variable}=…"
            except InputError as error:
                good, mend = False, str(error)
            yield Line(good, f"environment variable {variable}", mend)
