"""Every task that the product can print of a fix, read from its source: f-strings with … where a value stands.

A task is made by a function of tunectl/fix.py, and its text is what that is handed: followed through names, constants,
branches and lists; a command is made of such words by the functions of tunectl/command.py and tunectl/kinds.py. The
types see to it that there is no other way to a fix.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tunectl import command, fix, kinds
from tunectl.errors import UsageError

ROOT = Path(__file__).parent.parent
HOLE = "…"
_WORD = "a-hole"  # within a command: what a shell takes as it stands
_MAKERS = {one.__name__: one for one in (fix.to_type, fix.to_decide, fix.add_words, fix.reboot, fix.apply)}
_COMMANDS = {one.__name__: one for one in (command.argv, command.write)}
_SHOWING = ("report", "cli", "fleet")  # they draw what others say
_NO_FIX = ("fix.py", "unproved.py")  # where tasks are made; what the probe needs


class Place(NamedTuple):
    """Where an expression stands."""

    module: Module
    function: ast.FunctionDef | None


class Module:
    """One source file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text())

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]

    def places(self) -> Iterator[tuple[Place, ast.AST]]:
        """Each node with the innermost function around it."""
        owners: dict[ast.AST, ast.FunctionDef] = {}
        for function in self.functions:  # an inner function comes after the one around it
            owners |= dict.fromkeys(ast.walk(function), function)
        for node in ast.walk(self.tree):
            yield Place(self, owners.get(node)), node


class Source:
    """The product's source, as far as fixes go."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.modules = [Module(path) for path in sorted(paths)]
        self._open: set[ast.expr] = set()

    def tasks(self) -> dict[str, set[str]]:
        """{text: the files it stands in}."""
        found: dict[str, set[str]] = {str(fix.APPLY): set(), str(fix.REBOOT): set()}
        for module in self.modules:
            for place, node in module.places():
                if isinstance(node, ast.Call) and (maker := _maker(node)):
                    for words in itertools.product(*(sorted(self._texts(word, place)) for word in node.args)):
                        text = "; ".join(filter(None, words)) if maker is fix.to_type else maker(*words).tasks[0].said
                        found.setdefault(text, set()).add(str(module.path.relative_to(ROOT)))
        found.pop(HOLE, None)
        return found

    def _texts(self, value: ast.expr, place: Place) -> set[str]:
        """The texts that an expression may have; a hole where it is a value."""
        if value in self._open:
            return set()
        self._open.add(value)
        try:
            return self._of(value, place)
        finally:
            self._open.discard(value)

    def _of(self, value: ast.expr, place: Place) -> set[str]:
        match value:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                said = (sorted(self._part(part, place)) for part in parts)
                return {"".join(words) for words in itertools.product(*said)}
            case ast.BinOp(left=left, right=right):
                return {a + b for a in self._texts(left, place) for b in self._texts(right, place)}
            case ast.IfExp(body=one, orelse=other):
                return self._texts(one, place) | self._texts(other, place)
            case ast.List(elts=values):
                return set().union(*(self._texts(one, place) for one in values))
            case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner):
                return self._texts(inner, place)
            case ast.Call(func=ast.Attribute(attr="join"), args=[inner]):
                return self._texts(inner, place)
            case ast.Name(id=name):
                return set().union(*(self._texts(one, place) for one in self._assigned(name, place))) or {HOLE}
            case ast.Call(func=ast.Name(id=name), args=[word]) if name in _MAKERS:
                return self._texts(word, place)
        return self._of_command(value, place)

    def _of_command(self, value: ast.expr, place: Place) -> set[str]:
        match value:
            case ast.Call(func=ast.Name(id=name), args=words, keywords=named) if name in _COMMANDS:
                return self._commands(_COMMANDS[name], words, named, place)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="kinds"), attr=name), args=words, keywords=named):
                return self._commands(kinds.KINDS[name.replace("_", "-")], words, named, place)
            case ast.Call(func=ast.Name(id="all_of"), args=[inner]):
                return self._texts(inner, place)
            case ast.Call(func=ast.Attribute(value=first, attr="then"), args=others):
                steps = (sorted(self._texts(step, place)) for step in (first, *others))
                return {" && ".join(texts) for texts in itertools.product(*steps)}
        return {HOLE}

    def _commands(
        self, make: Callable[..., command.Command], words: list[ast.expr], named: list[ast.keyword], place: Place
    ) -> set[str]:
        """What a function that makes a command may make of these words, and of the names that it is about."""
        about = [name for one in named if one.arg == "of" for name in _listed(one.value)]
        written = [isinstance(word, ast.Constant | ast.JoinedStr) for word in (*words, *about)]
        each = [
            sorted(self._texts(word, place)) if is_text else [HOLE]
            for word, is_text in zip((*words, *about), written, strict=True)
        ]
        made = set()
        for texts in itertools.product(*each):
            marked = [text.replace(HOLE, _WORD) for text in texts]
            of: dict[str, Any] = {"of": marked[len(words) :]} if about else {}
            of |= {one.arg: one.value.value for one in named if one.arg and isinstance(one.value, ast.Constant)}
            made.add(str(_made(make, marked[: len(words)], of)).replace(_WORD, HOLE))
        return made

    def _part(self, part: ast.expr, place: Place) -> set[str]:
        """A part of an f-string: a text of the source's own, or a hole for a value."""
        if isinstance(part, ast.FormattedValue):
            given = list(self._assigned(part.value.id, place)) if isinstance(part.value, ast.Name) else []
            is_text = given and all(
                isinstance(one, ast.Constant | ast.JoinedStr) or _maker(one) or _is_command(one) for one in given
            )
            if _is_command(part.value):
                return self._texts(part.value, place)
            return self._texts(part.value, place) if is_text else {HOLE}
        return self._texts(part, place)

    def _assigned(self, name: str, place: Place) -> Iterator[ast.expr]:
        """What a name is given in its function, or else in its module, or in the module that it is taken from."""
        inside = list(_given(name, ast.walk(place.function))) if place.function else []
        yield from inside or list(_given(name, place.module.tree.body)) or self._imported(name, place)

    def _imported(self, name: str, place: Place) -> Iterator[ast.expr]:
        for node in place.module.tree.body:
            if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
                file = ROOT / ((node.module or "").replace(".", "/") + ".py")
                for module in self.modules:
                    if module.path == file:
                        yield from _given(name, module.tree.body)


def _is_command(value: ast.expr) -> bool:
    """Is it a call of a function that makes a command?"""
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name in _COMMANDS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="kinds"))):
            return True
    return False


def _listed(value: ast.expr) -> list[ast.expr]:
    """The names that a command is about; one, where they are not written there one by one."""
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def _made(make: Callable[..., command.Command], words: list[str], of: dict[str, Any]) -> command.Command:
    """The command; of one that wants CPUs, with some."""
    try:
        return make(*words, **of)
    except UsageError:
        return command.Command(
            step._replace(fed=step.fed and _WORD) for step in make(*(["0"] * len(words)), **of).steps
        )


def _maker(node: ast.AST) -> Callable[..., fix.Fix] | None:
    """The function of tunectl/fix.py that an expression calls."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
    return _MAKERS.get(called) if called else None


def _given(name: str, nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The expression of each assignment to a name, and of what is appended to it."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=word)], value=value) if word == name:
                yield value
            case ast.AugAssign(target=ast.Name(id=word), value=value) if word == name:
                yield value
            case ast.Call(func=ast.Attribute(value=ast.Name(id=word), attr="append"), args=[value]) if word == name:
                yield value


def product() -> Source:
    """The product, without what only draws."""
    rooms = (path for path in (ROOT / "tunectl").rglob("*.py") if path.name not in _NO_FIX)
    return Source([*(path for path in rooms if not set(_SHOWING) & set(path.parts)), *(ROOT / "checks").glob("*.py")])
