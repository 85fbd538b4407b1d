"""What a model's folder must hold: each file that is missing or damaged is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext.errors import InputError
from graphcontext.model_files import verify_folder, verify_tokenizer
from graphcontext.models import resolve


def fill(path: Path, *names: str) -> Path:
    """Write a model folder: a config and weights, or the files that are named."""
    for name in names or ("config.json", "model.safetensors"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("{}")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "model")


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


MODULES = [
    {"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


@pytest.mark.parametrize("own", ["", "0_Transformer"])
def test_a_sentence_transformers_folder_needs_weights_and_its_poolings_config(tmp_path: Path, own: str) -> None:
    files = [tmp_path / "m" / own / "config.json", tmp_path / "m" / own / "model.safetensors"]
    files.append(tmp_path / "m" / "1_Pooling" / "config.json")
    fill(tmp_path, *(str(f.relative_to(tmp_path)) for f in files))
    (tmp_path / "m" / "modules.json").write_text(json.dumps([MODULES[0] | {"path": own}, *MODULES[1:]]))
    assert resolve(str(tmp_path / "m")) == tmp_path / "m"
    for file in files:
        kept = file.read_bytes()
        file.unlink()
        with pytest.raises(InputError, match=f"lacks .*{file.name.replace('.', '[.]')}"):
            resolve(str(tmp_path / "m"))
        file.write_bytes(kept)


def test_a_damaged_modules_json_is_one_line(folder: Path) -> None:
    (folder / "modules.json").write_text('[{"path": ""')
    with pytest.raises(InputError, match=r"modules\.json is damaged"):
        verify_folder(folder)


def test_a_spacy_pipeline_needs_its_meta_tokenizer_and_vocabulary(tmp_path: Path) -> None:
    needed = ("config.cfg", "meta.json", "tokenizer", "vocab/strings.json")
    verify_folder(fill(tmp_path, *needed))
    for name in needed[1:]:
        (tmp_path / name).unlink()
        with pytest.raises(InputError, match=f"spaCy pipeline .* lacks {name}"):
            verify_folder(tmp_path)
        fill(tmp_path, name)


@pytest.mark.parametrize("files", [("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt")])
def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path, files: tuple[str, ...]) -> None:
    folder = fill(tmp_path / "m", "config.json", "model.safetensors", "tokenizer_config.json")
    with pytest.raises(InputError, match=r"lacks its tokenizer \(tokenizer\.json"):
        verify_tokenizer(folder)
    verify_tokenizer(fill(folder, *files))
