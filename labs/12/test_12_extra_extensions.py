"""Chapter 12, beyond the labs: extensions and hooks that are late, broken, cancelled or ill-meant."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pi_course import resources
from pi_course.messages import TextContent, ToolCall, ToolResultMessage, message_to_json, text_of
from pi_course.schema import ToolContext, ToolDefinition
from pi_course.signals import AbortController
from pi_course.tools import ToolRegistry
from pi_course.values import clone

pytestmark = pytest.mark.extra12

T = TypeVar("T")
Setup = Callable[[Any], object]


def note(text: str = "parser is stable") -> ToolCall:
    """The call of the chapter's example."""
    return ToolCall("note-1", "review_note", {"text": text, "tags": ["parser"]})


def tool(name: str) -> ToolDefinition:
    """A tool that does nothing."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> str:
        return "noted"

    return ToolDefinition(name, f"the tool {name}", {"type": "object"}, execute)


def allow(call: Any) -> Any:
    """A before hook that allows everything."""
    return resources.HookDecision("allow")


class Core:
    """A core executor that keeps what it was given and what it gave."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.contexts: list[ToolContext] = []
        self.results: list[ToolResultMessage] = []

    async def __call__(self, call: ToolCall, context: ToolContext) -> ToolResultMessage:
        self.calls.append(call)
        self.contexts.append(context)
        result = ToolResultMessage(call.id, call.name, [TextContent("noted")], False, 1, {"lines": [1, 2]})
        self.results.append(result)
        return result


class Hosted:
    """A registry, its host, and what the host reported."""

    def __init__(self, hook_timeout: float = 5.0) -> None:
        self.registry = ToolRegistry()
        self.diagnostics: list[Any] = []
        self.host = resources.create_extension_host(
            self.registry, hook_timeout=hook_timeout, on_diagnostic=self.diagnostics.append
        )
        self.core = Core()

    async def load(self, extension_id: str, setup: Setup) -> Any:
        return await resources.load_extension(
            resources.ExtensionSource(extension_id, f"{extension_id}.py"),
            host=self.host,
            is_trusted=lambda source: True,
            import_module=lambda source: SimpleNamespace(setup=setup),
        )

    async def hook(self, event: Any, *handlers: Callable[[Any], Any], extension_id: str = "policy") -> None:
        def setup(context: Any) -> None:
            for handler in handlers:
                context.on(event, handler)

        await self.load(extension_id, setup)

    def call(self, call: ToolCall | None = None, core: Any = None) -> Awaitable[Any]:
        execute = self.host.wrap_executor(core or self.core)
        return execute(call or note(), ToolContext(AbortController().signal))

    def shown(self) -> list[tuple[str, str, str]]:
        return [(each.extension_id, each.hook, each.kind) for each in self.diagnostics]


async def within(awaitable: Awaitable[T], seconds: float = 5.0) -> T:
    """What the awaitable gives, or a failure if it is still not there after that time."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        pytest.fail(f"still waiting after {seconds} s")
    return task.result()


async def settle() -> None:
    """Let everything run that can run by now."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def loop_complaints(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What event loops report: exceptions that nobody retrieved, tasks destroyed while pending."""
    complaints: list[dict[str, Any]] = []

    def note_complaint(loop: object, context: dict[str, Any]) -> None:
        complaints.append(context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_exception_handler", note_complaint)
    return complaints


# --- loading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["trust", "import", "setup"])
@pytest.mark.parametrize("form", ["plain", "async"])
async def test_what_a_callable_raises_comes_out_unchanged(stage: str, form: str) -> None:
    """An exception of trust, import or setup is the caller's, as it is; no tool, no id is left behind."""
    failure = LookupError(stage)

    def step(name: str, value: object) -> Callable[[Any], Any]:
        def plain(argument: Any) -> Any:
            if name == "setup":
                argument.register_tool(tool("t"))
            if name == stage:
                raise failure
            return value

        async def later(argument: Any) -> Any:
            await asyncio.sleep(0)
            return plain(argument)

        return later if form == "async" else plain

    hosted = Hosted()
    with pytest.raises(LookupError) as caught:
        await resources.load_extension(
            resources.ExtensionSource("e", "e.py"),
            host=hosted.host,
            is_trusted=step("trust", True),
            import_module=step("import", SimpleNamespace(setup=step("setup", None))),
        )
    assert caught.value is failure
    assert hosted.registry.names() == []
    assert (await hosted.load("e", lambda context: context.register_tool(tool("t")))).status == "active"


async def test_the_source_reaches_both_callables_and_is_frozen() -> None:
    """Trust and import judge one and the same source, which neither can change."""
    hosted = Hosted()
    given: list[Any] = []

    def is_trusted(source: Any) -> bool:
        given.append(source)
        with pytest.raises((AttributeError, TypeError)):
            source.path = "elsewhere.py"
        return True

    def import_module(source: Any) -> Any:
        given.append(source)
        return SimpleNamespace(setup=lambda context: None)

    source = resources.ExtensionSource("e", "e.py")
    await resources.load_extension(
        source, host=hosted.host, is_trusted=is_trusted, import_module=import_module
    )
    assert given == [source, source]


async def test_a_module_s_setup_may_be_any_callable() -> None:
    """A class, a bound method and an object with `__call__` are setups too; any result is ignored."""

    class Extension:
        def __init__(self, context: Any) -> None:
            context.register_tool(tool("by_class"))

    class Callable_:
        def __call__(self, context: Any) -> str:
            context.register_tool(tool("by_call"))
            return "ignored"

        def method(self, context: Any) -> None:
            context.register_tool(tool("by_method"))

    hosted = Hosted()
    for number, setup in enumerate((Extension, Callable_(), Callable_().method)):
        await hosted.load(f"e{number}", setup)
    assert hosted.registry.names() == ["by_class", "by_call", "by_method"]


async def test_a_context_is_closed_by_commit_and_by_failure() -> None:
    """Once its extension is active or has failed, a context refuses to register anything."""
    hosted = Hosted()
    contexts: list[Any] = []

    def failing(context: Any) -> None:
        contexts.append(context)
        raise RuntimeError("setup failed")

    def conflicting(context: Any) -> None:
        contexts.append(context)
        context.register_tool(tool("twice"))
        context.register_tool(tool("twice"))

    async def hanging(context: Any) -> None:
        contexts.append(context)
        await asyncio.Event().wait()

    await hosted.load("good", contexts.append)
    with pytest.raises(RuntimeError):
        await hosted.load("failing", failing)
    with pytest.raises(resources.ExtensionError):
        await hosted.load("conflicting", conflicting)
    loading = asyncio.ensure_future(hosted.load("cancelled", hanging))
    await settle()
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert len(contexts) == 4
    for context in contexts:
        with pytest.raises(resources.ExtensionError):
            context.register_tool(tool("late"))
        for event in ("before_tool_call", "after_tool_result"):
            with pytest.raises(resources.ExtensionError):
                context.on(event, allow)
    assert hosted.registry.names() == []
    assert (await within(hosted.call())).is_error is False


async def test_nonsense_is_refused_at_registration() -> None:
    """An unknown event, a handler that can't be called and what is no tool are refused when given."""
    hosted = Hosted()
    refused: list[str] = []

    def setup(context: Any) -> None:
        for name, register in {
            "unknown event": lambda: context.on("beforeToolCall", allow),
            "no event": lambda: context.on(None, allow),
            "no handler": lambda: context.on("before_tool_call", None),
            "no tool": lambda: context.register_tool("review_note"),
        }.items():
            try:
                register()
            except resources.ExtensionError:
                refused.append(name)

    assert (await hosted.load("e", setup)).status == "active"
    assert refused == ["unknown event", "no event", "no handler", "no tool"]
    assert hosted.registry.names() == []
    with pytest.raises(resources.ExtensionError):
        await hosted.load("f", lambda context: context.on("on_start", allow))


async def test_commit_meets_the_registry_as_it_is_then() -> None:
    """A name that was free when the tool was staged and is taken at commit makes the whole extension fail."""
    hosted = Hosted()

    def setup(context: Any) -> None:
        context.register_tool(tool("mine"))
        context.register_tool(tool("contested"))
        context.on("before_tool_call", allow)
        hosted.registry.register(tool("contested"))

    with pytest.raises(resources.ExtensionError):
        await hosted.load("e", setup)
    assert hosted.registry.names() == ["contested"]


@pytest.mark.parametrize("ids", [("one", "one"), ("one", "two")], ids=["one id", "one tool name"])
async def test_of_two_loads_at_once_one_wins(ids: tuple[str, str]) -> None:
    """Of two extensions of one id, or with one tool name, loaded at once, one is active, one fails whole."""
    hosted = Hosted()
    started = asyncio.Barrier(2)
    same_id = ids[0] == ids[1]

    def setup_of(number: int) -> Setup:
        async def setup(context: Any) -> None:
            context.register_tool(tool(f"own_{number}"))
            context.register_tool(tool(f"t{number}" if same_id else "shared"))
            await started.wait()

        return setup

    outcomes = await within(
        asyncio.gather(*(hosted.load(ids[n], setup_of(n)) for n in range(2)), return_exceptions=True)
    )
    winner = next(n for n in range(2) if not isinstance(outcomes[n], BaseException))
    assert outcomes[winner] == resources.ExtensionLoadResult(ids[winner], "active")
    assert isinstance(outcomes[1 - winner], resources.ExtensionError)
    assert hosted.registry.names() == [f"own_{winner}", f"t{winner}" if same_id else "shared"]


async def test_untrusted_extensions_leave_their_id_free() -> None:
    """Skipped isn't loaded: the same id can be active later, and a skipped id may be one that is active."""
    hosted = Hosted()
    source = resources.ExtensionSource("e", "e.py")

    def never(source: Any) -> Any:
        raise AssertionError("imported without trust")

    async def skip() -> Any:
        return await resources.load_extension(
            source, host=hosted.host, is_trusted=lambda source: False, import_module=never
        )

    assert (await skip()).status == "skipped_untrusted"
    assert (await hosted.load("e", lambda context: None)).status == "active"
    assert (await skip()).status == "skipped_untrusted"


def test_the_host_s_only_public_name_is_wrap_executor() -> None:
    """Whoever gets hold of a host can wrap an executor with it and nothing else."""
    host = Hosted().host
    assert isinstance(host, resources.ExtensionHost)
    # (What isn't ASCII is a mutation tool's.)
    assert [name for name in dir(host) if name.isascii() and name[0] != "_"] == ["wrap_executor"]


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_timeout_must_be_positive(timeout: float) -> None:
    """A number of seconds in which no hook could answer is refused."""
    with pytest.raises(ValueError):
        resources.create_extension_host(ToolRegistry(), hook_timeout=timeout)


# --- before hooks ----------------------------------------------------------------------------------------


async def test_hooks_run_in_the_order_of_commit_then_registration() -> None:
    """Extensions come in the order of their commits, hooks of one in the order of its calls."""
    hosted = Hosted()
    seen: list[str] = []

    def hooks(*names: str) -> list[Callable[[Any], Any]]:
        return [lambda value, name=name: seen.append(name) or allow(value) for name in names]

    late = asyncio.Event()

    async def slow(context: Any) -> None:
        context.on("before_tool_call", hooks("slow")[0])
        await late.wait()

    loading = asyncio.ensure_future(hosted.load("slow", slow))
    await settle()
    await hosted.hook("before_tool_call", *hooks("a1", "a2"), extension_id="a")
    await hosted.hook("after_tool_result", *hooks("after1", "after2"), extension_id="after")
    await hosted.hook("before_tool_call", *hooks("b"), extension_id="b")
    late.set()
    await loading
    await within(hosted.call())
    assert seen == ["a1", "a2", "b", "slow", "after1", "after2"]
    assert hosted.diagnostics == []


async def test_hooks_are_those_committed_when_the_call_starts() -> None:
    """An extension that is committed while a call runs takes part in the next one."""
    hosted = Hosted()
    seen: list[str] = []

    async def loading(call: Any) -> Any:
        seen.append("first")
        if len(seen) == 1:
            await hosted.hook("before_tool_call", deny, extension_id="late")
            await hosted.hook("after_tool_result", seen.append, extension_id="late-too")
        return resources.HookDecision("allow")

    def deny(call: Any) -> Any:
        return resources.HookDecision("deny", "from now on")

    await hosted.hook("before_tool_call", loading)
    execute = hosted.host.wrap_executor(hosted.core)
    context = ToolContext(AbortController().signal)
    assert (await within(execute(note(), context))).is_error is False
    assert seen == ["first"]
    assert (await within(execute(note(), context))).details == {
        "extensionId": "late",
        "reason": "from now on",
    }
    assert len(hosted.core.calls) == 1


async def test_handlers_may_return_anything_awaitable() -> None:
    """A handler may be plain, async, an object, or return a future."""
    hosted = Hosted()

    def future(call: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.get_loop().call_soon(answer.set_result, resources.HookDecision("allow"))
        return answer

    class Policy:
        async def __call__(self, call: Any) -> Any:
            await asyncio.sleep(0)
            return resources.HookDecision("deny", call.arguments["tags"][0])

    await hosted.hook("before_tool_call", allow, future, Policy())
    result = await within(hosted.call())
    assert result.details == {"extensionId": "policy", "reason": "parser"}
    assert hosted.diagnostics == []


async def test_a_deny_s_reason_is_given_as_it_is() -> None:
    """The reason is the hook's own, empty by default, and plain text in what is stored."""

    class Reason(StrEnum):
        SECRET = "holds a secret"

    for reasons, expected in (
        ((), ""),
        (("why\n{not}",), "why\n{not}"),
        ((Reason.SECRET,), "holds a secret"),
    ):
        hosted = Hosted()
        decision = resources.HookDecision("deny", *reasons)
        await hosted.hook("before_tool_call", lambda call, decision=decision: decision)
        result = await within(hosted.call())
        assert result.details == {"extensionId": "policy", "reason": expected}
        assert result.is_error is True
        assert isinstance(text_of(result), str)
        assert message_to_json(clone(result))["details"] == {"extensionId": "policy", "reason": expected}


async def test_a_decision_with_nonsense_in_it_is_a_fault() -> None:
    """Only the two decisions with a text as reason are decisions; classes and look-alikes aren't."""
    nonsense = [
        resources.HookDecision("Allow"),
        resources.HookDecision(""),
        resources.HookDecision("deny", 7),
        resources.HookDecision,
        SimpleNamespace(decision="allow", reason=""),
        {"decision": "allow"},
        asyncio.Event,
    ]
    for answer in nonsense:
        hosted = Hosted()
        await hosted.hook("before_tool_call", lambda call, answer=answer: answer)
        result = await within(hosted.call())
        assert (hosted.core.calls, result.is_error) == ([], True)
        assert hosted.shown() == [("policy", "before_tool_call", "error")]
        assert result.details == {"extensionId": "policy", "reason": hosted.diagnostics[0].message}


async def test_a_hook_s_own_timeouts_and_cancellations_are_errors() -> None:
    """TimeoutError and CancelledError raised by a hook are its errors: the host's time didn't run out."""

    def timing_out(value: Any) -> Any:
        raise TimeoutError("the policy's own")

    async def timing_out_later(value: Any) -> Any:
        async with asyncio.timeout(0):
            await asyncio.sleep(5)

    async def cancelling(value: Any) -> Any:
        raise asyncio.CancelledError

    def cancelling_at_once(value: Any) -> Any:
        raise asyncio.CancelledError("at once")

    async def cancelled_future(value: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    for fault in (timing_out, timing_out_later, cancelling, cancelling_at_once, cancelled_future):
        hosted = Hosted()
        await hosted.hook("before_tool_call", fault)
        result = await within(hosted.call())
        assert hosted.shown() == [("policy", "before_tool_call", "error")], fault.__name__
        assert (hosted.core.calls, result.is_error) == ([], True)

        hosted = Hosted()
        await hosted.hook("after_tool_result", fault, fault)
        result = await within(hosted.call())
        assert hosted.shown() == [("policy", "after_tool_result", "error")] * 2, fault.__name__
        assert result == hosted.core.results[0]


async def test_errors_that_can_t_be_shown_are_still_faults() -> None:
    """An exception without text, or whose text fails, blocks the call and gives some message."""

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    for error in (ValueError(), Unprintable(), StopIteration(), StopAsyncIteration()):

        def raising(call: Any, error: Exception = error) -> Any:
            raise error

        hosted = Hosted()
        await hosted.hook("before_tool_call", raising)
        result = await within(hosted.call())
        assert hosted.core.calls == []
        assert hosted.shown() == [("policy", "before_tool_call", "error")]
        assert hosted.diagnostics[0].message
        assert result.details["reason"] == hosted.diagnostics[0].message


async def test_a_fault_is_not_kept_once_it_is_reported() -> None:
    """What a hook raised, and with it all that its traceback holds, is free again after the call."""

    class Fault(Exception):
        pass

    kept: list[weakref.ref[Fault]] = []

    def raising(value: Any) -> Any:
        fault = Fault("broken")
        kept.append(weakref.ref(fault))
        raise fault

    hosted = Hosted()
    await hosted.hook("after_tool_result", raising)
    await hosted.hook("before_tool_call", allow, raising, extension_id="late")
    await within(hosted.call())
    await settle()
    gc.collect()
    assert [reference() for reference in kept] == [None]


async def test_without_an_observer_faults_still_block() -> None:
    """`on_diagnostic` is optional, and one that raises neither opens the gate nor changes a result."""

    def broken(value: Any) -> Any:
        raise RuntimeError("hook is broken")

    def broken_observer(diagnostic: Any) -> None:
        seen.append(diagnostic.kind)
        raise RuntimeError("observer is broken")

    def observing(result: Any) -> None:
        seen.append("after")

    seen: list[str] = []
    for observer in (None, broken_observer):
        seen.clear()
        hosted = Hosted()
        hosted.host = resources.create_extension_host(ToolRegistry(), on_diagnostic=observer)
        await hosted.hook("after_tool_result", broken, observing)
        result = await within(hosted.call())
        assert result == hosted.core.results[0]
        assert seen == (["error", "after"] if observer else ["after"])
        await hosted.hook("before_tool_call", broken, extension_id="broken")
        assert (await within(hosted.call())).is_error is True
        assert len(hosted.core.calls) == 1


# --- time and cancellation -------------------------------------------------------------------------------


async def test_a_hook_that_clings_to_life_holds_nothing_up(loop_complaints: list[dict[str, Any]]) -> None:
    """The host stops waiting for hooks that swallow cancellation; what they do later goes nowhere."""
    hosted = Hosted(hook_timeout=0.05)
    release = asyncio.Event()
    ended: list[str] = []

    def clinging(then: Callable[[], object]) -> Callable[[Any], Any]:
        async def hook(value: Any) -> Any:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            ended.append("late")
            return then()

        return hook

    def fail() -> object:
        raise RuntimeError("too late")

    await hosted.hook(
        "after_tool_result", clinging(fail), clinging(lambda: ToolResultMessage("x", "x", [], True, 0))
    )
    assert await within(hosted.call()) == hosted.core.results[0]
    await hosted.hook("before_tool_call", clinging(fail), extension_id="p")
    blocked = await within(hosted.call())
    await hosted.hook("before_tool_call", clinging(lambda: allow(None)), extension_id="q")
    assert (await within(hosted.call())).is_error is True
    shown = hosted.shown()
    assert shown == [
        ("policy", "after_tool_result", "timeout"),
        ("policy", "after_tool_result", "timeout"),
        ("p", "before_tool_call", "timeout"),
        ("p", "before_tool_call", "timeout"),
    ]
    release.set()
    await settle()
    gc.collect()
    await settle()
    assert ended == ["late"] * 4
    assert hosted.shown() == shown
    assert blocked.details == {"extensionId": "p", "reason": hosted.diagnostics[2].message}
    assert len(hosted.core.calls) == 1
    assert loop_complaints == []


async def test_a_late_hook_that_nobody_refers_to_is_not_destroyed(
    loop_complaints: list[dict[str, Any]],
) -> None:
    """A hook that outlives its timeout, and to which nothing refers, isn't destroyed while pending."""
    cancelled: list[str] = []

    async def forgotten() -> None:
        hosted = Hosted(hook_timeout=0.01)

        async def hook(call: Any) -> Any:
            while len(cancelled) < 2:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    cancelled.append("once more")

        await hosted.hook("before_tool_call", hook)
        await within(hosted.call())

    await forgotten()
    await settle()
    assert cancelled == ["once more"]
    gc.collect()
    await settle()
    assert loop_complaints == []


async def test_time_is_counted_for_each_hook_anew() -> None:
    """Hooks that together take longer than the timeout are fine as long as each keeps within it."""
    hosted = Hosted(hook_timeout=1.0)

    async def slow(value: Any) -> Any:
        await asyncio.sleep(0.4)
        return resources.HookDecision("allow")

    await hosted.hook("before_tool_call", *[slow] * 3)
    assert (await within(hosted.call(), 30)).is_error is False
    assert hosted.diagnostics == []


@pytest.mark.parametrize("where", ["before_tool_call", "core", "after_tool_result"])
async def test_cancelling_the_caller_cancels_the_call(
    where: str, loop_complaints: list[dict[str, Any]]
) -> None:
    """Cancellation ends the call where it is: the hook or core sees it, and nothing more runs."""
    hosted = Hosted()
    seen: list[str] = []
    reached = asyncio.Event()

    async def waiting(value: Any) -> Any:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def core(call: ToolCall, context: ToolContext) -> Any:
        seen.append("core")
        return await waiting(call) if where == "core" else await hosted.core(call, context)

    if where != "core":
        await hosted.hook(where, waiting, lambda value: seen.append("next"))
    await hosted.hook("after_tool_result", lambda value: seen.append("after"), extension_id="after")
    calling = asyncio.ensure_future(hosted.call(core=core))
    await within(reached.wait())
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(calling)
    await settle()
    gc.collect()
    assert seen == (["cancelled"] if where == "before_tool_call" else ["core", "cancelled"])
    assert hosted.diagnostics == []
    assert loop_complaints == []


@pytest.mark.parametrize("event", ["before_tool_call", "after_tool_result"])
async def test_a_hook_can_t_swallow_its_caller_s_cancellation(
    event: str, loop_complaints: list[dict[str, Any]]
) -> None:
    """A hook that goes on when cancelled, or fails instead, doesn't keep the caller from being cancelled."""
    for error in (None, RuntimeError("instead")):
        hosted = Hosted()
        reached = asyncio.Event()

        async def stubborn(
            value: Any, error: Exception | None = error, reached: asyncio.Event = reached
        ) -> Any:
            reached.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if error is not None:
                    raise error from None
            return resources.HookDecision("allow")

        await hosted.hook(event, stubborn)
        calling = asyncio.ensure_future(hosted.call())
        await within(reached.wait())
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(calling)
        await settle()
        gc.collect()
        assert len(hosted.core.calls) == (0 if event == "before_tool_call" else 1)
        assert hosted.diagnostics == []
    assert loop_complaints == []


async def test_a_hook_that_fails_as_its_caller_is_cancelled_is_silent(
    loop_complaints: list[dict[str, Any]],
) -> None:
    """Failure and cancellation at one moment: the caller is cancelled, and no failure is left unretrieved."""
    hosted = Hosted()
    calling: asyncio.Future[Any]

    async def failing(call: Any) -> Any:
        await asyncio.sleep(0)
        calling.cancel()
        raise RuntimeError("at the same time")

    await hosted.hook("before_tool_call", failing)
    calling = asyncio.ensure_future(hosted.call())
    with pytest.raises(asyncio.CancelledError):
        await within(calling)
    await settle()
    gc.collect()
    assert hosted.core.calls == []
    assert loop_complaints == []


# --- facts and copies ------------------------------------------------------------------------------------


async def test_what_core_raises_comes_out_and_is_no_result() -> None:
    """An exception of core, a cancellation too, is the caller's; no after hook sees anything."""
    for error in (RuntimeError("core is broken"), TimeoutError("core's own"), asyncio.CancelledError()):
        hosted = Hosted()
        seen: list[Any] = []

        async def core(call: ToolCall, context: ToolContext, error: BaseException = error) -> Any:
            raise error

        await hosted.hook("before_tool_call", allow)
        await hosted.hook("after_tool_result", seen.append, extension_id="after")
        with pytest.raises(type(error)) as caught:
            await within(hosted.call(core=core))
        if not isinstance(error, asyncio.CancelledError):
            assert caught.value is error
        assert (seen, hosted.diagnostics) == ([], [])


async def test_core_gets_the_call_that_the_hooks_judged() -> None:
    """Whatever the caller does to its call meanwhile, core gets a plain copy of what the hooks saw."""
    hosted = Hosted()
    call = note()
    judged: list[Any] = []

    async def judging(value: Any) -> Any:
        judged.append(value)
        call.arguments["text"] = "SECRET"
        call.arguments["tags"].append("changed")  # type: ignore[union-attr]
        call.name = "other"
        await asyncio.sleep(0)
        return resources.HookDecision("allow")

    await hosted.hook("before_tool_call", judging, judging)
    await within(hosted.call(call))
    assert hosted.core.calls == [note()]
    assert clone(judged) == [note(), note()]
    assert isinstance(judged[0], ToolCall)
    given = hosted.core.calls[0]
    given.arguments["tags"].append("core's own")  # type: ignore[union-attr]
    assert clone(judged[0]) == note()
    assert call.arguments["tags"] == ["parser", "changed", "changed"]


async def test_observers_see_the_fact_as_core_stated_it() -> None:
    """A result that core changes afterwards stays, for hooks and caller, what it was when core gave it."""
    hosted = Hosted()
    seen: list[Any] = []

    async def observing(result: Any) -> None:
        hosted.core.results[0].details["lines"].append(3)  # type: ignore[index,call-overload,union-attr]
        hosted.core.results[0].content[0].text = "changed"
        await asyncio.sleep(0)
        seen.append(result)

    await hosted.hook("after_tool_result", observing, observing)
    result = await within(hosted.call())
    fact = ToolResultMessage("note-1", "review_note", [TextContent("noted")], False, 1, {"lines": [1, 2]})
    assert clone(seen) == [fact, fact]
    assert isinstance(seen[0], ToolResultMessage)
    assert result == fact
    result.details["lines"].append(4)
    assert clone(seen[0]) == fact


async def test_error_results_of_core_are_facts_too() -> None:
    """A result with `is_error` came from core: after hooks see it, and it is returned."""
    hosted = Hosted()
    seen: list[Any] = []
    error = ToolResultMessage("note-1", "review_note", [TextContent("no such file")], True, 1)

    async def core(call: ToolCall, context: ToolContext) -> ToolResultMessage:
        return error

    await hosted.hook("after_tool_result", seen.append)
    assert await within(hosted.call(core=core)) == error
    assert clone(seen) == [error]


async def test_hosts_and_executors_are_independent() -> None:
    """Hooks belong to one host; all its executors have them; the context goes through as it is."""
    hosted, other = Hosted(), Hosted()
    early = hosted.host.wrap_executor(hosted.core)
    seen: list[str] = []
    await hosted.hook("before_tool_call", lambda call: seen.append(call.id) or allow(call))
    context = ToolContext(AbortController().signal)
    await within(early(note(), context))
    await within(other.call())
    assert seen == ["note-1"]
    assert hosted.core.contexts[0] is context
    twice = hosted.host.wrap_executor(hosted.host.wrap_executor(hosted.core))
    await within(twice(note(), context))
    assert seen == ["note-1"] * 3
    assert len(hosted.core.calls) == 2


async def test_calls_at_the_same_time_do_not_mix() -> None:
    """Many calls through one executor each get the verdict and the result of their own."""
    hosted = Hosted()

    async def policy(call: Any) -> Any:
        await asyncio.sleep(0)
        secret = "SECRET" in call.arguments["text"]
        return resources.HookDecision("deny" if secret else "allow", call.id)

    await hosted.hook("before_tool_call", policy)
    execute = hosted.host.wrap_executor(hosted.core)
    calls = [ToolCall(f"c{n}", "review_note", {"text": "SECRET" if n % 3 else "fine"}) for n in range(30)]
    context = ToolContext(AbortController().signal)
    results = await within(asyncio.gather(*(execute(call, context) for call in calls)))
    assert [result.tool_call_id for result in results] == [call.id for call in calls]
    assert [result.is_error for result in results] == [bool(n % 3) for n in range(30)]
    assert all(result.details["reason"] == result.tool_call_id for result in results if result.is_error)
    assert len(hosted.core.calls) == 10
