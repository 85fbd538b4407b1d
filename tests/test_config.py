"""Composition: who wins, what a scale replaces, and how a mistyped word is answered."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphcontext.conf_tree import conf_dir, groups, options
from graphcontext.config import Composed, compose
from graphcontext.errors import InputError
from graphcontext.multirun import expand
from graphcontext.overrides import ROLES
from graphcontext.table.expand import compose_cached


def test_a_bare_run_is_the_sample_scale_of_graph_context_gen() -> None:
    done = compose()
    assert done.choices["scale"] == "sample" and done.choices["experiment"] == "gcg/graph_context_gen"
    assert done.config["retriever"]["_target_"].endswith(".PPR")
    assert "hydra" not in done.config


# -- precedence: command line > table cell > experiment > scale > component ----------------------


@pytest.mark.parametrize(
    ("overrides", "cell", "top_k", "questions"),
    [
        (["retriever=tfidf"], [], 2, 24),  # the component's YAML; the scale's limit
        (["experiment=gcg/answerbot"], [], 5, 24),  # the experiment beats the component
        (["experiment=gcg/answerbot"], ["retriever.top_k=7"], 7, 24),  # the cell beats the experiment
        (["experiment=gcg/answerbot", "retriever.top_k=9"], ["retriever.top_k=7"], 9, 24),  # the command line beats all
        (["retriever=tfidf", "scale=small"], [], 2, None),
        (["retriever=tfidf", "limits.questions=3"], [], 2, 3),  # the command line beats the scale
        (["retriever=tfidf", "dataset.limit=4"], ["limits.questions=3"], 2, 4),
    ],
)
def test_precedence_of_values(overrides: list[str], cell: list[str], top_k: int, questions: int | None) -> None:
    config = compose(overrides, cell).config
    assert config["retriever"]["top_k"] == top_k
    assert config["dataset"]["limit"] == questions


def test_precedence_of_choices() -> None:
    assert compose(["experiment=gcg/answerbot"]).choices["retriever"] == "tfidf"
    assert compose([], ["experiment=gcg/answerbot", "retriever=bm25"]).choices["retriever"] == "bm25"
    both = compose(["retriever=none"], ["experiment=gcg/answerbot", "retriever=bm25"])
    assert both.choices["retriever"] == "none"


def test_the_last_of_two_equal_keys_counts() -> None:
    assert compose(["retriever.top_k=3", "retriever.top_k=4"]).config["retriever"]["top_k"] == 4


# -- two passes ----------------------------------------------------------------------------------


def test_the_scale_replaces_what_the_user_did_not_type() -> None:
    done = compose([])
    assert (done.wanted["encoder"], done.choices["encoder"]) == ("bge_large_en", "minilm")
    assert done.substitutions["dataset"] == ("askubuntu", "cqa_sample")
    assert done.substitutions["llm@roles.answer"] == ("llama2_13b", "smollm2")
    assert compose(["scale=paper"]).substitutions == {}


def test_a_replaced_choice_of_a_cell_is_replaced_too_and_one_that_was_typed_is_not() -> None:
    assert compose([], ["dataset=unix"]).substitutions["dataset"] == ("unix", "cqa_sample")
    typed = compose(["dataset=unix", "encoder=bge_large_en", "llm@roles.judge=llama2_7b"])
    assert typed.choices["dataset"] == "unix" and "dataset" not in typed.substitutions
    assert typed.choices["encoder"] == "bge_large_en"
    assert typed.choices["llm@roles.judge"] == "llama2_7b"
    assert typed.choices["llm@roles.answer"] == "smollm2"


def test_what_belongs_to_a_choice_comes_with_it_in_the_second_pass() -> None:
    assert compose([]).config["graph"]["threshold"] == "mean_degree:8"  # MiniLM's
    assert compose(["encoder=bge_large_en"]).config["graph"]["threshold"] == 0.8  # §5


# -- the language model's roles ------------------------------------------------------------------


def models(done: Composed) -> dict[str, str]:
    return {role: done.config["roles"][role]["model"] for role in ROLES}


def test_llm_sets_every_role_and_one_role_can_differ() -> None:
    all_of_them = compose(["llm=llama2_7b", "llm@roles.judge=vicuna_13b"])
    found = models(all_of_them)
    assert "vicuna" in found.pop("judge").lower()
    assert len(set(found.values())) == 1 and "7b" in found["answer"].lower()
    assert all_of_them.substitutions.keys().isdisjoint({f"llm@roles.{role}" for role in ROLES})


def test_llm_values_reach_every_role_and_the_components_that_hold_them() -> None:
    config = compose(["llm.temperature=0.5"]).config
    assert {config["roles"][role]["temperature"] for role in ROLES} == {0.5}
    assert config["generator"]["llm"]["temperature"] == 0.5
    one = compose(["roles.judge.temperature=0.5"]).config
    assert [one["roles"][r]["temperature"] for r in ("answer", "judge")] == [0.0, 0.5]


# -- mistyped words ------------------------------------------------------------------------------

WRONG = {
    "T07 key": (["retriever.dampng=0.5"], r"retriever\.dampng: no such key; did you mean damping\?"),
    "T07 group": (["retreiver=ppr"], r"retreiver: no such key; did you mean retriever\?"),
    "option": (["retriever=pppr"], r"retriever=pppr: no such retriever; did you mean ppr\? \(allowed: .*tfidf"),
    "T49 metric": (["metric=[rouge_l]"], r"metric=rouge_l: no such metric; did you mean rougeL\?.*rouge1.*rouge2"),
    "second metric": (["metric=[rouge1, rouge_l]"], r"metric=rouge_l"),
    "experiment": (["experiment=gcg/graphgen"], r"no such experiment; did you mean gcg/graph_gen\?"),
    "case": (["retriever=PPR"], r"did you mean ppr\?"),
    "llm": (["llm=lama2_7b"], r"llm=lama2_7b: no such llm; did you mean llama2_7b\?"),
    "role": (["llm@roles.anwser=smollm2"], r"no such role; did you mean answer\?"),
    "llm key": (["llm.temprature=1"], r"llm\.temprature: no such key; did you mean temperature\?"),
    "root key": (["budgt.hours=1"], r"budgt\.hours: no such key; did you mean budget\?"),
    "deep key": (["packing.tokenizer.modle=x"], r"did you mean model\?"),
    "below a value": (["seed.x=1"], r"seed\.x: no such key"),
    "no value": (["retriever="], r"retriever="),
    "no metric": (["metric="], r"metric="),
    "group as a key": (["retriever.top_k.x=1"], r"retriever\.top_k\.x: no such key"),
    "target": (["retriever._target_=os.system"], r"_target_ os\.system in retriever is not a component"),
    "hydra's own": (["hydra.run.dir=x"], r"hydra\.run\.dir"),
    "deletion": (["~retriever=ppr"], r"an override is KEY=VALUE"),
    "addition": (["+retriever.x=1"], r"an override is KEY=VALUE"),
    "double addition": (["++retriever.top_k=1"], r"an override is KEY=VALUE"),
    "no equals": (["retriever"], r"an override is KEY=VALUE"),
    "options of one": (["tokenizer=[words]"], r"tokenizer=\[words\]: one option is allowed"),
    "sweep of options": (["retriever=ppr,bm25"], r"sweeps several options: only run -m and submit do"),
    "sweep of values": (["retriever.top_k=1,2"], r"sweeps several values: only run -m and submit do"),
    "choice sweep": (["retriever.top_k=choice(1,2)"], r"sweeps several values"),
    "open bracket": (["dataset.tags=[a"], r"does not parse"),
    "open quote": (["dataset.site='a"], r"does not parse"),
    "interpolation": (["dataset.site=${nowhere}"], r"^dataset\.site: Interpolation key 'nowhere' not found; "),
    "a group's package": (["retriever@nowhere=ppr"], r"retriever@nowhere"),
    "a value for a component": (["retriever.encoder=minilm"], r"retriever\.encoder=minilm.* has keys .*max_length"),
    "a value for a node": (["limits=5"], r"limits=5: limits has keys of its own: questions, multihop"),
    "a scored side": (["split=foo"], r"^split=foo: no such side \(allowed: test, train, validation\)$"),
    "a rule as a side": (["split=last_quarter"], r"^split=last_quarter: .*; the rule of the cut is dataset\.split="),
    "a side as a rule": (["dataset.split=validation"], r"dataset\.split=validation: .*; the scored side is split=val"),
    "null for a needed one": (["packing=null"], r"packing=None: packing has keys"),
}


@pytest.mark.parametrize("what", WRONG)
def test_t07_t49_a_mistyped_word_is_answered_in_one_short_line(what: str, monkeypatch) -> None:
    from graphcontext.component import instantiate

    overrides, message = WRONG[what]
    with pytest.raises(InputError, match=message) as raised:
        config = compose(overrides).config
        for name in ("dataset", "graph", "retriever", "packing"):  # what only a constructor can tell
            instantiate(config[name], name)
    assert "\n" not in str(raised.value).strip() and len(str(raised.value)) < 400
    assert raised.value.exit_code == 2


def test_split_reaches_every_data_set() -> None:
    for name in options("dataset"):
        config = compose([f"dataset={name}", "split=validation"]).config
        assert config["dataset"]["side"] == "validation" and config["split"] == "validation"
        assert compose([f"dataset={name}"]).config["dataset"]["side"] == "test"


def test_lists_and_null_are_values() -> None:
    config = compose(["dataset.tags=[bash, 'a b']", "dataset.limit=null", "metric=[rouge1]"]).config
    assert config["dataset"]["tags"] == ["bash", "a b"] and config["dataset"]["limit"] is None
    assert list(config["metric"]) == ["rouge1"]
    assert compose(["metric=[]"]).config["metric"] == {}
    assert compose(["generator=answerbot", "generator.encoder=null"]).config["generator"]["encoder"] is None
    assert compose(["generator=answerbot", "generator.encoder=${encoder}"]).config["generator"]["encoder"]["model"]


@pytest.mark.parametrize("metric", ["[]", "[em]", "[sf_em]"])
def test_what_an_experiment_says_of_a_metric_goes_with_it(metric):
    config = compose(["experiment=kgp/kgp_tfidf", f"metric={metric}"]).config  # it sets recall@k's and precision@k's k
    assert list(config["metric"]) == metric.strip("[]").split(",") * (metric != "[]")
    with pytest.raises(InputError, match=r"^metric\.recall@k\.k: no such key"):
        compose(["experiment=kgp/kgp_tfidf", f"metric={metric}", "metric.recall@k.k=3"])


# -- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("/data/ask ubuntu", "/data/ask ubuntu"),
        ("'/data/ask ubuntu'", "/data/ask ubuntu"),
        ("/data/a=b,c", "/data/a=b,c"),
        ("/data/a[1]{2}(3)", "/data/a[1]{2}(3)"),
        ("/data/it's", "/data/it's"),
        ('/data/say "x"', '/data/say "x"'),
        ("~/dump", f"{Path.home()}/dump"),
        ("C:\\data\\x", "C:\\data\\x"),
        ("/data/x\\", "/data/x\\"),
        ("relative/ü", "relative/ü"),
        ("null", None),
        ("", None),
    ],
)
def test_paths_need_no_quoting(typed: str, meant: str | None) -> None:
    assert compose([f"dataset.path={typed}"]).config["dataset"]["path"] == meant


# -- a user's own tree ---------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    tree = tmp_path / "my project" / "conf"
    (tree / "retriever").mkdir(parents=True)
    (tree / "retriever" / "mine.yaml").write_text(
        "# graphcontext run retriever=mine\n_target_: my_words.Mine\ntop_k: 4\n"
    )
    (tree.parent / "my_words.py").write_text("class Mine:\n    def retrieve(self): ...\n")
    return tree


def test_a_users_tree_adds_options_and_its_parent_is_importable(mine: Path) -> None:
    from graphcontext.component import locate

    assert {"mine", "ppr"} <= set(options("retriever", str(mine)))
    done = compose(["retriever=mine", "retriever.top_k=5"], config_dir=str(mine))
    assert done.config["retriever"] == {"_target_": "my_words.Mine", "top_k": 5}
    assert locate("my_words.Mine").__name__ == "Mine"
    with pytest.raises(InputError, match="no such retriever"):
        compose(["retriever=mine"])


def test_a_users_tree_can_add_a_group(mine: Path) -> None:
    (mine / "reranker").mkdir()
    (mine / "reranker" / "x.yaml").write_text("# graphcontext run\na: 1\n")
    assert "reranker" in groups(str(mine)) and options("reranker", str(mine)) == ["x"]


def test_a_users_option_with_a_shipped_name_is_refused_and_not_ignored(mine: Path) -> None:
    (mine / "retriever" / "bm25.yaml").write_text("# graphcontext run\n_target_: my_words.Mine\ntop_k: 4\n")
    with pytest.raises(InputError, match=r"retriever/bm25\.yaml has the name of a shipped config; rename yours"):
        compose(["retriever=bm25"], config_dir=str(mine))


def test_the_shipped_tree_itself_may_be_given() -> None:
    assert compose([], config_dir=str(conf_dir())).config == compose([]).config


BAD_YAML = ["a: [1\n", "a: 1\na: 2\n", "defaults:\n  - nowhere\n", "- 1\n", "a: 1\n", "", "a: ${nowhere}\n"]


@pytest.mark.parametrize("text", BAD_YAML)
def test_a_damaged_yaml_of_the_user_is_one_line_that_names_it(mine: Path, text: str) -> None:
    (mine / "retriever" / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=r"mine|nowhere") as raised:
        compose(["retriever=mine"], config_dir=str(mine))
    assert "\n" not in str(raised.value)


def test_a_missing_tree_is_named() -> None:
    with pytest.raises(InputError, match=r"--config-dir /nowhere: no such folder"):
        compose([], config_dir="/nowhere")


def test_an_unknown_group_lists_the_groups() -> None:
    with pytest.raises(InputError, match=r"no config group 'retriver'; did you mean retriever\? \(allowed: .*dataset"):
        options("retriver")


def test_t48_a_secret_is_named_and_never_resolved(mine: Path, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    (mine / "retriever" / "mine.yaml").write_text("_target_: my_words.Mine\napi_key: ${oc.env:MY_KEY}\n")
    with pytest.raises(InputError, match=r"retriever\.api_key.*api_key_env") as raised:
        compose(["retriever=mine"], config_dir=str(mine))
    assert "sk-not" not in str(raised.value)
    with pytest.raises(InputError, match="api_key") as raised:
        compose(["llm.api_key=sk-not-to-be-seen"])
    assert "sk-not" not in str(raised.value)


@pytest.mark.parametrize("key", ["dataset.license", "llm.model"])
def test_t48_the_value_of_a_variable_that_is_called_a_secret_is_refused(key: str, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-not-to-be-seen")
    with pytest.raises(InputError, match=rf"{key} takes the value of a variable that may hold a secret") as raised:
        compose(["llm=openai", f"{key}=${{oc.env:MY_API_KEY}}"])
    assert "sk-not" not in str(raised.value)


def test_a_yaml_that_is_not_utf8_is_named(mine: Path) -> None:
    (mine / "retriever" / "bad.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"a YAML is not UTF-8: .*bad\.yaml \(byte 0\)"):
        compose(["retriever=bad"], config_dir=str(mine))


def test_a_damaged_cache_of_compositions_is_made_again(tmp_path: Path) -> None:
    fresh = compose_cached(["retriever=bm25"], root=tmp_path)
    (file,) = (tmp_path / "store" / "composed").iterdir()
    good = file.read_text()
    for text in ("garbage", "{}", good.replace('"top_k": 2', '"top_k": 3')):
        file.write_text(text)
        assert compose_cached(["retriever=bm25"], root=tmp_path) == fresh
        assert file.read_text() == good


KEYS = (
    *("sk-proj-ABCDEFGH12345678", "sk_live_51HabcdEFGH5678ijkl", "AIzaSyD1234567890abcdefgh", "hf_abcDEFghiJKLmnoPQR"),
    *("${oc.env:THE_KEY}", "sk-ab,cdef", "sk-ab{cd", "'sk-quoted'", "[sk-ab]", "sk ab", "1KEY", "SCHLÜSSEL"),
)
NAMED = (
    *("llm.api_key_env", "roles.answer.api_key_env", "llm@roles.judge.api_key_env", "+llm.api_key_env"),
    *("llm.api_key", "llm.password_env", "LLM.API_KEY_ENV", "dataset.api_token"),
)


@pytest.mark.parametrize("key", NAMED)
@pytest.mark.parametrize("secret", KEYS)
def test_t48_a_key_typed_for_the_name_of_its_variable_is_refused_unseen(key, secret, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-of-the-environment-4711")
    for compose_ in (compose, partial(compose_cached, root=tmp_path, lenient=True), lambda o: expand([*o, "seed=1,2"])):
        with pytest.raises(InputError) as raised:
            compose_(["llm=openai", f"{key}={secret}"])
        said = str(raised.value)
        assert key.strip("+") in said and secret.strip("'[]") not in said and "4711" not in said and "\n" not in said
    assert list(tmp_path.rglob("*")) == []


NAMES = ["OPENAI_API_KEY", "_k", "my_lab2_key", "THEKEYOFTHELABORATORY", "'OPENAI_API_KEY'", "null"]


@pytest.mark.parametrize("value", NAMES)
def test_the_name_of_a_variable_is_none(value: str) -> None:
    found = compose(["llm=openai", f"llm.api_key_env={value}"]).config["roles"]["answer"]["api_key_env"]
    assert found == {"null": None}.get(value, value.strip("'"))


IN_YAML = ["api_key_env: sk-proj-4711", "api_key_env: ${oc.env:THE_KEY}", "more: [{key_env: sk-4711}]"]


@pytest.mark.parametrize("text", IN_YAML)
def test_t48_a_key_in_a_yaml_is_refused_unseen(mine: Path, monkeypatch, text: str) -> None:
    monkeypatch.setenv("THE_KEY", "sk-of-the-environment-4711")
    (mine / "retriever" / "mine.yaml").write_text(f"_target_: my_words.Mine\n{text}\n")
    with pytest.raises(InputError, match=r"retriever\..*key_env: .* not shown") as raised:
        compose(["retriever=mine"], config_dir=str(mine))
    assert "4711" not in str(raised.value)


@pytest.mark.parametrize("address", ["https://me:sk-4711@host", "https://host/v1?key=sk-4711", "https://host#sk-4711"])
def test_t48_an_address_that_may_hold_a_key_is_refused_before_it_is_kept(tmp_path: Path, address: str) -> None:
    for key in ("llm.base_url", "one_hop.endpoint"):
        with pytest.raises(InputError, match=rf"{key} has a user, query or fragment, .* not shown") as raised:
            compose_cached(["llm=openai", f"{key}={address}"], root=tmp_path, lenient=True)
        assert "4711" not in str(raised.value)
    assert list(tmp_path.rglob("*")) == []


def test_composing_leaves_no_state_behind() -> None:
    def plain() -> dict[str, Any]:
        return compose(["retriever=bm25"]).config

    first = plain()
    with pytest.raises(InputError):
        compose(["retriever=nowhere"])
    compose(["llm=llama2_7b", "scale=paper"])
    assert plain() == first


def test_the_shipped_configs_are_found() -> None:
    assert (conf_dir() / "config.yaml").is_file()


def test_an_override_below_a_node_that_refers_to_another_changes_a_copy_of_it() -> None:
    """``generator.llm`` is ``${roles.answer}``: the rest of it stays, and so does the role."""
    config = compose(["generator.llm.temperature=0.7", "enhancer.extractor.max_triples=3"]).config
    assert config["generator"]["llm"] == {**config["roles"]["answer"], "temperature": 0.7}
    assert config["roles"]["answer"]["temperature"] == 0
    assert config["enhancer"]["extractor"] == {**config["extractor"], "max_triples": 3}
    with pytest.raises(InputError, match=r"generator.llm.temprature: no such key; did you mean temperature"):
        compose(["generator.llm.temprature=0.7"])
