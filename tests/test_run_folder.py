"""Run folders: found by their names, read as they were written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graphcontext import api
from graphcontext.errors import InputError
from graphcontext.run_folder import Run, find

CONF = str(Path(__file__).parent / "table" / "conf")
WORDS = ("experiment=tests/base", "dataset.limit=3")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return api.run(*WORDS, config_dir=CONF, root=tmp_path_factory.mktemp("runs"))


def test_a_run_is_found_by_the_beginning_of_its_name(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "work"
    for name in ("abc111", "abc222", "dddddd"):
        shutil.copytree(run.path, root / "runs" / name)
    (root / "runs" / "abd").mkdir()  # begun, not finished
    assert find("d", root).path == root / "runs" / "dddddd" == find(str(root / "runs" / "dddddd")).path
    assert find("runs/abc1", root).path.name == "abc111"
    with pytest.raises(InputError, match=r"abc: several runs begin so in .*\(abc111, abc222\)"):
        find("abc", root)
    for name in ("abd", "x", ""):
        with pytest.raises(InputError, match=r"no such run in .*\(abc111, abc222, dddddd\)"):
            find(name, root)
    with pytest.raises(InputError, match="none yet: graphcontext run"):
        find("x", tmp_path)


def test_metrics_are_written_last(run: Run) -> None:
    times = {p.name: p.stat().st_mtime_ns for p in run.path.iterdir()}
    assert max(times, key=times.__getitem__) == "metrics.json"  # a folder with it is whole
    assert json.loads((run.path / "card.json").read_text())["name"] == "cqa_sample"


def test_a_damaged_run_folder_is_said_in_one_line(tmp_path: Path) -> None:
    run = api.run(*WORDS, config_dir=CONF, root=tmp_path)
    (run.path / "predictions.jsonl").unlink()
    with pytest.raises(InputError, match=r"predictions.jsonl is missing: give its command again"):
        run.predictions()
    assert not run.is_whole()
    for name, text in (("scores.jsonl", ""), ("config.yaml", ": ["), ("questions.jsonl", "{}")):
        (run.path / name).write_text(text)
        with pytest.raises(InputError, match=rf"{name} is not what the run wrote: give its command again"):
            run.read(name)
    (run.path / "metrics.json").write_text("{}")
    with pytest.raises(InputError, match=r"metrics.json is not what the run wrote"):
        run.summary()
    for text in ('{"n": 3', "{}", "[]"):
        (run.path / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=r"manifest.json is missing or damaged"):
            run.summary()
    again = api.run(*WORDS, config_dir=CONF, root=tmp_path)
    assert again.is_whole() and again.metrics["n"] == 3
    metrics = again.path / "metrics.json"
    metrics.write_text(metrics.read_text().replace('"n": 3', '"n": 4', 1))
    with pytest.raises(InputError, match=r"metrics.json is not what the run wrote"):
        again.summary()
