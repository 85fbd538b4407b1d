"""Every config composed and bound; all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext import cli, validate
from graphcontext.conf_tree import options
from graphcontext.validate import check, validate_all

PYTHON = """
class Good:
    needs_graph = False

    def __init__(self, top_k: int) -> None:
        self.top_k = top_k

    def retrieve(self, questions, corpora, graphs): ...


class Broken(Good):
    def __init__(self, top_k: int) -> None:
        raise KeyError("no such index")
"""

FILES = {
    "retriever/good.yaml": "# graphcontext run retriever=good\n_target_: parts.Good\ntop_k: 2\n",
    "retriever/mistyped.yaml": "# graphcontext run retriever=mistyped\n_target_: parts.Good\ntop_q: 2\n",
    "retriever/text.yaml": "# graphcontext run retriever=text\n_target_: parts.Good\ntop_k: many\n",
    "retriever/no_class.yaml": "# graphcontext run retriever=no_class\n_target_: parts.Goood\ntop_k: 2\n",
    "retriever/raises.yaml": "# graphcontext run retriever=raises\n_target_: parts.Broken\ntop_k: 2\n",
    "retriever/unread.yaml": "# graphcontext run retriever=unread\n_target_: [parts.Good\n",
    "retriever/bare.yaml": "_target_: parts.Good\ntop_k: 2\n",
    "retriever/extra.yaml": "# graphcontext run retriever=extra\n_target_: needs_extra.Mine\n",
    "table/mine/cut.yaml": "# graphcontext table mine/cut\ntitle: [Cut\n",
    "table/mine/rows.yaml": (
        "# graphcontext table mine/rows\ntitle: R\npaper: none\ndatasets: {askubuntu: A}\nmetrics: {rouge1: R}\n"
        "rows:\n  - {name: a, label: A, experiment: mine/extra}\n  - {name: b, label: B, experiment: mine/mistyped}\n"
    ),
    "experiment/mine/extra.yaml": (
        "# @package _global_\n# graphcontext run experiment=mine/extra\ndefaults:\n  - override /retriever: extra\n"
    ),
    "experiment/mine/mistyped.yaml": (
        "# @package _global_\n# graphcontext run experiment=mine/mistyped\n"
        "defaults:\n  - override /retriever: mistyped\n"
    ),
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conf tree of a user's own; only its options are looked at, for speed."""
    conf = tmp_path / "mine" / "conf"

    def own(group: str, config_dir: str | None = None) -> list[str]:
        return [o for o in options(group, config_dir) if (conf / group / f"{o}.yaml").is_file()]

    conf.mkdir(parents=True)
    monkeypatch.setattr(validate, "options", own)
    monkeypatch.setattr(validate, "SCALES", ("sample",))
    monkeypatch.syspath_prepend(str(conf.parent))
    (conf.parent / "parts.py").write_text(PYTHON)
    (conf.parent / "needs_extra.py").write_text("import nosuchpkg\n")
    return conf


def write(tree: Path, *names: str) -> None:
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(FILES[name])


def test_all_faults_are_told_at_once(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, *FILES)
    (tree / "llm").mkdir()  # an empty folder is no fault
    checked, faults = validate_all(str(tree))
    assert checked == 8 + 2 + 3  # retrievers, experiments, one table that cannot be read and one of two rows
    expected = {
        "retriever/mistyped": "Good has no such key; did you mean top_k?",
        "retriever/text": "retriever.top_k='many' is text; allowed: a whole number",
        "retriever/no_class": "did you mean Good?",
        "retriever/raises": "KeyError: 'no such index'",
        "retriever/unread": "unread.yaml",
        "experiment/mine/mistyped": "did you mean top_k?",
        "table mine/cut": "cut.yaml",
        "table mine/rows scale=sample: row b": "did you mean top_k?",
        "retriever/bare.yaml": "do not name the command",
    }
    assert len(faults) == len(expected)
    for start, message in expected.items():
        (fault,) = [f for f in faults if f.startswith((f"{start} ", f"{start}:"))]
        assert message in fault and "\n" not in fault

    monkeypatch.setattr(validate, "validate_all", lambda config_dir: (checked, faults))
    assert cli.main(["validate", "--config-dir", str(tree)]) == 2
    out = capsys.readouterr().out.splitlines()
    assert len(out) == len(faults) + 1 and out[-1] == f"validated: {checked} configs, {len(faults)} faults"


TRAINING = {
    "adapter/mine.yaml": "# graphcontext train adapter=mine\n_target_: graphcontext.train.adapter.LoRA\nrank: 0\n"
    "alpha: 1\ndropout: 0.0\ntargets: null\n",
    "trainer/mine.yaml": "# graphcontext train trainer=mine\naccelerator: tpu\ndevices: 1\nnodes: 1\nstrategy: auto\n"
    "precision: auto\nmicro_batch_size: 1\n",
    "debug/mine.yaml": "# @package _global_\n# graphcontext train debug=mine\ntrainer:\n  max_step: 1\n",
    "experiment/mine/bits.yaml": "# @package _global_\n# graphcontext train experiment=mine/bits\ndefaults:\n"
    "  - override /adapter: qlora\n  - override /trainer: fsdp\n",
    "experiment/mine/unasked.yaml": "# @package _global_\n# graphcontext train experiment=mine/unasked\ndefaults:\n"
    "  - override /generator: answerbot\ntrainer:\n  epochs: 1.0\n",
    "experiment/mine/good.yaml": "# @package _global_\n# graphcontext train experiment=mine/good\ndefaults:\n"
    "  - override /retriever: none\n  - override /enhancer: none\n  - override /adapter: good\n",
    "adapter/good.yaml": "# graphcontext train adapter=good\n_target_: graphcontext.train.adapter.LoRA\nrank: 4\n"
    "alpha: 8\ndropout: 0.0\ntargets: null\n",
}


def test_what_trains_is_composed_as_a_training_and_its_faults_are_told(tree: Path) -> None:
    for name, text in TRAINING.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    checked, faults = validate_all(str(tree))
    expected = {
        "adapter/mine": "adapter.rank=0; allowed: 1 and more",
        "trainer/mine": "trainer.accelerator=tpu",
        "debug/mine": "trainer.max_step: TrainerSettings has no such key; did you mean max_steps?",
        "experiment/mine/bits": "adapter=qlora with trainer=fsdp",
        "experiment/mine/unasked": "training pairs need the prompt of generator=llm",
    }
    assert checked == len(TRAINING) and len(faults) == len(expected)
    for start, message in expected.items():
        (fault,) = [f for f in faults if f.startswith(f"{start} ")]
        assert message in fault and "\n" not in fault


def test_what_two_choices_of_a_user_refuse_is_no_fault_of_either() -> None:
    assert check(["adapter=qlora"], primary="train") is None and check(["trainer=fsdp"], primary="train") is None
    assert "adapter=lora trainer=fsdp" in str(check(["adapter=qlora", "trainer=fsdp"], primary="train"))


def test_a_missing_extra_is_no_fault(tree: Path) -> None:
    write(tree, "retriever/good.yaml", "retriever/extra.yaml", "experiment/mine/extra.yaml")
    (tree / "table" / "mine").mkdir(parents=True)
    rows = FILES["table/mine/rows.yaml"].split("  - {name: b")[0] + "\n"
    (tree / "table" / "mine" / "rows.yaml").write_text(rows)
    assert validate_all(str(tree)) == (4, [])


def test_a_name_that_hides_a_shipped_one_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "retriever").mkdir()
    (tree / "retriever" / "ppr.yaml").write_text(FILES["retriever/good.yaml"])
    assert cli.main(["validate", "--config-dir", str(tree)]) == 2
    assert "has the name of a shipped config" in capsys.readouterr().err


def test_one_config_is_checked_by_its_words() -> None:
    assert check(["retriever=bm25"]) is None
    assert "allowed" in str(check(["retriever=bm25", "retriever.k1=-1"]))
