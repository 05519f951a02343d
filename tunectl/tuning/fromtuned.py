"""A host file that takes over what TuneD's chosen profile does. Pure: the profile in, a proposal out.

Where TuneD's value differs from our profile's, TuneD's is kept, with a note. What tunectl has no row for is noted, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tunectl.cpulist import CpuSet, Isolcpus, format_cpulist, format_isolcpus
from tunectl.errors import UsageError
from tunectl.knobs import KNOBS
from tunectl.model import Scope
from tunectl.tuning.propose import Proposal, Reason

if TYPE_CHECKING:
    from tunectl.host.cpusets import CpuFacts
    from tunectl.host.sysctld import Setting
    from tunectl.tuners.tuned import Profile

_END = (
    "end TuneD first: `sudo tuned-adm off && sudo systemctl disable --now tuned`; "
    "then `tunectl plan`, `sudo tunectl apply`, `sudo reboot`"
)
_PARTITIONING = "none of its options names isolated CPUs, as cpu-partitioning and realtime do"


def take_over(
    profile: Profile,
    settings: Sequence[Setting] | None,
    said: tuple[CpuSet, str],
    facts: CpuFacts,
    wanted: Mapping[str, Any],
    not_covered: Iterable[str],
    nic: str | None = None,
) -> Proposal:
    """The proposal. `said`: the CPUs the profile isolates and where; `wanted`: our profile's values, as host files
    give them, by knob; `not_covered`: what of TuneD's profile no row stands for.
    """
    nothing = Proposal(frozenset(), facts.online, nic=nic)
    name = " ".join(profile.names)
    isolated, where = said[0] & facts.present, said[1]
    if not isolated and profile.names:
        isolated, where = facts.nohz_full | facts.kernel_isolated, "this boot's nohz_full and isolcpus"
    refusal = _refusal(profile, settings, isolated, facts)
    if refusal:
        return replace(nothing, refusal=refusal)
    scope = Scope(facts.present, facts.online, isolated, facts.nr_cpus)
    split = [cpu for cpu in sorted(isolated) if facts.siblings.get(cpu, frozenset()) - isolated]
    knobs, notes = _differing(settings or (), wanted, scope)
    if missing := said[0] - facts.present:
        notes.append(f"{where} names CPUs {format_cpulist(missing)}, which this host does not have")
    if split:
        notes.append(f"CPUs {format_cpulist(split)} share a core with a housekeeping CPU, as under TuneD: never quiet")
    notes += [f"not taken over, tunectl has no row for it: {text}" for text in not_covered]
    notes.append(_END)
    return Proposal(
        isolated,
        facts.online - isolated,
        (
            Reason(isolated, "isolated", f"TuneD's profile {name} isolates them: {where}"),
            Reason(facts.online - isolated, "housekeeping", f"TuneD's profile {name} leaves the system here"),
        ),
        tuple(notes),
        nic=nic,
        knobs=knobs,
        split=bool(split),
    )


def _refusal(profile: Profile, settings: Sequence[Setting] | None, isolated: CpuSet, facts: CpuFacts) -> str | None:
    name = " ".join(profile.names)
    if not profile.names:
        return "TuneD has no profile: /etc/tuned/active_profile names none"
    if settings is None:
        return f"TuneD's profile {name} cannot be read: there is no tuned.conf for {', '.join(profile.missing)}"
    if not isolated:
        return f"TuneD's profile {name} isolates no CPU of this host: {_PARTITIONING}"
    if not facts.online - isolated:
        return f"TuneD's profile {name} isolates every CPU of this host; one has to carry the system"
    return None


def _differing(
    settings: Sequence[Setting], wanted: Mapping[str, Any], scope: Scope
) -> tuple[dict[str, Any], list[str]]:
    """({knob: value for the host file}, what to say of each) where TuneD's value is not our profile's."""
    knobs: dict[str, Any] = {}
    notes = []
    for setting in (setting for setting in settings if setting.wins):
        place = f"{setting.path}:{setting.line}"
        try:
            value = _as_wished(setting, scope)
            codec = KNOBS[setting.knob].codec
            asked = codec.want(wanted[setting.knob], scope) if setting.knob in wanted else None
            if codec.want(value, scope) == asked:
                continue
        except (ValueError, UsageError):
            notes.append(f"{setting.knob} is left to the profile: {setting.key} = {setting.value or '?'} ({place})")
            continue
        knobs[setting.knob] = value
        instead = f"the profile says {wanted[setting.knob]}" if setting.knob in wanted else "no profile sets it"
        notes.append(f"{setting.knob} = {value} as TuneD has it ({place}); {instead}")
    return dict(sorted(knobs.items())), notes


def _as_wished(setting: Setting, scope: Scope) -> Any:
    """The value in the host file's form. ValueError if it has none."""
    codec = KNOBS[setting.knob].codec
    if setting.value in ("hardware-max", "hardware-min"):
        return setting.value
    if setting.value == "" and setting.knob.partition(".")[0] != "boot":
        raise ValueError("not known")
    value = codec.decode(setting.value)
    if isinstance(value, Isolcpus):
        return format_isolcpus(value)
    if isinstance(value, frozenset):
        names = {scope.isolated: "isolated", scope.housekeeping: "housekeeping"}
        return names.get(value) or format_cpulist(value)
    if value == math.inf:
        raise ValueError("no limit")
    return value


def not_covered(profile: Profile, settings: Sequence[Setting]) -> Iterator[str]:
    """Options of the profile that set something and that no row of the table covers."""
    known = {(setting.path, setting.line) for setting in settings}
    for (section, key), (option, value, path) in profile.options.items():
        if section in ("main", "variables", "script") or key in _ABOUT or (path, option.line) in known:
            continue
        yield f"[{section}] {key} = {value if value is not None else option.value} ({path}:{option.line})"
    if any(section == "script" for section, _ in profile.options):
        yield "its scripts"


_ABOUT = frozenset(
    {
        *("type", "priority", "enabled", "replace", "devices", "uname_regex", "cpuinfo_regex"),
        *("initrd_add_dir", "initrd_dst_img", "initrd_remove_dir", "ps_blacklist", "ps_whitelist"),
    }
)
