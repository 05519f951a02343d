"""A TOML file of a known shape, and where it is wrong, in the operator's words."""

from __future__ import annotations

import tomllib
from typing import Any, get_args, get_type_hints

import msgspec

from tunectl.errors import UsageError

_LARGEST = 1 << 20  # bytes


def read_toml(path: str, shape: type[Any]) -> Any:
    """A TOML file of a known shape. UsageError names the file, and the line or the key, and what would be right."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _LARGEST:  # /dev/zero never ends
        raise UsageError(f"{path}: is larger than 1 MiB", "no host file and no profile is")
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; so are a number or nesting beyond measure
        raise UsageError(f"{path}: not TOML: {error}") from error
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise _explain(path, error, shape) from error


def _explain(path: str, error: msgspec.ValidationError, shape: type[Any]) -> UsageError:
    """msgspec says "... - at `$.budget.max_ns`"; an operator knows the key as budget.max_ns."""
    what, _, where = str(error).partition(" - at ")
    key = where.strip("`").removeprefix("$").removeprefix(".")
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
    what = what.replace("Object missing required field", "missing key").replace("`", "'")
    return UsageError(f"{path}: {key + ': ' if key else ''}{what}")


def _fields(shape: type[Any], key: str) -> dict[str, Any]:
    """name -> type, of what the shape knows at a key such as `budget` or `waivers[0]` or `knobs[...]`."""
    for part in [part.partition("[")[0] for part in key.split(".") if part]:
        inner = get_type_hints(shape).get(part, shape)
        arguments = [inner, *getattr(inner, "__args__", ())]
        shape = next((t for t in arguments if isinstance(t, type) and issubclass(t, msgspec.Struct)), shape)
    return get_type_hints(shape)
