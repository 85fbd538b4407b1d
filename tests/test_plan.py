"""What a run or table would cost, before any of it is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphcontext import api, plan
from graphcontext.cli import main
from graphcontext.config import compose
from graphcontext.plan import Cost, cost, estimate, memory_gib, text, weights_gib
from graphcontext.run_folder import Run
from graphcontext.table.expand import configs
from graphcontext.train.counts import counts_of

CONF = str(Path(__file__).parent / "table" / "conf")
LLAMA = {
    "parameters": 13015864320,
    "dtype": "bfloat16",
    "quantization": "none",
    "batch_size": 16,
    "plan": {"layers": 40, "kv_heads": 40, "head_dim": 128},
}


def test_llama_13b_by_hand() -> None:
    # 13.016e9 · 2 bytes = 24.24 GiB; cache: 2 · 40 · 40 · 128 · 2 = 819,200 bytes a token, 16 · 1000 tokens: 12.21 GiB
    assert weights_gib(LLAMA) == pytest.approx(24.24, abs=0.01)
    assert memory_gib(LLAMA, 1000) == pytest.approx(24.24 + 12.21, abs=0.01)
    assert weights_gib({**LLAMA, "quantization": "4bit"}) == pytest.approx(6.67, abs=0.01)
    assert weights_gib({**LLAMA, "dtype": "float32"}) == pytest.approx(48.49, abs=0.01)
    assert weights_gib({"model": "gpt"}) == 0


def test_a_run_at_the_papers_scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    words = ("experiment=gcg/text_gen", "scale=paper", "dataset.limit=100")
    found = cost("row", api.compose(*words).config)
    # a prompt: 60 + 220 of the question + 2 passages of 220 + 230 tokens; 512 new ones
    assert (found.n_questions, found.calls, found.prompt_tokens, found.new_tokens) == (100, 100, 118_000, 51_200)
    assert found.hours == pytest.approx((118_000 / 7000 + 51_200 / 300) / 3600) and found.device == "gpu"
    assert found.vram_gib == pytest.approx(24.24 + 16 * 1692 * 819_200 / 2**30, abs=0.01)
    assert found.assumed and not found.untrained
    assert "meta-llama/Llama-2-13b-chat-hf" in found.missing and "BAAI/bge-large-en" in found.missing
    tuned = cost("tuned", api.compose(*words, "llm.adapter=gcg/sft").config)
    said = text([found, tuned])
    assert "total: 2 runs, 200 calls, 338,400 tokens, 44.9 GiB VRAM" in said
    assert "sizes: assumed in the data sets' YAML" in said and "not on this machine: " in said
    assert "to be trained first: adapter gcg/sft, for 1 of these runs" in said


def test_the_calls_of_a_traversal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "none"))
    words = ("scale=paper", "retriever=traversal", "agent=causal", "enhancer=none", "generator=none", "metric=[]")

    def calls(*more: str) -> int:
        return cost("row", api.compose(*words, "dataset.limit=100", *more).config).calls

    assert calls() == 1000 and calls("retriever.branching=10") == 300  # one a seed: 30 // branching
    # Algorithm 1 within 30 passages: 20 after 10 seeds, by threes or, where neighbours are few, one by one
    assert calls("retriever.mode=paper") == 1000 and calls("retriever.mode=paper", "retriever.n_seeds=30") == 0
    assert calls("retriever.mode=paper", "retriever.max_hops=null") == 3000
    assert calls("agent=tfidf") == calls("agent=random") == 0
    planned = cost("row", api.compose(*words, "dataset.limit=100").config)
    # a prompt: 60 + 220 of the question + a passage of 220 + 230 tokens; 48 new ones
    assert (planned.prompt_tokens, planned.new_tokens) == (730_000, 48_000)
    other = api.compose(*words, "llm@roles.agent=t5_large", "agent=seq2seq").config["retriever"]["agent"]
    assert other["llm"]["model"] == "google-t5/t5-large" and other["max_new_tokens"] == 48


def test_the_calls_of_ircot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path / "none"))
    words = ("scale=paper", "retriever=ircot", "enhancer=none", "generator=none", "metric=[]", "dataset.limit=100")
    planned = cost("row", api.compose(*words).config)
    # 5 sentences of 48 tokens a question; a prompt: 60 + 220 of the question + 15 passages of 220 + 230 tokens
    assert (planned.calls, planned.prompt_tokens, planned.new_tokens) == (500, 3_515_000, 24_000)


def test_equal_runs_count_once_and_counts_replace_assumptions() -> None:
    costs = estimate(configs(["tests/tiny"], ["dataset.limit=3"], CONF))
    assert [c.label for c in costs] == [
        f"{row} on cqa_sample" for row in ("base", "twin", "other", "fallen", "extract", "absent")
    ]
    calls = {c.label.split()[0]: c.calls for c in costs}
    assert calls == {"base": 3, "twin": 3, "other": 3, "fallen": 3, "extract": 0, "absent": 3}
    assert "total: 5 runs, 12 calls" in text(costs)  # twin is base
    assert "not on this machine: nowhere/absent" in text(costs) and all(c.assumed for c in costs)

    run: Run = api.run("experiment=tests/extract", "dataset.limit=3", config_dir=CONF)  # reads the data
    counted = estimate(configs(["tests/tiny"], ["dataset.limit=3"], CONF))
    assert run.metrics["n"] == 3 and not any(c.assumed for c in counted)
    assert "assumed" not in text(counted) and counted[0].prompt_tokens != costs[0].prompt_tokens
    assert (
        plan.size(api.compose("experiment=tests/extract", "dataset.limit=1000", config_dir=CONF).config).n_questions
        < 50
    )


def test_a_training_is_planned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphcontext.train.cost.hours", lambda *_: (0.5, "speed: assumed"))
    words = ["experiment=gcg/sft", "llm=llama2_13b", "scale=paper", "dataset=askubuntu", "trainer.epochs=1"]
    assert main(["plan", *words, "adapter.rank=8", "trainer.gpu=H200"]) == 0
    said = capsys.readouterr().out
    # rank 8: 8 · 40 · (4 · 2 · 5120 + 3 · (5120 + 13824)); pairs: nine tenths of 15000
    assert "trained 31,293,440 (0.24%)" in said and "examples      13,500 and 100 held out" in said
    # prompt 60 + 220 tokens, answer 230: 13500 / 16 steps
    assert "mean 510 tokens, longest 1530" in said and "steps         844, " in said
    assert "hours         0.50 on H200" in said and "examples: assumed in the data set's YAML" in said
    assert main(["plan", *words, "trainer.gpu=T4"]) == 2
    told = capsys.readouterr()
    assert "does not fit  would fit: " in told.out and "14.5 GiB are free on T4; would fit: " in told.err
    assert main(["plan", "trainer.gpu=T5"]) == 2
    assert "trainer.gpu=T5 (allowed: A100-40GB" in capsys.readouterr().err


def test_a_table_says_what_its_adapters_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "gcg/t3", "table.rows=graph_gen,graph_gen_sft", "scale=sample"]) == 0
    runs, training = capsys.readouterr().out.split("\n\n")
    assert "to be trained first: adapter gcg/sft, for 1 of these runs" in runs
    assert training.startswith("training      gcg/sft on cqa_sample: lora on smollm2\n")
    assert "trained 4,884,480" in training


def test_pairs_are_counted_where_the_data_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    config = api.compose("experiment=gcg/zero_shot", "generator=none", "metric=[]")
    api.run("experiment=gcg/zero_shot", "generator=none", "retriever=bm25", "dataset.limit=2")
    assert plan.card(config.config, Path(".")) is not None
    training = compose(["experiment=gcg/sft", "trainer.max_tokens=512"], primary="train").config
    found = counts_of(training)
    assert found.known == "examples: nine tenths of the pool" and found.pairs > 50 and 100 < found.longest <= 512
    few = compose(["experiment=gcg/sft", "trainer.pairs=5", "trainer.held_out=3"], primary="train").config
    assert (counts_of(few).pairs, counts_of(few).held_out) == (5, 3)
    text_alone = compose(["experiment=gcg/sft", "trainer.data=text", "trainer.max_tokens=64"], primary="train").config
    blocks = counts_of(text_alone)
    assert blocks.answer == blocks.longest == blocks.learnt == 64 and blocks.pairs > found.pairs


def test_plan_of_training_on_questions_with_a_corpus_each(tmp_path: Path) -> None:
    # the pool holds passages: what trains is counted apart
    config = compose(["experiment=kgp/train_agent", "scale=paper"], primary="train").config
    config["dataset"]["plan"] = {"n_pool": 9000, "n_questions": 30, "n_train": 80} | {
        "tokens_per_question": 20,
        "tokens_per_answer": 40,
    }
    found = counts_of(config, tmp_path)
    assert (found.pairs, found.held_out) == (72, 8)
    assert found.known == "examples: assumed in the data set's YAML, the longest taken for 3 times the mean"


def test_nothing_to_run_is_said() -> None:
    assert text(estimate([])) == "nothing to run"
    assert configs(["gcg/t5"], []) == []  # a table of settings


def made_up(label: str, hours: float, calls: int = 10) -> Cost:
    return Cost(label, label, 24, calls, 0, 0, 0.0, 0.0, hours, "cpu", (), False)


def test_a_budget_gives_one_size_to_all_llm_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 + 2 + 0 hours for a budget of 1: a third of 24 questions is 8
    planned = {"a": made_up("a", 1.0), "b": made_up("b", 2.0), "c": made_up("c", 0.0, calls=0)}
    monkeypatch.setattr(plan, "cost", lambda name, config, root: planned[name])

    def limits(hours: float | None) -> list[int | None]:
        return plan.budgeted_limits([(name, {"budget": {"hours": hours}}) for name in planned])

    assert limits(1.0) == [8, 8, None]
    assert limits(3.0) == limits(None) == [None, None, None]
    assert limits(0.01) == [0, 0, None] and plan.budgeted_limits([]) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["experiment=gcg/sft", "dataset=jsonl", "dataset.path=./nowhere"], "dataset.path=./nowhere: no such file"),
        (["dataset=jsonl", "dataset.path=./nowhere"], "dataset.path=./nowhere: no such file"),
        (["experiment=gcg/sft", "dataset=jsonl"], "no data: jsonl; looked at "),
        (["gcg/sft"], "table 'gcg/sft': no such table; did you mean experiment=gcg/sft?"),
    ],
)
def test_data_of_ones_own_that_is_not_there_is_not_planned(capsys, words: list[str], message: str) -> None:
    assert main(["plan", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
