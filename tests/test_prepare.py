"""What runs need, known before they start: models, adapters, keys, data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphcontext import prepare
from graphcontext.config import compose
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate import llama_cpp_server
from graphcontext.models import is_available

FAST = ["retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1]"]


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
