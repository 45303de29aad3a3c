"""What an after hook returns takes the place of the result."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any


class _Changing:
    """An extension's context that changes the handlers of some events."""

    def __init__(self, inner: Any, changes: dict[str, Any]) -> None:
        self._inner = inner
        self._changes = changes
        self.register_tool = inner.register_tool

    def on(self, event: Any, handler: Any) -> None:
        self._inner.on(event, self._changes[event](handler) if event in self._changes else handler)


def _change_handlers(module: ModuleType, **changes: Any) -> None:
    """Let `load_extension` pass every handler through the change for its event."""
    original = module.load_extension

    async def load_extension(source: Any, *, host: Any, is_trusted: Any, import_module: Any) -> Any:
        async def imported(source: Any) -> Any:
            loaded = await _settled(import_module(source))
            return SimpleNamespace(setup=lambda context: loaded.setup(_Changing(context, changes)))

        return await original(source, host=host.inner, is_trusted=is_trusted, import_module=imported)

    module.load_extension = load_extension


async def _settled(value: Any) -> Any:
    if inspect.isawaitable(value):
        value = await value
    return value


def inject(module: ModuleType) -> None:
    """Remember what after hooks return, and hand that out."""
    create, answers = module.create_extension_host, []

    def change(handler: Any) -> Any:
        async def replacing(result: Any) -> Any:
            answer = await _settled(handler(result))
            if answer is not None:
                answers.append(answer)
            return answer

        return replacing

    class Replacing:
        """A host whose results are the after hooks' last answers."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def wrap_executor(self, core: Any) -> Any:
            async def execute(call: Any, context: Any) -> Any:
                answers.clear()
                result = await self.inner.wrap_executor(core)(call, context)
                return answers[-1] if answers else result

            return execute

    def create_extension_host(registry: Any, **options: Any) -> Any:
        return Replacing(create(registry, **options))

    module.create_extension_host = create_extension_host
    _change_handlers(module, after_tool_result=change)
