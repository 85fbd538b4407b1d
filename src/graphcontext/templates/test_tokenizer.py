from example import Example


def test_five_letters_are_two_tokens():
    assert [Example().count(text) for text in ("", "four", "fives")] == [0, 1, 2]
