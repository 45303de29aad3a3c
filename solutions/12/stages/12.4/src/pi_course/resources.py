"""The form of `wrap_executor` between Labs 12.4 and 12.5."""

from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.schema import ToolContext
from pi_course.tools import ToolExecutor


class ExtensionHost:
    """The committed extensions around a tool registry."""

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """Return an executor that passes calls through to `core` as long as no hook is committed."""

        async def execute(call: ToolCall, context: ToolContext) -> ToolResultMessage:
            # TODO(12.5): before hooks, the core call, after hooks.
            if self._hooks:
                raise NotImplementedError("Lab 12.5 hook execution 尚未实现")
            return await core(call, context)

        return execute
