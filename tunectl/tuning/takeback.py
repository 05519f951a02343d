"""A part of the journal backwards: what an unconfirmed change wrote goes back, and the rest stays journaled."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tunectl.host.writable import WritableSysroot
from tunectl.model import Held
from tunectl.tuning import newest
from tunectl.tuning import restore as backwards
from tunectl.tuning.journal import Journal


class Taken(NamedTuple):
    """What a part of the journal backwards did."""

    outcome: backwards.Outcome
    left: tuple[str, ...] = ()  # what somebody changed since, and stays journaled

    @property
    def complete(self) -> bool:
        """Is nothing left to be tried again?"""
        return self.outcome.complete


class Before(NamedTuple):
    """What the journal and the file beside it said before the change."""

    held: Mapping[str, Held] | None
    words: tuple[str, ...]  # our boot arguments


def take_back(
    root: WritableSysroot,
    journal: Journal,
    boot_id: str,
    numbers: Collection[int],
    before: Before | None = None,
    *,
    early: bool = False,
) -> Taken:
    """Brings back what stood before these entries, and forgets them; a kill in between leaves them for the next run.

    With `before`, what was noted as in force is noted again. A damaged journal is followed and left as it is: `restore`
    sets it aside. TunectlError or OSError where the disk stops it.
    """
    outcome = backwards.restore(root, journal.part(numbers), boot_id, early=early)
    taken = Taken(outcome, tuple(row.path for row in outcome.results if row.result == "changed-since"))
    if not outcome.complete or journal.damaged:
        return taken
    if before and journal.newest.run:
        # Not the words of the change: they would tell of an apply whose journal is gone.
        journal.newest = journal.newest._replace(seq=0, words=before.words)
        newest.note(journal.directory, journal.newest)
    if before:
        journal.held = before.held
    kept = [seq for seq, entry in journal.entries.items() if seq not in numbers or "/" + entry.path in taken.left]
    if len(kept) < len(journal.entries) or before:
        journal.keep(kept, boot_id, "what was changed since it was journaled is restored")
    return taken
