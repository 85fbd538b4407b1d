"""What the user typed, ``GROUP=OPTION`` and ``KEY=VALUE``, taken apart and checked before anything is composed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from graphcontext.conf_tree import groups, options
from graphcontext.errors import InputError, did_you_mean

SECRET = re.compile(r"(^|_)(api_?key|token|secret|password|credentials?|authorization|bearer)$", re.IGNORECASE)
SECRET_VARIABLE = re.compile(r"oc\.env:\s*\w*(key|token|secret|pass|credential|auth)", re.IGNORECASE)
ROLES = ("answer", "agent", "extractor", "reporter", "planner", "judge", "grader")


@dataclass
class Parsed:
    """Group choices, and values by their dotted key in the order in which they were typed."""

    groups: dict[str, str] = field(default_factory=dict)  # group[@package] → value text
    values: list[tuple[str, Any]] = field(default_factory=list)  # dotted key, value


def parse(overrides: list[str] | tuple[str, ...], config_dir: str | None) -> Parsed:
    """Take overrides apart; ``llm=X`` becomes a choice for every role.

    Raises:
        InputError: no KEY=VALUE, an unknown option, a sweep, or a value that does not parse.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parsed = Parsed()
    known = groups(config_dir)
    parser = OverridesParser.create()
    for text in overrides:
        key, equals, value = text.partition("=")
        check_secrets({key.strip("+~"): value})
        if not equals or not key or key[0] in "+~":
            raise InputError(f"{text!r}: an override is KEY=VALUE, without + or ~")
        group = key.partition("@")[0]
        if group in known:
            _check_options(group, value, config_dir)
            for expanded in _expand_group(key):
                parsed.groups[expanded] = value
            continue
        if key.split(".")[-1].endswith("path"):
            parsed.values.append((key, _path(value)))
            continue
        try:
            override = parser.parse_override(text)
        except HydraException as error:
            raise InputError(f"{text!r} does not parse: {str(error).splitlines()[0]}") from error
        if override.is_sweep_override():
            raise InputError(f"{text!r} sweeps several values: only run -m and submit do; or quote it: {key}='…'")
        check_secrets({key: override.value()})
        parsed.values.append((key, override.value()))
    return parsed


def check_secrets(node: Any, where: str = "") -> None:
    """Refuse what is or may be a secret, without showing it: it would stand in every run folder.

    Raises:
        InputError: a key that is called a secret; a ``*_env`` that is no name of a variable, or looks like a key
            itself; ``${oc.env:…}`` of a variable that is called so; an address with a user, query or fragment.
    """
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        at = f"{where}.{key}".lstrip(".")
        last = at.rpartition(".")[2].lower()
        text = str(value).strip("'\" ")
        if value is None or text in ("null", ""):
            continue
        if SECRET.search(last) and not (last.endswith("token") and text.isdigit()):  # max_new_token=9 is mistyped
            raise InputError(f"{at}: a config holds no secret; name the environment variable it is in: {at}_env=NAME")
        if last.endswith("_env") and not names_variable(text):
            allowed = "allowed: the name of the environment variable that holds the secret, such as OPENAI_API_KEY"
            raise InputError(f"{at}: no name of a variable, so perhaps the secret itself, and not shown; {allowed}")
        if isinstance(value, str) and SECRET_VARIABLE.search(text):
            raise InputError(f"{at} takes the value of a variable that may hold a secret; a config holds none")
        if last in ("base_url", "endpoint") and any(mark in text for mark in "@?#"):
            kept = "a user, query or fragment, which may be a key and is not shown here"
            raise InputError(f"{at} has {kept}; allowed: http(s)://HOST/…")
        check_secrets(value, at)


def names_variable(text: str) -> bool:
    """Tell whether a text is the name of an environment variable, and no key that happens to be spelt like one.

    >>> names_variable("OPENAI_API_KEY"), names_variable("sk-ab12"), names_variable("hf_abcDEFghiJKLmnoPQR")
    (True, False, False)
    """
    long = [part for part in text.split("_") if len(part) >= 16]
    mixed = any(re.search(r"\d", part) or not (part.isupper() or part.islower()) for part in long)
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None and not mixed


def _path(value: str) -> str | None:
    """Return a path as it was typed, quotes around it taken off, ``~`` expanded; null where it is blank."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return os.path.expanduser(value) if value not in ("null", "") else None


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
    if value.startswith("[") and group != "metric":
        raise InputError(f"{group}={value}: one option is allowed{did_you_mean('', allowed, most=12)}")
    names = re.split(r"\s*,\s*", value.strip("[] ")) if value.startswith("[") else [value]
    if not value.startswith("[") and "," in value:
        raise InputError(f"{group}={value} sweeps several options: only run -m and submit do")
    for name in names:
        if name not in allowed and (name or value != "[]"):
            hint = did_you_mean(name, allowed, most=12 if group == "experiment" else 30)
            raise InputError(f"{group}={name}: no such {group}{hint}")
