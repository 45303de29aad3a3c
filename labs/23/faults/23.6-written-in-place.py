"""The store's file is written in place, under the eyes of those who read it."""

from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "pi_course.extensions.trust"


def inject(module: ModuleType) -> None:
    """Write what is new into the old file, too."""
    store = module.TrustStore
    init, original = store.__init__, store.set

    def build(self: Any, path: Any, **options: Any) -> None:
        self.place = Path(path)
        init(self, path, **options)

    def set_in_place(self: Any, directory: Any, value: Any) -> None:
        if not self.place.is_file():
            original(self, directory, value)
            return
        with self.place.open("r+b") as old:
            original(self, directory, value)
            old.write(self.place.read_bytes())
            old.truncate()

    store.__init__, store.set = build, set_in_place
