"""What a run was made with."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from graphcontext import __version__, api
from graphcontext.manifest import git_state, hardware, library_version, models, peak_memory

CONF = str(Path(__file__).parent / "table" / "conf")


def test_a_manifest_names_versions_data_seeds_and_cost(tmp_path: Path) -> None:
    run = api.run("experiment=tests/base", "dataset.limit=2", "seed=7", config_dir=CONF, root=tmp_path)
    about = run.manifest
    assert about["graphcontext"] == __version__ and about["python"] == platform.python_version()
    assert about["libraries"]["hydra-core"].startswith("1.3") and about["libraries"]["numpy"]
    assert about["seeds"] == {"seed": 7, "sample_index": 0, "dataset": 0}
    (corpus,) = about["corpora"]
    assert len(corpus) == 16 and set(corpus) <= set("0123456789abcdef")
    assert about["hardware"]["cores"] >= 1
    assert {"corpus", "ranking", "context", "prediction", "score:rouge1", "score:rougeL"} == set(about["stages"])
    for facts in about["stages"].values():
        assert len(facts["key"]) == 64 and facts["seconds"] >= 0 and facts["peak_mib"] > 0
    assert len(about["prompts"]["generator.prompt"]) == 64
    assert about["models"] == {} and about["batch_sizes"] == {"retriever": 64}


def test_only_models_that_the_run_uses_are_named() -> None:
    words = ("llm@roles.judge=llama2_7b", "metric=[rouge1]")
    dense = api.compose("experiment=gcg/text_gen", *words).config
    assert set(models(dense)) == {"minilm", "smollm2"} and models(dense)["minilm"]["weights"]
    extract = api.compose("experiment=gcg/answerbot", *words).config  # no encoder, no LLM, no judge
    assert models(extract) == {}


@pytest.mark.parametrize("secret", ["sk-very-secret-123"])
def test_t48_no_secret_is_written(secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    monkeypatch.setenv("MY_KEY", secret)
    words = ("experiment=tests/extract", "dataset.limit=2", "llm@roles.answer=gpt_3_5_turbo")
    run = api.run(*words, "roles.answer.api_key_env=MY_KEY", config_dir=CONF, root=tmp_path)
    assert run.config["roles"]["answer"]["api_key_env"] == "MY_KEY"
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) > 10 and not any(secret.encode() in p.read_bytes() for p in files)


def test_the_state_of_the_checkout() -> None:
    state = git_state()
    assert state == {} or (len(state["sha"]) == 40 and isinstance(state["dirty"], bool))
    assert json.dumps(hardware()) and peak_memory() > 10
    assert library_version("no-such-distribution") is None
