import pytest
from findex import index

TEXTS = {
    "pond": "Red fish, blue fish, and a fish that is red",
    "lake": "a fish, red and old",
    "barn": "fish for the red hen",
}


def library() -> index.Index:
    built = index.Index()
    for name, text in TEXTS.items():
        built.add(name, text)
    return built


@pytest.mark.lab02
@pytest.mark.lab02_1
def test_search_scores() -> None:
    """Every occurrence of every word counts; the highest score comes first, equal ones by name."""
    assert library().search("red fish") == [("pond", 5), ("barn", 2), ("lake", 2)]


@pytest.mark.lab02
@pytest.mark.lab02_1
def test_search_limit() -> None:
    """The limit keeps the best, wherever their names stand."""
    assert library().search("fish", limit=1) == [("pond", 3)]
    assert library().search("whale", limit=1) == []


@pytest.mark.lab02
@pytest.mark.lab02_2
def test_phrase_words_follow() -> None:
    """The words of a phrase stand side by side, in its order."""
    built = library()
    assert built.phrase("RED fish") == ["pond"]
    assert built.phrase("fish red") == ["lake"]
    assert built.phrase("the") == ["barn"]
    assert built.phrase("") == []


@pytest.mark.lab02
@pytest.mark.lab02_3
def test_search_quoted() -> None:
    """What is quoted must be there as a phrase; all words of the query count for the score."""
    assert library().search('"fish red" old') == [("lake", 3)]
    assert library().search('a "red fish"') == [("pond", 6)]
