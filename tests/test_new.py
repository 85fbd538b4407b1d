"""Files to start from: they run, pass their test and bind; what cannot be written is one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphcontext import cli, new
from graphcontext.conf_tree import TRAIN_GROUPS, groups
from graphcontext.config import compose
from graphcontext.errors import InputError
from graphcontext.table.claims import load_claims
from graphcontext.table.spec import load_spec
from graphcontext.validate import bind, bind_training, check

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLASSES = sorted(path.stem for path in new.TEMPLATES.glob("*.py") if not path.stem.startswith("test_"))
DATA = ("experiment", "table", "claims")
ECHO = str(Path(__file__).parent / "end_to_end" / "conf")
RUNS = {  # what a run of each needs beside the option; all without weights
    "agent": ["experiment=gcg/text_gen", "retriever=traversal", "retriever.use_graph=false"],
    "dataset": ["experiment=gcg/answerbot"],
    "encoder": ["experiment=gcg/graph_gen", "retriever.top_k=2"],
    "enhancer": ["retriever=bm25"],
    "entity_extractor": ["retriever=bm25", "metric=[entity_jaccard]"],
    "extractor": ["retriever=bm25", "enhancer=triples"],
    "fact_extractor": ["retriever=bm25", "metric=[factsumm]"],
    "generator": ["retriever=bm25"],
    "graph": ["experiment=gcg/graph_gen", "encoder=my_encoder"],
    "metric": ["retriever=bm25"],
    "retriever": ["experiment=gcg/text_gen"],
    "tokenizer": ["retriever=bm25"],
}


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory):
    """A user's modules are forgotten after each test, and those of earlier tests' users are not importable."""
    others = tmp_path_factory.getbasetemp()
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not Path(p).is_relative_to(others)])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("my_", "near_titles")):
            del sys.modules[name]


def test_the_retriever_is_the_readmes_word_for_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "retriever", "longest"]) == 0
    blocks = dict(re.findall(r"`(mylab/[\w./]+)`[^\n]*\n\n```\w+\n(.*?)```", README, flags=re.DOTALL))
    assert len(blocks) == 3
    for name, text in blocks.items():
        assert Path(name).read_text(encoding="utf-8") == text
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == ["mylab/longest.py", "mylab/conf/retriever/longest.yaml", "mylab/test_longest.py"]
    assert out[3:] == [
        "next:",
        "  (cd mylab && python -m pytest -q test_longest.py)",
        "  graphcontext validate --config-dir mylab/conf",
        "  graphcontext run --config-dir mylab/conf retriever=longest",
        "new: mylab/longest.py",
    ]


def test_every_class_passes_its_own_test() -> None:
    for group in CLASSES:
        new.create(group, f"my_{group}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mylab"],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(CLASSES)} passed" in done.stdout
    text = "".join(path.read_text() for path in Path("mylab").rglob("*.[py]*") if path.suffix != ".pyc")
    assert not re.search(r"\b[Ee]xample\b|CONFDIR|NAME", text)


@pytest.mark.parametrize("group", CLASSES)
def test_every_class_runs_as_it_is(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    new.create(group, f"my_{group}")
    if group == "graph":
        new.create("encoder", "my_encoder")
    llm = Path("mylab/conf/llm/echo.yaml")
    llm.parent.mkdir()
    llm.write_text((Path(ECHO) / "llm" / "echo.yaml").read_text())
    Path("mylab/echo_llm.py").write_text((Path(ECHO).parent / "echo_llm.py").read_text())
    given = dict(part.split("=", 1) for part in RUNS[group])
    chosen = f"metric=[my_{group}]" if group == "metric" else f"{group}=my_{group}"
    words = {"experiment": "gcg/text_gen", "tokenizer": "words", "metric": "[rouge1]", **given}
    words |= dict([chosen.split("=", 1)])
    if group == "dataset":
        words.pop("tokenizer")
    overrides = [f"{k}={v}" for k, v in words.items()] + ["dataset.limit=2", "llm=echo"]
    if group == "retriever":
        overrides.append("retriever.top_k=1")
    code = cli.main(["run", "--quiet", "--config-dir", "mylab/conf", *overrides])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert "n=2  failed=0" in out and out.splitlines()[-1].startswith("run: runs/")


def test_every_group_has_something_to_start_from_that_binds() -> None:
    for group in groups():
        name = f"mylab/my_{group}" if group in new.NESTED else f"my_{group}"
        new.create(group, name)
    for group in groups():
        name = f"mylab/my_{group}" if group in new.NESTED else f"my_{group}"
        if group in ("table", "claims"):
            continue
        key = {"prompt": "prompt@generator.prompt"}.get(group, group)
        chosen = f"metric=[{name}]" if group == "metric" else f"{key}={name}"
        words = [chosen, "dataset=my_dataset"] if group != "dataset" else [chosen]
        if group in TRAIN_GROUPS:
            bind_training(compose([chosen], config_dir="mylab/conf", primary="train"))
        else:
            bind(compose(words, config_dir="mylab/conf"))
    assert load_spec("mylab/my_table", "mylab/conf").baseline == "tfidf"
    assert load_claims("my_claims", "mylab/conf").claims[0].id == "graph_over_text"
    assert compose(["scale=my_scale"], config_dir="mylab/conf").config["scale"]["name"] == "my_scale"
    for path in Path("mylab/conf").rglob("*.yaml"):
        head = path.read_text().splitlines()[:2]
        assert any(line.startswith("# graphcontext ") and "--config-dir mylab/conf" in line for line in head), path


def test_an_adapter_of_ones_own_is_trained_with_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "adapter", "small_rank"]) == 0
    assert "  graphcontext train --config-dir mylab/conf adapter=small_rank" in capsys.readouterr().out.splitlines()
    yaml = Path("mylab/conf/adapter/small_rank.yaml")
    assert yaml.read_text().startswith("# graphcontext train --config-dir mylab/conf adapter=small_rank\n")
    yaml.write_text(yaml.read_text().replace("rank: 16", "rank: 2"))
    experiment = Path("mylab/conf/experiment/mylab/tuned.yaml")
    experiment.parent.mkdir(parents=True)
    experiment.write_text(
        "# @package _global_\n# graphcontext train --config-dir mylab/conf experiment=mylab/tuned\ndefaults:\n"
        "  - override /retriever: none\n  - override /enhancer: none\n  - override /adapter: small_rank\n"
    )
    config = compose(["experiment=mylab/tuned"], config_dir="mylab/conf", primary="train").config
    assert config["adapter"]["rank"] == 2
    bind_training(compose(["experiment=mylab/tuned"], config_dir="mylab/conf", primary="train"))
    answering = compose(["llm.adapter=mylab/tuned"], config_dir="mylab/conf").config["roles"]["answer"]["adapter"]
    assert answering["experiment"] == "mylab/tuned" and answering["config_dir"].endswith("mylab/conf")
    assert cli.main(["list", "adapter", "--config-dir", "mylab/conf"]) == 0
    assert capsys.readouterr().out.split() == ["full", "lora", "none", "qlora", "small_rank"]


def test_a_tree_of_ones_own_name(tmp_path: Path) -> None:
    conf = tmp_path / "a lab" / "configs"
    written = new.create("graph", "near_titles", str(conf))
    assert written == [
        conf.parent / "near_titles.py",
        conf / "graph" / "near_titles.yaml",
        conf.parent / "test_near_titles.py",
    ]
    assert "class NearTitles:" in written[0].read_text()
    assert check(["graph=near_titles"], str(conf)) is None


def test_a_folder_named_as_the_templates_words_keeps_its_name() -> None:
    conf = "example/NAME/Example/conf"
    new.create("retriever", "my_longest", conf)
    yaml = (Path(conf) / "retriever" / "my_longest.yaml").read_text()
    assert f"--config-dir {conf} retriever=my_longest" in yaml and "my_longest.MyLongest" in yaml
    assert new.next_steps("retriever", "my_longest", conf)[-1] == (
        f"graphcontext run --config-dir {conf} retriever=my_longest"
    )


WRONG = {
    "no words": ([], "new needs GROUP and NAME, got none"),
    "no name": (["retriever"], "new needs GROUP and NAME"),
    "three words": (["retriever", "a", "b"], "new needs GROUP and NAME"),
    "an override": (["retriever", "mine", "a=b"], "new takes no overrides"),
    "group": (["retreiver", "mine"], "new retreiver: no such config group; did you mean retriever?"),
    "a shipped name": (["retriever", "ppr"], "a shipped option has that name"),
    "a shipped table": (["table", "gcg/t3"], "a shipped option has that name"),
    "not a name": (["retriever", "my-ppr"], "a name is letters, digits and _"),
    "a digit first": (["llm", "7b"], "a name is letters, digits and _"),
    "a path": (["retriever", "../mine"], "a name is letters, digits and _"),
    "another alphabet": (["retriever", "länge"], "a name is letters, digits and _"),
    "a keyword": (["metric", "class"], "no Python keyword"),
    "a module of Python": (["generator", "random"], "a Python module has that name, which yours would hide"),
    "a module that is installed": (["metric", "numpy"], "a Python module has that name"),
    "a name of a test": (["metric", "test_mine"], "a Python module has that name"),
    "a table without its paper": (["table", "mine"], "its name is PAPER/ID, such as mylab/mine"),
    "a table with a path": (["table", "../x/mine"], "its name is PAPER/ID"),
    "a table with a deep path": (["experiment", "a/b/c"], "its name is PAPER/ID"),
    "shipped configs": (["retriever", "mine", "--config-dir", str(ROOT / "conf")], "these are the shipped configs"),
    "below shipped": (["retriever", "mine", "--config-dir", str(ROOT / "conf/llm")], "these are the shipped configs"),
    "a file": (["retriever", "mine", "--config-dir", "file"], "--config-dir file: this is a file"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_written_is_one_line(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    words, message = WRONG[what]
    assert cli.main(["new", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert [p.name for p in Path().iterdir()] == ["file"]


def test_nothing_is_written_over_and_nothing_half(tmp_path: Path) -> None:
    test = tmp_path / "mylab" / "test_untouched.py"
    test.parent.mkdir()
    test.write_text("mine")
    with pytest.raises(InputError, match=r"mylab/test_untouched\.py: there already; nothing was written"):
        new.create("retriever", "untouched")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [test] and test.read_text() == "mine"
    test.unlink()
    new.create("retriever", "untouched")
    with pytest.raises(InputError, match=r"untouched\.py, .*there already"):
        new.create("metric", "untouched")  # one module of that name
    assert not (tmp_path / "mylab/conf/metric").exists()
