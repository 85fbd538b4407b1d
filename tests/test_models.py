"""Where weights lie: embedded, a folder, the Hugging Face cache; what names them in a key."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from graphcontext.errors import MissingWeightsError
from graphcontext.model_files import verify_folder
from graphcontext.models import EMBEDDED, embedded_folder, identity, is_available, resolve


def fill(path: Path, *names: str) -> Path:
    """Write a model folder: a config and weights, or the files that are named."""
    for name in names or ("config.json", "model.safetensors"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("{}")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "model")


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


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all"])
def test_a_path_that_is_not_there_is_no_hub_name(model: str, hub: Path) -> None:
    with pytest.raises(MissingWeightsError, match="is not a folder"):
        resolve(model)


def test_a_hub_model_is_found_in_the_cache_by_its_commit(hub: Path) -> None:
    with pytest.raises(MissingWeightsError, match="no weights: org/name@c0ffee; fetch them with: graphcontext prepare"):
        resolve("org/name", "c0ffee")
    assert identity("org/name", "c0ffee") == {"model": "org/name", "weights": "unresolved:c0ffee"}
    snapshot = hub / "models--org--name" / "snapshots" / "c0ffee"
    fill(snapshot)
    assert resolve("org/name", "c0ffee") == snapshot
    assert identity("org/name", "c0ffee") == {"model": "org/name", "weights": "c0ffee"}


def test_main_is_named_by_the_commit_it_stands_for(hub: Path) -> None:
    repo = hub / "models--org--name"
    fill(repo / "snapshots" / "c0ffee")
    assert not is_available("org/name")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("c0ffee\n")
    assert resolve("org/name") == repo / "snapshots" / "c0ffee"
    assert identity("org/name")["weights"] == "c0ffee"


def test_a_snapshot_in_part_is_not_available(hub: Path) -> None:
    snapshot = fill(hub / "models--org--name" / "snapshots" / "c0ffee", "config.json")
    assert not is_available("org/name", "c0ffee")
    (snapshot / "model.safetensors").symlink_to("../../blobs/not-here-yet")
    with pytest.raises(MissingWeightsError, match=r"org/name: model folder .* lacks weights .*graphcontext prepare"):
        resolve("org/name", "c0ffee")
    assert identity("org/name", "c0ffee")["weights"] == "c0ffee"  # the commit names it all the same


def test_a_snapshots_missing_shard_is_named(hub: Path) -> None:
    snapshot = fill(hub / "models--org--name" / "snapshots" / "c0ffee", "config.json", "model-1.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MissingWeightsError, match=r"lacks model-2\.safetensors, .*; fetch them with"):
        resolve("org/name", "c0ffee")
    fill(snapshot, "model-2.safetensors", "pytorch_model.bin.index.json")  # the other form's index is not read
    assert resolve("org/name", "c0ffee") == snapshot


@pytest.mark.needs_models
@pytest.mark.parametrize("name", sorted(EMBEDDED))
def test_the_embedded_models_are_whole(name: str) -> None:
    verify_folder(resolve(name))


def test_a_model_that_is_missing_is_said_without_a_retry(hub: Path, monkeypatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda s: pytest.fail("waited"))
    assert not is_available("org/name", "c0ffee")


def test_a_user_who_is_not_here_has_no_model(hub: Path) -> None:
    with pytest.raises(MissingWeightsError, match="no weights: ~nobody-here/m is not a folder"):
        resolve("~nobody-here/m")
    assert identity("~nobody-here/m")["weights"] == "unresolved:None"
