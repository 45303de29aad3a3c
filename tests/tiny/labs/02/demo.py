"""Knows one small library and searches it, as far as the labs are done."""

from findex import index


def main() -> None:
    library = index.Index()
    library.add("pond", "Red fish, blue fish")
    library.add("lake", "a fish, red and old")
    try:
        for query in ("red fish", '"red fish"'):
            print(query, "→", ", ".join(f"{name} {score}" for name, score in library.search(query)))
    except NotImplementedError as scaffold:
        print(f"The trace ends here: {scaffold}")


if __name__ == "__main__":
    main()
