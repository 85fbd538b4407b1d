"""What the README and docs/training.md tell a newcomer to type is what the program understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from graphcontext import cli
from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.table.expand import request
from graphcontext.table.spec import load_spec
from graphcontext.train.together import check_together

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRAINING = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line.removeprefix("$ "), comments=True)[1:]
    for line in (README + TRAINING).splitlines()
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
    elif (verb == "train" and rest[0] != "merge") or (verb == "plan" and rest == overrides):
        config = compose(overrides, primary="train").config
        settings, adapter = (instantiate(config[name], name) for name in ("trainer", "adapter"))
        check_together(config, settings, adapter)
    elif verb == "train":
        adapter = compose([*overrides, f"llm.adapter={rest[1]}"]).config["roles"]["answer"]["adapter"]
        assert adapter["experiment"] == rest[1]


def test_each_line_for_a_launcher_is_a_training():
    """``torchrun … -m graphcontext.cli train …`` names as many processes as its trainer does."""
    lines = [shlex.split(line) for line in (README + TRAINING).splitlines() if line.startswith("$ torchrun ")]
    assert lines
    for words in lines:
        _, n = words[words.index("--nproc-per-node") : words.index("--nproc-per-node") + 2]
        _, verb, *overrides = words[words.index("-m") + 1 :]
        settings = instantiate(compose(overrides, primary="train").config["trainer"], "trainer")
        assert verb == "train" and settings.world == int(n)


def test_each_job_for_slurm_is_a_training_or_a_table():
    """``sbatch slurm/NAME.sbatch words`` names a script that is there, which gives the words to a verb."""
    text = (ROOT / "slurm" / "README.md").read_text(encoding="utf-8")
    jobs = re.findall(r"^    sbatch (slurm/\w+\.sbatch) (.*)$", text, flags=re.MULTILINE)
    assert len(jobs) == 2
    for name, words in jobs:
        script = (ROOT / name).read_text(encoding="utf-8")
        (verb,) = re.findall(r"^(?:code=0\n)?srun .*graphcontext (\w+) .*\"\$@\"", script, flags=re.MULTILINE)
        if verb == "table":
            request(words.split()[0], words.split()[1:])
        else:
            compose([*words.split(), "trainer=ddp", "trainer.devices=8", "trainer.nodes=1"], primary="train")


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
