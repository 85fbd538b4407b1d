"""What a training would take: counted by hand, against models that are built, and against what autograd keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphcontext import cli
from graphcontext.errors import InputError
from graphcontext.train import cost, outline
from graphcontext.train.batches import Deal, held_out_batches
from graphcontext.train.cost import TrainingCost, text, too_large, would_fit
from graphcontext.train.counts import counted
from graphcontext.train.examples import IGNORED, Example, Examples
from graphcontext.train.gpus import GPUS, free_memory_gib, gpu
from graphcontext.train.memory import GIB, NF4, Place, block, memory
from graphcontext.train.outline import Counts, Plan
from graphcontext.train.shape import Adapter, Shape, from_config, from_figures, linears, parameters, trainable
from graphcontext.train.speed import flops, hours, steps

TINY = Shape("llama", 2, 0, 8, 16, 2, 1, 4, 10, tied=True, gated=True)
SMOL = Shape("llama", 30, 0, 576, 1536, 9, 3, 64, 49152, tied=True, gated=True)
LLAMA_13B = Shape("llama", 40, 0, 5120, 13824, 40, 40, 128, 32000, tied=False, gated=True, stored="bfloat16")
FULL, LORA, QLORA = Adapter("full"), Adapter("lora", 2), Adapter("qlora", 2)
ROBERTA = {"layers": 12, "hidden": 768, "intermediate": 3072, "heads": 12, "kv_heads": 12, "head_dim": 64}
TRAINER: dict[str, Any] = {
    **{"data": "pairs", "epochs": 2.0, "max_steps": None, "batch_size": 4, "validations": 1, "max_tokens": 100},
    **{"accelerator": "cpu", "devices": 1, "nodes": 1, "strategy": "auto", "precision": "auto"},
    **{"micro_batch_size": 2, "gradient_checkpointing": False, "gpu": None},
}
COUNTS = Counts(pairs=10, held_out=4, prompt=30.0, answer=20.0, longest=100, learnt=40)
A100 = Place("gpu", bfloat16=True, low_weights=True)


def test_weights_by_hand() -> None:
    # a block: q 8·8, k and v 8·4 each, o 8·8, gate, up and down 8·16 each: 64 + 64 + 64 + 384 = 576
    # two of them, the embedding 10·8, norms 2·2·8 + 8
    assert parameters(TINY) == 2 * 576 + 80 + 40
    assert parameters(replace(TINY, tied=False)) == 2 * 576 + 160 + 40
    # rank 2: q 2·16, k and v 2·12, o 2·16, gate, up, down 2·24: 32 + 48 + 32 + 144 = 256 a block
    assert trainable(TINY, LORA) == trainable(TINY, QLORA) == 512
    assert trainable(TINY, replace(LORA, targets=("q_proj", "v_proj"))) == 2 * (32 + 24)
    assert trainable(TINY, FULL) == parameters(TINY) and trainable(TINY, Adapter("none")) == 0
    with pytest.raises(InputError, match=r"adapter\.targets: q: no linear layer of that name.*q_proj"):
        trainable(TINY, replace(LORA, targets=("q",)))


def test_published_sizes_from_the_figures_of_a_yaml() -> None:
    sizes = {"hidden": 5120, "intermediate": 13824, "heads": 40, "kv_heads": 40, "head_dim": 128, "vocabulary": 32000}
    found = from_figures({"parameters": 13015864320, "dtype": "bfloat16", "plan": {"layers": 40, **sizes}})
    assert found == LLAMA_13B and parameters(found) == 13015864320
    large = {"hidden": 1024, "intermediate": 4096, "heads": 16, "kv_heads": 16, "head_dim": 64}
    t5 = from_figures(
        {"parameters": 737668096, "plan": {"layers": 24, "encoder_layers": 24, "vocabulary": 32128, **large}}
    )
    assert (t5.family, t5.tied, t5.gated, t5.known) == ("t5", True, False, None)
    bart = {"layers": 12, "encoder_layers": 12, "vocabulary": 50265, **large}
    bart_large = from_figures({"parameters": 406291456, "plan": bart})
    assert (bart_large.family, bart_large.tied, bart_large.known) == ("bart", True, None)
    other = from_figures({"parameters": 13_000_000_000, "plan": {"layers": 40, **sizes}})  # of another architecture
    assert parameters(other) == 13_000_000_000
    with pytest.raises(InputError, match=r"llm x: no config\.json .* is here, and its YAML lacks plan\.hidden"):
        from_figures({"model": "x", "plan": {"layers": 40}})


def build(kind: str, **changes: Any) -> Any:
    """Build a tiny model with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    if kind == "llama":
        sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = {"vocab_size": 10, "num_key_value_heads": 1, "tie_word_embeddings": True, **sizes}
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**config | changes))
    if kind == "t5":
        config = {"vocab_size": 10, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
        return transformers.T5ForConditionalGeneration(transformers.T5Config(**config | changes))
    config = {"vocab_size": 10, "d_model": 8, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_layers": 1}
    config |= {"decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config |= {"max_position_embeddings": 20, "dropout": 0.1, "attention_dropout": 0.0}
    return transformers.BartForConditionalGeneration(transformers.BartConfig(**config | changes))


BUILT = [
    ("llama", {}),
    ("llama", {"tie_word_embeddings": False, "head_dim": 6}),
    ("t5", {}),
    ("t5", {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 2}),
    ("bart", {}),
]


@pytest.mark.parametrize(("kind", "changes"), BUILT)
def test_weights_are_those_of_built_models(kind: str, changes: dict[str, Any]) -> None:
    import peft

    model = build(kind, **changes)
    shape = from_config(model.config.to_dict())
    assert shape is not None and parameters(shape) == sum(p.numel() for p in model.parameters())
    for targets in (None, tuple(linears(shape))[:2]):
        wrapped = peft.get_peft_model(
            build(kind, **changes), peft.LoraConfig(r=3, target_modules=list(targets or linears(shape)))
        )
        assert trainable(shape, Adapter("lora", 3, targets=targets)) == wrapped.get_nb_trainable_parameters()[0]


@pytest.mark.needs_models
def test_weights_of_smollm2() -> None:
    from graphcontext.models import resolve
    from graphcontext.train.shape import shape_of

    shape = shape_of({"model": "smollm2", "revision": None})
    assert shape == SMOL and parameters(shape) == 134515008
    assert trainable(shape, Adapter("lora", 16)) == 4884480  # as peft counts for its seven kinds of linear layers
    assert (resolve("smollm2") / "config.json").is_file()


def kept_bytes(model: Any, **inputs: Any) -> int:
    """Return what autograd keeps of a forward pass besides weights."""
    import torch

    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seen: dict[int, int] = {}

    def note(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        kept = model(**inputs, use_cache=False)  # alive while it is counted
    assert kept.logits is not None
    return sum(seen.values())


@pytest.mark.parametrize("adapter", [FULL, LORA, replace(LORA, dropout=0.1)], ids=["full", "lora", "lora dropout"])
@pytest.mark.parametrize("kind", ["llama", "t5", "bart"])
def test_a_block_keeps_what_autograd_keeps(kind: str, adapter: Adapter) -> None:
    # a model with one more block keeps that block's share more: 2 examples of 12 tokens
    import peft
    import torch

    ids = torch.randint(3, 9, (2, 12))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    inputs |= {} if kind == "llama" else {"decoder_input_ids": ids}
    depth = {"llama": "num_hidden_layers", "t5": "num_layers", "bart": "encoder_layers"}[kind]
    one_decoder = {"llama": {}, "t5": {"num_decoder_layers": 1}, "bart": {"decoder_layers": 1}}[kind]
    found = []
    for n in (1, 2):
        model = build(kind, **one_decoder, **{depth: n})
        shape = from_config(model.config.to_dict())
        assert shape is not None
        if adapter.low_rank:
            settings = {"r": adapter.rank, "lora_dropout": adapter.dropout, "target_modules": list(linears(shape))}
            model = peft.get_peft_model(model.requires_grad_(False), peft.LoraConfig(**settings))
        found.append(kept_bytes(model.train(), **inputs))
    assert (found[1] - found[0]) / 24 == pytest.approx(block(shape, adapter, Place(), 12), rel=0.05)


def test_memory_by_hand() -> None:
    # of 1272 weights, 4 bytes each as weights and gradients, 8 for AdamW's moments, and its copies of the largest
    # tensor (16·8) in a step, twice; logits of 2 · 40 tokens · 10 words: three float32 tensors
    found = memory(TINY, FULL, TRAINER, 100, learnt=40)
    assert found["weights"] * GIB == found["gradients"] * GIB == 4 * 1272 and found["adapter"] == 0
    assert found["optimiser"] * GIB == pytest.approx(8 * 1272 + 2 * 4 * 128)
    assert found["logits"] * GIB == pytest.approx(80 * 10 * 12)
    # LoRA: 512 weights are trained; the base is frozen
    found = memory(TINY, LORA, TRAINER, 100)
    assert found["weights"] * GIB == 4 * 1272 and found["adapter"] * GIB == found["gradients"] * GIB == 4 * 512
    packed = memory(TINY, QLORA, TRAINER, 100, A100)  # 1152 weights of blocks in 4 bits, the rest in 32
    assert packed["weights"] * GIB == pytest.approx(NF4 * 1152 + 4 * 120)
    none = memory(TINY, Adapter("none"), TRAINER, 100)
    assert none["gradients"] == none["optimiser"] == none["adapter"] == 0 and none["activations"] > 0


def test_checkpointing_sharding_and_precision_take_less() -> None:
    plain = memory(SMOL, LORA, TRAINER, 100)
    light = memory(SMOL, LORA, {**TRAINER, "gradient_checkpointing": True}, 100)
    # 30 inputs of blocks and one whole block, of 30 whole blocks
    assert light["activations"] < plain["activations"] / 8 and light["weights"] == plain["weights"]
    single = memory(LLAMA_13B, FULL, TRAINER, 100, A100)
    sharded = memory(LLAMA_13B, FULL, TRAINER, 100, replace(A100, strategy="fsdp", ranks=8))
    assert sharded["gradients"] == pytest.approx(single["gradients"] / 8)
    # an eighth, and one block (12.69e9 / 40) with embedding and output layer (2 · 32000 · 5120) in float32
    assert sharded["weights"] == pytest.approx(single["weights"] / 8 + 4 * (12.688e9 / 40 + 327.68e6) / GIB, rel=1e-3)
    ddp = memory(LLAMA_13B, LORA, TRAINER, 100, replace(A100, strategy="ddp", ranks=8))
    assert ddp == memory(LLAMA_13B, LORA, TRAINER, 100, A100)
    assert ddp["weights"] == pytest.approx(2 * 13015864320 / GIB)
    kept = memory(LLAMA_13B, LORA, TRAINER, 100, replace(A100, low_weights=False))
    assert kept["weights"] == pytest.approx(4 * 13015864320 / GIB) and kept["activations"] > ddp["activations"] + 20


def test_steps_and_operations_by_hand() -> None:
    # 10 pairs in batches of 4: 3 steps an epoch, two epochs
    assert steps(TRAINER, 10) == 6 and steps({**TRAINER, "max_steps": 5}, 10) == 5
    assert steps({**TRAINER, "epochs": 0.1}, 10) == 1 and steps(TRAINER, 3) == 2
    # 50 tokens · 2 · 1152 weights, attention 2 layers · 2 · 8 · 50², logits of 20 answer tokens · 2 · 80: 198,400
    learn, look = flops(TINY, FULL, 30, 20, False)
    assert look == 115_200 + 80_000 + 3_200 and learn == 3 * look
    learn, look = flops(TINY, LORA, 30, 20, False)  # and 512 weights of the adapter, there, back, and their own
    assert look == 198_400 + 51_200 and learn == 2 * look + 51_200
    again, _ = flops(TINY, LORA, 30, 20, True)
    assert again == learn + 195_200
    assert flops(TINY, Adapter("none"), 30, 20, False) == (0.0, 198_400)


def plan(shape: Shape = TINY, adapter: Adapter = LORA, gpu: str | None = None, **changes: Any) -> Plan:
    return Plan({"model": "m", "dtype": "bfloat16"}, shape, adapter, {**TRAINER, **changes}, COUNTS, gpu)


def test_hours_stand_on_a_data_sheet_or_a_measurement() -> None:
    # 6 steps of 4 pairs, and 3 times (before, and after each epoch) the loss of 4 held-out ones
    learn, look = flops(TINY, LORA, 30, 20, False)
    found, said = hours(plan(gpu="A100-80GB"), 6)
    assert found == pytest.approx((24 * learn + 12 * look) / (312e12 * 0.3) / 3600)
    assert said == "speed on A100-80GB: assumed (312 TFLOPS by its data sheet, 30% of it)"
    assert hours(plan(gpu="T4"), 6)[1].startswith("speed on T4: assumed (8.1 TFLOPS")  # no bfloat16 there
    measured = plan(adapter=Adapter("lora", 16))
    learn, look = flops(TINY, measured.adapter, 30, 20, False)
    each, _ = flops(TINY, measured.adapter, 128, 128, False)
    measured = replace(measured, node={"plan": {"tokens_per_second": {"cpu": {"train": 50}}}})
    assert hours(measured, 6) == (pytest.approx((24 * learn + 12 * look) / (50 * each / 256) / 3600), "")
    assert hours(plan(), 6)[1] == "speed on this CPU: assumed (100 GFLOPS)"


def test_what_would_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tight = plan(LLAMA_13B, replace(LORA, dropout=0.05), "A100-40GB")
    counts = replace(COUNTS, longest=1024, learnt=512)
    tight = replace(tight, counts=counts)
    assert tight.needed() > 39
    said = would_fit(tight)
    assert said.startswith("trainer.gradient_checkpointing=true, or ") and said.endswith("a GPU of 79 GiB (A100-80GB)")
    assert "adapter=qlora" in said and said.count("trainer=fsdp") == 1 and "trainer.devices=4" in said
    small = replace(tight, gpu="T4")  # 4-bit weights alone take 7 GiB: one change is not enough
    assert would_fit(small).startswith(
        "trainer.micro_batch_size=1 trainer.gradient_checkpointing=true adapter=qlora, or "
    )
    # fsdp: the smallest number of GPUs that holds it, here 8: 4 + 4 + 8 + 4 bytes of 13.0e9 weights are 242 GiB
    full = replace(plan(LLAMA_13B, FULL, "H100-80GB"), counts=replace(counts, longest=64, learnt=32))
    assert would_fit(full).count("trainer=fsdp") == 1 and "trainer=fsdp trainer.devices=8" in would_fit(full)
    monkeypatch.setattr(outline, "free_memory_gib", lambda: 0.1)
    assert would_fit(plan()) == "a GPU of 14.5 GiB (T4)"  # on a CPU, too little for Python itself


def test_a_pass_is_no_larger_than_a_ranks_part_of_the_batch() -> None:
    # 10 pairs in batches of 4: a pass of one process holds 4 of them at most, one of three ranks 2
    large = {**TRAINER, "micro_batch_size": 10**9}
    assert replace(plan(), trainer=large).parts() == replace(plan(), trainer={**TRAINER, "micro_batch_size": 4}).parts()
    assert replace(plan(), trainer={**large, "devices": 3}).micro == 2
    assert replace(plan(), trainer={**large, "batch_size": 10**9}).micro == 10  # all pairs
    single = replace(plan(), trainer={**large, "batch_size": 1})
    assert single.micro == 1 and "micro_batch_size" not in would_fit(single)
    assert Deal(2, 10**9).within(4) == Deal(2, 2) and Deal(2, 1).within(4) == Deal(2, 1)
    assert held_out_batches([5] * 6, Deal(1, 10**9).within(4), 0) == [[0, 1, 2, 3], [4, 5]]


def test_no_more_than_one_validation_a_step_is_planned() -> None:
    often = replace(plan(), trainer={**TRAINER, "validations": 1e300})
    every = replace(plan(), trainer={**TRAINER, "validations": 3})  # 3 steps an epoch
    assert hours(often, 6) == hours(every, 6)


def test_validations_after_the_last_step_are_not_planned() -> None:
    # ended by max_steps: 6 steps are 2 of 1000 epochs of 3 steps, so 2 validations and that of the base
    many = replace(plan(), trainer={**TRAINER, "epochs": 1000.0, "max_steps": 6})
    assert hours(many, 6) == hours(plan(), 6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trainer.gpu=4090"], "trainer.gpu=4090; did you mean RTX-4090? (allowed: A100-40GB"),
        (["adapter.targets=[1]"], "adapter.targets=[1]; allowed: a list of names of modules, or null"),
        (["adapter.targets={a:1}"], "allowed: a list of names of modules, or null"),
        (["adapter.targets=[q_porj]"], "did you mean q_proj?"),
        (["adapter.rank=0"], "adapter.rank=0; allowed: 1 and more"),
        (["adapter.alpha=inf"], "adapter.alpha=inf; allowed: above 0, and finite"),
        (["trainer.schedule=3"], "trainer.schedule=3"),
        (["trainer.devices=1000000000"], "trainer.devices=1000000000"),
    ],
)
def test_what_train_refuses_is_not_planned(words: list[str], message: str, capsys) -> None:
    assert cli.main(["plan", "experiment=gcg/sft", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", "lacks kind, quantization; an adapter has a class attribute kind (none, full, lora, qlora)"),
        ('kind, quantization = "lora", "none"', ""),
        ('kind, quantization = "dora", "none"', "Own.kind=dora; did you mean lora? (allowed: full, lora, none, qlora)"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "train"])
def test_an_adapter_class_of_ones_own_says_what_it_is(tmp_path, monkeypatch, capsys, verb, body, message) -> None:
    name = f"own_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"class Own:\n    {body}\n    def wrap(self, network): return network\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "conf" / "adapter").mkdir(parents=True)
    (tmp_path / "conf" / "adapter" / "own.yaml").write_text(f"_target_: {name}.Own\n")
    if not message:
        verb = "plan"
    given = ["--config-dir", str(tmp_path / "conf"), "trainer.gpu=A100-80GB"]
    code, said = cli.main([verb, "experiment=gcg/sft", "adapter=own", *given]), capsys.readouterr()
    assert (code, message in said.err) == (2 if message else 0, True)


def made_up(**changes: Any) -> TrainingCost:
    parts = {"weights": 0.5, "activations": 2.25, "adapter": 0.001}
    found = TrainingCost("gcg/sft", "smollm2", "lora", 1000, 10, COUNTS, 6, 1200, parts, 1, 0.25, "cpu", 2.0)
    return replace(found, **changes)


def test_a_training_too_large_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = too_large(made_up(mend="trainer.micro_batch_size=1"))
    assert said == (
        "lora on smollm2 needs 2.8 GiB (activations 2.2, weights 0.5); 2.0 GiB are free on this machine; "
        "would fit: trainer.micro_batch_size=1"
    )
    assert "nothing that plan knows of" in too_large(made_up())
    assert "(2 processes of activations" in too_large(made_up(processes=2))
    monkeypatch.setattr(cost, "training_cost", lambda *_, **__: made_up())
    with pytest.raises(InputError, match=r"needs 2\.8 GiB"):
        cost.refuse({"trainer": {}}, COUNTS)
    monkeypatch.setattr(cost, "training_cost", lambda *_, **__: made_up(free=None))  # not known: not refused
    cost.refuse({"trainer": {}}, COUNTS)

    def unknown(*_: Any, **__: Any) -> None:
        from_figures({})

    monkeypatch.setattr(cost, "training_cost", unknown)
    cost.refuse({"trainer": {}}, COUNTS)


def test_text_is_a_table() -> None:
    said = text([made_up(assumed=("speed: assumed",), mend="adapter=qlora")])
    assert said.splitlines() == [
        "training      gcg/sft: lora on smollm2",
        "parameters    1,000, trained 10 (1.00%)",
        "examples      10 and 4 held out; mean 50 tokens, longest 100",
        "steps         6, 1,200 tokens",
        "memory        2.8 GiB, 2.0 GiB free",
        "              weights 0.50, activations 2.25",
        "hours         0.25 on cpu",
        "              speed: assumed",
        "does not fit  would fit: adapter=qlora",
    ]
    assert "would fit" not in text([made_up(free=4.0)]) and "unknown" in text([made_up(free=None)])


def test_free_memory_is_the_machines_or_the_cgroups(tmp_path: Path) -> None:
    assert free_memory_gib(tmp_path) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n")
    assert free_memory_gib(tmp_path) == 8
    job = tmp_path / "sys/fs/cgroup/job/step"
    job.mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job/step\n")
    (job / "memory.max").write_text("max\n")
    assert free_memory_gib(tmp_path) == 8
    # the job may have 4 GiB and holds 1 in memory of its own; what files take does not count
    (job.parent / "memory.max").write_text(f"{4 * 2**30}\n")
    (job.parent / "memory.stat").write_text(f"anon {2**30}\nfile {2**31}\n")
    assert free_memory_gib(tmp_path) == 3


def test_counts_of_examples_that_are_made() -> None:
    # prompts of 6 and 2 tokens, answers of 4 and 3; the longest has 10, and its batch learns from position 6 on
    examples = [Example("a", (1,) * 10, (IGNORED,) * 6 + (1,) * 4), Example("b", (1,) * 5, (IGNORED,) * 2 + (1,) * 3)]
    found = counted(Examples(examples), Examples(examples[:1]))
    # with b, which is half as long, in its batch, it has logits from position 2 on
    assert found == Counts(pairs=2, held_out=1, prompt=4.0, answer=3.5, longest=10, learnt=8)
    pairs = [Example("a", (1,) * 6, (1,) * 4), Example("b", (1,) * 2, (1,) * 3)]
    assert counted(Examples(pairs), Examples(), separate=True) == Counts(2, 0, 4.0, 3.5, 6, 4)


def test_gpus_by_name() -> None:
    assert gpu("A100-80GB") == GPUS["A100-80GB"]
    with pytest.raises(InputError, match=r"trainer\.gpu=A100-80; did you mean A100-80GB\? \(allowed: A100-40GB"):
        gpu("A100-80")


def test_a_sentence_encoder_has_the_weights_that_are_built() -> None:
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=80, max_position_embeddings=32, **sizes)
    built = BertModel(config, add_pooling_layer=False)
    shape = from_config(config.to_dict())
    assert shape is not None and parameters(shape) == sum(weight.numel() for weight in built.parameters())
    # as published, without the pooler: 50265 · 768 + 515 · 768 + 12 · 7,087,872 + 2 · 768
    assert parameters(from_figures({"plan": {"family": "bert", "vocabulary": 50265, **ROBERTA}})) == 124_055_040


def test_no_logits_and_no_adapter_are_planned_for_a_sentence_encoder() -> None:
    shape = Shape("bert", 12, 0, 768, 3072, 12, 12, 64, 50265, tied=True, gated=False, positions=515)
    counts = Counts(100, 10, 500.0, 0.0, 1000, 0)
    trainer = {**TRAINER, "data": "bi_encoder", "micro_batch_size": 64, "accelerator": "gpu"}
    plan = Plan({"model": "x"}, shape, FULL, trainer, counts, "A10G")
    assert plan.parts()["logits"] == 0 and "adapter" not in would_fit(plan) and "fsdp" not in would_fit(plan)
    assert "trainer.micro_batch_size=1" in would_fit(plan)
