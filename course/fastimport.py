"""A git fast-import stream: commits with fixed authors and dates, so that contents alone decide their ids."""

from __future__ import annotations

from course.trees import Tree

_AUTHOR = "Course <course@course.invalid>"
_EPOCH = 1_767_225_600
_DAY = 86_400


class Stream:
    """A git fast-import stream in memory; equal blobs are written once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._marks = 0
        self._blobs: dict[bytes, int] = {}
        self._dates: dict[int, int] = {}

    def commit(self, ref: str, parent: int | None, message: str, tree: Tree) -> int:
        """Add a commit whose whole tree is `tree`; give its mark."""
        blobs = {path: self._blob(data) for path, data in sorted(tree.items())}
        self._marks += 1
        mark = self._marks
        text = message.encode("utf-8")
        self._dates[mark] = self._dates[parent] + _DAY if parent is not None else _EPOCH
        when = f"{self._dates[mark]} +0000"
        lines = [f"commit {ref}", f"mark :{mark}", f"author {_AUTHOR} {when}", f"committer {_AUTHOR} {when}"]
        self.data += ("\n".join(lines) + f"\ndata {len(text)}\n").encode() + text + b"\n"
        if parent is not None:
            self.data += f"from :{parent}\n".encode()
        self.data += b"deleteall\n"
        for path, blob in blobs.items():
            self.data += f"M 100644 :{blob} {_quoted(path)}\n".encode()
        self.data += b"\n"
        return mark

    def ref(self, ref: str, mark: int) -> None:
        self.data += f"reset {ref}\nfrom :{mark}\n\n".encode()

    def _blob(self, data: bytes) -> int:
        if data not in self._blobs:
            self._marks += 1
            self._blobs[data] = self._marks
            self.data += f"blob\nmark :{self._marks}\ndata {len(data)}\n".encode() + data + b"\n"
        return self._blobs[data]


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
