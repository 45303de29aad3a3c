"""A prompt resolves while its messages are still on their way to the store."""

import asyncio
import contextlib
from types import ModuleType
from typing import Any

from pi_course.values import clone

MODULE = "pi_course.composition"

_PARTS = ("model", "tools", "session", "resources", "extension_host", "create_id", "now")


class _Hasty:
    """A store that says yes at once and writes behind its caller's back, in order."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._last: asyncio.Future[Any] | None = None

    async def entries(self) -> Any:
        return await self._inner.entries()

    async def append(self, entry: Any) -> None:
        self._last = asyncio.ensure_future(self._write(clone(entry), self._last))

    async def _write(self, entry: Any, before: "asyncio.Future[Any] | None") -> None:
        if before is not None:
            await before
        with contextlib.suppress(OSError):
            await self._inner.append(entry)


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Put the hasty store between runtime and store."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        parts = {name: getattr(deps, name) for name in _PARTS} | {"session": _Hasty(deps.session)}
        return _Disguised(await original(config, module.RuntimeDeps(**parts)), session=deps.session)

    module.create_runtime = create_runtime
