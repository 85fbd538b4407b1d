"""What is computed of each text, once."""

from __future__ import annotations

import pytest

from graphcontext.graph.by_text import ByText
from graphcontext.store import Store, Workspace


class Lengths:
    """Counts the characters of texts; has no answer to "?", and breaks at "!"."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(texts)
        if "!" in texts:
            raise OSError("broken")
        return [None if t == "?" else len(t) for t in texts]


def bound(root, facts="v1", batch=2):
    lengths = Lengths()
    by_text = ByText("lengths", lambda: facts, lengths, batch)
    by_text.bind(Workspace(Store(root)))
    return by_text, lengths


def test_each_text_is_computed_once_in_batches_of_the_sorted_texts():
    lengths = Lengths()
    by_text = ByText("lengths", lambda: 0, lengths, batch=2)
    assert by_text.of(["ccc", "a", "ccc", "", "bb"]) == [3, 1, 3, 0, 2]
    assert lengths.asked == [["", "a"], ["bb", "ccc"]]
    assert by_text.of(["bb", "é"]) == [2, 1]
    assert lengths.asked[2:] == [["é"]]


def test_a_text_without_a_value_is_asked_for_again(tmp_path):
    by_text, lengths = bound(tmp_path)
    assert by_text.of(["a", "?"]) == [1, None]
    assert by_text.of(["?", "a"]) == [None, 1]
    assert lengths.asked == [["?", "a"], ["?"]]


def test_t11_what_was_done_before_a_kill_is_not_done_again(tmp_path):
    broken, _ = bound(tmp_path)
    with pytest.raises(OSError, match="broken"):
        broken.of(["!", "#", " ", ""])  # sorted: "", " " | "!", "#"
    by_text, lengths = bound(tmp_path)
    assert by_text.of(["!!", "#", " ", ""]) == [2, 1, 1, 0]
    assert lengths.asked == [["!!", "#"]]
    (file,) = (tmp_path / "lengths").iterdir()
    file.write_text(file.read_text()[:-9])  # cut in mid-line
    again, asked = bound(tmp_path)
    assert again.of(["!!", "#", "dd"]) == [2, 1, 2]
    assert asked.asked == [["#", "dd"]]
    assert bound(tmp_path)[0].of(["#"]) == [1]


def test_t12_other_facts_are_other_values(tmp_path):
    bound(tmp_path)[0].of(["a"])
    other, lengths = bound(tmp_path, facts="v2")
    other.of(["a"])
    assert lengths.asked == [["a"]]
