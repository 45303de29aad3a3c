import pytest
from findex import index


@pytest.mark.lab01
@pytest.mark.lab01_1
def test_tokenize_words() -> None:
    """Words are runs of letters, digits and underscores, in the order of the text."""
    assert index.tokenize("one, two_2 -- three!one") == ["one", "two_2", "three", "one"]
    assert index.tokenize(" ... ") == []


@pytest.mark.lab01
@pytest.mark.lab01_1
def test_tokenize_case() -> None:
    """Case makes no difference, in any alphabet."""
    assert index.tokenize("Straße STRASSE ΛΌΓΟΣ") == ["strasse", "strasse", "λόγοσ"]


@pytest.mark.lab01
@pytest.mark.lab01_2
def test_find_every_word() -> None:
    """A document is found when it holds every word of the query; names come in order."""
    library = index.Index()
    library.add("pond", "Red fish, blue fish")
    library.add("lake", "a blue fish")
    library.add("barn", "a red hen")
    assert library.find("fish") == ["lake", "pond"]
    assert library.find("RED fish") == ["pond"]


@pytest.mark.lab01
@pytest.mark.lab01_2
def test_find_nothing() -> None:
    """Unknown words, queries without words and texts that were replaced find nothing."""
    library = index.Index()
    library.add("pond", "red fish")
    library.add("pond", "blue fish")
    assert library.find("red") == []
    assert library.find("whale") == []
    assert library.find(" ?! ") == []
