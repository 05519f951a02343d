"""A file of our own in a directory where a program reads every file; the other files stay as they are."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing
from tunectl.model import Reading, State


class DropIn(NamedTuple):
    """`needs` exists where the program is installed; `read` gives the value in force, a note, and its file."""

    path: str
    needs: str
    read: Callable[[View], tuple[Any, str, str]]
    render: Callable[[Any], str]
    sources: tuple[str, ...]  # shell patterns of the files that `read` reads
    commands: tuple[str, ...] = ()

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading: what everything that starts from now on will have."""
        if gone := missing(knob.name, view, self.needs):
            yield gone
            return
        with view.root.noting() as denied:
            value, reason, where = self.read(view)
        blocked = ""
        if where.rpartition("/")[2] > self.path.rpartition("/")[2]:  # files are read by name; the last one counts
            blocked = f"{reason}; {where} is read after /{self.path}: take that line out"
        yield if_readable(Reading(knob.name, "", State.READ, value, reason, blocked=blocked), denied)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The file as a whole; then the program is told."""
        for knob, change in batch:
            assert isinstance(knob.driver, DropIn)
            driver = knob.driver
            yield Step("file", driver.path, driver.render(change.value), (change,), commands=driver.commands)

    def describe(self) -> tuple[str, ...]:
        """Our file."""
        return ("/" + self.path,)

    def reads(self) -> tuple[str, ...]:
        """Every file that may say something else."""
        return self.sources
