import findex


def test_package_is_importable() -> None:
    """The package can be imported and says what it is."""
    assert findex.__doc__
