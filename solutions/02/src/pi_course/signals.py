"""Abort signals: how the one who started work asks for its end, and how the one who works hears of it.

Decision: a signal beside asyncio's cancellation, because cancelling kills a task at its next `await`, while
an aborted run still has to pair its tool calls and close its turn.
"""

import asyncio


class AbortError(Exception):
    """Work stopped because its signal was aborted; `reason` is what the first `abort` was given."""

    def __init__(self, reason: object = None) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return "aborted" if self.reason is None else f"aborted: {self.reason}"


class AbortSignal:
    """The reading side: handed down to whatever should stop when told to. (Chapter 02)

    Get one from an `AbortController`; a signal once aborted stays so.
    """

    __slots__ = ("_reasons", "_waiters")

    def __init__(self) -> None:
        # Appending is atomic: of two threads that abort at once, one is first and its reason stays.
        self._reasons: list[object] = []
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def aborted(self) -> bool:
        """Whether `abort` was called."""
        return bool(self._reasons)

    @property
    def reason(self) -> object:
        """What the first `abort` was given; `None` before it."""
        return self._reasons[0] if self._reasons else None

    def throw_if_aborted(self) -> None:
        """Raise `AbortError` with the reason where the signal is aborted."""
        if self._reasons:
            raise AbortError(self.reason)

    async def wait(self) -> None:
        """Return once the signal is aborted, at once where it is; any number of tasks may wait."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)  # before the check, so that an abort in between is not missed
        try:
            if not self._reasons:
                await waiter
        finally:
            self._waiters.discard(waiter)

    def _abort(self, reason: object) -> None:
        if self._reasons:
            return
        self._reasons.append(reason)
        for waiter in tuple(self._waiters):
            loop = waiter.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiter)


class AbortController:
    """The writing side: kept by whoever may stop the work. (Chapter 02)"""

    __slots__ = ("_signal",)

    def __init__(self) -> None:
        self._signal = AbortSignal()

    @property
    def signal(self) -> AbortSignal:
        """The one signal of this controller."""
        return self._signal

    def abort(self, reason: object = None) -> None:
        """Abort the signal and wake all who wait for it; a second call changes nothing.

        May be called from any thread and from a signal handler.
        """
        self._signal._abort(reason)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
