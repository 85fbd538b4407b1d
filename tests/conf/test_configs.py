"""Every YAML composes, binds, and holds no key that nothing reads; the set-up files agree; the wheel is whole."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
import itertools
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphcontext.component import components, fingerprint, instantiate, locate
from graphcontext.conf_tree import TRAIN_GROUPS, conf_dir, groups, options, trains
from graphcontext.config import compose
from graphcontext.enhance.one_hop_file import OneHopFile
from graphcontext.enhance.one_hop_index import OneHopIndex
from graphcontext.errors import InputError
from graphcontext.table.expand import request
from graphcontext.table.spec import load_spec
from graphcontext.train.settings import TrainerSettings
from graphcontext.validate import SCALES, validate_all

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "graphcontext"
GROUPS = [g for g in groups() if g not in ("table", "claims", "prompt", "scale", "experiment")]


def test_every_yaml_composes_and_binds_at_every_scale() -> None:
    checked, faults = validate_all()
    assert faults == []
    assert checked > 50


def test_all_faults_are_reported_at_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    tree = tmp_path / "conf"
    (tree / "retriever").mkdir(parents=True)
    (tree / "retriever" / "one.yaml").write_text("# graphcontext run\n_target_: nowhere.X\n")
    (tree / "retriever" / "two.yaml").write_text(
        "# graphcontext run\n_target_: graphcontext.retrieve.tfidf.TFIDF\nk: 1\n"
    )
    (tree / "retriever" / "three.yaml").write_text("_target_: graphcontext.retrieve.tfidf.TFIDF\ntop_k: 2\n")
    (tree / "retriever" / "extra.yaml").write_text("# graphcontext run\n_target_: needs_extra.X\n")
    (tmp_path / "needs_extra.py").write_text("import nosuchpkg\n")
    monkeypatch.setattr("graphcontext.validate.groups", lambda _: ["retriever"])
    monkeypatch.setattr(
        "graphcontext.validate.options", lambda group, _: [] if group == "table" else options(group, str(tree))
    )
    _, faults = validate_all(str(tree))
    named = "\n".join(faults)
    assert "there is no module nowhere" in named
    assert "retriever.k: TFIDF has no such key" in named
    assert "retriever/three.yaml: its first lines do not name the command" in named
    assert "nosuchpkg" not in named  # a missing extra is no fault


# -- T09: every leaf is read ---------------------------------------------------------------------


OPTIONS = [(group, option) for group in GROUPS for option in options(group)]


def primary(group: str, option: str = "") -> str:
    """Return which config an option is composed with: a run's or a training's."""
    return "train" if group in TRAIN_GROUPS or (group == "experiment" and trains(option)) else "config"


def nodes(group: str, option: str) -> list[dict[str, Any]]:
    """Return the component nodes of an option; of a trainer with the hyperparameters of conf/train.yaml."""
    words = [f"metric=[{option}]" if group == "metric" else f"{group}={option}", "scale=paper"]
    config = compose(words, primary=primary(group)).config
    own = {"llm": config["roles"]["answer"], "metric": config["metric"].get(option)}.get(group, config.get(group))
    return list(components(own))


@functools.cache
def read_names(text: str) -> frozenset[str]:
    """Return the attribute names and strings that a source text reads."""
    tree = ast.parse(text)
    loads = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return frozenset(loads | strings)


@functools.cache
def everywhere_read() -> frozenset[str]:
    return frozenset().union(*(read_names(p.read_text()) for p in sorted(SOURCE.rglob("*.py"))))


class Recorder:
    """Stands for a component that is given as an argument."""


SENTINELS: tuple[Any, ...] = (Recorder(), 987654.5, 987654, "§sentinel", ["§sentinel"], True, False, None, {"§": 1})


def state(built: Any) -> Any:
    """Return an object's attributes by value, those of our own objects inside it too."""
    if type(built).__module__.startswith(("graphcontext", __name__)):
        return {k: state(v) for k, v in vars(built).items()}
    return type(built).__name__ if " at 0x" in repr(built) else repr(built)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_t09_each_leaf_changes_the_object_or_is_refused(group: str, option: str) -> None:
    for node in nodes(group, option):
        _check_leaves(group, node)


def _check_leaves(group: str, node: dict[str, Any]) -> None:
    cls = locate(node["_target_"])
    parameters = inspect.signature(cls).parameters
    arguments = {k: instantiate(v, f"{group}.{k}") for k, v in node.items() if k != "_target_"}
    assert set(arguments) <= set(parameters)  # each key is a constructor argument
    unread = unread_arguments(cls)
    base = state(cls(**arguments))
    for key, value in arguments.items():
        changed = False
        for sentinel in SENTINELS:
            if sentinel == value and type(sentinel) is type(value):
                continue
            try:
                found = state(cls(**{**arguments, key: sentinel}))
            except (InputError, TypeError, ValueError, AttributeError):
                changed = True  # looked at, and refused
                continue
            changed |= found != base
        assert changed, f"{node['_target_']}: nothing depends on {key}"
        assert key not in unread, f"{node['_target_']}: nothing reads {key}"


PLANNING = frozenset({"parameters", "plan"})  # what only plan.py reads, from the YAML


def unread_arguments(cls: type) -> set[str]:
    """Return the constructor arguments that end in no attribute which the class itself reads.

    An argument is followed through the constructor (``self.x = argument``, ``self.x = f(argument)``, by way of a
    local name), and ``self.x`` has to be read in the class: beyond checks that only raise. Arguments declared as
    execution may be read by others; planning arguments have to be read in plan.py.
    """
    trees = [ast.parse(textwrap.dedent(inspect.getsource(c))) for c in cls.__mro__ if c is not object]
    nodes = [n for tree in trees for n in used_nodes(tree)]
    read = {n.attr for n in nodes if is_own(n) and isinstance(n.ctx, ast.Load)}
    constructors = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    flows = [flow for constructor in constructors for flow in assignments(constructor)]
    planned = PLANNING & read_names((SOURCE / "plan.py").read_text())
    exempt = (getattr(cls, "execution", frozenset()) - PLANNING) | planned
    if cls is TrainerSettings:  # a record: others read it, execution too
        exempt = settings_read()
    return {a for a in inspect.signature(cls).parameters if a not in exempt and not read & ends(a, flows)}


@functools.cache
def settings_read() -> frozenset[str]:
    """Return what of a trainer is read: ``settings.KEY``, ``trainer["KEY"]``, ``self.KEY`` in its own class."""
    found: set[str] = set()
    for path in sorted((SOURCE / "train").glob("*.py")):
        own = path.name == "settings.py"
        for node in used_nodes(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                holder = ast.unparse(node.value).rpartition(".")[2]
                if holder == "settings" or (own and holder == "self"):
                    found.add(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if re.search(r"trainer(['\"]\])?$", ast.unparse(node.value)):
                    found.add(str(node.slice.value))
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("trainer.get", "['trainer'].get")):
                found.add(ast.literal_eval(node.args[0]))
    return frozenset(found)


def is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def used_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those of errors and of the questions that lead only to errors."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        asks = isinstance(child, ast.If) and not child.orelse and isinstance(child.body[-1], ast.Raise)
        if not asks and not isinstance(child, ast.Raise):
            yield from used_nodes(child)


def assignments(function: ast.AST) -> Iterator[tuple[set[str], str]]:
    """Yield (names on the right, ``self.x`` or local name on the left) of each assignment, tuples by part."""
    for node in used_nodes(function):
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            for left, right in zip(target.elts, node.value.elts) if both else [(target, node.value)]:
                names = {n.id for n in ast.walk(right) if isinstance(n, ast.Name)}
                yield names, f"self.{left.attr}" if is_own(left) else ast.unparse(left)


def ends(argument: str, flows: list[tuple[set[str], str]]) -> set[str]:
    """Return the attributes that an argument's value reaches."""
    reached = {argument}
    while more := {left for names, left in flows if names & reached} - reached:
        reached |= more
    return {name.removeprefix("self.") for name in reached if name.startswith("self.")}


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_t09_each_leaf_is_in_the_key_or_declared_execution(
    group: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in (OneHopFile, OneHopIndex):  # the key of one-hop triples hashes their files: any will do
        monkeypatch.setattr(source, "identity", classmethod(lambda cls, config: {"content": "0"}))
    for node in nodes(group, option):
        if group == "dataset":  # the key of a data set hashes its files: any will do
            node = node | {"path": str(some_data(node["_target_"], tmp_path)), "archive_sha1": None}
        _check_key(group, node)


def some_data(target: str, folder: Path) -> Path:
    """Return a folder that the data set class ``target`` finds its files in."""
    files = {
        "StackExchangeCSV": ["a.csv"],
        "LFRQA": ["a.jsonl"],
        "JSONL": ["corpus.jsonl", "questions.jsonl"],
        "Folder": ["a.txt", "questions.jsonl"],
        "HotpotQA": ["hotpot_dev_distractor_v1.json"],
        "MuSiQue": ["musique_ans_v1.0_dev.jsonl"],
        "IIRC": ["dev.json", "context_articles.json"],
    }.get(target.rpartition(".")[2])
    for name in files or ():
        (folder / name).touch()
    return folder if files else SOURCE / "data" / "sample" / "cqa_sample"


def _check_key(group: str, node: dict[str, Any]) -> None:
    cls = locate(node["_target_"])
    declared = getattr(cls, "execution", frozenset()) | getattr(cls, "selection", frozenset())
    parameters = set(inspect.signature(cls).parameters)
    assert getattr(cls, "execution", frozenset()) <= parameters, "execution names arguments that there are not"
    printed = fingerprint(node, getattr(cls, "selection", frozenset()))
    for key, value in getattr(cls, "neutral", {}).items():  # in the key as soon as it is anything else
        without = fingerprint({k: v for k, v in node.items() if k != key})
        assert key in parameters and fingerprint(node | {key: value}) == without
        assert fingerprint(node | {key: "§sentinel"}) != without
        declared |= {key}
    for key in node:
        if key in declared or key == "revision":  # the hash of the weights stands for a revision
            continue
        assert key in printed, f"{node['_target_']}: {key} is neither in the key nor declared as execution"


def test_t09_each_root_key_is_read() -> None:
    """Keys without a class are read by an interpolation in a YAML, or by name in the source."""
    config = compose([]).config
    yamls = "\n".join(p.read_text() for p in sorted(conf_dir().rglob("*.yaml")))
    known = everywhere_read()
    unread = []
    for key in leaves({k: v for k, v in config.items() if k != "roles"}):
        last = key.rpartition(".")[2]
        if "${" + key + "}" not in yamls and last not in known and key.partition(".")[0] not in known:
            unread.append(key)
    assert unread == []
    for key in leaves({name: config[name] for name in ("limits", "tuning")}):
        assert "${" + key + "}" in yamls or key == "limits.retrieval", f"no component takes {key}"  # tables take it


def leaves(node: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nodes without a class."""
    if isinstance(node, dict) and "_target_" not in node:
        for key, value in node.items():
            yield from leaves(value, f"{prefix}.{key}" if prefix else key)
    elif not isinstance(node, dict):
        yield prefix


@pytest.mark.parametrize("name", options("experiment"))
def test_t09_an_experiment_sets_only_keys_that_its_components_have(name: str) -> None:
    _check_keys(name, "experiment")


@pytest.mark.parametrize("name", options("debug"))
def test_t09_debug_sets_only_keys_that_a_training_has(name: str) -> None:
    _check_keys(name, "debug")


def _check_keys(name: str, group: str) -> None:
    """Each key that a YAML sets is one that its config has without it."""
    raw = yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text()) or {}
    config = compose([f"{group}={name}"], primary=primary(group, name)).config
    for key, values in raw.items():
        if key != "defaults":
            parameters = set(config[key]) if isinstance(values, dict) else set()
            if "_target_" in parameters:  # Hydra merges whatever it is told: the class says what there is
                parameters = set(inspect.signature(locate(config[key]["_target_"])).parameters)
            assert set(values) <= parameters if isinstance(values, dict) else key in config


# -- comments ------------------------------------------------------------------------------------


def headers() -> dict[tuple[str, str], list[str]]:
    """Return (group, option) → the commands that open its YAML, of whatever is trained with."""
    found = {}
    for group in (*TRAIN_GROUPS, "experiment", "prompt"):
        for option in options(group):
            lines = (conf_dir() / group / f"{option}.yaml").read_text().splitlines()
            head = [line for line in itertools.takewhile(lambda line: line.startswith("#"), lines)]
            commands = [line[2:] for line in head if re.match(r"# graphcontext \w+ ", line)]
            if primary(group, option) == "train" or any(c.startswith("graphcontext train ") for c in commands):
                found[group, option] = commands
    return found


@pytest.mark.parametrize(("group", "option"), headers())
def test_what_trains_opens_with_its_command_which_composes(group: str, option: str) -> None:
    commands = headers()[group, option]
    key = "prompt@generator.prompt" if group == "prompt" else group
    assert shlex.split(commands[0])[:3] == ["graphcontext", "train", f"{key}={option}"]
    for command in commands:
        _, verb, *words = shlex.split(command)
        if verb == "train":
            compose(words, primary="train")
        else:
            assert verb == "table", command
            request(words[0], words[1:])


@pytest.mark.parametrize("name", options("table"))
def test_a_tables_names_are_there(name: str) -> None:
    spec = load_spec(name)
    assert set(spec.datasets) <= set(options("dataset"))
    for row in spec.rows:
        assert (row.experiment is None) == (row.not_run is not None), row.name
        assert row.experiment in (None, *options("experiment")), row.name
        assert row.group in ("", *spec.groups), row.name
        assert set(row.reported) <= set(spec.datasets), row.name
        for values in row.reported.values():
            assert set(values) <= set(spec.metrics), row.name
    assert set(spec.missing_metrics) <= set(spec.metrics)
    assert set(spec.metrics) - set(spec.other_metrics) <= set(options("metric"))


@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_replaces_options_by_options(scale: str) -> None:
    for group, table in (compose([f"scale={scale}"]).config["scale"]["replace"] or {}).items():
        assert set(table) | set(table.values()) <= set(options(group)), group


# -- set-up files --------------------------------------------------------------------------------


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(k): v for k, v in found.items()}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> list[str]:
    extras = project()["optional-dependencies"].values()
    return [*project()["dependencies"], *(r for extra in extras for r in extra)]


@pytest.mark.parametrize("requirement", requirements())
def test_each_dependency_is_pinned_to_a_version_it_allows(requirement: str) -> None:
    from packaging.requirements import Requirement

    parsed = Requirement(requirement)
    pinned = pins().get(canonical(parsed.name))
    assert pinned is not None, f"{parsed.name} is not in constraints.txt"
    assert parsed.specifier.contains(pinned)


def test_dev_has_every_extra() -> None:
    extras = project()["optional-dependencies"]
    assert {"train", "wandb", "quantization"} <= set(extras)
    for name, wanted in extras.items():
        assert set(wanted) <= set(extras["dev"]), name


def test_an_extra_that_a_message_or_document_names_is_there() -> None:
    texts = [p.read_text() for root in (SOURCE, conf_dir(), ROOT / "docs") for p in root.rglob("*.[pmy]*[ydl]")]
    named = set(re.findall(r"graphcontext\[(\w+)\]", "\n".join([*texts, (ROOT / "README.md").read_text()])))
    assert "train" in named and named <= set(project()["optional-dependencies"])


def test_torch_is_pinned_alike_everywhere() -> None:
    pinned = pins()["torch"]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^TORCH \?= (.*)$", makefile, re.MULTILINE)[1] == f"torch=={pinned}"  # type: ignore[index]
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (by_pip,) = [d["pip"] for d in environment["dependencies"] if isinstance(d, dict)]
    assert f"torch=={pinned}" in by_pip and "-c constraints.txt" in by_pip
    extras = set(project()["optional-dependencies"])
    (installed,) = [d for d in by_pip if d.startswith("-e .")]
    assert set(re.search(r"\[(.*)\]", installed)[1].split(",")) <= extras  # type: ignore[index]
    python = next(d for d in environment["dependencies"] if isinstance(d, str) and d.startswith("python="))
    assert python.removeprefix("python=") == project()["requires-python"].removeprefix(">=")


def test_version_is_stated_once_alike() -> None:
    import graphcontext

    assert graphcontext.__version__ == project()["version"]
    assert f"version: {graphcontext.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_a_wheel_holds_configs_and_sample_data_and_finds_them(tmp_path: Path) -> None:
    try:
        importlib.metadata.version("hatchling")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("hatchling is not installed: pip install hatchling")
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheel = tmp_path / done.stdout.split()[-1]
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    shipped = {p.relative_to(conf_dir()) for p in conf_dir().rglob("*.yaml")}
    assert {
        p.relative_to(site / "graphcontext" / "conf") for p in (site / "graphcontext" / "conf").rglob("*.yaml")
    } == shipped
    code = """
import graphcontext, pathlib
from graphcontext.conf_tree import conf_dir
from graphcontext.config import compose
from graphcontext.component import instantiate
assert conf_dir() == pathlib.Path(graphcontext.__file__).parent / "conf", conf_dir()
config = compose(["retriever=tfidf"]).config
print(len(instantiate(config["dataset"]).load().questions))
"""
    more = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 24


class _Ignores:
    def __init__(self, top_k: int, ghost: int) -> None:
        self.top_k = top_k

    def retrieve(self) -> int:
        return self.top_k


class _Keeps:
    def __init__(self, top_k: int, damping: int) -> None:  # as another class does, which reads it
        self.top_k, self.damping = top_k, damping

    def retrieve(self) -> int:
        return self.top_k


class _OnlyChecks:
    def __init__(self, top_k: int, damping: int) -> None:
        if damping < 1:
            raise InputError(f"damping={damping}")
        self.top_k, self.kept = top_k, float(damping)
        if self.kept > 99:
            raise InputError(f"damping={self.kept}")

    def retrieve(self) -> int:
        return self.top_k


class _Reads(_Keeps):
    def __init__(self, top_k: int, damping: int) -> None:
        super().__init__(top_k, damping)
        found = {"damping": damping}
        self.values = dict(found)

    def retrieve(self) -> int:
        return self.values["damping"] + self.top_k


@pytest.mark.parametrize(("cls", "key"), [("_Ignores", "ghost"), ("_Keeps", "damping"), ("_OnlyChecks", "damping")])
def test_t09_an_unread_key_is_found(cls: str, key: str) -> None:
    with pytest.raises(AssertionError, match=f"nothing (depends on|reads) {key}"):
        _check_leaves("retriever", {"_target_": f"{__name__}.{cls}", "top_k": 2, key: 3})


def test_t09_a_key_that_is_read_under_another_name_is_read() -> None:
    _check_leaves("retriever", {"_target_": f"{__name__}._Reads", "top_k": 2, "damping": 3})
