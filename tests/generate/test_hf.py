"""Chat with a model on this machine."""

from __future__ import annotations

import pytest

from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.errors import InputError, MissingWeightsError, RunError
from graphcontext.generate.causal_model import CausalModel
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.hf import HuggingFaceLLM


def ask(item: str, text: str) -> ChatRequest:
    return ChatRequest(item, ({"role": "user", "content": text},))


REQUESTS = [ask("a", "list the ports"), ask("b", "how do i list open ports"), ask("c", "use ss")]


def test_answers_by_index_and_equal_for_every_batch_size(tiny_llama):
    by_batch = []
    for batch_size in (1, 2, 3):
        llm = HuggingFaceLLM(str(tiny_llama), device="cpu", batch_size=batch_size)
        by_batch.append([(r.item, r.text, r.finish, r.n_tokens) for r in llm.chat(REQUESTS, "answer", 5)])
    assert by_batch[0] == by_batch[1] == by_batch[2]
    assert [item for item, *_ in by_batch[0]] == ["a", "b", "c"]


def test_prompt_tokens_are_counted(tiny_llama):
    llm = HuggingFaceLLM(str(tiny_llama), device="cpu")
    response = llm.chat(REQUESTS, "answer", 5)[0]
    assert response.n_prompt_tokens == 6  # <s> user list the ports assistant
    assert llm.count_tokens("list the ports") == 3


def test_a_prompt_longer_than_the_window_fails_alone(tiny_llama):
    llm = HuggingFaceLLM(str(tiny_llama), device="cpu", context_window=13)
    long = ask("long", "list " * 9)
    responses = llm.chat([REQUESTS[0], long], "answer", 5)
    assert [r.status for r in responses] == ["ok", "failed"]
    assert responses[1].reason == "prompt has 12 tokens and the answer up to 5, window 13"


def test_the_models_own_window_is_the_default(tiny_llama):
    llm = HuggingFaceLLM(str(tiny_llama), device="cpu")
    (response,) = llm.chat([ask("long", "list " * 70)], "answer", 5)
    assert "window 64" in response.reason


def test_t12_sampling_depends_on_the_seed_and_greedy_does_not(tiny_llama, workspace):
    def texts(seed: int, temperature: float) -> list[str]:
        workspace.seed = seed
        llm = HuggingFaceLLM(str(tiny_llama), device="cpu", temperature=temperature)
        llm.bind(workspace)
        return [r.text for r in llm.chat(REQUESTS, "answer", 8)]

    assert texts(0, 2.0) == texts(0, 2.0)
    assert texts(0, 2.0) != texts(1, 2.0)
    assert texts(0, 0.0) == texts(1, 0.0)


def test_identity_names_weights_and_adapter_and_draws_names_the_temperature(tiny_llama, tmp_path):
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter" / "adapter_model.safetensors").touch()
    plain = HuggingFaceLLM.identity({"model": str(tiny_llama)})
    tuned = HuggingFaceLLM.identity({"model": str(tiny_llama), "adapter": str(tmp_path / "adapter")})
    assert plain.items() < tuned.items()
    assert not HuggingFaceLLM.draws({"temperature": 0.0})
    assert HuggingFaceLLM.draws({"temperature": 0.7})


def test_the_keys_of_runs_before_there_was_a_server_are_as_they_were():
    """What version 0.1 hashed for ``llm=smollm2``, key by key; ``serve: null`` is not among it."""
    node = compose(["llm=smollm2"]).config["roles"]["answer"]
    assert node["serve"] is None
    assert fingerprint(node) == {
        "_target_": "graphcontext.generate.hf.HuggingFaceLLM",
        "_version_": 1,
        "model": "smollm2",
        "weights": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70-v1",
        "adapter": None,
        "dtype": "float32",
        "quantization": "none",
        "temperature": 0.0,
        "top_p": 1.0,
        "repetition_penalty": 1.1,
        "context_window": 8192,
        "system_role": True,
    }
    call = ["HuggingFaceLLM", 1], 8192, "smollm2", node["dtype"], "none", True, 1.1
    settings = HuggingFaceLLM(**{k: v for k, v in node.items() if k != "_target_"}).settings()
    names = ("backend", "context_window", "model", "dtype", "quantization", "system_role", "repetition_penalty")
    assert settings == {k: list(v) if k == "backend" else v for k, v in zip(names, call)} | {
        "weights": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70-v1"
    }


def test_a_model_that_is_not_here_is_named_at_the_first_call():
    llm = HuggingFaceLLM("nobody/nothing")
    with pytest.raises(MissingWeightsError, match="nobody/nothing"):
        llm.chat(REQUESTS, "answer", 5)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("dtype", "float8"),
        ("quantization", "2bit"),
        ("temperature", -1),
        ("top_p", 0),
        ("batch_size", 0),
        ("device", "tpu"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(argument, value):
    with pytest.raises(InputError, match=rf"{argument}={value}.*allowed"):
        HuggingFaceLLM("smollm2", **{argument: value})


def test_out_of_memory_ends_the_run_with_the_mend(tiny_llama, monkeypatch):
    def full(*arguments):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(CausalModel, "generate", full)
    with pytest.raises(RunError, match=r"lower llm\.batch_size"):
        HuggingFaceLLM(str(tiny_llama), device="cpu").chat(REQUESTS, "answer", 5)


@pytest.mark.needs_models
def test_smollm2_knows_the_capital_of_france():
    llm = HuggingFaceLLM("smollm2", device="cpu")
    (response,) = llm.chat([ask("q", "What is the capital of France?")], "answer", 16)
    assert "Paris" in response.text
    assert response.finish == "stop"
    ids = llm._loaded().encode([{"role": "user", "content": "port 8080"}], True)
    assert ids[:2] == [1, 9690]  # <|im_start|> system: one BOS
