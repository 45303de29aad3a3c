import pytest
from findex import index


@pytest.mark.extra02
def test_search_empty_phrase() -> None:
    """Quotes without a word between them mean nothing."""
    library = index.Index()
    library.add("pond", "red fish")
    assert library.search('fish "" red') == [("pond", 2)]
    assert library.search('""') == []
