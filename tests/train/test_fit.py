"""Whole trainings in this process: what is written, what is taken again, and every refusal in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import types

import pytest
import torch

from graphcontext import api, cli
from graphcontext.errors import InputError, RunError
from graphcontext.generate.adapters import merge
from graphcontext.generate.causal_model import CausalModel
from graphcontext.generate.seq2seq_model import Seq2SeqModel
from graphcontext.train import command, fit, strategy
from tests.tiny_models import save_tiny_bart, save_tiny_t5
from tests.train import tiny

SHORT = ("trainer.max_steps=2", "trainer.max_tokens=40")


@pytest.fixture
def train(words, tmp_path):
    return lambda *more: api.train(*words(*more), root=tmp_path)


def refused(train, *more):
    """Return the one line that a training is refused with."""
    with pytest.raises(InputError) as caught:
        train(*more)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    return str(caught.value)


def logits(network, ids=((1, 5, 6, 7, 8),)):
    ids = torch.tensor(ids)
    given = {"decoder_input_ids": ids} if network.config.is_encoder_decoder else {}
    with torch.inference_mode():
        return network.eval()(input_ids=ids, **given).logits


class TestResult:
    @pytest.fixture(scope="class")
    def done(self, data, llama, tmp_path_factory):
        return api.train(*tiny.words(data, llama), root=tmp_path_factory.mktemp("done"))

    def test_the_loss_falls_on_held_out_pairs(self, done):
        held = done.facts["held_out_loss"]
        assert held["best"] < held["base"] - 0.1 and done.facts["steps"] == 9
        assert done.facts["examples"]["train"]["pairs"] == 12 and done.facts["examples"]["validation"]["pairs"] == 5

    def test_t25_loaded_as_a_run_loads_it_and_merged_the_logits_agree(self, done, llama):
        plain, tuned = (CausalModel(llama, a, "float32", "none", "cpu") for a in (None, str(done.path)))
        plain.load_weights()
        tuned.load_weights()
        loaded = logits(tuned.weights)
        assert (logits(plain.weights) - loaded).abs().max() > 1e-3
        assert (logits(merge(tuned.weights)) - loaded).abs().max() < 1e-4

    def test_the_loaded_adapter_has_the_held_out_loss_that_was_measured(self, done, llama, words):
        """What is evaluated is what was trained: −log p of the held-out answers, by the model as a run loads it."""
        model = CausalModel(llama, str(done.path), "float32", "none", "cpu")
        model.load_weights()
        total, n = 0.0, 0
        for i, noun in enumerate(tiny.HELD_OUT, len(tiny.THINGS)):
            said = ({"role": "user", "content": tiny.question(i, noun).strip()},)
            opened = (*said, {"role": "assistant", "content": "Answer:"})
            prompt, target = model.encode_answered(opened, tiny.answer(i, noun).strip(), True)
            target = [*target, model.tokenizer.eos_token_id]
            log_p = logits(model.weights, [[*prompt, *target]])[0].log_softmax(-1)
            total -= sum(log_p[len(prompt) + j - 1, t].item() for j, t in enumerate(target))
            n += len(target)
        assert total / n == pytest.approx(done.facts["held_out_loss"]["best"], abs=1e-4)

    def test_the_folder_is_plain_peft_with_what_it_was_made_from_beside_it(self, done, llama):
        found = {p.name for p in done.path.iterdir()}
        assert {"adapter_config.json", "adapter_model.safetensors", "manifest.json", "config.yaml"} <= found
        assert {"metrics.csv", "loss.png", "done.json"} <= found and not [n for n in found if n.startswith(".")]
        manifest = json.loads((done.path / "manifest.json").read_text())
        assert manifest["base"]["model"] == llama.name and len(manifest["base"]["weights"]) == 64
        assert {"template", "prompt", "seed", "kept_step", "trained_parameters"} <= set(manifest)
        names = list(tiny.weights(done.path))
        assert all(name.startswith("base_model.model.model.layers.") and ".default" not in name for name in names)

    def test_the_picks_of_the_csv_are_those_of_the_manifest(self, done):
        rows = tiny.metrics(done.path)
        held = {int(row["step"]): float(row["held_out_loss"]) for row in rows if row["held_out_loss"]}
        assert set(held) == {0, 3, 6, 9}  # before the first step, and after each epoch
        best = min((step for step in held if step), key=held.get)
        assert done.facts["kept_step"] == best
        assert held[best] == pytest.approx(done.facts["held_out_loss"]["best"], rel=1e-5)

    def test_what_is_done_is_not_done_again_and_what_is_damaged_is(self, done, data, llama):
        root = done.path.parents[2]
        before = {p.name: p.stat().st_mtime_ns for p in done.path.iterdir()}
        again = api.train(*tiny.words(data, llama), root=root)
        assert again.said == ("trained before",) and again.facts == done.facts
        assert {p.name: p.stat().st_mtime_ns for p in done.path.iterdir()} == before
        file = done.path / "adapter_model.safetensors"
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([255 - whole[-1]]))
        assert api.train(*tiny.words(data, llama), root=root).path == done.path
        assert file.read_bytes() == whole


class TestKinds:
    def test_qlora_learns_on_a_cpu(self, train, tmp_path):
        pytest.importorskip("bitsandbytes")
        big = tiny.save_llama(tmp_path / "big", hidden_size=64)
        done = train(f"llm.model={big}", "adapter=qlora", "trainer.epochs=2.0")
        assert done.facts["quantization"] == "4bit"
        assert done.facts["held_out_loss"]["best"] < done.facts["held_out_loss"]["base"]
        model = CausalModel(big, str(done.path), "float32", "4bit", "cpu")
        model.load_weights()
        assert torch.isfinite(logits(model.weights)).all()

    @pytest.mark.parametrize("save", [save_tiny_t5, save_tiny_bart], ids=["t5", "bart"])
    def test_an_encoder_decoder_is_tuned_and_loads(self, train, tmp_path, save):
        folder = save(tmp_path / "m")
        done = train("llm=t5_large", f"llm.model={folder}", "llm.revision=null", "scale=paper", *SHORT)
        model = Seq2SeqModel(folder, "float32", "cpu", str(done.path))
        model.load_weights()
        base = Seq2SeqModel(folder, "float32", "cpu")
        base.load_weights()
        assert (logits(model.weights) - logits(base.weights)).abs().max() > 0
        assert json.loads((done.path / "adapter_config.json").read_text())["task_type"] == "SEQ_2_SEQ_LM"

    def test_full_tuning_is_a_model_folder(self, data, llama, tmp_path):
        given = [word for word in tiny.words(data, llama, *SHORT) if not word.startswith("adapter.")]
        done = api.train(*given, "adapter=full", "trainer.keep=last", root=tmp_path)
        model = CausalModel(llama, str(done.path), "float32", "none", "cpu")
        model.load_weights()
        plain = CausalModel(llama, None, "float32", "none", "cpu")
        plain.load_weights()
        assert (logits(model.weights) - logits(plain.weights)).abs().max() > 1e-3

    def test_none_measures_the_base_alone(self, data, llama, tmp_path, train):
        given = [word for word in tiny.words(data, llama, *SHORT) if not word.startswith("adapter.")]
        done = api.train(*given, "adapter=none", root=tmp_path)
        tuned = train(*SHORT)
        assert done.facts["held_out_loss"] == {"base": tuned.facts["held_out_loss"]["base"], "best": None}
        assert not list(done.path.glob("*.safetensors"))

    @pytest.mark.parametrize("adapter", ["adapter=none", "adapter=lora"])
    def test_a_base_whose_loss_is_no_number_is_refused_before_the_first_step(self, data, tmp_path, adapter):
        from transformers import AutoModelForCausalLM

        folder = tiny.save_llama(tmp_path / "broken")
        model = AutoModelForCausalLM.from_pretrained(folder)
        torch.nn.init.constant_(model.model.norm.weight, float("nan"))
        model.save_pretrained(folder)
        given = [word for word in tiny.words(data, folder, *SHORT) if not word.startswith("adapter.")]
        with pytest.raises(InputError, match=r"^the held-out loss of the base model is nan: its weights are damaged"):
            api.train(*given, adapter, root=tmp_path)
        assert not list((tmp_path / "store" / "adapter").rglob("done.json"))

    def test_text_is_packed(self, train):
        done = train("trainer.data=text", "trainer.max_tokens=16", "trainer.max_steps=2", "trainer.batch_size=2")
        examples = done.facts["examples"]
        assert examples["train"]["longest"] == 16 and examples["train"]["tokens"] == 18 * 9  # <s> … 7 words … </s>
        assert examples["validation"]["pairs"] == 1


class TestPatience:
    def test_it_stops_when_the_held_out_loss_rises_and_a_resume_stays_stopped(self, train):
        rising = ["trainer.learning_rate=0.5", "trainer.epochs=20.0", "trainer.patience=2", "trainer.schedule=constant"]
        done = train(*rising)
        assert done.facts["steps"] < done.facts["of_steps"] == 60
        assert done.facts["steps"] == done.facts["kept_step"] + 2 * 3 or done.facts["kept_step"] == 0


class TestRefusals:
    def test_an_empty_training_split(self, train, tmp_path):
        data = tiny.save_data(tmp_path / "data")
        rows = [line for line in (data / "questions.jsonl").read_text().splitlines() if '"train"' not in line]
        (data / "questions.jsonl").write_text("\n".join(rows))
        assert "train" in refused(train, f"dataset.path={data}")

    def test_prompts_that_are_all_too_long(self, train):
        line = refused(train, "trainer.max_tokens=8")
        assert line.startswith("nothing to train on: train: 0 examples")
        assert "left out 12: no room for an answer in trainer.max_tokens=8" in line

    def test_an_answer_longer_than_the_window_is_cut_and_counted(self, train, tmp_path):
        narrow = tiny.save_llama(tmp_path / "narrow", max_position_embeddings=22)
        done = train(f"llm.model={narrow}", "trainer.max_steps=1", "trainer.max_tokens=2048")
        counts = done.facts["examples"]["train"]
        assert counts["longest"] == 22 and counts["cut"] > 0
        assert counts["pairs"] + sum(counts["skipped"].values()) == 12

    def test_a_loss_that_is_no_number(self, train):
        line = refused(train, "trainer.learning_rate=1e30", "trainer.clip=null")
        assert line.startswith("the ") and "at step " in line and "lower trainer.learning_rate" in line

    @pytest.mark.parametrize("more", [[], ["trainer.keep=last"]])
    def test_weights_that_are_no_numbers_after_the_last_step(self, train, more):
        line = refused(train, "trainer.learning_rate=1e30", "trainer.clip=null", "trainer.max_steps=1", *more)
        assert "held-out loss is nan at step 1" in line

    def test_a_value_that_nothing_reads_is_checked_too(self, train):
        with pytest.raises(InputError, match=r"bi_encoder\.hops=0"):
            train("bi_encoder.hops=0")

    def test_an_unknown_target_module(self, train):
        line = refused(train, "adapter.targets=[q_porj]")
        assert line.startswith("adapter.targets: q_porj: ") and "did you mean q_proj?" in line

    def test_t35_other_processes_than_named(self, train, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "4")
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("LOCAL_RANK", "0")
        assert "WORLD_SIZE=4 processes were started" in refused(train, "trainer=ddp", "trainer.accelerator=cpu")

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["adapter=qlora", "trainer=fsdp"], "adapter=qlora with trainer=fsdp: 4-bit weights are packed"),
            (["llm.quantization=4bit"], "adapter=lora with llm.quantization=4bit: adapter=qlora for a 4-bit base"),
            (["llm.adapter=gcg/sft"], "llm.adapter=gcg/sft: a training starts from the base model"),
            (["trainer.devices=2"], "several processes need trainer=ddp or trainer=fsdp"),
            (["trainer.schedule=cosin"], "did you mean cosine?"),
        ],
    )
    def test_what_does_not_fit_together(self, train, more, message):
        assert message in refused(train, *more)

    def test_a_gpu_that_is_not_there(self, train, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: False)
        assert "torch sees no GPU here; trainer=cpu" in refused(train, "trainer=gpu")

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["trainer=gpu"], "torch sees no GPU here"),
            (["adapter.targets=[q_porj]"], "did you mean q_proj?"),
            (["trainer.wandb=online"], "trainer.wandb=online: no API key here"),
            (["trainer=ddp", "trainer.accelerator=cpu"], "SLURM_NTASKS=1 process was started"),
        ],
    )
    def test_what_lacks_here_is_said_before_pairs_are_made(self, train, monkeypatch, more, message):
        def made(*_):
            raise AssertionError("hours of work")

        wandb, errors = types.ModuleType("wandb"), types.ModuleType("wandb.errors")
        wandb.login, wandb.__spec__, errors.Error = lambda **_: False, types.SimpleNamespace(), OSError
        monkeypatch.setitem(sys.modules, "wandb", wandb)
        monkeypatch.setitem(sys.modules, "wandb.errors", errors)
        monkeypatch.setenv("SLURM_NTASKS", "1")
        monkeypatch.setenv("SLURM_PROCID", "0")
        monkeypatch.setattr(strategy, "has_gpu", lambda: False)
        monkeypatch.setattr(fit, "read_pairs", made)
        assert message in refused(train, *more)

    @pytest.mark.parametrize("pattern", ["last.pt", "best-*.pt"])
    def test_t36_a_damaged_checkpoint_is_one_line_whose_mend_mends_it(self, train, tmp_path, words, pattern):
        folder = tmp_path / "store" / "adapter" / fit.keys.training_key(tiny.composed(*words(*SHORT)))
        (folder / "checkpoints").mkdir(parents=True)
        made = train(*SHORT)
        (made.path / "done.json").unlink()
        (file,) = (made.path / "checkpoints").glob(pattern)
        file.write_bytes(file.read_bytes()[:99])
        with pytest.raises(RunError, match=rf"{file.name} is damaged: remove {file.parent}, and the training starts"):
            train(*SHORT)
        shutil.rmtree(file.parent)
        assert train(*SHORT).facts == made.facts


def test_a_gpu_is_taken_where_there_is_one(monkeypatch, words, capsys, tmp_path):
    monkeypatch.setattr(command, "has_gpu", lambda: True)
    monkeypatch.setattr(strategy, "has_gpu", lambda: False)
    given = [word for word in words() if word != "trainer=cpu"]
    with pytest.raises(InputError, match="torch sees no GPU here"):
        command.train(given, None, tmp_path, True)
    assert capsys.readouterr().err == "trainer=gpu: there is a GPU and no trainer= was given\n"


def test_an_experiment_that_names_no_adapter_trains_the_default_and_says_so(monkeypatch, words, capsys, tmp_path):
    monkeypatch.setattr(command, "build", lambda *_: (_ for _ in ()).throw(InputError("enough")))
    given = [word for word in words() if not word.startswith("experiment=")]
    with pytest.raises(InputError, match="enough"):
        command.train([*given, "experiment=gcg/zero_shot"], None, tmp_path, False)
    assert "experiment=gcg/zero_shot names no adapter, so adapter=lora;" in capsys.readouterr().err
    with pytest.raises(InputError, match="enough"):
        command.train([*given, "experiment=gcg/sft"], None, tmp_path, False)
    assert "names no adapter" not in capsys.readouterr().err


TYPOS = {
    "train adapter.rnk=3": "adapter.rnk: no such key; did you mean rank?",
    "train adapter=lroa": "lora",
    "train trainer=dpp": "ddp",
    "train experiment=gcg/stf": "gcg/sft",
    "train trainer.epochs=many": "trainer.epochs='many' is text; allowed: a number",
    "run experiment=gcg/sft": "graphcontext train experiment=gcg/sft; then llm.adapter=gcg/sft (an encoder: ",
    "run trainer=gpu": "a run has no such key, only train has",
    "run llm=smollm2 llm.adapter=gcg/stf": "did you mean gcg/sft?",
    "train adapter=qlora trainer=fsdp": "4-bit weights are packed",
}


def test_t07_a_typo_is_one_line_before_anything_is_loaded(tmp_path):
    script = (
        "import contextlib, io, json, sys\nfrom graphcontext import cli\nfound = {}\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "        code = cli.main(line.split())\n"
        "    found[line] = [code, err.getvalue(), sorted({'torch', 'transformers', 'peft'} & set(sys.modules))]\n"
        "print(json.dumps(found))"
    )
    command_ = [sys.executable, "-c", script, json.dumps(list(TYPOS))]
    env = {**os.environ, "PYTHONPATH": str(tiny.SRC)}
    done = subprocess.run(command_, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    for line, (code, err, loaded) in json.loads(done.stdout).items():
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1, (line, err)
        assert TYPOS[line] in err and loaded == [], (line, err, loaded)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_did(words, capsys, tmp_path):
    assert cli.main(["train", *words(*SHORT), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.splitlines()[-1] == f"model: {tiny.folder_of(tmp_path).relative_to(tmp_path)}"
    assert "held-out loss over 5 examples, base 3." in out


@pytest.mark.parametrize(
    "name", ["one_batch", "tiny", *(pytest.param(n, marks=pytest.mark.slow) for n in ("overfit", "profile"))]
)
def test_debug(words, name, tmp_path):
    """Each of them ends; learning four pairs by heart brings the loss down."""
    given = [w for w in words() if not w.startswith(("trainer.learning_rate", "trainer.batch_size"))]
    more = {"overfit": ["trainer.learning_rate=0.02", "adapter.rank=16"], "profile": ["trainer.max_steps=1"]}
    done = api.train(*given, f"debug={name}", *more.get(name, []), root=tmp_path)
    losses = [float(row["loss"]) for row in tiny.metrics(done.path)[1:]]
    assert len(losses) == {"one_batch": 1, "tiny": 4, "overfit": 40, "profile": 1}[name]
    if name == "overfit":
        assert losses[-1] < losses[0] - 0.3  # adapters alone on random weights
    if name == "profile":
        assert "aten::" in (done.path / "profile.txt").read_text()
