"""``new``: a class, a YAML and a test to start from, in the user's own tree; they run as they are.

``templates/`` holds one of each per group of components, named ``Example`` and ``example``. Groups whose options are
data (models, prompts, scales) start from a copy of a shipped option.
"""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
from pathlib import Path

from graphcontext.conf_tree import TRAIN_GROUPS, conf_dir, groups, options
from graphcontext.errors import InputError, did_you_mean
from graphcontext.files import write_atomic

TEMPLATES = Path(__file__).parent / "templates"
DEFAULT = "mylab/conf"
NESTED = ("table", "experiment")  # named PAPER/ID
COPIED = {
    **{"scale": "sample", "llm": "smollm2", "prompt": "answer", "bertscore": "minilm", "one_hop": "file"},
    **{"linker": "spacy_ner", "adapter": "lora", "trainer": "gpu", "debug": "tiny"},
}
COMMANDS = {
    "scale": "table gcg/t3 scale={name}",
    "prompt": "run prompt@generator.prompt={name}",
    "table": "table {name}",
    "claims": "claims {name}",
    "experiment": "run experiment={name}",
    **{group: f"train {group}={{name}}" for group in TRAIN_GROUPS},
}


def create(group: str, name: str, config_dir: str | None = None) -> list[Path]:
    """Write the files of a new option; returns them, the one to edit first.

    Args:
        group: a config group.
        name: of the option, its module and, in capitals, its class; ``PAPER/ID`` for a table or an experiment.
        config_dir: the user's conf tree, ``mylab/conf`` where none is given; made if it is not there. Class and test
            lie in the folder above it.

    Raises:
        InputError: an unknown group, a name that cannot be, or a file that is there already; nothing is written.
    """
    known = groups()
    if group not in known:
        raise InputError(f"new {group}: no such config group{did_you_mean(group, known, most=40)}")
    given = config_dir or DEFAULT
    conf = Path(os.path.expanduser(given))
    if conf.resolve().is_relative_to(conf_dir().resolve()):
        raise InputError(f"--config-dir {given}: these are the shipped configs; name a folder of your own")
    if conf.exists() and not conf.is_dir():
        raise InputError(f"--config-dir {given}: this is a file")
    has_class = (TEMPLATES / f"{group}.py").is_file()
    _check_name(group, name, has_class, conf.parent)
    option = conf / group / f"{name}.yaml"
    files = {option: _option(group, name, given)}
    if has_class:
        module, test = conf.parent / f"{name}.py", conf.parent / f"test_{name}.py"
        files = {
            module: _named((TEMPLATES / f"{group}.py").read_text(encoding="utf-8"), name, given),
            **files,
            test: _named((TEMPLATES / f"test_{group}.py").read_text(encoding="utf-8"), name, given),
        }
    there = [str(path) for path in files if path.exists()]
    if there:
        raise InputError(f"{', '.join(there)}: there already; nothing was written")
    for path, content in files.items():
        write_atomic(path, content)
    return list(files)


def next_steps(group: str, name: str, config_dir: str | None = None) -> list[str]:
    """Return the commands that try what was written: its test, its config, a run."""
    conf = config_dir or DEFAULT
    steps = []
    if (TEMPLATES / f"{group}.py").is_file():
        steps.append(f"(cd {Path(conf).parent} && python -m pytest -q test_{name}.py)")
    return [*steps, f"graphcontext validate --config-dir {conf}", _first_command(group, name, conf)]


def _first_command(group: str, name: str, conf: str) -> str:
    template = TEMPLATES / f"{group}.yaml"
    if template.is_file():
        lines = _named(template.read_text(encoding="utf-8"), name, conf).splitlines()
        return next(line for line in lines if line.startswith("# graphcontext ")).removeprefix("# ")
    verb, _, rest = COMMANDS.get(group, f"run {group}={{name}}").format(name=name).partition(" ")
    return f"graphcontext {verb} --config-dir {conf} {rest}"


def _check_name(group: str, name: str, has_class: bool, folder: Path) -> None:
    if group in NESTED:
        paper, _, own = name.partition("/")
        if not (_is_word(paper) and re.fullmatch(r"\w+", own)):
            raise InputError(f"new {group} {name}: its name is PAPER/ID, such as mylab/mine")
    elif not _is_word(name):
        raise InputError(f"new {group} {name}: a name is letters, digits and _, a letter first, and no Python keyword")
    if name in options(group):
        raise InputError(f"new {group} {name}: a shipped option has that name; choose another")
    if has_class and (name.startswith("test_") or _is_module(name, folder)):
        raise InputError(f"new {group} {name}: a Python module has that name, which yours would hide; choose another")


def _is_word(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)) and not keyword.iskeyword(name)


def _is_module(name: str, folder: Path) -> bool:
    """Tell whether a module that is importable elsewhere has this name."""
    if name in sys.stdlib_module_names:
        return True
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True
    origin = found.origin if found else None
    return found is not None and (origin is None or Path(origin).resolve().parent != folder.resolve())


def _option(group: str, name: str, conf: str) -> str:
    """Return the YAML of a new option."""
    template = TEMPLATES / f"{group}.yaml"
    if template.is_file():
        return _named(template.read_text(encoding="utf-8"), name, conf)
    shipped = options(group)
    source = COPIED.get(group, shipped[0])
    lines = (conf_dir() / group / f"{source}.yaml").read_text(encoding="utf-8").splitlines()
    package = [line for line in lines[:1] if line.startswith("# @package")]
    body = lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :]
    head = [f"# {_first_command(group, name, conf)}", f"# Begun as a copy of {group}={source}: change what is yours."]
    text = "\n".join([*package, *head, *body]) + "\n"
    return text.replace(f"\n  name: {source}\n", f"\n  name: {name}\n") if group == "scale" else text


def _named(text: str, name: str, conf: str) -> str:
    """Return a template with the user's names in it: ``my_ppr`` and, of its class, ``MyPpr``."""
    camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    words = {"CONFDIR": conf, "NAME": name, "Example": camel, "example": name}
    return re.sub(r"CONFDIR|NAME|\b[Ee]xample\b", lambda found: words[found[0]], text)
