"""Every text that the product can print as a fix, read from its source: f-strings with … where a value stands.

Whatever is handed to something that is called `fix` (a field, a parameter; NAMES has its other names) is a fix, and is
followed back to its texts: through names, constants, branches, loops over lists, and what functions return. What cannot
be followed is an error, so that no fix escapes.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
NAMES = frozenset({"fix", "remedy", "ends"})
HOLE = "…"
_SHOWING = ("report", "cli", "fleet")  # they draw what others say
_PASSES = frozenset(
    {"_typed", "next", "some", "join", "tuple", "list", "fromkeys", "sorted", "format"}
)  # what goes in comes out

Def = ast.FunctionDef | ast.ClassDef


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
        self.unknown: set[str] = set()
        self._open: set[tuple[int, int | None]] = set()
        self.defs: dict[str, list[tuple[Module, Def]]] = {}
        for module in self.modules:
            for node in ast.walk(module.tree):
                if isinstance(node, Def):
                    self.defs.setdefault(node.name, []).append((module, node))

    def fixes(self) -> dict[str, set[str]]:
        """{text: the files it stands in}."""
        found: dict[str, set[str]] = {}
        for module in self.modules:
            for place, node in module.places():
                for value, index in self._handed(node):
                    for text in self.texts(value, place, index):
                        found.setdefault(text, set()).add(str(module.path.relative_to(ROOT)))
        found.pop("", None)
        return found

    def _handed(self, node: ast.AST) -> Iterator[tuple[ast.expr, int | None]]:
        """(expression, element of the tuple that it gives) of each thing that this node hands to a fix."""
        if isinstance(node, ast.Call):
            yield from ((one.value, None) for one in node.keywords if one.arg in NAMES)
            for position in {at for _, one in self.defs.get(_name(node.func), []) for at in _positions(one)}:
                star = next((at for at, arg in enumerate(node.args) if isinstance(arg, ast.Starred)), None)
                if star is not None and star < len(node.args) - 1:  # it gives the first fields
                    continue
                if star is not None and star <= position:
                    spread = node.args[star]
                    assert isinstance(spread, ast.Starred)
                    yield spread.value, position - star
                elif position < len(node.args):
                    yield node.args[position], None
        if isinstance(node, ast.FunctionDef) and (node.name.strip("_") in NAMES or node.name.endswith("_fix")):
            yield from ((one.value, None) for one in ast.walk(node) if isinstance(one, ast.Return) and one.value)

    def texts(self, value: ast.expr, place: Place, index: int | None = None) -> set[str]:
        """The texts that an expression may have; with an index, those of that element of the tuple it gives."""
        key = (id(value), index)
        if key in self._open:
            return set()
        self._open.add(key)
        try:
            return self._texts(value, place, index)
        finally:
            self._open.discard(key)

    def _texts(self, value: ast.expr, place: Place, index: int | None) -> set[str]:
        inner = _without_words(value)
        if inner is not value:
            return set() if inner is None else self.texts(inner, place, index)
        match value:
            case ast.Tuple(elts=elements) if index is not None:
                return self.texts(elements[index], place) if index < len(elements) else set()
            case ast.Constant(value=constant):
                return {constant} if isinstance(constant, str) else set()
            case ast.JoinedStr(values=parts):
                said = (sorted(self._part(part, place)) for part in parts)
                return {"".join(words) for words in itertools.product(*said)}
            case ast.BinOp(left=left, right=right):
                return {a + b for a in self.texts(left, place) for b in self.texts(right, place)}
            case ast.Name(id=name):
                return self._named(name, place, index)
            case ast.Call():
                return self._called(value, place, index)
        several = _several(value)
        return self._lost(value, place) if several is None else self._every(several, place, index)

    def _every(self, values: Iterable[ast.expr], place: Place, index: int | None = None) -> set[str]:
        return set().union(*(self.texts(value, place, index) for value in values))

    def _part(self, part: ast.expr, place: Place) -> set[str]:
        """A part of an f-string: a text of the source's own, or a hole for a value."""
        if isinstance(part, ast.Constant):
            return self.texts(part, place)
        assert isinstance(part, ast.FormattedValue)
        known = isinstance(part.value, ast.Name) and self._is_text(part.value, place)
        return self.texts(part.value, place) if known else {HOLE}

    def _is_text(self, name: ast.Name, place: Place) -> bool:
        """Is this name a text of this file's, and not a value?"""
        values = [value for value, _ in self._assigned(name.id, place)]
        return bool(values) and all(isinstance(one, ast.Constant | ast.JoinedStr) for one in values)

    def _assigned(self, name: str, place: Place) -> Iterator[tuple[ast.expr, int | None]]:
        """What a name is given in its function, or else in its module, or in the module that it is taken from."""
        inside = list(_given(name, ast.walk(place.function))) if place.function else []
        yield from inside or list(_given(name, place.module.tree.body)) or self._imported(name, place)

    def _imported(self, name: str, place: Place) -> Iterator[tuple[ast.expr, int | None]]:
        for node in place.module.tree.body:
            if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
                file = ROOT / ((node.module or "").replace(".", "/") + ".py")
                for module in self.modules:
                    if module.path == file:
                        yield from _given(name, module.tree.body)

    def _named(self, name: str, place: Place, index: int | None) -> set[str]:
        values = list(self._assigned(name, place))
        if values:
            return set().union(*(self.texts(value, place, index if at is None else at) for value, at in values))
        arguments = place.function.args if place.function else None
        if name in NAMES and arguments and name in [one.arg for one in [*arguments.args, *arguments.kwonlyargs]]:
            return set()  # who calls hands it over
        return self._lost(ast.Name(name), place)

    def _called(self, call: ast.Call, place: Place, index: int | None) -> set[str]:
        name = _name(call.func)
        if name in _PASSES:
            return self._every(call.args, place)
        found: set[str] = set()
        known = [(module, node) for module, node in self.defs.get(name, []) if isinstance(node, ast.FunctionDef)]
        here = [(module, node) for module, node in known if module is place.module]
        for module, node in here or known:
            for one in ast.walk(node):
                if isinstance(one, ast.Return | ast.Yield) and one.value:
                    found |= self.texts(one.value, Place(module, node), index)
        return found if known else self._lost(call, place)

    def _lost(self, value: ast.expr, place: Place) -> set[str]:
        line = f":{value.lineno}" if hasattr(value, "lineno") else ""
        self.unknown.add(f"{place.module.path.relative_to(ROOT)}{line}: {ast.unparse(value)}")
        return set()


def _without_words(value: ast.expr) -> ast.expr | None:
    """What an expression hands on as it is; None where it only hands on what was handed to a fix elsewhere."""
    match value:
        # A hint of an error says how a command is used, a refusal why nothing is written.
        case ast.Attribute(attr=name) if name in NAMES | {"hint", "refusal"}:
            return None
        case ast.Subscript(slice=ast.Constant(value=str(word))) if word in NAMES:
            return None
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr="partition")) if name == "refusal":
            return None
        case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=inner)]):
            return inner
        case ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner) | ast.Starred(value=inner):
            return inner
        case ast.Subscript(value=inner):
            return inner
    return value


def _several(value: ast.expr) -> list[ast.expr] | None:
    """The expressions of which an expression is one, or a list."""
    match value:
        case ast.IfExp(body=one, orelse=other):
            return [one, other]
        case ast.BoolOp(values=values) | ast.Dict(values=values):
            return values
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
            return values
        case ast.UnaryOp() | ast.Compare():  # true or false
            return []
    return None


def _name(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _positions(one: Def) -> Iterator[int]:
    """Where a function or a tuple's class takes a fix among its arguments."""
    if isinstance(one, ast.FunctionDef):
        words = [argument.arg for argument in one.args.args if argument.arg not in ("self", "cls")]
    else:
        words = [
            node.target.id for node in one.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]
        own = [node for node in one.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        words = [argument.arg for argument in own[0].args.args[1:]] if own else words
    yield from (at for at, word in enumerate(words) if word in NAMES)


def _given(name: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, int | None]]:
    """(expression, element) of each assignment to a name, and of what is appended to it."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name) and target.id == name:
                        yield value, None
                    if isinstance(target, ast.Tuple):
                        words = [one.id if isinstance(one, ast.Name) else "" for one in target.elts]
                        if name in words:
                            yield value, words.index(name)
            case ast.AnnAssign(target=ast.Name(id=word), value=ast.expr() as value) if word == name:
                yield value, None
            case ast.AugAssign(target=ast.Name(id=word), value=value) if word == name:
                yield value, None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=word), attr="append"), args=[value]) if word == name:
                yield value, None


def product() -> Source:
    """The product, without what only draws."""
    rooms = (path for path in (ROOT / "tunectl").rglob("*.py") if path.parent.name not in _SHOWING)
    return Source([*(path for path in rooms if not set(_SHOWING) & set(path.parts)), *(ROOT / "checks").glob("*.py")])
