"""Components: from a resolved YAML node to an object, and to the part of a cache key it stands for.

A node with ``_target_`` names a class; its other keys are that class' constructor arguments, so a mistyped
key is always caught. A class may declare ``version`` (bumped when its results change), ``execution``
(arguments that cannot change results and stay out of the key), ``neutral`` (argument → the value at which it
changes nothing and stays out too: results made before the argument existed are found), ``identity(config)``
(further facts for the key, such as the hash of its weights) and ``draws(config)`` (it draws random numbers:
seeds enter the key).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError, MissingDataError, did_you_mean
from graphcontext.hashes import hash_file

VERBS = (
    *("load", "build", "retrieve", "enhance", "generate", "score", "compare"),
    *("encode", "chat", "count", "extract", "entities", "facts", "neighbours", "pack", "render"),
    *("wrap", "rate", "compose", "link", "nouns", "evidence", "route"),
)

KIND_NAMES = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "None": "null"}


def locate(target: str, where: str = "") -> type:
    """Import the class that ``_target_`` names.

    Raises:
        InputError: naming the module, class or missing package, and the config node ``where``.
    """
    at = f" in {where}" if where else ""
    module_name, _, class_name = str(target).rpartition(".")
    if not module_name or module_name.startswith("."):
        raise InputError(f"_target_ {target}{at}: expected package.module.Class")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            raise InputError(f"_target_ {target}{at}: there is no module {missing}") from error
        raise InputError(f"_target_ {target}{at} needs the package {missing}, which is not installed") from error
    except ImportError as error:
        raise InputError(f"_target_ {target}{at} cannot be imported: {error}") from error
    except SystemExit as error:  # a script without a guard: it would end the run without a word
        raise InputError(f"_target_ {target}{at} cannot be imported: it calls sys.exit({error.code})") from error
    except Exception as error:
        raise InputError(f"_target_ {target}{at} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if found is None:
        names = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module_name]
        raise InputError(f"_target_ {target}{at}: {module_name} has no {class_name}{did_you_mean(class_name, names)}")
    if not inspect.isclass(found) or not any(callable(getattr(found, verb, None)) for verb in VERBS):
        raise InputError(f"_target_ {target}{at} is not a component: a class with one of {', '.join(VERBS)}")
    return found


def instantiate(node: Any, where: str = "", workspace: Any = None) -> Any:
    """Build the object a resolved config node describes, and those it takes as arguments.

    Args:
        node: plain dicts, lists and values, interpolations resolved.
        where: dotted path of the node, for messages.
        workspace: given to each component that has ``bind``.

    Raises:
        InputError: unknown or missing argument, or a value the constructor refuses.
    """
    if isinstance(node, list):
        return [instantiate(v, f"{where}[{i}]", workspace) for i, v in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {k: instantiate(v, f"{where}.{k}", workspace) for k, v in node.items()}
    cls = locate(node["_target_"], where)
    given = {k: v for k, v in node.items() if k != "_target_"}
    check_arguments(cls, given, where)
    arguments = {k: instantiate(v, f"{where}.{k}", workspace) for k, v in given.items()}
    try:
        built = cls(**arguments)
    except InputError as error:
        raise type(error)(f"{where}: {error}" if where and where not in str(error) else str(error)) from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} ({cls.__name__}): {error}") from error
    if workspace is not None and hasattr(built, "bind"):
        built.bind(workspace)
    return built


def check_arguments(cls: type, given: dict[str, Any], where: str) -> None:
    """Compare given keys with the constructor's arguments; an InputError lists what is allowed."""
    parameters = inspect.signature(cls).parameters
    for key in given:
        if key not in parameters:
            raise InputError(f"{where}.{key}: {cls.__name__} has no such key{did_you_mean(key, parameters)}")
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given]
    if missing:
        raise InputError(f"{where}: {cls.__name__} needs {', '.join(missing)}")
    for key, value in given.items():
        check_type(f"{where}.{key}", value, parameters[key].annotation)


def check_type(where: str, value: Any, annotation: Any) -> None:
    """Compare a value with an annotation made of int, float, str, bool and None alone; others are not looked at."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    kinds = [part.strip() for part in text.split("|")]
    if not all(kind in KIND_NAMES for kind in kinds):
        return
    found = "None" if value is None else type(value).__name__
    if found not in kinds and not (found == "int" and "float" in kinds):
        allowed = " or ".join(KIND_NAMES[kind] for kind in kinds)
        raise InputError(f"{where}={value!r} is {KIND_NAMES.get(found, found)}; allowed: {allowed}")


def fingerprint(node: Any, leave_out: frozenset[str] = frozenset(), absent: bool = False) -> Any:
    """Return everything of a config node that can change results, as JSON types: its part of a cache key.

    Args:
        node: plain dicts, lists and values, interpolations resolved.
        leave_out: keys of the node itself that stay out.
        absent: take all arguments of a component whose files are not here in place of what the files hold: no key,
            but it tells two configs apart.

    Raises:
        MissingDataError: files are not here, and not ``absent``.
    """
    if isinstance(node, list):
        return [fingerprint(v, absent=absent) for v in node]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {k: fingerprint(v, absent=absent) for k, v in node.items()}
    cls = locate(node["_target_"])
    skipped = leave_out | getattr(cls, "execution", frozenset())
    skipped |= {k for k, v in getattr(cls, "neutral", {}).items() if node.get(k, v) == v}
    facts = {k: fingerprint(v, absent=absent) for k, v in node.items() if k not in skipped}
    facts["_version_"] = getattr(cls, "version", 1)
    if cls.__module__.partition(".")[0] != "graphcontext":  # a user's own class: its source too
        source = inspect.getsourcefile(cls)
        facts["_source_"] = hash_file(Path(source)) if source else None
    if hasattr(cls, "identity"):
        try:
            known = cls.identity(node)
        except MissingDataError:
            if not absent:
                raise
            known = node
        if "weights" in known:  # the hash of the weights says more than the name of a revision
            facts.pop("revision", None)
        facts |= known
    return facts


def draws(node: Any) -> bool:
    """Tell whether any component in a config node draws random numbers."""
    return any(
        hasattr(cls, "draws") and cls.draws(child) for child in components(node) for cls in [locate(child["_target_"])]
    )


def used(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every component node that a run of this config uses: those of its stages, not all that it could choose."""
    stages = ["dataset", "retriever", "enhancer", "packing", "generator", "metric"]
    if needs_graph(config["retriever"]):
        stages.insert(1, "graph")
    parts = {stage: active_metrics(config) if stage == "metric" else config[stage] for stage in stages}
    return list(components(list(parts.values())))


def needs_graph(retriever: dict[str, Any]) -> bool:
    """Tell whether a retriever is given a graph: its class says ``needs_graph = True``, or tells it of a config."""
    said = getattr(locate(retriever["_target_"], "retriever"), "needs_graph", False)
    return bool(said(retriever) if callable(said) else said)


def records_steps(retriever: dict[str, Any]) -> bool:
    """Tell whether a retriever may record a path: its class says ``records_steps = True``; a user's own always may."""
    cls = locate(retriever["_target_"], "retriever")
    return bool(getattr(cls, "records_steps", cls.__module__.partition(".")[0] != "graphcontext"))


def has_answers(config: dict[str, Any]) -> bool:
    """Tell whether a run gives answers: with ``generator=none`` it ends in rankings and contexts."""
    return bool(getattr(locate(config["generator"]["_target_"], "generator"), "answers", True))


def active_metrics(config: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics that a run can score: with ``generator=none`` only those that need no answers."""
    if has_answers(config):
        return config["metric"]
    return {
        name: m for name, m in config["metric"].items() if not getattr(locate(m["_target_"]), "needs_answers", True)
    }


def components(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every component node in a resolved config, outer before inner."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield node
        for value in node.values():
            yield from components(value)
    elif isinstance(node, list):
        for value in node:
            yield from components(value)
