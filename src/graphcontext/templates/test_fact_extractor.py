from example import Example


def test_a_sentence_is_a_fact():
    assert Example().facts(["Ext4 is a filesystem.", "Reboot."]) == [(("ext4", "is a", "filesystem"),), ()]
