"""Stages: computed once, verified when read, and downstream of what was read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphcontext import stage
from graphcontext.errors import InputError, RunError
from graphcontext.files import digest
from graphcontext.model_files import verify_stored
from graphcontext.stage import Stages, damaged, weights_digest
from graphcontext.store import Artefact, Store, Workspace


def stages(root: Path) -> Stages:
    return Stages(Workspace(Store(root / "store")))


def run(found: Stages, name: str, text: str, inputs: list[str] = [], **facts: int) -> str:  # noqa: B006
    def make(artefact: Artefact) -> dict[str, int]:
        (artefact.path / "text").write_text(text)
        return facts

    return found.run(name, "k", inputs, make, lambda path: (path / "text").read_text())


def test_a_second_run_reads_what_the_first_made(tmp_path: Path) -> None:
    assert run(stages(tmp_path), "context", "first") == "first"
    assert run(stages(tmp_path), "context", "second") == "first"


def test_a_damaged_file_is_computed_again_and_said(tmp_path: Path, capsys) -> None:
    run(stages(tmp_path), "context", "whole")
    (tmp_path / "store/context/k/text").write_text("who")
    assert run(stages(tmp_path), "context", "whole") == "whole"
    assert "context/k: text is not what was stored; computing it again" in capsys.readouterr().err


def test_a_damaged_or_deleted_done_file_is_not_done(tmp_path: Path) -> None:
    run(stages(tmp_path), "context", "first")
    for damage in ('{"files": {', "[]", ""):
        (tmp_path / "store/context/k/done.json").write_text(damage)
        assert run(stages(tmp_path), "context", "again") == "again"
        assert json.loads((tmp_path / "store/context/k/done.json").read_text())["files"]


def test_a_later_stage_is_made_from_what_its_run_read_not_from_what_lies_there_now(tmp_path: Path) -> None:
    """Two rows share a context; the second makes it again (a retry) before the first generates from the old one."""
    first, second = stages(tmp_path), stages(tmp_path)
    assert run(first, "context", "2 units", n_retry=1) == "2 units"
    assert run(second, "context", "3 units") == "3 units"
    assert run(first, "prediction", "from 2 units", ["context"]) == "from 2 units"
    later = stages(tmp_path)
    assert run(later, "context", "unused") == "3 units"
    assert run(later, "prediction", "from 3 units", ["context"]) == "from 3 units"


def test_other_processes_read_what_the_first_made_with_its_failures(tmp_path: Path, monkeypatch) -> None:
    """Each would else try again what failed, and train on other pairs than the first."""
    other = Stages(Workspace(Store(tmp_path / "store")), makes=False)
    run(stages(tmp_path), "context", "one failed", n_failed=1)
    assert run(other, "context", "tried again") == "one failed"
    assert run(stages(tmp_path), "context", "tried again") == "tried again"
    monkeypatch.setattr(stage, "LATE", 0)
    with pytest.raises(RunError, match=r"prediction/k is not there, which the first process has made: is the working"):
        run(other, "prediction", "own", ["context"])


def test_answered_calls_that_are_still_in_use_survive_other_inputs(tmp_path: Path) -> None:
    artefact = Store(tmp_path).artefact("prediction", "k")
    with artefact.lock():
        artefact.begin({"context": "1"})
        call = {"role": "answer", "item": "q", "fingerprint": "f", "status": "ok"}
        (artefact.path / "calls.jsonl").write_text(json.dumps(call) + "\n")
        artefact.begin({"context": "2"})
    with Workspace(Store(tmp_path)).stage(artefact, 1):
        assert not (artefact.path / "calls.jsonl").exists()
    workspace = Workspace(Store(tmp_path), quiet=True)
    with workspace.stage(artefact, 1):
        assert workspace.calls is not None
        assert workspace.calls.get("answer", "q", "other") is None
        assert workspace.calls.get("answer", "q", "f") is not None
    assert len((artefact.path / "calls.jsonl").read_text().splitlines()) == 1  # only what is in use


ENCODER = ("config.json", "model.safetensors", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
BESIDE = ("manifest.json", "config.yaml", "loss.png", "metrics.csv")


def trained(root: Path, *names: str) -> Artefact:
    """A finished training of these files."""
    artefact = Store(root / "store").artefact("adapter", "k")
    with artefact.lock():
        artefact.begin({})
        for name in (*names, *BESIDE):
            (artefact.path / name).parent.mkdir(parents=True, exist_ok=True)
            (artefact.path / name).write_text(name)
        artefact.finish()
    return artefact


def change(file: Path) -> None:
    file.write_text(file.read_text() + "!")


@pytest.mark.parametrize("name", [*ENCODER, *TOKENIZER, "manifest.json"])
def test_a_trained_encoder_is_held_against_all_that_is_read_of_it(tmp_path: Path, name: str) -> None:
    artefact = trained(tmp_path, *ENCODER, *TOKENIZER)
    assert damaged(artefact) is None
    change(artefact.path / name)
    assert damaged(artefact) == name
    with pytest.raises(InputError, match=f"^encoder.weights=x: {name} is not what was stored"):
        verify_stored(artefact.path, "encoder.weights=x")


@pytest.mark.parametrize("name", ["config.yaml", "loss.png", "metrics.csv"])
def test_a_training_without_its_curves_is_taken_everywhere_or_nowhere(tmp_path: Path, name: str) -> None:
    artefact = trained(tmp_path, "adapter_config.json", "adapter_model.safetensors")
    (artefact.path / name).unlink()
    verify_stored(artefact.path, "llm.adapter=x")
    assert damaged(artefact) is None
    Stages(Workspace(Store(tmp_path / "store"))).take("adapter", artefact, "train")


@pytest.mark.parametrize("name", [*ENCODER, *TOKENIZER, *BESIDE])
def test_the_hash_of_an_encoder_is_of_all_that_is_read_of_it(tmp_path: Path, name: str) -> None:
    artefact = trained(tmp_path, *ENCODER, *TOKENIZER)
    before = weights_digest(artefact)
    change(artefact.path / name)
    with artefact.lock():
        artefact.finish()
    assert (weights_digest(artefact) == before) == (name in BESIDE)


def test_an_adapter_and_an_encoder_of_before_keep_their_hash(tmp_path: Path) -> None:
    def of(*names: str) -> str:
        assert artefact.finished is not None
        return digest({name: artefact.finished["files"][name] for name in names})

    artefact = trained(tmp_path, "adapter_config.json", "adapter_model.safetensors", "checkpoints/last.pt")
    assert weights_digest(artefact) == of("adapter_config.json", "adapter_model.safetensors")
    artefact = trained(tmp_path / "encoder", *ENCODER, *TOKENIZER)
    about = json.loads((artefact.path / "done.json").read_text())
    del about["files"]["1_Pooling/config.json"]
    (artefact.path / "done.json").write_text(json.dumps(about))
    assert weights_digest(artefact) == of("model.safetensors") and damaged(artefact) is None
    verify_stored(artefact.path, "encoder.weights=x")
