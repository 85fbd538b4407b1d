"""An adapter by its training experiment: its key is known before it exists, and a run follows its bytes."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from graphcontext import api, cli
from graphcontext.component import components
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.keys import keys
from graphcontext.train.trained import TARGET, TrainedAdapter
from tests.train import tiny

RUN = ("enhancer=none", "retriever=none", "metric=[rouge1]", "limits.max_new_tokens=4", "tokenizer=words")


@pytest.fixture
def run_words(data, llama):
    def run_words(*more, adapter="gcg/sft"):
        chosen = ["dataset=jsonl", f"dataset.path={data}", "llm=smollm2", f"llm.model={llama}", *RUN]
        return [*chosen, f"llm.adapter={adapter}", *more]

    return run_words


def node(config):
    (found,) = {json.dumps(n, sort_keys=True) for n in components(config["generator"]) if n["_target_"] == TARGET}
    return json.loads(found)


def key_of(config):
    return TrainedAdapter.identity(node(config))["training"]


def config_of(*words):
    return api.compose(*words).config


def test_the_experiment_becomes_a_node_of_the_runs_data_scale_and_base(run_words, data, llama):
    found = node(config_of(*run_words()))
    assert found["experiment"] == "gcg/sft" and found["config_dir"] is None
    said = " ".join(found["overrides"])
    assert "dataset=jsonl" in said and str(data) in said and str(llama) in said and "llm=smollm2" in said


def test_the_keys_of_a_run_are_known_before_the_adapter_is_there(run_words):
    tuned, base = keys(config_of(*run_words())), keys(config_of(*run_words(adapter="null")))
    assert tuned.prediction != base.prediction and tuned.context == base.context
    assert keys(config_of(*run_words())).prediction == tuned.prediction


def test_what_a_run_scores_does_not_change_the_training(run_words, data, llama, tmp_path):
    plain = key_of(config_of(*run_words()))
    for more in (["dataset.limit=1"], ["split=validation"], ["limits.max_new_tokens=9"], ["llm.temperature=0.5"]):
        assert key_of(config_of(*run_words(*more))) == plain, more
    for more in (["llm.dtype=bfloat16"], [f"llm.model={tiny.save_llama(tmp_path / 'other', hidden_size=16)}"]):
        assert key_of(config_of(*run_words(*more))) != plain, more


def test_a_folder_stays_a_path_and_what_is_neither_is_refused(run_words, tmp_path):
    config = config_of(*run_words(adapter=tmp_path))
    assert not [n for n in components(config["generator"]) if n["_target_"] == TARGET]
    with pytest.raises(MissingWeightsError, match=r"llm\.adapter=gcg/stf: neither .* did you mean gcg/sft\?"):
        config_of(*run_words(adapter="gcg/stf"))
    with pytest.raises(MissingWeightsError, match=r"llm\.adapter=\./none: no such folder"):
        config_of(*run_words(adapter="./none"))


def test_a_components_own_key_says_which_one_takes_an_experiment(run_words, tmp_path):
    plain = run_words(adapter="null")
    line = r"generator\.llm\.adapter=gcg/sft: this key takes a folder; .* llm\.adapter=gcg/sft for all roles, roles\."
    with pytest.raises(InputError, match=line):
        config_of(*plain, "generator.llm.adapter=gcg/sft")
    assert config_of(*plain, f"generator.llm.adapter={tmp_path}")["generator"]["llm"]["adapter"] == str(tmp_path)
    one = config_of(*plain, "roles.answer.adapter=gcg/sft")
    assert node(one)["experiment"] == "gcg/sft" and one["roles"]["judge"]["adapter"] is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trainer: {learning_rat: 1.0e-4}", r"trainer\.learning_rat: TrainerSettings has no such key; did you mean l"),
        ("trainer: {epochs: 0.0}", r"trainer\.epochs=0\.0; allowed: above 0"),
        ("adapter: {rank: 0}", r"adapter\.rank=0; allowed: 1 and more"),
    ],
)
def test_a_fault_in_the_recipe_of_an_experiment_of_ones_own_is_told_by_the_run(run_words, tmp_path, line, message):
    file = tmp_path / "conf" / "experiment" / "mylab" / "tuned.yaml"
    file.parent.mkdir(parents=True)
    opened = "# @package _global_\ndefaults:\n  - gcg/sft\n  - override /adapter: lora\n"
    file.write_text(f"{opened}{line}\n")
    with pytest.raises(InputError, match=rf"llm\.adapter=mylab/tuned: .*{message}"):
        api.compose(*run_words(adapter="mylab/tuned"), config_dir=str(tmp_path / "conf"))


def test_an_agents_prompt_is_learnt_as_the_run_puts_it_whichever_role_takes_the_adapter():
    """A training of the default agent would have it asked by messages that it never saw."""

    def asked(*words):
        config = config_of("experiment=kgp/kgp_llama", "agent=chat", *words)
        made = {k: v for k, v in config["retriever"]["agent"]["llm"]["adapter"].items() if k != "_target_"}
        return TrainedAdapter(**made).compose()["agent"]

    own = config_of("experiment=kgp/kgp_llama", "agent=chat")["retriever"]["agent"]
    for words in ([], ["llm.adapter=kgp/train_agent"], ["roles.agent.adapter=kgp/train_agent"]):
        assert asked(*words)["prompt"] == own["prompt"]


def test_an_untrained_one_says_what_to_type(run_words, tmp_path):
    with pytest.raises(MissingWeightsError, match=r"gcg/sft is not trained yet: graphcontext train experiment=gcg/sft"):
        api.run(*run_words(), root=tmp_path)


@pytest.fixture(scope="module")
def trained_once(data, llama, tmp_path_factory):
    """The training that the run's adapter names, done once: two steps."""
    root = tmp_path_factory.mktemp("trained")
    chosen = ["dataset=jsonl", f"dataset.path={data}", "llm=smollm2", f"llm.model={llama}", *RUN]
    found = node(config_of(*chosen, "llm.adapter=gcg/sft"))
    quick = ["trainer=cpu", "trainer.wandb=disabled", "trainer.max_steps=2", "trainer.max_tokens=64"]
    done = api.train(f"experiment={found['experiment']}", *found["overrides"], *quick, root=root)
    folder = root / "store" / "adapter" / key_of(config_of(*chosen, "llm.adapter=gcg/sft"))
    done.path.rename(folder)  # as if all of its steps had been done
    about = json.loads((folder / "done.json").read_text())
    (folder / "done.json").write_text(json.dumps(about | {"key": folder.name}))
    return folder


def test_retrained_to_other_bytes_a_run_computes_its_answers_again(run_words, tmp_path, trained_once):
    from graphcontext.hashes import hash_file

    folder = tmp_path / "store" / "adapter" / trained_once.name
    shutil.copytree(trained_once, folder)
    first = api.run(*run_words(), root=tmp_path)
    (prediction,) = (tmp_path / "store" / "prediction").glob("*/done.json")
    before = prediction.read_bytes()
    assert api.run(*run_words(), root=tmp_path).path == first.path and prediction.read_bytes() == before

    from safetensors.torch import load_file, save_file

    file = folder / "adapter_model.safetensors"
    save_file({name: w * -3 + 0.3 for name, w in load_file(file).items()}, file, metadata={"format": "pt"})
    about = json.loads((folder / "done.json").read_text())
    about["files"][file.name] = hash_file(file)
    (folder / "done.json").write_text(json.dumps(about))
    api.run(*run_words(), root=tmp_path)
    (prediction,) = (tmp_path / "store" / "prediction").glob("*/done.json")  # under the same key
    assert json.loads(prediction.read_text())["inputs"] != json.loads(before)["inputs"]


@pytest.fixture
def stored(tmp_path, trained_once):
    """A copy of the training in a working folder of its own."""
    folder = tmp_path / "store" / "adapter" / trained_once.name
    shutil.copytree(trained_once, folder)
    return folder


def damage(folder):
    file = folder / "adapter_model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-4] + bytes(4))  # another weight: it loads, and fits


@pytest.mark.parametrize("by_path", [False, True])
def test_what_is_not_what_was_stored_is_taken_by_nothing(run_words, tmp_path, stored, by_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    adapter = str(stored) if by_path else "gcg/sft"
    words = run_words(adapter=adapter)
    base = [word for word in words if not word.startswith("llm.adapter=")]
    merged = api.merge([adapter, str(tmp_path / "merged")], *base)
    assert (merged / "model.safetensors").is_file()
    damage(stored)
    mend = "train it" if by_path else "it is made again by"
    message = rf"adapter_model\.safetensors is not what was stored; {mend}"
    for use in (lambda: api.run(*words), lambda: api.merge([adapter, str(tmp_path / "other")], *base)):
        with pytest.raises(InputError, match=message):
            use()
    assert not (tmp_path / "other").exists() and not (tmp_path / "store" / "prediction").exists()
    assert cli.main(["doctor", *words]) == 1
    assert re.search(rf"(?m)^✗ .*{message}", capsys.readouterr().out)
    assert cli.main(["plan", *words]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_curves_may_be_away_and_a_damaged_done_file_may_not(run_words, stored):
    for name in ("loss.png", "metrics.csv"):
        (stored / name).unlink()
    assert keys(config_of(*run_words(adapter=stored))).prediction
    for content in ("[]", '{"stage": "context", "files": {"adapter_config.json": "0"}}'):  # another's
        (stored / "done.json").write_text(content)
        assert keys(config_of(*run_words(adapter=stored))).prediction
    (stored / "done.json").write_text('{"files": {')
    with pytest.raises(InputError, match=r"done\.json is not what was stored"):
        keys(config_of(*run_words(adapter=stored)))


def test_one_that_lacks_its_config_or_weights_is_planned_by_nobody(run_words, stored, capsys):
    (stored / "done.json").unlink()
    (stored / "adapter_model.safetensors").rename(stored / "weights")
    assert cli.main(["plan", *run_words(adapter=stored)]) == 2
    assert "lacks adapter_model.safetensors" in capsys.readouterr().err
    (stored / "weights").rename(stored / "adapter_model.safetensors")
    (stored / "adapter_config.json").unlink()
    assert cli.main(["plan", *run_words(adapter=stored)]) == 2
    assert "expected a PEFT adapter (adapter_config.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["gcg/sft", "store/adapter/zz"], "store/adapter/zz lies among the artefacts of "),
        (["gcg/sft", "file/x"], "file is a file, where a folder is wanted"),
        (["gcg/sft", "link/x"], "link is a link to nothing"),
        (["gcg/sft", "llm.adapter=x"], "train merge gcg/sft: llm.adapter=x names another"),
        (["gcg/sft", "roles.answer.adapter=null"], "roles.answer.adapter=null names another"),
    ],
)
def test_where_and_what_merge_refuses(tmp_path, monkeypatch, capsys, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("gone")
    assert cli.main(["train", "merge", *more]) == 2
    assert message in capsys.readouterr().err


def test_one_that_trained_nothing_says_so(run_words, words, tmp_path):
    conf = tmp_path / "conf" / "experiment"
    conf.mkdir(parents=True)
    (conf / "nothing.yaml").write_text("# @package _global_\ndefaults:\n  - override /adapter: none\n")
    message = r"^llm\.adapter=nothing trains nothing \(adapter=none\): llm\.adapter=null is the base model"
    with pytest.raises(InputError, match=message):
        api.compose(*run_words(adapter="nothing"), config_dir=str(tmp_path / "conf"))
    done = api.train(*[w for w in words("adapter=none") if "rank" not in w], root=tmp_path)
    with pytest.raises(InputError, match=r"this training trained nothing \(adapter=none\): llm\.adapter=null"):
        keys(config_of(*run_words(adapter=done.path)))
