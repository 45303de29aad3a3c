"""Core runs although a before hook forbade the call."""

from types import ModuleType
from typing import Any

from pi_course.values import clone


class _Acting:
    """A host that lets core run for blocked calls too."""

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
                await core(clone(call), context)
            return result

        return execute


def inject(module: ModuleType) -> None:
    """Run core whatever the hooks decided."""
    create, load = module.create_extension_host, module.load_extension

    def create_extension_host(registry: Any, **options: Any) -> Any:
        return _Acting(create(registry, **options))

    async def load_extension(source: Any, *, host: Any, **callables: Any) -> Any:
        return await load(source, host=host.inner, **callables)

    module.create_extension_host = create_extension_host
    module.load_extension = load_extension
