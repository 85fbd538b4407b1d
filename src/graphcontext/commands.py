"""What each verb of the command line does: parse its words, call the library, print the result."""

from __future__ import annotations

import argparse
import shlex
import sys
import unicodedata
from typing import Any

from graphcontext.errors import InputError, did_you_mean

Words = list[str]


def run(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``run``: one run, or with ``-m`` every combination of comma-separated values."""
    from graphcontext import api
    from graphcontext.multirun import expand

    _no_names("run", names)
    failed = 0
    jobs = expand(overrides) if flags.multirun else [overrides]
    for job in jobs if len(jobs) > 1 else []:  # a typo in the last is met before the first is run
        api.compose(*job, config_dir=flags.config_dir)
    for job in jobs:
        done = api.run(*job, config_dir=flags.config_dir, quiet=flags.quiet)
        if flags.multirun:
            print(" ".join(job))
        print(done.summary())
        failed += done.metrics["n_failed"] > 0
        print(f"run: {done.path}")
    return 1 if failed and flags.multirun else 0


def table(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``table PAPER/ID``: compute what it lacks, write and print it."""
    from graphcontext import api

    done = api.table(_one_name("table", names, "PAPER/ID"), *overrides, config_dir=flags.config_dir, quiet=flags.quiet)
    print(done.markdown)
    print(f"table: {done.path}")
    if done.nothing:
        print(f"error: no chosen row could be run: {done.nothing}", file=sys.stderr)
    return 1 if done.n_failed or done.nothing else 0


def train(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``train``: an adapter; ``train merge ADAPTER [PATH]``: a model folder with the adapter in its weights."""
    from graphcontext import api
    from graphcontext.conf_tree import options

    if names[:1] == ["merge"]:
        print(f"model: {api.merge(names[1:], *overrides, config_dir=flags.config_dir)}")
        return 0
    if names:
        known = names[0] in options("experiment", flags.config_dir)
        hint = f"; did you mean experiment={names[0]}?" if known else did_you_mean(names[0], ["merge"])
        raise InputError(f"train: {names[0]!r} is not KEY=VALUE{hint}")
    done = api.train(*overrides, config_dir=flags.config_dir, quiet=flags.quiet)
    if not done.is_first_rank:  # the first one speaks for all, and its exit code counts
        return 0
    print("\n".join(done.lines()))
    if done.stopped_by:
        return 128 + done.stopped_by
    key = "encoder.weights" if done.facts.get("what") == "encoder" else "llm.adapter"
    print(f"loss curve: {done.path / 'loss.png'}")
    if done.facts.get("kind") != "none":
        print(f"runs and tables take it by {key}={done.path}")
    print(f"model: {done.path}")
    return 0


def ask(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``ask "question" [--html FILE] [--svg FILE]``: answer one question."""
    from graphcontext import api
    from graphcontext import show as view

    if not names and overrides:
        raise InputError(f'ask needs one "question"; {overrides[0]!r} was taken for an override: a question has blanks')
    question = _one_name("ask", names, '"question"')
    for flag, path in (("--html", flags.html), ("--svg", flags.svg)):
        if path:
            view.check_file(flag, path)
    if flags.svg:  # before anything is computed
        view.check_drawn(api.compose(*overrides, config_dir=flags.config_dir).config["retriever"], flags.svg)
    answer = api.ask(question, *overrides, config_dir=flags.config_dir, quiet=flags.quiet)
    print(without_controls(answer.text()))
    if flags.html:
        print(f"page: {view.write_file('--html', flags.html, answer.html())}")
    if flags.svg:
        drawn = view.write_drawing(answer.prediction.question, answer.ranking, answer.passages, flags.svg)
        print(f"drawing: {drawn}")
    return 1 if answer.prediction.status == "failed" else 0


def without_controls(text: str) -> str:
    """Return a text of data or a model as a terminal may have it: its control characters would steer it.

    >>> without_controls("a" + chr(27) + "[31m b")
    'a�[31m b'
    """
    return "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\ufffd" for c in text)


def show(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``show RUN [RUN …] [--item ID] [--html FILE] [--svg FILE]``."""
    from graphcontext import run_folder
    from graphcontext import show as view

    _no_overrides("show", overrides)
    if not names:
        raise InputError("show needs a RUN: a folder below runs/ or the beginning of its name")
    found = [run_folder.find(name) for name in names]
    if flags.svg:
        print(f"drawing: {view.write_svg(found, flags.item, flags.svg)}")
    if flags.html:
        path = view.write_html(found, flags.item, flags.html)
        print(f"show: {path}")
    elif not flags.svg:
        print(without_controls(view.text(found, flags.item)))
    return 0


def compare(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``compare RUN RUN``."""
    from graphcontext import run_folder
    from graphcontext.compare import compare_runs

    _no_overrides("compare", overrides)
    if len(names) != 2:
        raise InputError(f"compare needs two RUNs, got {len(names)}")
    print(compare_runs(run_folder.find(names[0]), run_folder.find(names[1])))
    return 0


def claims(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``claims [PAPER]``: what a paper states, tested on what is done; nothing is run."""
    from pathlib import Path

    from graphcontext.table.claims_page import judge_all

    _no_overrides("claims", overrides)
    shown = judge_all(_one_name("claims", names, "PAPER") if names else None, flags.config_dir, Path("."))
    print(shown.markdown)
    print(f"claims: {shown.path}")
    return 0


def ratings(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``ratings export PAPER/ID`` and ``ratings import PAPER/ID FILE …``."""
    from pathlib import Path

    from graphcontext import ratings as raters

    if len(names) < 2 or names[0] not in ("export", "import"):
        raise InputError(f"ratings needs export PAPER/ID or import PAPER/ID FILE …, got {' '.join(names) or 'none'}")
    verb, name, *files = names
    if verb == "export":
        if files:
            raise InputError(f"ratings export needs one PAPER/ID, got {[name, *files]}")
        study, written = raters.export_ratings(name, overrides, flags.config_dir, Path("."), flags.quiet)
        print("for the raters:", *(f"  {path}" for path in written), sep="\n")
        print(f"not for the raters: {study.folder / 'key.jsonl'}, {study.folder / 'export.json'}")
        own = ["--config-dir", flags.config_dir] if flags.config_dir else []
        same = " ".join(["", *map(shlex.quote, [*(o for o in overrides if not o.startswith("ratings.")), *own])])
        print(f"then: graphcontext ratings import {name} FILE …{same}, and graphcontext table {name}{same}")
    else:
        study, said = raters.import_ratings(name, files, overrides, flags.config_dir, Path("."))
        print("\n".join(said))
    print(f"ratings: {study.folder}")
    return 0


def prepare(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``prepare [PAPER/ID]``: the embedded models, or everything that a table or run needs."""
    from graphcontext import prepare as fetch
    from graphcontext import wheels

    if not names and not overrides:
        count = wheels.prepare_embedded()
    else:
        count = fetch.prepare_all(_configs(names, overrides, flags))
    print(f"prepared: {count}")
    return 0


def plan(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``plan [PAPER/ID]``: what it would cost; ``plan experiment=gcg/sft``: what a training would."""
    from graphcontext import plan as costs
    from graphcontext.keys import corpus_key
    from graphcontext.train import cost

    runs = _configs(names, overrides, flags)
    if any(word.startswith(("dataset.path=", "dataset=jsonl", "dataset=folder")) for word in overrides):
        for _, composed in runs:
            corpus_key(composed.config)  # data of one's own is here, or the path is wrong
    if not names and _of_train(overrides, flags.config_dir):
        planned = cost.training_cost(runs[0][0], runs[0][1].config)
        print(cost.text([planned]))
        if not planned.fits:
            raise InputError(cost.too_large(planned))
        return 0
    print(costs.text(costs.estimate(runs)))
    for planned in costs.training_costs(runs):
        print(f"\n{cost.text([planned])}")
    return 0


def doctor(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``doctor [PAPER/ID]``: what a run needs, each with the mend."""
    from graphcontext.doctor import examine

    report = examine(_configs(names, overrides, flags))
    print("\n".join(str(line) for line in report))
    return 0 if all(line.good for line in report) else 1


def validate(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``validate``: every config composed and bound; all faults at once."""
    from graphcontext.validate import validate_all

    _no_names("validate", names)
    _no_overrides("validate", overrides)
    checked, faults = validate_all(flags.config_dir)
    for fault in faults:
        print(f"✗ {fault}")
    print(f"validated: {checked} configs, {len(faults)} faults")
    return 2 if faults else 0


def new(names: Words, overrides: Words, flags: argparse.Namespace) -> int:
    """``new GROUP NAME``: files to start from."""
    from graphcontext import new as files

    _no_overrides("new", overrides)
    if len(names) != 2:
        raise InputError(f"new needs GROUP and NAME, got {names or 'none'}")
    written = files.create(*names, flags.config_dir)
    print(*written, "next:", *(f"  {step}" for step in files.next_steps(*names, flags.config_dir)), sep="\n")
    print(f"new: {written[0]}")
    return 0


def list(names: Words, overrides: Words, flags: argparse.Namespace) -> int:  # the verb's name
    """``list [GROUP]``."""
    from graphcontext.conf_tree import groups, options

    _no_overrides("list", overrides)
    found: Any = options(_one_name("list", names, "GROUP"), flags.config_dir) if names else None
    print("\n".join(found if found is not None else groups(flags.config_dir)))
    return 0


def _configs(names: Words, overrides: Words, flags: argparse.Namespace) -> Any:
    """Return (label, config) of every run that the words name: a table's cells, one run, or a training."""
    from graphcontext.table.expand import compose_cached, configs
    from graphcontext.train.command import with_trainer

    if names or not _of_train(overrides, flags.config_dir):
        return configs(names, overrides, flags.config_dir)
    composed = compose_cached(with_trainer(overrides), (), flags.config_dir, primary="train")
    return [(str(composed.choices.get("experiment")), composed)]


def _of_train(overrides: Words, config_dir: str | None) -> bool:
    """Tell whether overrides are of a training: they choose a group of ``train``, or an experiment that trains."""
    from graphcontext.conf_tree import TRAIN_GROUPS, trains

    pairs = [text.partition("=") for text in overrides]
    if any(key.partition(".")[0] in TRAIN_GROUPS for key, _, _ in pairs):
        return True
    return any(key == "experiment" and trains(value, config_dir) for key, _, value in pairs)


def _one_name(verb: str, names: Words, what: str) -> str:
    if len(names) != 1:
        raise InputError(f"{verb} needs one {what}, got {names or 'none'}")
    return names[0]


def _no_names(verb: str, names: Words) -> None:
    if names:
        raise InputError(f"{verb}: {names[0]!r} is not KEY=VALUE")


def _no_overrides(verb: str, overrides: Words) -> None:
    if overrides:
        raise InputError(f"{verb} takes no overrides, got {overrides[0]!r}")
