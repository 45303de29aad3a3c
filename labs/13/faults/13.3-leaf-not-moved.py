"""All new entries of a prompt hang on the leaf it started from."""

from types import ModuleType
from typing import Any

from pi_course.values import clone

MODULE = "pi_course.composition"

_PARTS = ("model", "tools", "session", "resources", "extension_host", "create_id", "now")


class _Flat:
    """A store that gives every entry of one prompt the same parent."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._parent_id: str | None = None

    async def entries(self) -> Any:
        return await self._inner.entries()

    async def append(self, entry: Any) -> None:
        if entry.message.role == "user":
            self._parent_id = entry.parent_id
        entry = clone(entry)
        entry.parent_id = self._parent_id
        await self._inner.append(entry)


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Put the flattening between runtime and store."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        parts = {name: getattr(deps, name) for name in _PARTS} | {"session": _Flat(deps.session)}
        return _Disguised(await original(config, module.RuntimeDeps(**parts)), session=deps.session)

    module.create_runtime = create_runtime
