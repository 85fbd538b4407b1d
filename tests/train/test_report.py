"""What a training shows: a CSV, a picture, a line in a log, wandb where it is wanted."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

from graphcontext.errors import InputError, RunError
from graphcontext.train import report
from graphcontext.train.report import COLUMNS, Bar, Wandb, plot, running_mean, write_csv

ROWS = [
    {"step": 0, "epoch": 0.0, "held_out_loss": 2.5, "seconds": 0.1},
    {"step": 1, "epoch": 0.5, "loss": 1.23456789, "learning_rate": 1e-5, "gradient_norm": 3.0, "target_tokens": 7},
]


def test_the_csv_has_a_line_a_step_and_blanks_where_nothing_was_measured(tmp_path):
    write_csv(tmp_path / "m.csv", ROWS)
    with (tmp_path / "m.csv").open() as stream:
        first, second = csv.DictReader(stream)
    assert tuple(first) == COLUMNS and first["loss"] == "" and first["held_out_loss"] == "2.5"
    assert (second["loss"], second["learning_rate"], second["target_tokens"]) == ("1.23457", "1e-05", "7")


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:], ROWS * 30])
def test_the_picture_is_drawn_of_whatever_there_is_and_the_same_each_time(tmp_path, rows):
    for name in ("a.png", "b.png"):
        plot(tmp_path / name, rows, "lora on a model", best_step=1)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_nothing_is_none_the_worse(tmp_path):
    plot(tmp_path / "a.png", [], "nothing")
    assert (tmp_path / "a.png").stat().st_size


@pytest.mark.parametrize(("width", "wanted"), [(1, [1, 3, 8]), (2, [1, 2, 5.5]), (9, [1, 2, 4])])
def test_the_running_mean(width, wanted):
    assert running_mean([1.0, 3.0, 8.0], width) == wanted


def test_a_log_gets_a_line_a_minute_and_the_last(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(report.time, "monotonic", lambda: now[0])
    bar = Bar(total=4, done=0, quiet=False)
    for step, at in enumerate((10, 65, 70, 75), 1):
        now[0] = at
        bar.advance(step, 100, 1.5, None if step < 4 else 2.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "train: step 2 of 4, 3 tokens/s, loss 1.500, 1 min left",  # 200 tokens in 65 s; as long again is left
        "train: step 4 of 4, 5 tokens/s, loss 1.500, held out 2.000, 0 min left",
    ]


def test_a_long_validation_is_a_line_a_minute(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(report.time, "monotonic", lambda: now[0])
    bar = Bar(total=4, done=0, quiet=False)
    for step, done, at in ((0, 0, 0), (0, 1, 59), (0, 2, 61), (0, 3, 120), (2, 5, 125)):
        now[0] = at
        bar.validate(step, done, 11)
    said = ["held-out loss of the base: 2 of 11", "held-out loss after step 2: 5 of 11"]
    assert capsys.readouterr().err.splitlines() == said


def test_on_a_terminal_it_stands_in_the_bar(capsys, monkeypatch):
    monkeypatch.setattr(report.sys.stderr, "isatty", lambda: True, raising=False)
    bar = Bar(total=4, done=0, quiet=False)
    bar.validate(0, 3, 11)
    shown = capsys.readouterr().err
    assert "0/4" in shown and "held-out loss of the base: 3 of 11" in shown
    bar.validated()
    bar.close()
    shown += (rest := capsys.readouterr().err)
    assert "0/4" in rest and "held-out" not in rest and shown.count("\n") == 1


def test_passes_of_a_long_step_are_counted_and_time_begins_with_the_first(capsys, monkeypatch):
    monkeypatch.setattr(report.sys.stderr, "isatty", lambda: True, raising=False)
    now = [0.0]
    monkeypatch.setattr(report.time, "monotonic", lambda: now[0])
    bar = Bar(total=4, done=0, quiet=False)
    now[0] = 100.0  # the base model's held-out loss took that long
    bar.start()
    capsys.readouterr()
    now[0] = 102.0
    bar.count(3, 8)
    assert "pass 3 of 8" in capsys.readouterr().err
    bar.count(4, 8)  # at once: it is not drawn again
    now[0] = 110.0
    bar.count(1, 1)  # a step of one pass is no news
    assert capsys.readouterr().err == ""
    bar.advance(1, 100, 1.5, None)
    bar.close()
    assert "10 tokens/s, loss 1.500" in capsys.readouterr().err


def test_quiet_is_quiet(capsys):
    bar = Bar(total=1, done=0, quiet=True)
    bar.validate(0, 1, 2)
    bar.advance(1, 10, 1.0, None)
    bar.close()
    assert capsys.readouterr() == ("", "")


class TestWandb:
    @pytest.fixture
    def fake(self, monkeypatch):
        seen = {"log": []}

        def init(**arguments):
            seen["init"] = arguments
            log = lambda row, step: seen["log"].append((step, row))  # noqa: E731
            return types.SimpleNamespace(log=log, finish=lambda **_: seen.update(finished=True))

        module = types.ModuleType("wandb")
        module.init, module.Settings = init, lambda **settings: settings
        module.__spec__ = types.SimpleNamespace()
        module.errors = types.ModuleType("wandb.errors")
        module.errors.Error = type("Error", (Exception,), {})
        module.login = lambda prompt, verify: seen.get("key", False)
        monkeypatch.setitem(sys.modules, "wandb", module)
        monkeypatch.setitem(sys.modules, "wandb.errors", module.errors)
        return seen

    def test_a_resume_continues_the_curve_of_its_key(self, fake, tmp_path):
        curve = Wandb("offline", "ab" * 32, tmp_path / "wandb", "gcg/sft", {"seed": 0})
        curve.log(ROWS[1] | {"held_out_loss": float("nan")})
        curve.close()
        assert fake["init"]["id"] == "ab" * 16 and fake["init"]["resume"] == "allow"
        assert fake["init"]["mode"] == "offline" and fake["init"]["dir"] == str(tmp_path / "wandb")
        ((step, row),) = fake["log"]
        assert step == 1 and "step" not in row and "held_out_loss" not in row and row["loss"] == ROWS[1]["loss"]
        assert fake["finished"]

    def test_a_training_goes_on_when_its_process_is_gone(self, fake, tmp_path, capsys):
        def lost(*_, **__):
            raise ConnectionResetError("Connection lost")  # a job's SIGTERM reached wandb's process first

        curve = Wandb("offline", "key", tmp_path, "n", {})
        curve.run.log = curve.run.finish = lost
        curve.log(ROWS[1])
        curve.log(ROWS[1])
        curve.close()
        said = "wandb is gone (Connection lost): losses go to metrics.csv alone\n"
        assert capsys.readouterr().err == said  # once

    def test_online_without_a_key_is_refused_and_with_one_it_begins(self, fake, tmp_path):
        with pytest.raises(InputError, match=r"trainer\.wandb=online: no API key here; wandb login, or WANDB_API_KEY"):
            Wandb("online", "key", tmp_path, "n", {})
        assert "init" not in fake
        fake["key"] = True
        assert Wandb("online", "key", tmp_path, "n", {}).run is not None

    def test_a_server_that_refuses_the_key_is_one_line(self, fake, tmp_path, monkeypatch):
        def lost(**_):
            raise sys.modules["wandb"].errors.Error("API key is invalid")

        fake["key"] = True
        monkeypatch.setattr(sys.modules["wandb"], "init", lost)
        with pytest.raises(RunError, match=r"trainer\.wandb=online: API key is invalid; another: offline, disabled"):
            Wandb("online", "key", tmp_path, "n", {})

    def test_disabled_does_not_import_it(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "wandb", None)
        curve = Wandb("disabled", "key", tmp_path / "wandb", "n", {})
        curve.log(ROWS[0])
        curve.close()
        assert not (tmp_path / "wandb").exists()

    def test_without_the_package_offline_says_so_and_online_is_refused(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(report.importlib.util, "find_spec", lambda name: None)
        Wandb("offline", "key", tmp_path, "n", {}).log(ROWS[0])
        assert capsys.readouterr().err == "wandb is not installed: losses go to metrics.csv alone\n"
        with pytest.raises(InputError, match=r"needs the package wandb: pip install 'graphcontext\[wandb\]'"):
            Wandb("online", "key", tmp_path, "n", {})

    def test_t48_its_config_has_no_secret(self, fake, tmp_path, monkeypatch):
        from graphcontext.train.fit import recipe
        from tests.train.tiny import composed

        monkeypatch.setenv("WANDB_API_KEY", "sesame")
        Wandb("offline", "k" * 64, tmp_path, "n", recipe(composed()))
        assert "sesame" not in json.dumps(fake["init"], default=str)


CURVE = """
import sys
from pathlib import Path
from graphcontext.train.report import Wandb
for step in (1, 2):
    curve = Wandb("offline", "0123456789abcdef" * 4, Path(sys.argv[1]), "gcg/sft", {"seed": 0})
    curve.log({"step": step, "loss": 3.0 - step, "held_out_loss": None, "seconds": float("nan")})
    curve.close()
"""


def test_an_offline_curve_lies_below_its_folder_and_a_resume_has_the_same_id(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CURVE, str(tmp_path / "w")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = list((tmp_path / "w").rglob("run-0123456789abcdef0123456789abcdef.wandb"))
    assert len(runs) in (1, 2) and all(run.stat().st_size > 0 for run in runs)  # one where both begin in one second
