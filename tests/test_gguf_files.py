"""Which file of a folder is the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext import models
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.gguf_files import find, is_gguf, parts


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"GGUF" + name.encode())


def test_one_file_or_the_first_of_its_parts(tmp_path: Path) -> None:
    assert find(tmp_path) is None and not is_gguf(tmp_path)
    split = [f"m-Q4-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    write(tmp_path, *split)
    first = find(tmp_path)
    assert first == tmp_path / split[0] and is_gguf(tmp_path)
    assert [p.name for p in parts(first)] == split
    assert find(first) == first and is_gguf(first)


def test_several_models_are_not_chosen_from(tmp_path: Path) -> None:
    write(tmp_path, "m.Q4.gguf", "m.Q8.gguf")
    with pytest.raises(InputError, match=r"holds 2 GGUF models \(m\.Q4\.gguf, m\.Q8\.gguf\); name one file"):
        find(tmp_path)
    assert find(tmp_path / "m.Q8.gguf") == tmp_path / "m.Q8.gguf"
    assert parts(tmp_path / "m.Q8.gguf") == [tmp_path / "m.Q8.gguf"]


def test_a_folder_with_another_model_beside_it_is_that_model(tmp_path: Path) -> None:
    write(tmp_path, "m.gguf")
    (tmp_path / "config.json").write_text("{}")
    assert not is_gguf(tmp_path)
    assert models.gguf_file(str(tmp_path)) == tmp_path / "m.gguf"  # for a server that reads such files


def test_what_is_no_gguf_is_named(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "x.gguf").write_bytes(b"<html>")
    with pytest.raises(InputError, match=r"x\.gguf is not a GGUF file"):
        models.gguf_file(str(tmp_path))
    with pytest.raises(MissingWeightsError, match=r"no weights: .*absent\.gguf is not a f"):
        models.gguf_file(str(tmp_path / "absent.gguf"))
    with pytest.raises(MissingWeightsError, match=r"no weights: absent\.gguf is not a file"):
        models.gguf_file("absent.gguf")
    (tmp_path / "x.gguf").unlink()
    with pytest.raises(MissingWeightsError, match=r"as GGUF; name a \.gguf file .* or llm\.serve=vllm, or null"):
        models.gguf_file(str(tmp_path))
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    with pytest.raises(MissingWeightsError, match="no weights: smollm2 as GGUF; fetch them with: graphcontext prepare"):
        models.gguf_file("smollm2")
    with pytest.raises(InputError, match=r"llm\.model=minilm: this embedded model is no GGUF file"):
        models.gguf_file("minilm")
    assert models.gguf_identity("nobody/nothing", "abc")["weights"] == "unresolved:abc"


def test_all_parts_are_in_the_key(tmp_path: Path) -> None:
    write(tmp_path, "m-00001-of-00002.gguf", "m-00002-of-00002.gguf")
    before = models.identity(str(tmp_path))
    assert before["model"] == "m-00001-of-00002.gguf"
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(b"GGUFother")
    assert models.identity(str(tmp_path)) != before
