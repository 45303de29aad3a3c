"""Chapter 02: an abort is asked for once, and everyone who waits hears of it."""

import asyncio
import gc
import pickle
from typing import Any

import pytest
from pi_course import signals

BOUND = 5.0  # seconds; far above what any of these waits takes


async def _waiting(signal: signals.AbortSignal, count: int) -> list[asyncio.Task[None]]:
    """Start tasks that wait for the signal, and return once they do."""
    tasks = [asyncio.create_task(signal.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def _all_end(tasks: list[asyncio.Task[None]]) -> bool:
    done, _ = await asyncio.wait(tasks, timeout=BOUND)
    return len(done) == len(tasks)


def test_signal_starts_unaborted() -> None:
    """A fresh signal is not aborted, has no reason, and lets work go on."""
    signal = signals.AbortController().signal
    assert signal.aborted is False
    assert signal.reason is None
    signal.throw_if_aborted()


def test_controller_has_one_signal() -> None:
    """`controller.signal` is the same object at every access, and each controller has its own."""
    controller = signals.AbortController()
    assert controller.signal is controller.signal
    assert isinstance(controller.signal, signals.AbortSignal)
    assert controller.signal is not signals.AbortController().signal


def test_abort_sets_state_and_reason() -> None:
    """After `abort(reason)` the signal is aborted for good and hands out that very reason."""
    controller = signals.AbortController()
    reason = object()
    controller.abort(reason)
    assert controller.signal.aborted is True
    assert controller.signal.reason is reason


def test_first_reason_wins() -> None:
    """A second `abort` changes nothing, whether or not the first one gave a reason."""
    named, unnamed = signals.AbortController(), signals.AbortController()
    named.abort("first")
    named.abort("second")
    unnamed.abort()
    unnamed.abort("late")
    assert named.signal.reason == "first"
    assert unnamed.signal.aborted is True
    assert unnamed.signal.reason is None


@pytest.mark.parametrize("reason", ["stop", None, 0, ValueError("why")], ids=repr)
def test_throw_if_aborted_raises_with_the_reason(reason: object) -> None:
    """`throw_if_aborted` raises `AbortError` whose `reason` is the one that `abort` was given."""
    controller = signals.AbortController()
    controller.abort(reason)
    for _ in range(2):
        with pytest.raises(signals.AbortError) as caught:
            controller.signal.throw_if_aborted()
        assert caught.value.reason is reason


def test_abort_error_is_an_ordinary_exception() -> None:
    """`AbortError` is an `Exception`, shows its reason as text, and survives pickling with it."""
    error = signals.AbortError("user pressed escape")
    assert isinstance(error, Exception)
    assert "user pressed escape" in str(error)
    assert str(signals.AbortError()) == "aborted"
    for reason in ("user pressed escape", {"after": 5}, None):
        assert pickle.loads(pickle.dumps(signals.AbortError(reason))).reason == reason


@pytest.mark.parametrize("attribute", ["aborted", "reason"])
def test_signal_is_for_reading(attribute: str) -> None:
    """Only the controller aborts: a signal's state cannot be assigned."""
    signal = signals.AbortController().signal
    with pytest.raises(AttributeError):
        setattr(signal, attribute, True)


async def test_wait_returns_at_once_where_aborted() -> None:
    """Waiting for a signal that is aborted already does not wait."""
    controller = signals.AbortController()
    controller.abort()
    await asyncio.wait_for(controller.signal.wait(), BOUND)


async def test_abort_wakes_every_waiter() -> None:
    """One `abort` wakes all tasks that wait, and not before it is called."""
    controller = signals.AbortController()
    tasks = await _waiting(controller.signal, 50)
    assert not any(task.done() for task in tasks)
    controller.abort("now")
    assert await _all_end(tasks)
    assert all(task.result() is None for task in tasks)


async def test_cancelled_waiter_leaves_the_others_waiting() -> None:
    """Cancelling one waiter neither aborts the signal nor disturbs the others, who still hear the abort."""
    controller = signals.AbortController()
    first, *others = await _waiting(controller.signal, 3)
    first.cancel()
    assert await _all_end([first])
    assert first.cancelled()
    assert not controller.signal.aborted
    assert not any(task.done() for task in others)
    controller.abort()
    assert await _all_end(others)
    assert not any(task.cancelled() for task in others)


async def test_waiter_cancelled_at_the_abort_is_no_error() -> None:
    """Cancelling and aborting in the same moment, in either order, ends the waiter and raises nowhere."""
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    for cancel_first in (True, False):
        controller = signals.AbortController()
        (task,) = await _waiting(controller.signal, 1)
        for step in (task.cancel, controller.abort) if cancel_first else (controller.abort, task.cancel):
            step()
        assert await _all_end([task])
        assert controller.signal.aborted
    await asyncio.sleep(0)
    assert problems == []


def _living_futures() -> int:
    gc.collect()
    return sum(isinstance(thing, asyncio.Future) for thing in gc.get_objects())


async def test_finished_waits_leave_nothing_behind() -> None:
    """A thousand waits that were given up do not pile up in a signal that lives long."""
    signal = signals.AbortController().signal
    before = _living_futures()
    for _ in range(10):
        tasks = await _waiting(signal, 100)
        for task in tasks:
            task.cancel()
        assert await _all_end(tasks)
    del task, tasks
    assert _living_futures() - before < 100


async def test_abort_from_another_thread_wakes_the_loop() -> None:
    """`abort` may be called from a thread that runs no event loop."""
    asyncio.get_running_loop().set_debug(True)  # makes asyncio itself refuse what is not thread-safe
    controller = signals.AbortController()
    tasks = await _waiting(controller.signal, 3)
    await asyncio.to_thread(controller.abort, "from outside")
    assert await _all_end(tasks)
    assert controller.signal.reason == "from outside"


def test_one_signal_serves_several_loops() -> None:
    """A signal is bound to no event loop: it can be waited for in one and aborted in a later one."""
    controller = signals.AbortController()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(controller.signal.wait(), 0.001)

    async def wake() -> bool:
        tasks = await _waiting(controller.signal, 1)
        controller.abort()
        return await _all_end(tasks)

    asyncio.run(give_up())
    assert asyncio.run(wake())


def test_abort_passes_over_loops_that_are_gone() -> None:
    """A waiter whose loop was closed under it does not make `abort` fail."""
    controller = signals.AbortController()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # asyncio complains about the task, rightly
    task = loop.create_task(controller.signal.wait())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    controller.abort()
    assert controller.signal.aborted
    assert not task.done()
    del task
    gc.collect()


async def test_a_signal_stops_work_between_steps() -> None:
    """The usual use: a worker that looks at its signal stops before its next step, with the reason."""
    controller = signals.AbortController()
    done: list[int] = []

    async def work() -> None:
        for step in range(1000):
            controller.signal.throw_if_aborted()
            done.append(step)
            await asyncio.sleep(0)
            if step == 2:
                controller.abort("enough")

    with pytest.raises(signals.AbortError, match="enough"):
        await asyncio.wait_for(work(), BOUND)
    assert done == [0, 1, 2]
