"""What a long command is at, on standard error: a bar, the time left, the longest gap. For a person at a terminal."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from tunectl.report.escape import printable
from tunectl.work import Tell, Work


class Bar(Progress):
    """Above it stands what is done now. Between two words of the work the time left runs down by the clock."""

    def __init__(self, console: Console, get_time: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._work, self._began, self._due = get_time, Work(""), get_time(), 0.0
        super().__init__(
            BarColumn(20),
            TextColumn("{task.fields[said]}", markup=False),
            console=console,
            refresh_per_second=1,  # drawing is work on the host that is measured
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_time=get_time,
        )
        self.add_task("", total=None, said="")

    def tell(self, work: Work) -> None:
        """Draws it. The first word starts the thread that draws: by then this process has left the isolated CPUs."""
        if work.left_s is not None:
            self._due = self._clock() + work.left_s
        self._work = work
        self.start()
        self.refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is done now, and below it the bar."""
        now = self._clock()
        left_s, passed_s, longest = max(self._due - now, 0.0), now - self._began, self._work.longest
        if self._due:
            said = f"{timedelta(seconds=math.ceil(left_s))} left" + (f", longest gap {longest}" if longest else "")
            self.update(self.task_ids[0], completed=passed_s, total=passed_s + left_s, said=said)
        yield Text(printable(self._work.now), no_wrap=True, overflow="ellipsis")
        yield from super().get_renderables()


@contextmanager
def drawn() -> Iterator[Tell]:
    """Yields what draws the work that it is told; at the end nothing of it stays on the terminal."""
    # Not whatever stands for standard error later: pytest, which runs the checks, takes that away.
    bar = Bar(Console(file=sys.stderr, markup=False, highlight=False, emoji=False))

    def tell(work: Work) -> None:
        with suppress(OSError):  # a terminal that was closed: what is measured goes on
            bar.tell(work)

    try:
        yield tell
    finally:
        with suppress(OSError):
            bar.stop()
