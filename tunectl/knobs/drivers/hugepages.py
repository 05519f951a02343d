"""Huge pages of one size, reserved on each NUMA node: a thread's memory must be on the node where it runs.

Source: Documentation/admin-guide/mm/hugetlbpage.rst. A write reserves what is free at that moment, so the kernel may
show less than was asked for.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.host.cpus import read_node_numbers
from tunectl.knobs.codecs import NATURAL, Codec
from tunectl.knobs.drivers.pseudofile import read_value
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, Scope, State

_NODES = "sys/devices/system/node"
Pages = int | tuple[tuple[int, int], ...]  # the same on every node; or (node, pages) for each that is named


def _want(value: Any, scope: Scope) -> Pages:
    """`512`, or `"0:512,1:1024"` by node; a node that is not named is left alone."""
    if not isinstance(value, str):
        number: int = NATURAL.want(value, scope)
        return number
    pairs = [part.partition(":") for part in value.split(",")]
    if not all(node.strip().isdecimal() and pages.strip().isdecimal() for node, _, pages in pairs):
        raise ValueError('pages for each node, such as "0:512,1:1024"')
    named = {int(node): int(pages) for node, _, pages in pairs}
    if len(named) < len(pairs):
        raise ValueError("a node is named twice")
    return tuple(sorted(named.items()))


def _text(value: Pages) -> str:
    return str(value) if isinstance(value, int) else ",".join(f"{node}:{pages}" for node, pages in value)


PAGES = Codec(
    "pages", 'a whole number, or one for each node: "0:512,1:1024"', NATURAL.decode, _text, _text, _want
)._replace(show=lambda value: value if isinstance(value, int) else _text(value))


class HugePages(NamedTuple):
    """The pool of one page size, in KiB as the kernel names its directory."""

    size_kib: int

    def _file(self, node: str) -> str:
        return f"{_NODES}/node{node}/hugepages/hugepages-{self.size_kib}kB/nr_hugepages"

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading a node that the wish names, or every node."""
        named = dict(want) if isinstance(want, tuple) else None
        nodes = read_node_numbers(view.root)
        chosen = [node for node in nodes if named is None or node in named]
        if not any(view.root.exists(self._file(str(node))) for node in chosen):
            yield Reading(knob.name, "", State.ABSENT, reason=f"this host has no {self.describe()[0]}")
            return
        for node in chosen:
            wanted = named[node] if named else want
            read_result = read_value(view.root, self._file(str(node)), knob.codec)
            yield Reading(knob.name, str(node), *read_result, wanted=wanted)
        for node in sorted(set(named or ()) - set(nodes)):
            yield Reading(knob.name, str(node), State.ABSENT, reason=f"this host has no NUMA node {node}")

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write a node."""
        for knob, change in batch:
            assert isinstance(knob.driver, HugePages)
            yield Step("value", knob.driver._file(change.instance), str(change.value), (change,), knob.codec)

    def describe(self) -> tuple[str, ...]:
        """The file of one node."""
        return ("/" + self._file("N"),)

    def reads(self) -> tuple[str, ...]:
        """The file of every node."""
        return (self._file("[0-9]*"),)
