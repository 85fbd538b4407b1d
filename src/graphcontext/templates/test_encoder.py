from example import Example


def test_near_texts_have_near_vectors():
    a, b, c, empty = Example().encode(["open ports", "open port", "kernel", ""])
    assert a @ b > 0.8 > 0.2 > a @ c and not empty.any()
