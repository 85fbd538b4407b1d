"""What the README tells a newcomer to type is what the program understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from graphcontext import cli
from graphcontext.config import compose
from graphcontext.table.expand import request
from graphcontext.table.spec import load_spec

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line.removeprefix("$ "), comments=True)[1:]
    for line in README.splitlines()
    if line.startswith("$ graphcontext ")
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_parses(words, tmp_path, monkeypatch):
    """Verb, flags, groups, options and keys exist; nothing is run."""
    parsed = cli.parser().parse_intermixed_args(words)
    verb, *rest = parsed.words
    assert verb in cli.VERBS
    overrides = [w for w in rest if re.match(r"^[\w@./]+=\S*$", w)]
    if verb == "table":
        assert request(rest[0], overrides).spec == load_spec(rest[0])
    elif verb == "run" and not parsed.config_dir:
        assert compose(overrides).config["retriever"]["_target_"]


def test_the_example_component_works_as_printed(tmp_path, monkeypatch):
    """The three files of "Add a component", copied out of the README, compose, run and pass their test."""
    import sys

    blocks = dict(re.findall(r"`mylab/([\w./]+)`[^\n]*\n\n```\w+\n(.*?)```", README, flags=re.DOTALL))
    assert sorted(blocks) == ["conf/retriever/longest.yaml", "longest.py", "test_longest.py"]
    for name, text in blocks.items():
        path = tmp_path / "mylab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    words = ["experiment=gcg/answerbot", "dataset.limit=2", "metric=[rouge1]", "retriever=longest", "retriever.top_k=1"]
    assert cli.main(["run", "--quiet", "--config-dir", str(tmp_path / "mylab" / "conf"), *words]) == 0
    scope: dict[str, object] = {}
    exec(compile(blocks["test_longest.py"], "test_longest.py", "exec"), scope)
    scope["test_the_longest_passage_comes_first"]()
    sys.modules.pop("longest")
