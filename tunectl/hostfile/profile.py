"""Profiles: what a kind of host wants, each value with its reason. Shipped ones lie in tunectl/profiles."""

import os
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from tunectl.command import one_line
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.budget import KEYS, Measure, check_limit
from tunectl.hostfile.shape import Value
from tunectl.hostfile.toml import read_toml

# What a site's own profile is measured by where it inherits none of ours: the strictest.
_MEASURE = "low-latency"
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "profiles")
Texts = Mapping[str, str]  # by path, of files as they were when they were read
NO_TEXTS: Texts = MappingProxyType({})


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One value of a profile, and why. With `isolation`, it is asked for where CPUs are isolated in that way only."""

    value: Value
    reason: str
    isolation: Literal["always", "boot", "runtime"] = "always"


class Limit(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One limit of a profile's budget, why it is that figure, and who says so."""

    value: float
    reason: str
    source: str = ""


# As many keys as [budget] of the host file has.
_Limits = msgspec.defstruct(
    "_Limits",
    [(key, Limit | None, None) for key in KEYS],
    forbid_unknown_fields=True,
    frozen=True,
)


class ProfileFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A profile as written."""

    description: str = ""
    inherits: str | None = None
    knobs: dict[str, Line] = {}
    budget: _Limits = _Limits()  # type: ignore[valid-type]


class Profile(NamedTuple):
    """What a profile and those that it inherits ask for: values by knob, and limits by key of [budget]."""

    knobs: dict[str, Line]
    budget: dict[str, Limit]
    measures: dict[str, Measure]  # by key of [budget]: what tells a looser limit
    files: tuple[str, ...] = ()  # the site's own, as they are named: a link counts, too


def shipped() -> list[str]:
    """The names of the shipped profiles."""
    return sorted(name.removesuffix(".toml") for name in os.listdir(SHIPPED) if name.endswith(".toml"))


def load_profile(
    name: str, relative_to: str = ".", asked_by: str = "", root: Sysroot | None = None, texts: Texts = NO_TEXTS
) -> Profile:
    """The values and limits of a profile and of those it inherits. `name` is a shipped one, or a path.

    UsageError, naming file and key, for a missing, malformed or circular profile; `asked_by` is the `FILE: KEY` that
    names it. Of a recorded host (`root`) a profile that its own host file names is a file of that host. A profile among
    `texts` is not read again.
    """
    profile = _load(name, relative_to, asked_by, (), root, texts)
    if profile.measures:
        return profile
    return profile._replace(measures=_load(_MEASURE, ".", "", (), None, NO_TEXTS).measures)


def _load(
    name: str, relative_to: str, asked_by: str, heirs: tuple[str, ...], root: Sysroot | None, texts: Texts
) -> Profile:
    text = texts.get(place := os.path.join(relative_to, name))
    by = f"{asked_by}: " if asked_by else ""
    path = _find(name, relative_to, by, root) if text is None else _place(root, relative_to, name)
    if path in heirs:
        chain = " -> ".join(os.path.basename(file) for file in (*heirs[heirs.index(path) :], path))
        raise UsageError(f"{path}: inherits: the profile inherits itself: {chain}", "break the circle")
    profile = _shipped_file(path) if os.path.dirname(path) == SHIPPED else read_toml(path, ProfileFile, text)
    budget = {key: limit for key, limit in msgspec.structs.asdict(profile.budget).items() if limit is not None}
    for key, limit in budget.items():
        check_limit(key, limit.value, f"{path}: budget.{key}.value")
    inherited = Profile({}, {}, {})
    if profile.inherits:
        inherited = _load(profile.inherits, os.path.dirname(path), f"{path}: inherits", (*heirs, path), root, texts)
    # A site's own profile makes no limit of ours any wider, so only ours are measures.
    is_ours = os.path.realpath(os.path.dirname(path)) == os.path.realpath(SHIPPED)
    own = {key: Measure(limit.value, name) for key, limit in budget.items()} if is_ours else {}
    files = inherited.files if is_ours else (place, *inherited.files)
    limits = {**inherited.budget, **budget}
    return Profile({**inherited.knobs, **profile.knobs}, limits, {**inherited.measures, **own}, files)


@cache
def _shipped_file(path: str) -> ProfileFile:
    """A shipped one is of this version, and read once: TOML is slow to read."""
    return read_toml(path, ProfileFile)


def _place(root: Sysroot | None, relative_to: str, name: str) -> str:
    """Where a path leads, links followed: a recorded host's own files never lead out of it."""
    path = os.path.join(relative_to, name)
    if root is None or root.live or not f"{os.path.realpath(relative_to)}/".startswith(f"{root.root}/"):
        return os.path.realpath(path)
    return root.resolve(name if os.path.isabs(name) else os.path.relpath(path, root.root))


def _find(name: str, relative_to: str, asked_by: str, root: Sysroot | None) -> str:
    if "/" not in name and not name.endswith(".toml"):
        path = os.path.join(SHIPPED, f"{name}.toml")
        if not os.path.exists(path):
            shown = ", ".join(shipped())
            raise UsageError(f"{asked_by}there is no profile '{name}'", f"shipped are {shown}; or give a path")
        return path
    one_line(name, f"{asked_by}profile")
    try:
        path = _place(root, relative_to, name)
        os.stat(path)
    except OSError as error:
        raise UsageError(f"{asked_by}cannot read {error.filename}: {error.strerror}") from error
    return path
