"""A failed append is tried once more, though the first may have been written."""

from types import ModuleType
from typing import Any

MODULE = "pi_course.composition"

_PARTS = ("model", "tools", "session", "resources", "extension_host", "create_id", "now")


class _Retrying:
    """A store that tries twice."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def entries(self) -> Any:
        return await self._inner.entries()

    async def append(self, entry: Any) -> None:
        try:
            await self._inner.append(entry)
        except OSError:
            await self._inner.append(entry)


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Put the second try between runtime and store."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        parts = {name: getattr(deps, name) for name in _PARTS} | {"session": _Retrying(deps.session)}
        return _Disguised(await original(config, module.RuntimeDeps(**parts)), session=deps.session)

    module.create_runtime = create_runtime
