from graphcontext.data.records import Passage
from example import Example


def test_a_sentence_is_a_triple():
    some, none = Example().extract([Passage("a", "", "", "ext4 is a filesystem."), Passage("b", "", "", "Reboot.")])
    assert some.triples == (("ext4", "is a", "filesystem"),) and none.status == "empty"
