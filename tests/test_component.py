"""From a config node to an object and to its part of a cache key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graphcontext.component import components, draws, fingerprint, instantiate, locate, needs_graph
from graphcontext.errors import InputError

HERE = __name__


class Count:
    """A tokenizer to hold."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"device"})

    def __init__(self, model: str, device: str = "cpu"):
        self.model, self.device = model, device

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        return {"weights": f"hash of {config['model']}"}

    def count(self, text: str) -> int:
        return len(text)


class Pick:
    """A retriever that holds another component."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size"})

    def __init__(self, tokenizer: Any, top_k: int, batch_size: int = 8):
        if top_k < 1:
            raise InputError(f"retriever.top_k={top_k}; allowed: 1 and more")
        self.tokenizer, self.top_k, self.batch_size = tokenizer, top_k, batch_size
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        self.workspace = workspace

    def retrieve(self) -> None: ...


class Sample(Pick):
    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        return config["top_k"] > 1


def node(cls: str = "Pick", **changes: Any) -> dict[str, Any]:
    tokenizer = {"_target_": f"{HERE}.Count", "model": "m", "device": "cpu"}
    return {"_target_": f"{HERE}.{cls}", "tokenizer": tokenizer, "top_k": 2, "batch_size": 8} | changes


def test_objects_are_built_from_the_inside_out_and_bound() -> None:
    built = instantiate(node(), "retriever", workspace="the workspace")
    assert isinstance(built, Pick) and isinstance(built.tokenizer, Count)
    assert (built.top_k, built.tokenizer.model, built.workspace) == (2, "m", "the workspace")
    assert instantiate(node(), "retriever").workspace is None
    assert instantiate([{"a": node()}, 3])[0]["a"].top_k == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_q": 3}, r"retriever\.top_q: Pick has no such key; did you mean top_k\?"),
        ({"top_k": 0}, r"retriever\.top_k=0; allowed: 1 and more"),
        ({"top_k": "many"}, r"retriever\.top_k='many' is text; allowed: a whole number"),
        ({"top_k": True}, r"retriever\.top_k=True is true or false; allowed: a whole number"),
        ({"top_k": None}, r"retriever\.top_k=None is null"),
        ({"top_k": [2]}, r"retriever\.top_k=\[2\] is list"),
        ({"tokenizer": {"_target_": f"{HERE}.Count"}}, r"retriever\.tokenizer: Count needs model"),
    ],
)
def test_t07_a_wrong_argument_is_named_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        instantiate(node(**changes), "retriever")


def test_a_missing_argument_is_named() -> None:
    lacking = node()
    del lacking["top_k"]
    with pytest.raises(InputError, match="retriever: Pick needs top_k"):
        instantiate(lacking, "retriever")


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    """An importable package of a user."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [n for n in sys.modules if n == "mine" or n.startswith("mine.")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("import nosuchpkg", "mine.m.X", r"X in retriever needs the package nosuchpkg, which is not installed"),
        ("from os import nosuch", "mine.m.X", r"cannot be imported: cannot import name 'nosuch'"),
        ("class X(:", "mine.m.X", r"mine\.m\.X in retriever cannot be imported: SyntaxError"),
        ("raise SystemExit(0)", "mine.m.X", r"retriever cannot be imported: it calls sys\.exit\(0\)"),
        ("1 / 0", "mine.m.X", r"mine\.m\.X in retriever cannot be imported: ZeroDivisionError"),
        ("", "mine.nowhere.X", r"there is no module mine\.nowhere"),
        ("", "nowhere.X", r"there is no module nowhere"),
        ("class Tree:\n  def build(self): ...", "mine.m.Treee", r"mine\.m has no Treee; did you mean Tree\?"),
        ("class X: ...", "mine.m.X", r"is not a component: a class with one of load, build, retrieve"),
        ("X = 3", "mine.m.X", r"is not a component"),
        ("", "X", r"_target_ X in retriever"),
        ("", "", r"_target_  in retriever"),
        ("", ".m.X", r"_target_ \.m\.X in retriever"),
    ],
)
def test_t08_what_cannot_be_imported_is_named(package: Path, source: str, target: str, message: str) -> None:
    (package / "m.py").write_text(source)
    with pytest.raises(InputError, match=message):
        locate(target, "retriever")


def test_the_fingerprint_leaves_out_what_cannot_change_results() -> None:
    base = fingerprint(node())
    assert fingerprint(node(batch_size=64)) == base
    assert fingerprint(node(tokenizer=node()["tokenizer"] | {"device": "cuda"})) == base
    assert "batch_size" not in base and "device" not in base["tokenizer"]


def test_t51_t12_the_fingerprint_holds_what_can() -> None:
    base = fingerprint(node())
    assert fingerprint(node(top_k=3)) != base
    assert fingerprint(node(tokenizer=node()["tokenizer"] | {"model": "n"})) != base
    assert fingerprint(node("Sample")) != base  # another class
    assert base["tokenizer"]["weights"] == "hash of m"


def test_an_argument_at_its_neutral_value_leaves_earlier_keys_as_they_were(monkeypatch) -> None:
    before = fingerprint(node())
    monkeypatch.setattr(Pick, "neutral", {"tokenizer": None, "serve": None}, raising=False)
    assert fingerprint(node(serve=None)) == before
    assert fingerprint(node(serve="vllm")) == before | {"serve": "vllm"}


def test_a_new_version_of_a_class_has_another_fingerprint(monkeypatch) -> None:
    base = fingerprint(node())
    monkeypatch.setattr(Count, "version", 2)
    assert fingerprint(node()) != base


def test_the_hash_of_the_weights_replaces_a_revisions_name() -> None:
    named = {"_target_": f"{HERE}.Count", "model": "m"}
    assert fingerprint(named | {"revision": "a"}) == fingerprint(named | {"revision": "b"})


def test_only_a_component_that_draws_asks_for_the_seeds() -> None:
    assert not draws(node()) and not draws(node("Sample", top_k=1))
    assert draws(node("Sample")) and draws({"deep": [node("Sample")]})


def test_components_are_found_outer_before_inner() -> None:
    found = [n["_target_"].rpartition(".")[2] for n in components({"a": node(), "b": [node("Sample")]})]
    assert found == ["Pick", "Count", "Sample", "Count"]


def test_the_source_of_a_users_own_class_is_in_its_key(tmp_path: Path, monkeypatch) -> None:
    """Editing the file is enough: nobody has to remember to raise ``version``."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "my_own_retriever.py"
    file.write_text("class Mine:\n    def retrieve(self): return 1\n")
    node = {"_target_": "my_own_retriever.Mine"}
    before = fingerprint(node)
    file.write_text("class Mine:\n    def retrieve(self): return 2\n")
    assert fingerprint(node)["_source_"] != before["_source_"]
    assert "_source_" not in fingerprint({"_target_": "graphcontext.retrieve.tfidf.TFIDF", "top_k": 2})
    assert not needs_graph({"_target_": "my_own_retriever.Mine"})
    assert needs_graph({"_target_": "graphcontext.retrieve.ppr.PPR"})
