"""What happens to the journal itself: a line is lost, a bit flips, a record is no record, an older copy is put back.

What tunectl wrote stands in each of these rows, so nothing but the journal may be reported.
"""

import shlex

from tunectl.durable import line_of

from ..sabotage import Kind, Round, Sabotage

_JOURNAL, _BACKUP = "/var/lib/tunectl/journal.jsonl", "/root/journal.jsonl"
_BACKED_UP = f"cp {_JOURNAL} {_BACKUP}"
_PUT_BACK = f"cp {_BACKUP} {_JOURNAL}"
_FOUND = ("journal",)


def _end(wrote: object) -> str:
    """The record that ends a run, with its checksum."""
    return line_of({"type": "end", "wrote": wrote}).decode().strip()


def _append(line: str, end: str = r"\n") -> str:
    """A shell command."""
    return f"printf '%s{end}' {shlex.quote(line)} >> {_JOURNAL}"


ROUNDS = {
    "journal": Round(
        (
            Sabotage(
                Kind.LOSS,
                "a line is cut out of the journal",
                f'sed -i \'0,/"type":"before"/{{/"type":"before"/d}}\' {_JOURNAL}',
                _FOUND,
                who="an operator who opened it in an editor, and saved it",
                innocent=f"{_BACKED_UP}; touch {_JOURNAL}",
                says=("line",),
                decides=_PUT_BACK,
            ),
            Sabotage(
                Kind.LOSS,
                "a bit is flipped in the newest record of the journal",
                f'{_PUT_BACK}; sed -i \'$s/"type"/"tyqe"/\' {_JOURNAL}',
                _FOUND,
                who="a disk without checksums, after years",
                # a line that has no end was never followed by its write
                innocent=f"{_BACKED_UP}; {_append(_end([])[:20], '')}",
                says=("line",),
                decides=_PUT_BACK,
            ),
            Sabotage(
                Kind.LOSS,
                "a record of the journal has a field of another type",
                f"{_PUT_BACK}; {_append(_end(7))}",
                _FOUND,
                who="a newer version of tunectl that was taken off again, or a script that edits the journal",
                innocent=f"{_BACKED_UP}; {_append(_end([]))}",
                says=("line",),
                decides=_PUT_BACK,
            ),
            Sabotage(
                Kind.LOSS,
                "a journal of an earlier moment is put back",
                # all before the first write that udev's rule needed
                f"sed '/95-tunectl.rules/,$d' {_JOURNAL} > {_BACKUP}; {_PUT_BACK}",
                _FOUND,
                who="an administrator who restored /var from a backup that was made while apply ran",
                innocent=f"{_BACKED_UP}; {_PUT_BACK}",
                says=("is not the newest",),
            ),
        ),
        long=True,
        alone=True,
    ),
}
