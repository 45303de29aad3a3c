"""A blocked result doesn't carry the call's id."""

from types import ModuleType
from typing import Any


class _Unpairing:
    """A host whose results for calls that core never saw are unpaired."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def wrap_executor(self, core: Any) -> Any:
        async def execute(call: Any, context: Any) -> Any:
            reached = []

            async def noting(call: Any, context: Any) -> Any:
                reached.append(call)
                return await core(call, context)

            result = await self.inner.wrap_executor(noting)(call, context)
            if not reached:
                result.tool_call_id = "blocked"
            return result

        return execute


def inject(module: ModuleType) -> None:
    """Take the id from every result that stands in for core's."""
    create, load = module.create_extension_host, module.load_extension

    def create_extension_host(registry: Any, **options: Any) -> Any:
        return _Unpairing(create(registry, **options))

    async def load_extension(source: Any, *, host: Any, **callables: Any) -> Any:
        return await load(source, host=host.inner, **callables)

    module.create_extension_host = create_extension_host
    module.load_extension = load_extension
