"""All that the session holds is restored, whichever branch it is on."""

from itertools import pairwise
from types import ModuleType
from typing import Any

from pi_course.values import clone

MODULE = "pi_course.composition"


class _OneBranch:
    """A store whose entries follow one another in the order of the file."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def entries(self) -> list[Any]:
        entries = clone(await self._inner.entries())
        for before, entry in pairwise(entries):
            entry.parent_id = before.id
        return entries

    async def append(self, entry: Any) -> None:
        await self._inner.append(entry)


class _Disguised:
    """A runtime that differs from the one inside in what is set here."""

    def __init__(self, inner: Any, **differing: Any) -> None:
        self.__dict__.update(differing, _inner=inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def inject(module: ModuleType) -> None:
    """Let `create_runtime` restore the whole file."""
    original = module.create_runtime

    async def create_runtime(config: Any, deps: Any) -> Any:
        entries = await deps.session.entries()
        if config.active_leaf_id not in {entry.id for entry in entries}:
            return await original(config, deps)
        config = module.RuntimeConfig(entries[-1].id, config.context, config.system_prompt, config.max_steps)
        parts = {name: getattr(deps, name) for name in _PARTS}
        runtime = await original(config, module.RuntimeDeps(**parts, session=_OneBranch(deps.session)))
        return _Disguised(runtime, session=deps.session)

    module.create_runtime = create_runtime


_PARTS = ("model", "tools", "resources", "extension_host", "create_id", "now")
