"""What a person at a terminal sees of long work: what is done, the time left, the longest gap. Nobody else sees it."""

from io import StringIO

import pytest
from rich.console import Console

from tunectl.cli.progress import Bar
from tunectl.work import Work


class Watch:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        """Its time."""
        return self.now


def drawn(bar: Bar, width: int = 80) -> list[str]:
    """What stands on the terminal."""
    page = Console(file=StringIO(), width=width)
    with page.capture() as said:
        page.print(bar.get_renderable())
    return [line.rstrip() for line in said.get().splitlines()]


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def bar(watch: Watch) -> Bar:
    """One that nobody started: no thread draws it."""
    made = Bar(Console(file=StringIO(), width=80, force_terminal=True), watch)
    made.live.auto_refresh = False
    return made


def test_the_time_left_runs_down_between_two_words_and_the_bar_grows(bar: Bar, watch: Watch) -> None:
    bar.tell(Work("measuring CPUs 2-3", 60.0))
    assert drawn(bar) == ["measuring CPUs 2-3", f"{' ' * 20} 0:01:00 left"]
    watch.now += 15.0
    bar.tell(Work("measuring CPUs 2-3", 45.0, "16.2 ms on CPU 3 at 3.2 s"))
    watch.now += 15.0
    assert drawn(bar)[1] == f"{'━' * 10:<20} 0:00:30 left, longest gap 16.2 ms on CPU 3 at 3.2 s"
    bar.tell(Work("checking irq_affinity"))  # says nothing new of the time
    watch.now += 90.0
    assert drawn(bar) == ["checking irq_affinity", f"{'━' * 20} 0:00:00 left"]
    bar.stop()


def test_without_a_time_there_is_none_to_read_and_no_line_is_too_wide(bar: Bar) -> None:
    bar.tell(Work("under load memory, timers on CPUs 0-1: measuring CPUs 2-3"))
    said, empty = drawn(bar, 40)
    assert said == "under load memory, timers on CPUs 0-1: …"
    assert "left" not in empty
    bar.stop()


def test_nothing_draws_before_the_first_word(bar: Bar) -> None:
    """By then the command has left the CPUs it measures: a thread that was started before would stay there."""
    assert not bar.live.is_started
    bar.tell(Work("reading the settings"))
    assert bar.live.is_started
    bar.stop()
