from example import Example


def test_names_are_found_once():
    assert Example().entities("Use Docker on ext4, with Docker.") == ["Docker", "ext4"]
