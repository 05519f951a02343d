"""Profiles: what a kind of host wants, each value with its reason. Shipped ones lie in tunectl/profiles."""

from __future__ import annotations

import os
import tomllib
from typing import Any

import msgspec

from tunectl.errors import UsageError

SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "profiles")
Value = bool | int | float | str


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One value of a profile, and why."""

    value: Value
    reason: str


class ProfileFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A profile as written."""

    description: str = ""
    inherits: str | None = None
    knobs: dict[str, Line] = {}


def shipped() -> list[str]:
    """The names of the shipped profiles."""
    return sorted(name.removesuffix(".toml") for name in os.listdir(SHIPPED) if name.endswith(".toml"))


def load_profile(name: str, relative_to: str = ".") -> dict[str, Line]:
    """The values of a profile and of those it inherits, by knob name. `name` is a shipped one, or a path.

    UsageError, naming file and key, for a missing, malformed or circular profile.
    """
    return _load(name, relative_to, ())


def _load(name: str, relative_to: str, heirs: tuple[str, ...]) -> dict[str, Line]:
    path = _find(name, relative_to)
    if path in heirs:
        chain = " -> ".join(os.path.basename(file) for file in (*heirs[heirs.index(path) :], path))
        raise UsageError(f"{path}: inherits: the profile inherits itself: {chain}", "break the circle")
    profile = read_toml(path, ProfileFile)
    inherited = _load(profile.inherits, os.path.dirname(path), (*heirs, path)) if profile.inherits else {}
    return {**inherited, **profile.knobs}


def _find(name: str, relative_to: str) -> str:
    if "/" not in name and not name.endswith(".toml"):
        path = os.path.join(SHIPPED, f"{name}.toml")
        if not os.path.exists(path):
            raise UsageError(f"there is no profile '{name}'", f"shipped are {', '.join(shipped())}; or give a path")
        return path
    if "\0" in name:
        raise UsageError(f"profile {name!r}: a path holds no NUL character")
    return os.path.realpath(os.path.join(relative_to, name))


def read_toml(path: str, shape: type[Any]) -> Any:
    """A TOML file of a known shape. UsageError names the file, and the line or the key, and what would be right."""
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
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
    what = what.replace("Object missing required field", "missing key").replace("`", "'")
    return UsageError(f"{path}: {key + ': ' if key else ''}{what}")


def _fields(shape: type[Any], key: str) -> list[str]:
    """The names the shape knows at a key such as `budget` or `waivers[0]` or `knobs[...]`."""
    for part in [part.partition("[")[0] for part in key.split(".") if part]:
        inner = next((field.type for field in msgspec.structs.fields(shape) if field.encode_name == part), shape)
        arguments = [inner, *getattr(inner, "__args__", ())]
        shape = next((t for t in arguments if isinstance(t, type) and issubclass(t, msgspec.Struct)), shape)
    return [field.encode_name for field in msgspec.structs.fields(shape)]
