"""Where weights lie: embedded, a folder, the Hugging Face cache; what names them in a key."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.models import EMBEDDED, embedded_folder, hash_folder, identity, is_available, resolve, verify_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"weights")
    return path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_an_embedded_model_lies_in_a_folder_named_by_the_wheels_hash(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path / "home"))
    path = embedded_folder("minilm")
    assert path == tmp_path / "home" / "models" / "minilm-b9a0018dff09"
    with pytest.raises(MissingWeightsError, match="no weights: minilm; fetch them with: graphcontext prepare"):
        resolve("minilm")
    path.mkdir(parents=True)
    assert not is_available("minilm")  # unpacked in part
    (path / "ready.json").write_text("{}")
    assert resolve("minilm") == path and is_available("minilm")


def test_the_key_of_an_embedded_model_needs_no_file(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    assert identity("smollm2") == {"model": "smollm2", "weights": EMBEDDED["smollm2"].sha256 + "-v1"}


def test_a_folder_is_named_by_the_hash_of_its_files_not_by_its_place(folder: Path, tmp_path: Path) -> None:
    assert resolve(str(folder)) == folder
    before = identity(str(folder))
    moved = tmp_path / "elsewhere" / "model"
    moved.parent.mkdir()
    folder.rename(moved)
    assert identity(str(moved)) == before
    (moved / "model.safetensors").write_bytes(b"WEIGHTS")
    assert identity(str(moved)) != before


def test_the_hash_of_a_folder_covers_names_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    one = hash_folder(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert hash_folder(tmp_path) != one


@pytest.mark.parametrize(
    ("missing", "message"),
    [("config.json", "lacks config.json"), ("model.safetensors", "lacks weights")],
)
def test_a_folder_that_lacks_a_file_names_it(folder: Path, missing: str, message: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(InputError, match=message):
        resolve(str(folder))


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match=r"lacks model-2\.safetensors, which model\.safetensors\.index\.json names"):
        verify_folder(folder)


def test_a_damaged_index_is_one_line(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "mo')
    with pytest.raises(InputError, match=r"model\.safetensors\.index\.json"):
        verify_folder(folder)


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all"])
def test_a_path_that_is_not_there_is_no_hub_name(model: str, hub: Path) -> None:
    with pytest.raises(MissingWeightsError, match="is not a folder"):
        resolve(model)


def test_a_hub_model_is_found_in_the_cache_by_its_commit(hub: Path) -> None:
    with pytest.raises(MissingWeightsError, match="no weights: org/name@c0ffee; fetch them with: graphcontext prepare"):
        resolve("org/name", "c0ffee")
    assert identity("org/name", "c0ffee") == {"model": "org/name", "weights": "unresolved:c0ffee"}
    snapshot = hub / "models--org--name" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    assert resolve("org/name", "c0ffee") == snapshot
    assert identity("org/name", "c0ffee") == {"model": "org/name", "weights": "c0ffee"}


def test_main_is_named_by_the_commit_it_stands_for(hub: Path) -> None:
    repo = hub / "models--org--name"
    (repo / "snapshots" / "c0ffee").mkdir(parents=True)
    assert not is_available("org/name")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("c0ffee\n")
    assert resolve("org/name") == repo / "snapshots" / "c0ffee"
    assert identity("org/name")["weights"] == "c0ffee"


def test_a_model_that_is_missing_is_said_without_a_retry(hub: Path, monkeypatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda s: pytest.fail("waited"))
    assert not is_available("org/name", "c0ffee")
