"""A TOML file of a known shape, and where it is wrong, in the operator's words."""

import errno
import re
import tomllib
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from tunectl.command import one_line
from tunectl.durable import read_regular
from tunectl.errors import UsageError

T = TypeVar("T")
_LARGEST = 1 << 20  # bytes
# What people read, and the arguments of a hook, which no shell sees and no other program reads as a line.
_PROSE = re.compile(r"(^|\.)(reason|description|command\[[1-9]\d*\])$")
_OF_PROSE = str.maketrans("\n\t", "  ")


def read_toml(path: str, shape: type[T], text: str | None = None) -> T:
    """A TOML file of a known shape. UsageError names the file, and the line or the key, and what would be right.

    With a `text`, that is what the file held when it was read.
    """
    try:
        document = tomllib.loads(_read(path) if text is None else text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; so are a number or nesting beyond measure
        raise UsageError(f"{path}: not TOML: {error}") from error
    _refuse_control(document, f"{path}: ", "")
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise _explain(path, error, shape, document) from error


def _read(path: str) -> str:
    try:
        return read_regular(path, _LARGEST).decode()
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(f"{path}: {error.strerror}", "no host file and no profile is") from error
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _refuse_control(value: Any, where: str, key: str) -> None:
    """UsageError for a text with a control character: units, rules and boot arguments are lines; prose is not."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_control(inner, where, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _refuse_control(inner, where, f"{key}[{number}]")
    elif isinstance(value, str):
        one_line(value.translate(_OF_PROSE) if _PROSE.search(key) else value, f"{where}{key}")


def _explain(path: str, error: msgspec.ValidationError, shape: type[Any], document: Any) -> UsageError:
    """msgspec says "... - at `$.budget.max_ns`"; an operator knows the key as budget.max_ns."""
    what, _, where = str(error).partition(" - at ")
    key = _in_full(where.strip("`").removeprefix("$").removeprefix("."), shape, document)
    if what.startswith("Object contains unknown field"):
        field = what.split("`")[1]
        name = f"{key}.{field}" if key else field
        known = ", ".join(_fields(shape, key))
        return UsageError(f"{path}: unknown key '{name}'", f"known here: {known}")
    if what.startswith("Invalid enum value"):
        table, _, name = key.rpartition(".")
        choices = ", ".join(map(str, get_args(_fields(shape, table)[name])))
        return UsageError(
            f"{path}: {key}: {what.removeprefix('Invalid enum value ')} is not a choice", f"one of {choices}"
        )
    hint = _hint(what, shape, key, document)
    if what.startswith("Expected"):
        what = "e" + re.sub(r"`([^`]*)`", lambda found: _said(found[1]), what)[1:]
    what = what.replace("Object missing required field", "missing key").replace("`", "'")
    return UsageError(f"{path}: {key + ': ' if key else ''}{what}", hint)


def _in_full(key: str, shape: type[Any], document: dict[str, Any]) -> str:
    """msgspec says `knobs[...]` of whichever knob it is: the first that is not of the table's type."""
    table, is_any, rest = key.partition("[...]")
    if not is_any or table not in document:
        return key
    kind = get_args(_fields(shape, "")[table])[1]
    for name, value in document[table].items():
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return f"{table}.{name}{rest}"
    return key


# msgspec's types in TOML's words. There is no null in TOML: a key is left out.
_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "a table",
    "date": "a date",
}


def _said(types: str) -> str:
    """`float | null` in words."""
    names = [name for name in types.split(" | ") if name != "null"]
    said = [_TYPES.get(name, name) for name in names if name != "int" or "float" not in names]
    return " or ".join(filter(None, (", ".join(said[:-1]), said[-1]))) if said else types


def _hint(what: str, shape: type[Any], key: str, document: dict[str, Any]) -> str:
    """What is probably meant, where nothing stands or brackets or quotes are another's; "" where nobody can tell."""
    if not document:
        return "the file says nothing: `tunectl propose` prints a whole one"
    table, _, name = key.rpartition(".")
    if what == "Expected `array`, got `object`":  # [threads] where [[threads]] is meant
        rows = get_args(_fields(shape, table).get(name))
        return f"write [[{key}]]" if rows and issubclass(rows[0], msgspec.Struct) else ""
    if what == "Expected `object`, got `array`":  # and the other way round
        return "" if key.endswith("]") else f"write [{key}]"
    # mm.swappiness = 1 where "mm.swappiness" = 1 is meant: to TOML the first is a table `mm`.
    table, _, name = key.partition(".")
    inner = document[table].get(name) if table == "knobs" and what.endswith("got `object`") else None
    return f'a name with a dot stands in quotes: "{name}.{next(iter(inner))}" = ...' if inner else ""


def _fields(shape: type[Any], key: str) -> dict[str, Any]:
    """name -> type, of what the shape knows at a key such as `budget` or `waivers[0]` or `knobs[...]`."""
    for part in [part.partition("[")[0] for part in key.split(".") if part]:
        inner = get_type_hints(shape).get(part, shape)
        arguments = [inner, *getattr(inner, "__args__", ())]
        shape = next((t for t in arguments if isinstance(t, type) and issubclass(t, msgspec.Struct)), shape)
    return get_type_hints(shape)
