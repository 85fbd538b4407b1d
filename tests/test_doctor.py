"""What a run needs: each line good or bad, with the mend."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphcontext import api, cli, doctor
from graphcontext.config import compose
from graphcontext.doctor import Line, examine
from graphcontext.generate import llama_cpp_server

CONF = str(Path(__file__).parent / "table" / "conf")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_gpu", lambda: Line(True, "no GPU"))  # torch is slow to import


def lines(*overrides: str) -> dict[str, Line]:
    return {line.what: line for line in examine([("run", api.compose(*overrides, config_dir=CONF))])}


def test_a_line_shows_its_mend_only_where_it_is_bad() -> None:
    assert str(Line(True, "model x", "fetch it")) == "✓ model x"
    assert str(Line(False, "model x", "fetch it")) == "✗ model x  →  fetch it"


def test_a_run_that_needs_nothing_is_all_good() -> None:
    found = lines("experiment=tests/base")
    assert all(line.good for line in found.values())
    version = ".".join(map(str, sys.version_info[:3]))
    assert f"Python {version}" in found and "data set cqa_sample" in found and any("GiB free" in what for what in found)


def test_missing_weights_data_and_adapters_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    bad = [str(line) for line in lines("scale=paper", "llm.adapter=gcg/sft").values() if not line.good]
    for start, mend in (
        ("✗ model meta-llama/Llama-2-13b-chat-hf: ", "graphcontext prepare"),
        ("✗ model BAAI/bge-large-en: ", "graphcontext prepare"),
        ("✗ adapter gcg/sft: not trained yet", "graphcontext train experiment=gcg/sft"),
        ("✗ data set askubuntu: no data: ", "dataset.path"),
    ):
        (line,) = [text for text in bad if text.startswith(start)]
        assert "  →  " in line and mend in line.split("  →  ")[1]


def test_a_key_that_the_run_needs_is_looked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("experiment=gcg/zero_shot", "llm=gpt_3_5_turbo", "tokenizer=words", "metric=[rouge1]")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert str(lines(*words)["environment variable OPENAI_API_KEY"]).endswith("→  export OPENAI_API_KEY=…")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = lines(*words)
    assert found["environment variable OPENAI_API_KEY"].good and "sk-secret" not in "".join(map(str, found.values()))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\nsk-other")
    (line,) = [str(line) for what, line in lines(*words).items() if "OPENAI" in what]
    assert line.startswith("✗") and "export one key" in line and "sk-" not in line
    unused = lines("experiment=tests/base", "llm@roles.judge=gpt_3_5_turbo")  # no judge in this run
    assert not any("OPENAI" in what for what in unused)


def test_a_server_needs_its_package_or_command_and_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("experiment=gcg/zero_shot", "llm=smollm2", "tokenizer=words", "metric=[rouge1]")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(lines(*words, "llm.serve=vllm")["llm.serve=vllm needs the command vllm"]).startswith("✗ ")
    monkeypatch.setattr(llama_cpp_server, "version", lambda: None)
    missing = str(lines(*words, "llm.serve=llama_cpp")["llm.serve=llama_cpp needs the package xllamacpp"])
    assert missing.endswith("→  pip install 'graphcontext[llama_cpp]'")
    monkeypatch.setattr(llama_cpp_server, "version", lambda: "2026.1")
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    found = lines(*words, "llm.serve=llama_cpp")
    assert found["llm.serve=llama_cpp 2026.1"].good
    assert any(not line.good and "smollm2 as GGUF" in what for what, line in found.items())
    assert not any("llm.serve" in what for what in lines(*words))


def test_a_full_or_read_only_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_DISK_GIB", 1e9)
    bad = [line for line in lines("experiment=tests/base").values() if not line.good]
    assert bad and all("GiB free" in line.what and "free some space" in line.mend for line in bad)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trainer=gpu"], "trainer.accelerator=gpu, but torch sees no GPU here; trainer=cpu"),
        (["trainer.gpu=FOO"], "trainer.gpu=FOO (allowed: A100-40GB"),
        (["trainer.gpu=4090"], "trainer.gpu=4090; did you mean RTX-4090?"),
        (["adapter.rank=0"], "adapter.rank=0; allowed: 1 and more"),
        (["adapter=qlora", "trainer=fsdp"], "adapter=qlora with trainer=fsdp"),
        (["trainer=cpu"], ""),
    ],
)
def test_what_train_refuses_is_not_good(monkeypatch: pytest.MonkeyPatch, words: list[str], message: str) -> None:
    monkeypatch.setattr("graphcontext.train.strategy.has_gpu", lambda: False)
    monkeypatch.setattr("graphcontext.train.outline.free_memory_gib", lambda: 64.0)
    composed = compose(["experiment=gcg/sft", *words], primary="train")
    bad = [line.what for line in examine([("training", composed)]) if not line.good and "model " not in line.what]
    assert [line.partition(message)[1] for line in bad] == ([message] if message else [])
    if not message:
        monkeypatch.setattr("graphcontext.train.outline.free_memory_gib", lambda: 0.5)
        assert any("needs " in line.what and "would fit" in line.what for line in examine([("training", composed)]))


def test_an_argument_that_run_refuses_and_a_file_in_the_place_of_the_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").write_text("")
    (tmp_path / "runs").symlink_to("gone")
    bad = [what for what, line in lines("experiment=tests/base", "retriever.top_k=0").items() if not line.good]
    assert any("top_k=0" in what for what in bad)
    assert "store is a file, where" in " ".join(bad) and "runs is a link to nothing, where" in " ".join(bad)
    assert cli.main(["run", "experiment=tests/base", "--config-dir", CONF]) == 2


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "library_version", lambda name: None if name in ("lxml", "peft") else "1")
    found = lines("experiment=tests/base")
    assert str(found["lxml missing"]) == "✗ lxml missing  →  pip install lxml"
    (extra,) = [line for what, line in found.items() if what.startswith("peft")]
    assert extra.good and "graphcontext[train]" in extra.what


def test_the_exit_code_says_whether_all_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "experiment=tests/base", "--config-dir", CONF]) == 0
    assert "✗" not in capsys.readouterr().out
    assert cli.main(["doctor", "experiment=tests/absent", "--config-dir", CONF]) == 1
    assert "✗ model nowhere/absent" in capsys.readouterr().out
