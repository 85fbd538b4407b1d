"""The command line: exit codes, one-line errors, flags anywhere."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import graphcontext
from graphcontext.cli import VERBS, main, parser
from graphcontext.conf_tree import groups
from graphcontext.config import compose
from graphcontext.verbs import HELP

ROOT = Path(__file__).parents[1]
ECHO = ("--config-dir", str(Path(__file__).parent / "end_to_end" / "conf"))
FAST = ("dataset.limit=3", "retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1]", "llm=echo")


def process(
    code: str, *words: str, stdout: object = subprocess.PIPE, unbuffered: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, *(["-c", code] if code else ["-m", "graphcontext.cli"]), *words]
    return subprocess.run(command, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


# -- what is not imported ------------------------------------------------------------------------


def test_t01_the_package_imports_without_torch_and_faiss() -> None:
    code = """
import sys
sys.modules.update(torch=None, faiss=None, transformers=None, spacy=None, lxml=None, numba=None)
import importlib, pkgutil, graphcontext
extra = ["checkpoint", "contrast", "data_module", "fit", "result", "steps", "tuning"]  # of training, asked for by name
for module in pkgutil.walk_packages(graphcontext.__path__, "graphcontext."):
    if module.name not in ["graphcontext.train." + name for name in extra]:
        importlib.import_module(module.name)
import graphcontext.retrieve
"""
    done = process(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "allowed"),
    [("import graphcontext", ()), ("from graphcontext.cli import main; main([])", ("argparse",))],
)
def test_import_and_help_load_nothing_heavy(code: str, allowed: tuple[str, ...]) -> None:
    heavy = ["torch", "transformers", "hydra", "omegaconf", "numpy", "scipy", "sklearn", "spacy", "lxml", "numba"]
    done = process(f"{code}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [["retriever.dampng=0.5"], ["retreiver=ppr"], ["metric=[rouge_l]"]])
def test_t07_a_mistyped_word_is_answered_before_anything_heavy_is_loaded(words: list[str]) -> None:
    code = f"""
import sys
from graphcontext.cli import main
code = main(["run", *{words}])
print([m for m in ("torch", "transformers", "scipy", "sklearn", "spacy", "lxml") if m in sys.modules])
sys.exit(code)
"""
    done = process(code)
    assert done.returncode == 2
    assert done.stdout.splitlines() == ["[]"]
    assert 1 <= done.stderr.count("\n") <= 5 and "did you mean" in done.stderr and "Traceback" not in done.stderr
    assert not Path("store").exists() and not Path("runs").exists()


# -- exit codes and one-line errors --------------------------------------------------------------

WRONG = {
    "unknown verb": (["rnu"], "'rnu': no such verb; did you mean run?"),
    "unknown flag": (["run", "--nowhere"], "no such flag"),
    "abbreviated flag": (["run", "--quie"], "no such flag"),
    "flag without its value": (["run", "--config-dir"], "--config-dir"),
    "run with a name": (["run", "gcg/t3"], "run: 'gcg/t3' is not KEY=VALUE"),
    "table without a name": (["table"], "table needs one PAPER/ID, got none"),
    "table with two names": (["table", "gcg/t3", "gcg/t1"], "table needs one PAPER/ID"),
    "unknown table": (["table", "gcg/t33"], "no such table; did you mean gcg/t3?"),
    "unknown row": (["table", "gcg/t3", "table.rows=graphgen"], "no such row; did you mean graph_gen?"),
    "unknown baseline": (["table", "gcg/t3", "table.baseline=textgen"], "no such row; did you mean text_gen?"),
    "unknown table key": (["table", "gcg/t3", "table.row=x"], "did you mean table.rows?"),
    "axis of the rows": (["table", "gcg/t3", "retriever=bm25"], "the rows of gcg/t3 differ in retriever"),
    "experiment of a table": (["table", "gcg/t3", "experiment=gcg/text_gen"], "differ in experiment"),
    "table option": (["table", "gcg/t3", "encoder=minlm"], "encoder=minlm: no such encoder; did you mean minilm?"),
    "table key": (["table", "gcg/t3", "dataset.limt=3"], "dataset.limt: no such key; did you mean limit?"),
    "ask without a question": (["ask"], 'ask needs one "question"'),
    "ask a blank": (["ask", "  "], "the question is blank"),
    "show without a run": (["show"], "show needs a RUN"),
    "show an unknown run": (["show", "abc"], "abc: no such run in runs (none yet: graphcontext run)"),
    "show with an override": (["show", "a", "b=c"], "show takes no overrides"),
    "compare one run": (["compare", "abc"], "compare needs two RUNs, got 1"),
    "compare unknown runs": (["compare", "abc", "def"], "abc: no such run"),
    "list an unknown group": (["list", "nosuch"], "no config group 'nosuch'"),
    "list two groups": (["list", "llm", "graph"], "list needs one GROUP"),
    "plan two tables": (["plan", "gcg/t3", "gcg/t1"], "one PAPER/ID"),
    "plan an unknown table": (["plan", "gcg/t9"], "no such table"),
    "doctor an unknown table": (["doctor", "gcg/t9"], "no such table"),
    "prepare an unknown table": (["prepare", "gcg/t9"], "no such table"),
    "validate with words": (["validate", "gcg/t3"], "validate: 'gcg/t3' is not KEY=VALUE"),
    "a tree that is not there": (["run", "--config-dir", "nowhere"], "--config-dir nowhere: no such folder"),
    "a data set that is not there": (["run", *ECHO, *FAST, "dataset=unix", "dataset.path=/no where/x"], "/no where/x"),
    "a value of the wrong type": (["run", "retriever.top_k=many"], "retriever.top_k='many' is text"),
    "a value out of range": (["run", "retriever.damping=2"], "retriever: damping=2: allowed is 0 <= damping < 1"),
    "a limit of the wrong type": (["run", "dataset.limit=x"], "dataset.limit='x' is text"),
    "a key of the generator": (["run", "llm.max_new_tokens=5"], "no such key; did you mean generator.max_new_tokens?"),
    "a path that is not there": (
        ["run", *ECHO, *FAST, "dataset=folder", "dataset.path=/no where/x"],
        "x: no such file or folder",
    ),
    "a budget of the wrong type": (["table", "gcg/t3", "budget.hours=x"], "budget.hours='x' is text; allowed: a "),
    "a seed of the wrong type": (["run", "seed=x"], "seed='x' is text; allowed: a whole number"),
    "a seed beyond torch's": (["run", f"seed={2**64}"], f"seed={2**64}; allowed: whole numbers from -2^63 to below"),
    "such a seed of a training": (["train", f"seed={-(10**30)}"], f"seed={-(10**30)}; allowed: whole numbers from"),
    "train several values": (["train", "-m", "adapter.rank=1,2"], "train takes no -m, only run does: give one command"),
    "table several values": (["table", "gcg/t3", "-m"], "table takes no -m, only run does"),
    "train a mistyped word": (["train", "marge", "gcg/sft"], "train: 'marge' is not KEY=VALUE; did you mean merge?"),
    "a run into a file": (["show", "--html"], "--html"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_exits_2_with_one_line(what: str, capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "no models"))
    words, message = WRONG[what]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err


def test_missing_weights_are_said_with_the_command_that_fetches_them(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "no models"))
    assert main(["run", "dataset.limit=2"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: no weights: ") and "graphcontext prepare" in err and err.count("\n") == 1


def test_debug_gives_the_traceback(capsys) -> None:
    with pytest.raises(graphcontext.errors.InputError):
        main(["run", "retreiver=ppr", "debug=true"])
    assert main(["run", "retreiver=ppr", "debug=false"]) == 2


def test_t08_a_class_that_needs_a_missing_package_names_it(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    tree = tmp_path / "project" / "conf" / "retriever"
    tree.mkdir(parents=True)
    (tree / "mine.yaml").write_text("# graphcontext run retriever=mine\n_target_: needs_more.Mine\n")
    (tree.parents[1] / "needs_more.py").write_text("import nosuchpkg\n\n\nclass Mine:\n    def retrieve(self): ...\n")
    assert main(["run", "--config-dir", str(tree.parent), "retriever=mine"]) == 2
    err = capsys.readouterr().err
    assert "needs the package nosuchpkg, which is not installed" in err and "retriever" in err and err.count("\n") == 1


def test_t07_a_mistyped_key_of_a_table_is_answered_after_composing_one_row(capsys, monkeypatch) -> None:
    from graphcontext import config

    count = []
    hydra = config._hydra
    monkeypatch.setattr(config, "_hydra", lambda *given: count.append(1) or hydra(*given))
    assert main(["table", "gcg/t3", "retriever.dampng=0.5", "table.rows=graph_gen"]) == 2
    assert "retriever.dampng: no such key" in capsys.readouterr().err
    assert len(count) <= 2  # the two passes of one composition


# -- what works ----------------------------------------------------------------------------------


def test_help_version_and_no_words(capsys) -> None:
    assert main(["--help"]) == 0
    helped = capsys.readouterr().out
    assert all(verb in helped for verb in VERBS) and "exit codes" in helped
    assert main([]) == 0 and capsys.readouterr().out == helped
    assert main(["--version"]) == 0 and capsys.readouterr().out == f"{graphcontext.__version__}\n"


@pytest.mark.parametrize("verb", HELP)
def test_each_verb_has_a_help_of_its_own(verb: str, capsys) -> None:
    assert main([*verb.split(), "--help"]) == 0
    helped = capsys.readouterr().out
    assert helped.startswith(f"usage: graphcontext {verb} ") and len(helped.splitlines()) < 40
    assert all(len(line) <= 130 for line in helped.splitlines())
    given = parser().parse_intermixed_args(shlex.split(HELP[verb].example))
    assert " ".join(given.words).startswith(verb)
    primary = "train" if "trainer" in str(HELP[verb].keys) else "config"
    typed = [
        key for key in re.findall(r"([\w.]+)=", " ".join(HELP[verb].keys)) if not key.startswith(("table.", "ratings."))
    ]
    config = compose(primary=primary).config
    for key in typed:
        if key.partition(".")[0] not in groups() or "." in key:
            at = key.replace("llm.", "roles.answer.").split(".")
            assert functools.reduce(lambda node, part: node[part], at[:-1], config).keys() >= {at[-1]}, key


def test_every_verb_has_a_help() -> None:
    assert {name.partition(" ")[0] for name in HELP} == set(VERBS)


def test_list_prints_groups_and_options(capsys) -> None:
    assert main(["list"]) == 0
    assert capsys.readouterr().out.split() == groups()
    assert main(["list", "retriever"]) == 0
    assert {"none", "tfidf", "bm25", "dense", "ppr"} <= set(capsys.readouterr().out.split())
    assert main(["list", "experiment"]) == 0
    assert "gcg/graph_gen" in capsys.readouterr().out.split()


def test_run_show_compare_and_ask_go_together(capsys, tmp_path: Path) -> None:
    assert main([*ECHO, "run", *FAST]) == 0  # flags may stand anywhere
    first = capsys.readouterr().out.splitlines()
    assert first[0] == "n=3  failed=0  empty=0  truncated=0" and first[-1].startswith("run: runs/")
    assert main(["run", FAST[0], *ECHO, *FAST[1:], "--quiet", "retriever.top_k=1"]) == 0
    second = capsys.readouterr().out.splitlines()[-1]
    names = [Path(line.removeprefix("run: ")).name for line in (first[-1], second)]
    assert len(set(names)) == 2

    assert main(["show", names[0]]) == 0
    overview = capsys.readouterr().out
    item = json.loads((tmp_path / "runs" / names[0] / "questions.jsonl").read_text().splitlines()[0])["id"]
    assert item in overview and "3" in overview
    assert main(["show", *names, "--item", item]) == 0
    shown = capsys.readouterr().out
    assert shown.count("-- gold") == 2 and "-- prompt (answer)" in shown and "-- ranking" in shown
    assert main(["show", names[0][:6], "--html", "page.html"]) == 0
    assert capsys.readouterr().out == "show: page.html\n" and "<details" in Path("page.html").read_text()
    assert main(["show", names[0], "--item", "nowhere"]) == 2
    assert "0 items begin so" in capsys.readouterr().err

    assert main(["compare", *names]) == 0
    compared = capsys.readouterr().out
    assert "retriever.top_k: 2 → 1" in compared and "3 shared items" in compared and "rouge1" in compared
    assert main(["compare", names[0], names[0]]) == 0
    assert "  equal" in capsys.readouterr().out

    asked = ["ask", "Which process holds a port?", *ECHO, *FAST[1:], "dataset.path="]
    assert main(asked) == 0
    assert "Sources" in capsys.readouterr().out


def test_plan_and_doctor_say_what_a_run_needs(capsys, monkeypatch, tmp_path: Path) -> None:
    assert main(["plan", *FAST[:-1], "dataset.limit=6", "scale=sample"]) == 0
    planned = capsys.readouterr().out
    assert "total: 1 runs, 6 calls" in planned and "GiB VRAM" in planned and "hours" in planned
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "no models"))
    monkeypatch.delenv("MY_KEY", raising=False)
    remote = ["llm=openai", "llm.api_key_env=MY_KEY", "generator=llm"]
    assert main(["doctor", *FAST[:-1], *remote]) == 1
    assert "✗ environment variable MY_KEY  →  export MY_KEY=…" in capsys.readouterr().out
    main(["doctor", *FAST[:-1]])
    assert "✗ model smollm2: no weights" in capsys.readouterr().out


VERBS_THAT_COMPOSE = (
    *(["run"], ["run", "-m"], ["table", "gcg/t8", "table.rows=zero_shot"], ["plan"], ["plan", "gcg/t3"]),
    *(["doctor"], ["ask", "Which port?"], ["prepare"], ["ratings", "export", "gcg/fig3"]),
)


@pytest.mark.parametrize("words", VERBS_THAT_COMPOSE)
def test_t48_a_key_typed_as_the_name_of_its_variable_is_in_no_file_and_not_said(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*words, "llm=openai", "llm.api_key_env=sk-proj-ABCDEFGH12345678"]) == 2
    out, err = capsys.readouterr()
    assert "llm.api_key_env: no name of a variable" in err and "ABCDEFGH" not in out + err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"ABCDEFGH" in path.read_bytes() or "ABCDEFGH" in path.name for path in files)


def test_a_composed_config_is_not_kept_when_its_environment_changes(tmp_path: Path, monkeypatch) -> None:
    from graphcontext.table.expand import compose_cached

    given = ["dataset.site=${oc.env:MY_SITE}"]
    for site in ("one.example.org", "two.example.org"):
        monkeypatch.setenv("MY_SITE", site)
        assert compose_cached(given).config["dataset"]["site"] == site


def test_t40_only_the_last_part_of_a_path_names_a_table(capsys) -> None:
    from graphcontext.table.expand import request

    def suffix(*overrides: str) -> str:
        return request("gcg/t3", list(overrides)).suffix

    assert suffix("dataset=stackexchange", "dataset.path=/scratch/tmp_user/x/tmp_run") == "@stackexchange-tmp_run"
    assert suffix("dataset=stackexchange", "dataset.path='/scratch/tmp_user/x/tmp_run/'") == "@stackexchange-tmp_run"
    assert suffix("dataset=unix") == "@unix" and suffix("scale=small") == ""


def test_ask_takes_paths_with_blanks_and_questions_with_equals_signs(capsys, monkeypatch) -> None:
    from graphcontext import commands

    seen: list[tuple[list[str], list[str]]] = []

    def ask(names: list[str], overrides: list[str], flags: object) -> int:
        seen.append((names, overrides))
        return 0

    monkeypatch.setattr(commands, "ask", ask)
    main(["ask", "What does PATH=/usr/bin do?", "dataset.path=/my data/x", "retriever=bm25", "packing.max_tokens=5"])
    assert seen == [
        (["What does PATH=/usr/bin do?"], ["dataset.path=/my data/x", "retriever=bm25", "packing.max_tokens=5"])
    ]


@pytest.mark.batch_raises
def test_all_items_failed_exits_1(capsys, monkeypatch) -> None:
    from graphcontext.generate.llm import LLMGenerator

    def broken(*_: object) -> None:
        raise ZeroDivisionError("no answer")

    monkeypatch.setattr(LLMGenerator, "generate", broken)
    assert main(["run", *ECHO, *FAST]) == 1
    err = capsys.readouterr().err
    assert "all 3 items failed, the first because: ZeroDivisionError: no answer" in err and "Traceback" not in err


def test_an_interrupt_says_that_it_goes_on(capsys, monkeypatch) -> None:
    from graphcontext import commands

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", interrupted)
    assert main(["run"]) == 130
    assert "goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_fault(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("", "list", "experiment", stdout=writing, unbuffered=unbuffered)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_one_line(unbuffered: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with open("/dev/full", "w") as full:
        done = process("", "list", "experiment", stdout=full, unbuffered=unbuffered)
    assert done.returncode == 1
    assert done.stderr == "error: output: No space left on device\n"


def test_a_terminal_that_is_not_utf8_loses_no_result() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "graphcontext.cli", "--help"]
    done = subprocess.run(command, env=environment | {"LC_ALL": "C"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "\\u2713" in done.stdout  # the check mark


def test_an_argument_that_is_not_utf8_is_refused(capsys) -> None:
    assert main(["ask", "\udcff bad"]) == 2
    assert capsys.readouterr().err == "error: '\\udcff bad': this argument is not valid UTF-8\n"


def test_a_typo_in_the_last_of_several_runs_is_met_before_the_first(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", *ECHO, *FAST[:1], *FAST[2:], "retriever=bm25,nope"]) == 2
    assert "no such retriever" in capsys.readouterr().err and not (tmp_path / "runs").exists()


def test_a_table_of_which_no_chosen_row_can_run_is_exit_code_1(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["table", "gcg/t3", "table.rows=genqa"]) == 1
    out, err = capsys.readouterr()
    assert out.endswith("table: results/sample/gcg/t3.md\n")
    assert err == "error: no chosen row could be run: no weights: GenQA has no public ones\n"


def test_a_missing_adapter_names_the_line_that_trains_it(capsys) -> None:
    assert main(["run", "experiment=gcg/text_gen", "llm.adapter=gcg/sft"]) == 2
    assert "graphcontext train experiment=gcg/sft" in capsys.readouterr().err


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf"])
def test_a_budget_is_a_positive_number_of_hours(hours: str, capsys) -> None:
    assert main(["plan", f"budget.hours={hours}"]) == 2
    assert capsys.readouterr().err.startswith("error: budget.hours=")
