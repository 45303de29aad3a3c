"""Chapter 06: a registry that changes as a whole, and calls that always get their result."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pi_course import messages, model, schema, signals, tools, values

BOUND = 5.0  # seconds; far above what any of these waits takes
TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def _echo(arguments: dict[str, Any], context: Any) -> str:
    return str(arguments["text"])


def _tool(execute: Any = _echo, name: str = "echo", parameters: Any = None) -> schema.ToolDefinition:
    schema_of = TEXT if parameters is None else parameters
    return schema.ToolDefinition(name, f"The {name} tool.", schema_of, execute)


def _context(controller: signals.AbortController | None = None) -> schema.ToolContext:
    return schema.ToolContext((controller or signals.AbortController()).signal)


def _call(arguments: Any = None, name: str = "echo") -> messages.ToolCall:
    return messages.ToolCall("call-7", name, {"text": "hi"} if arguments is None else arguments)


async def _run(execute: Any, call: Any = None, context: Any = None) -> messages.ToolResultMessage:
    registry = tools.ToolRegistry()
    registry.register(_tool(execute))
    running = tools.execute_tool_call(call or _call(), registry, context or _context())
    return await asyncio.wait_for(running, BOUND)


def _assert_failed(result: Any, *words: str) -> None:
    """Check a paired error result whose text holds the words."""
    assert isinstance(result, messages.ToolResultMessage)
    assert (result.tool_call_id, result.is_error) == ("call-7", True)
    for word in words:
        assert word in messages.text_of(result)


def test_registry_keeps_the_order_of_registration() -> None:
    """Names and schemas come in the order of registration, and `get` gives the very definition."""
    registry = tools.ToolRegistry()
    assert (registry.names(), registry.schemas(), registry.get("zeta")) == ([], [], None)
    given = [_tool(name=name) for name in ("zeta", "alpha", "mid")]
    registry.register(given[0])
    registry.register(given[1], given[2])
    assert registry.names() == ["zeta", "alpha", "mid"]
    assert [found.name for found in registry.schemas()] == ["zeta", "alpha", "mid"]
    assert [registry.get(tool.name) is tool for tool in given] == [True] * 3
    assert registry.get("ALPHA") is None


@pytest.mark.parametrize(
    "names", [["new", "echo"], ["echo"], ["new", "new"], ["new", "other", "new"]], ids=" ".join
)
def test_registration_is_all_or_none(names: list[str]) -> None:
    """A name that is taken or given twice is a `ToolRegistryError` naming it, and nothing has changed."""
    registry = tools.ToolRegistry()
    first = _tool()
    registry.register(first)
    with pytest.raises(tools.ToolRegistryError, match=names[-1]):
        registry.register(*[_tool(name=name) for name in names])
    assert registry.names() == ["echo"]
    assert registry.get("echo") is first
    with pytest.raises(tools.ToolRegistryError, match="echo"):
        registry.register(_tool(name="new"), first)
    registry.register(*[_tool(name=name) for name in ("new", "other")])
    assert registry.names() == ["echo", "new", "other"]


def test_schemas_and_names_are_copies() -> None:
    """What a reader does to `schemas()` or `names()` reaches neither the registry nor the tool."""
    registry = tools.ToolRegistry()
    parameters = copy.deepcopy(TEXT)
    registry.register(_tool(parameters=parameters))
    (found,) = registry.schemas()
    assert found == model.ToolSchema("echo", "The echo tool.", TEXT)
    found.name = "changed"
    found.parameters["properties"].clear()  # type: ignore[union-attr]
    registry.names().clear()
    assert registry.schemas() == [model.ToolSchema("echo", "The echo tool.", TEXT)]
    assert parameters == TEXT


async def test_text_becomes_a_paired_result() -> None:
    """A tool that gives text gives one text part, paired with its call and stamped with the present."""
    before = messages.user_message("now").timestamp
    result = await _run(_echo)
    after = messages.user_message("now").timestamp
    assert before <= result.timestamp <= after
    result.timestamp = 0
    assert result == messages.ToolResultMessage(
        "call-7", "echo", [messages.TextContent("hi")], is_error=False, timestamp=0
    )


async def test_output_becomes_content_and_details() -> None:
    """A tool that gives `ToolOutput` has its content and details in the result, as a copy."""
    output = schema.ToolOutput([messages.TextContent("a"), messages.TextContent("b")], {"lines": [1]})

    async def execute(arguments: Any, context: Any) -> schema.ToolOutput:
        return output

    result = await _run(execute)
    assert (messages.text_of(result), result.details, result.is_error) == ("ab", {"lines": [1]}, False)
    output.content[0].text = "changed"
    output.details["lines"].append(2)  # type: ignore[index, union-attr, call-overload]
    assert (messages.text_of(result), result.details) == ("ab", {"lines": [1]})


async def test_frozen_call_and_frozen_output_are_fine() -> None:
    """A frozen call runs on changeable arguments, and a frozen output gives a changeable result."""

    async def execute(arguments: dict[str, Any], context: Any) -> schema.ToolOutput:
        arguments["text"] += "!"
        return values.freeze(schema.ToolOutput([messages.TextContent(arguments["text"])], {"n": [1]}))

    result = await _run(execute, values.freeze(_call()))
    assert (messages.text_of(result), result.details, type(result.content)) == ("hi!", {"n": [1]}, list)


async def test_unknown_tool_is_an_error_result() -> None:
    """A call of a tool that nobody registered is answered under the name that was called."""
    result = await _run(_echo, _call(name="ecko"))
    _assert_failed(result, "ecko")
    assert result.tool_name == "ecko"


@pytest.mark.parametrize("arguments", [{}, {"text": 5}, {"text": None}, [], "text", {1: "text"}], ids=repr)
async def test_bad_arguments_are_an_error_result(arguments: Any) -> None:
    """Arguments that do not fit never reach the tool; the text says where (`$`) they are wrong."""
    ran = []

    async def execute(arguments: Any, context: Any) -> str:
        ran.append(arguments)
        return "ran"

    result = await _run(execute, _call(arguments))
    _assert_failed(result, "$")
    assert result.tool_name == "echo"
    assert ran == []


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("cannot be shown")


FAILURES = [
    ValueError("no such file"),
    KeyError("path"),
    signals.AbortError("told to stop"),
    TimeoutError(),
    RecursionError("too deep"),
    ExceptionGroup("several", [OSError("a"), OSError("b")]),
    StopIteration(),
    asyncio.CancelledError("of the tool's own"),
    asyncio.QueueEmpty(),
    _Unprintable(),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_exceptions_of_the_tool_are_error_results(failure: BaseException) -> None:
    """Whatever a tool raises, a `CancelledError` of its own too, is answered; nothing is raised."""

    async def execute(arguments: Any, context: Any) -> str:
        await asyncio.sleep(0)
        raise failure

    result = await _run(execute)
    _assert_failed(result)
    assert messages.text_of(result)


async def test_error_results_tell_the_model_why() -> None:
    """The text has the exception's class and message, or says that the tool's own schema is bad."""

    async def execute(arguments: Any, context: Any) -> str:
        raise FileNotFoundError("no a.py here")

    _assert_failed(await _run(execute), "FileNotFoundError", "no a.py here")
    _assert_failed(await _run(lambda arguments, context: "text"), "await")
    registry = tools.ToolRegistry()
    registry.register(_tool(parameters={"type": "objekt"}))
    _assert_failed(await tools.execute_tool_call(_call(), registry, _context()), "bad schema")


WRONG_OUTPUTS: list[Any] = [
    None,
    5,
    b"bytes",
    ["text"],
    {"content": []},
    messages.TextContent("a"),
    schema.ToolOutput("text"),  # type: ignore[arg-type]
    schema.ToolOutput(["text"]),  # type: ignore[list-item]
    schema.ToolOutput([messages.ToolCall("c1", "echo", {})]),  # type: ignore[list-item]
    schema.ToolOutput([messages.TextContent(5)]),  # type: ignore[arg-type]
    schema.ToolOutput(None),  # type: ignore[arg-type]
    schema.ToolOutput([], details={1, 2}),  # type: ignore[arg-type]
    schema.ToolOutput([], details={"part": messages.TextContent("a")}),  # type: ignore[dict-item]
]


@pytest.mark.parametrize("output", WRONG_OUTPUTS, ids=repr)
async def test_outputs_of_another_type_are_error_results(output: Any) -> None:
    """What is neither text nor a `ToolOutput` of text parts and JSON details is the tool's failure."""

    async def execute(arguments: Any, context: Any) -> Any:
        return output

    _assert_failed(await _run(execute))


async def test_arguments_are_the_tools_own_copy() -> None:
    """A tool that changes its arguments, at any depth, leaves the call as it was."""

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        arguments["more"]["list"].append(2)
        arguments.clear()
        return "done"

    call = _call({"text": "hi", "more": {"list": [1]}})
    assert (await _run(execute, call)).is_error is False
    assert call == _call({"text": "hi", "more": {"list": [1]}})


async def test_the_tool_gets_the_context_itself() -> None:
    """The context, and with it the run's signal, is handed to the tool as it is."""
    seen = []

    async def execute(arguments: Any, context: Any) -> str:
        seen.append(context)
        return "done"

    context = _context()
    await _run(execute, context=context)
    assert seen[0] is context


async def test_aborted_signal_is_an_error_result() -> None:
    """With a signal that is aborted beforehand the tool never runs, and the result has the reason."""
    ran = []

    async def execute(arguments: Any, context: Any) -> str:
        ran.append(True)
        return "done"

    controller = signals.AbortController()
    controller.abort("user pressed escape")
    _assert_failed(await _run(execute, context=_context(controller)), "user pressed escape")
    assert ran == []


async def test_abort_while_running_is_the_tools_to_heed() -> None:
    """A tool that heeds its signal ends in an error result; one that finishes anyway keeps its output."""
    controller = signals.AbortController()

    async def heed(arguments: Any, context: Any) -> str:
        controller.abort("enough")
        await context.signal.wait()
        context.signal.throw_if_aborted()
        return "unreachable"

    late = signals.AbortController()

    async def finish(arguments: Any, context: Any) -> str:
        late.abort()
        await context.signal.wait()
        return "saved what there was"

    _assert_failed(await _run(heed, context=_context(controller)), "enough")
    result = await _run(finish, context=_context(late))
    assert (messages.text_of(result), result.is_error) == ("saved what there was", False)


async def _pass(arguments: Any, context: Any) -> str:
    await asyncio.sleep(3600)
    return "late"


async def _swallow(arguments: Any, context: Any) -> str:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return "swallowed"
    return "late"


async def _turn_into_error(arguments: Any, context: Any) -> str:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        raise OSError("interrupted") from None
    return "late"


@pytest.mark.parametrize("execute", [_pass, _swallow, _turn_into_error])
async def test_cancelling_the_caller_passes_through(execute: Callable[..., Awaitable[str]]) -> None:
    """Cancelling the task that awaits a call cancels it, even where the tool hides the cancellation."""
    registry = tools.ToolRegistry()
    registry.register(_tool(execute))
    task = asyncio.create_task(tools.execute_tool_call(_call(), registry, _context()))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=BOUND)
    assert task in done
    assert task.cancelled()


async def test_cancellation_asked_for_before_the_call_passes_through() -> None:
    """A caller that is being cancelled already gets its `CancelledError` at the tool's first await."""
    registry = tools.ToolRegistry()
    registry.register(_tool(_pass))

    async def caller() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await tools.execute_tool_call(_call(), registry, _context())

    task = asyncio.create_task(caller())
    done, _ = await asyncio.wait([task], timeout=BOUND)
    assert task in done
    assert task.cancelled()


async def test_a_callers_deadline_is_the_callers() -> None:
    """`asyncio.timeout` around a call ends it with `TimeoutError`; one inside the tool is an error result."""

    async def impatient(arguments: Any, context: Any) -> str:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(3600)
        return "late"

    _assert_failed(await _run(impatient), "TimeoutError")
    registry = tools.ToolRegistry()
    registry.register(_tool(_swallow))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await tools.execute_tool_call(_call(), registry, _context())


@pytest.mark.parametrize("leave", [SystemExit, KeyboardInterrupt])
async def test_leaving_the_program_is_no_result(leave: type[BaseException]) -> None:
    """`SystemExit` and `KeyboardInterrupt` are no exceptions of the tool: they end the program as ever."""

    async def execute(arguments: Any, context: Any) -> str:
        raise leave

    registry = tools.ToolRegistry()
    registry.register(_tool(execute))
    running = tools.execute_tool_call(_call(), registry, _context())
    with pytest.raises(leave):
        running.send(None)


async def test_calls_at_the_same_time_keep_their_results_apart() -> None:
    """Fifty calls at once each get the result that carries their own id."""

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        await asyncio.sleep(0)
        return str(arguments["text"])

    registry = tools.ToolRegistry()
    registry.register(_tool(execute))

    async def run(call: messages.ToolCall, context: schema.ToolContext) -> messages.ToolResultMessage:
        return await tools.execute_tool_call(call, registry, context)

    executor: tools.ToolExecutor = run
    calls = [messages.ToolCall(f"c{n}", "echo", {"text": f"t{n}"}) for n in range(50)]
    running = [executor(call, _context()) for call in calls]
    results = await asyncio.wait_for(asyncio.gather(*running), BOUND)
    assert [(r.tool_call_id, messages.text_of(r)) for r in results] == [(f"c{n}", f"t{n}") for n in range(50)]
