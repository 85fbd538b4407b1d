"""A server for the length of a run: started once, shared, stopped, never left behind. ``vllm`` is a fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphcontext import api, prepare, run_folder, runs
from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.errors import InputError, RunError
from graphcontext.generate import server, vllm_server
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.hf import HuggingFaceLLM
from graphcontext.generate.server import missing, stop_all
from graphcontext.manifest import provenance

SRC = Path(__file__).parents[2] / "src"
REQUESTS = [ChatRequest(name, ({"role": "user", "content": "list the ports"},)) for name in "abc"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ``vllm`` on the PATH that writes into the folder returned."""
    bin_, folder = tmp_path / "bin", tmp_path / "fake"
    bin_.mkdir()
    folder.mkdir()
    script = Path(__file__).with_name("fake_vllm.py")
    (bin_ / "vllm").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    (bin_ / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_VLLM_FOLDER", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # logs of servers that failed are kept
    yield folder
    stop_all()
    assert gone(folder)


def started(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_text()) for p in sorted(folder.glob("*.started"))]


def asked(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]


def pids(folder: Path) -> list[int]:
    workers = [json.loads(p.read_text()) for p in folder.glob("*.worker")]
    return [int(p.name.partition(".")[0]) for p in folder.glob("*.started")] + workers


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(what: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.02)
    return what()


def gone(folder: Path) -> bool:
    return wait_for(lambda: not any(map(alive, pids(folder))))


def served(tiny_llama: Path, **options: Any) -> HuggingFaceLLM:
    return HuggingFaceLLM(str(tiny_llama), serve="vllm", **{"dtype": "float32", "device": "cpu", **options})


def test_the_command_line_says_which_model_and_how(fake, tiny_llama) -> None:
    served(tiny_llama, dtype="bfloat16", context_window=48).chat(REQUESTS, "answer", 5)
    (call,) = started(fake)
    words = call["words"]
    assert words[:2] == ["serve", str(tiny_llama)] and "--no-enable-prefix-caching" in words
    told = {
        "--host": "127.0.0.1",
        "--dtype": "bfloat16",
        "--seed": "0",
        "--tensor-parallel-size": "1",
        "--generation-config": "vllm",
        "--max-model-len": "48",
    }
    assert {option: words[words.index(option) + 1] for option in told} == told
    assert words[words.index("--served-model-name") + 1].startswith("graphcontext-")
    assert (call["HF_HUB_OFFLINE"], call["VLLM_NO_USAGE_STATS"]) == ("1", "1")


def test_prompts_go_as_the_token_ids_of_the_models_own_template(fake, tiny_llama) -> None:
    llm = served(tiny_llama, repetition_penalty=1.1)
    responses = llm.chat(REQUESTS, "answer", 5)
    ids = llm._prompt(REQUESTS[0])
    assert [r.text for r in responses] == [" ".join(map(str, ids))] * 3
    assert [(r.n_prompt_tokens, r.finish, r.status) for r in responses] == [(len(ids), "stop", "ok")] * 3
    (body, *_) = asked(fake)
    assert body["path"] == "/v1/completions" and body["prompt"] == ids
    decoding = {k: body[k] for k in ("max_tokens", "temperature", "top_k", "min_p", "repetition_penalty")}
    assert decoding == {"max_tokens": 5, "temperature": 0.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.1}
    assert "seed" not in body


def test_a_draw_has_the_seed_of_its_request(fake, tiny_llama) -> None:
    served(tiny_llama, temperature=0.7, top_p=0.9).chat(REQUESTS, "answer", 5)
    bodies = asked(fake)
    assert {b["temperature"] for b in bodies} == {0.7} and {b["top_p"] for b in bodies} == {0.9}
    assert len({b["seed"] for b in bodies}) == 1  # equal messages: one fingerprint


def test_equal_settings_share_one_server_and_others_have_their_own(fake, tiny_llama) -> None:
    roles = [served(tiny_llama), served(tiny_llama, temperature=0.5), served(tiny_llama, batch_size=2)]
    threads = [threading.Thread(target=role.chat, args=(REQUESTS, "answer", 5)) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started(fake)) == 1
    served(tiny_llama, context_window=32).chat(REQUESTS, "answer", 5)
    assert len(started(fake)) == 2


def test_no_server_is_started_to_look_at_keys_or_at_what_was_answered(fake, tiny_llama, workspace) -> None:
    llm = served(tiny_llama)
    llm.bind(workspace)
    llm.settings()
    assert started(fake) == []
    llm.chat(REQUESTS, "answer", 5)
    stop_all()
    again = served(tiny_llama)
    again.bind(workspace)
    again.chat(REQUESTS, "answer", 5)
    assert len(started(fake)) == 1 and len(asked(fake)) == 3


def test_freeing_the_models_stops_it_with_its_workers(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "workers")
    served(tiny_llama).chat(REQUESTS, "answer", 5)
    assert len(pids(fake)) == 2 and all(map(alive, pids(fake)))
    runs.free_models(keep_servers=True)
    assert all(map(alive, pids(fake)))
    (log,) = [s.log for s in server._RUNNING.values()]
    assert log.exists()
    runs.free_models()
    assert gone(fake) and not log.exists()


def test_a_prompt_longer_than_the_window_fails_alone(fake, tiny_llama) -> None:
    long = ChatRequest("long", ({"role": "user", "content": "list " * 62},))
    responses = served(tiny_llama).chat([REQUESTS[0], long], "answer", 5)  # the server says 64
    assert [r.status for r in responses] == ["ok", "failed"]
    assert responses[1].reason == "prompt has 65 tokens and the answer up to 5, window 64"


def test_one_that_dies_while_loading_says_why(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "dies")
    with pytest.raises(RunError) as caught:
        served(tiny_llama).chat(REQUESTS, "answer", 5)
    said = str(caught.value)
    assert said.startswith("llm.serve=vllm: the server ended with code 3; it said: loading | ValueError: bfloat16 ")
    assert "Engine core initialization failed (all of it: /" in said and "\n" not in said
    log = Path(said.rpartition(": ")[2].rstrip(")"))
    with pytest.raises(RunError, match="ended with code 3"):
        served(tiny_llama, temperature=0.5).chat(REQUESTS, "answer", 5)
    assert len(started(fake)) == 1  # who waited for it does not start it again
    stop_all()
    assert log.read_text().startswith("key ")


def test_one_that_is_not_up_in_time_is_stopped(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "slow")
    monkeypatch.setattr(vllm_server, "LIMIT", 4.0)
    with pytest.raises(RunError, match=r"the server is not up after 4 s; it said: key \*\*\*"):
        served(tiny_llama).chat(REQUESTS, "answer", 5)
    assert gone(fake)


def test_one_that_dies_later_ends_the_run_with_its_last_words(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "dies later")
    with pytest.raises(RunError, match=r"the server ended with code 7; .*illegal memory access"):
        served(tiny_llama, batch_size=2).chat(REQUESTS, "answer", 5)
    assert len(started(fake)) == 1
    stop_all()  # the run is over
    monkeypatch.delenv("FAKE_VLLM")
    assert [r.status for r in served(tiny_llama).chat(REQUESTS, "answer", 5)] == ["ok"] * 3  # a new one


def test_a_port_that_another_took_is_left_to_it(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "taken")
    assert [r.status for r in served(tiny_llama).chat(REQUESTS, "answer", 5)] == ["ok"] * 3
    ports = {call["words"][call["words"].index("--port") + 1] for call in started(fake)}
    assert len(ports) == 2


def test_another_server_at_the_port_is_not_taken_for_ours(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "another")
    monkeypatch.setattr(vllm_server, "LIMIT", 4.0)
    with pytest.raises(RunError, match="is not up after"):
        served(tiny_llama).chat(REQUESTS, "answer", 5)


CHILD = """
import os, sys, time
from graphcontext.generate import server
names = ("revision", "adapter", "context_window")
told = {"serve": "vllm", "model": sys.argv[1], "dtype": "float32", "quantization": "none", "device": "cpu"}
server.running(told | dict.fromkeys(names))
if sys.argv[2] == "fork" and os.fork() == 0:  # a child that outlives us holds our end of the pipe too
    time.sleep(8)
    os._exit(0)
print("up", flush=True)
if sys.argv[2] != "ends":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["kill", "term", "interrupt", "ends", "fork"])
def test_it_never_outlives_the_process_that_started_it(fake, tiny_llama, tmp_path, monkeypatch, end) -> None:
    monkeypatch.setenv("FAKE_VLLM", "workers")
    command = [sys.executable, "-c", CHILD, str(tiny_llama), end]
    environment = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert parent.stdout.readline() == "up\n"
    assert len(pids(fake)) == 2 and (end == "ends" or all(map(alive, pids(fake))))
    signals = {"kill": signal.SIGKILL, "fork": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}
    if end in signals:
        parent.send_signal(signals[end])
    parent.wait(timeout=20)
    assert gone(fake) and wait_for(lambda: not list(tmp_path.glob("*.log")))


STARTS = """
import sys
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.hf import HuggingFaceLLM
llm = HuggingFaceLLM(sys.argv[1], serve="vllm", dtype="float32", device="cpu", batch_size=4)
llm.chat([ChatRequest(str(i), ({"role": "user", "content": "use ss"},)) for i in range(9)], "answer", 5)
"""


def test_ctrl_c_while_it_starts_ends_both_at_once(fake, tiny_llama, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VLLM", "slow")
    environment = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", STARTS, str(tiny_llama)], env=environment, stderr=subprocess.PIPE)
    assert wait_for(lambda: len(started(fake)) == 1, 60)
    parent.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in parent.communicate(timeout=20)[1]
    assert gone(fake)


def test_its_guard_killed_takes_it_along(fake, tiny_llama) -> None:
    served(tiny_llama).chat(REQUESTS, "answer", 5)
    (running,) = server._RUNNING.values()
    running.process.kill()
    assert gone(fake)


# -- before anything starts ----------------------------------------------------------------------


def test_a_command_that_is_not_there_is_named_at_once_with_the_mend(tiny_llama, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"llm\.serve=vllm needs the command vllm: pip install vllm .* PATH"):
        served(tiny_llama).chat(REQUESTS, "answer", 5)
    config = compose(["llm=smollm2", "llm.serve=vllm", "retriever=tfidf", "enhancer=none"]).config
    with pytest.raises(InputError, match=r"llm\.serve=vllm needs the command vllm"):
        prepare.check_ready(config)
    assert list(missing([{"serve": "vllm"}, {"serve": "vllm"}, {"serve": None}, {}])) == [
        ("llm.serve=vllm needs the command vllm", vllm_server.lacks({})[1])
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"serve": "vlm"}, r"llm\.serve=vlm; did you mean vllm\? \(allowed: llama_cpp, vllm\), or null"),
        ({"serve": "llama_cpp", "quantization": "4bit"}, r"a GGUF file is quantised as it is"),
        ({"serve": "llama_cpp", "adapter": "x"}, r"llm\.adapter=x with llm\.serve=llama_cpp: it reads no PEFT"),
        ({"serve": "vllm", "quantization": "8bit"}, r"quantization=8bit with llm\.serve=vllm; allowed: none, 4bit"),
    ],
)
def test_what_a_server_cannot_keep_is_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        HuggingFaceLLM("smollm2", **options)


def test_a_group_of_processes_starts_none(fake, tiny_llama, monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"llm\.serve=vllm in a group of processes: start one"):
        served(tiny_llama).chat(REQUESTS, "answer", 5)


# -- keys ----------------------------------------------------------------------------------------


def test_the_key_names_the_server_and_neither_version_nor_port(fake, tiny_llama, monkeypatch) -> None:
    """As with torch: the manifest says which version answered, and a finished run is found anywhere."""
    node = compose(["llm=smollm2"]).config["roles"]["answer"]
    plain, vllm = fingerprint(node), fingerprint(node | {"serve": "vllm"})
    assert vllm == plain | {"serve": "vllm"}
    before = served(tiny_llama).settings()
    served(tiny_llama).chat(REQUESTS, "answer", 5)
    assert provenance()["servers"] == {"vllm": "0.99.1"}
    stop_all()
    assert "servers" not in provenance()
    monkeypatch.setattr(vllm_server, "version", lambda: None)
    assert fingerprint(node | {"serve": "vllm"}) == vllm and served(tiny_llama).settings() == before
    assert "127.0.0.1" not in json.dumps(before)


def test_what_one_machine_finished_is_found_by_one_without_the_server(fake, tiny_llama, tmp_path, monkeypatch) -> None:
    conf = str(Path(__file__).parents[1] / "table" / "conf")
    words = ("dataset.limit=2", "table.rows=base", "llm=smollm2", f"llm.model={tiny_llama}", "llm.serve=vllm")
    made = api.table("tests/tiny", *words, config_dir=conf, root=tmp_path)
    (run,) = [run_folder.find(path.name, tmp_path) for path in (tmp_path / "runs").iterdir()]
    assert run.manifest["servers"] == {"vllm": "0.99.1"} and len(started(fake)) == 1
    monkeypatch.setenv("PATH", str(tmp_path))
    assert api.table("tests/tiny", *words, config_dir=conf, root=tmp_path).markdown == made.markdown
    with pytest.raises(InputError, match="needs the command vllm"):
        api.table("tests/tiny", *words, "seed=1", "llm.temperature=1.0", config_dir=conf, root=tmp_path)


def test_the_version_beside_the_command_is_read_without_starting_it(tmp_path, monkeypatch) -> None:
    site = tmp_path / "tool" / "lib" / "python3.12" / "site-packages"
    (site / "vllm-0.30.0.dist-info").mkdir(parents=True)
    (tmp_path / "tool" / "bin").mkdir()
    (tmp_path / "tool" / "bin" / "vllm").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "tool" / "bin" / "vllm").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm").symlink_to(tmp_path / "tool" / "bin" / "vllm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert vllm_server.version() == "0.30.0"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vllm_server.version() is None


def test_only_what_answers_alike_again_is_called_repeatable() -> None:
    assert HuggingFaceLLM("smollm2", serve="llama_cpp").repeatable
    assert not HuggingFaceLLM("smollm2", serve="vllm").repeatable  # what is computed together depends on arrival
    assert not HuggingFaceLLM("smollm2", serve="llama_cpp", temperature=0.5).repeatable


def test_requests_at_once() -> None:
    made = {serve: HuggingFaceLLM("m", serve=serve, batch_size=8) for serve in (None, "llama_cpp", "vllm")}
    assert {s: (m.batch_size, m.workers) for s, m in made.items()} == {
        None: (8, 1),
        "llama_cpp": (1, 1),
        "vllm": (1, 8),
    }


def test_an_adapter_is_served_beside_its_model(fake, tiny_llama, tmp_path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"r": 24}')
    (adapter / "adapter_model.safetensors").touch()
    served(tiny_llama, adapter=str(adapter)).chat(REQUESTS, "answer", 5)
    (call,) = started(fake)
    words = call["words"]
    name = words[words.index("--served-model-name") + 1]
    assert words[words.index("--lora-modules") + 1] == f"{name}-adapter={adapter}"
    assert words[words.index("--max-lora-rank") + 1] == "32" and "--enable-lora" in words
    assert {body["model"] for body in asked(fake)} == {f"{name}-adapter"}


@pytest.mark.parametrize("content", ["{}", "not json", '{"r": 999}'])
def test_what_is_no_adapter_is_named(fake, tiny_llama, tmp_path, content) -> None:
    (tmp_path / "adapter_config.json").write_text(content)
    (tmp_path / "adapter_model.safetensors").touch()
    with pytest.raises(InputError, match=r"llm\.adapter=.*(rank r|up to 512)"):
        served(tiny_llama, adapter=str(tmp_path)).chat(REQUESTS, "answer", 5)
