"""Who will write our settings later: cron jobs, rc.local, services and timers that nothing orders before our own.

A command is followed into the script that it runs, and no further.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise

from tunectl.command import argv, as_data
from tunectl.cpulist import format_cpulist, parse_cpumask
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.jobs import Job, read_cron_jobs, read_rc_local, read_service_jobs
from tunectl.host.sysctld import Setting, normal_key, parse_sysctl_d
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import RELOAD
from tunectl.knobs import KNOBS
from tunectl.tuners.places import knob_at, normal_path, places
from tunectl.tuners.shellwrites import commands_of, script_of, writes_of
from tunectl.tuners.tools import Write

_SCRIPT_BYTES = 1 << 16
_MASKS = re.compile(r"^/proc/irq/(?:[0-9N*]+)/smp_affinity$")
# A script that is not the shell's: a place of the kernel's in a line that opens or writes a file.
_PLACE = re.compile(r"(/(?:sys|proc)/[\w./*{}$-]+)")
_WORD = re.compile(r"/?[\w./*-]+")
_END = re.compile(r"(?:sys\.exit|os\._exit|exit|quit)\s*(?:\(|;|$)|raise SystemExit|__END__")  # in the first column
_WRITING = re.compile(r"""write|['"](?:w|a|r\+)b?['"]|>""")


def read_cron(root: Sysroot) -> tuple[Setting, ...]:
    """Of crontabs and cron's directories."""
    return tuple(_settings(root, read_cron_jobs(root)))


def read_local(root: Sysroot) -> tuple[Setting, ...]:
    """Of rc.local."""
    return tuple(_settings(root, read_rc_local(root)))


def read_services(root: Sysroot, besides: frozenset[str]) -> tuple[Setting, ...]:
    """Of services and timers, without those whose own configuration says what they write."""
    return tuple(_settings(root, read_service_jobs(root, besides)))


def _settings(root: Sysroot, jobs: Iterable[Job]) -> Iterator[Setting]:
    for job in jobs:
        if job.user:
            yield from _named(job)
            continue
        written = (one for file, write in _writes(root, job) for one in _unfolded(root, file, write))
        for file, write in written:
            if found := _known(write):
                knob, key, value = found
                yield Setting(knob, key, value, f"/{file}", write.line, wins=True, ends=_ends(job, file))


def _named(job: Job) -> Iterator[Setting]:
    """What of ours the text of another user's job names. It is not followed: he chose it, and may not write that."""
    for word in dict.fromkeys(_WORD.findall(job.command)):
        if knob := knob_at(word) if word.startswith("/") else places().sysctls.get(normal_key(word), ""):
            yield Setting(knob, word, "", f"/{job.file}", job.line, wins=False, user=job.user)


def _unfolded(root: Sysroot, file: str, write: Write) -> Iterator[tuple[str, Write]]:
    """The write itself; of `sysctl -p FILE` the lines of that file which count, the last of each sysctl."""
    if not write.loads:
        yield file, write
        return
    path = write.loads.lstrip("/")
    lines = {line.key: line for line in parse_sysctl_d(root.get_named(path))}
    for key in places().sysctls:
        line = lines.get(key) or next((one for one in lines.values() if fnmatchcase(key, one.key)), None)
        if line:
            yield path, Write(line.line, sysctl=key, key=key, value=line.value)


def _ends(job: Job, file: str) -> Fix:
    """What ends a service's write, and nothing else that the service does; "" where the line alone has to go."""
    if not job.unit or file != job.file:  # a script is read anew at each run
        return NOTHING
    if job.alone and all(map(_is_ours_alone, commands_of(job.command))):
        return to_type(argv("sudo", "systemctl", "disable", "--now", of=[job.alone]))
    place = as_data(f"/{job.file}:{job.line}")
    if job.needed:
        return to_decide(
            f"decide what {place} shall do instead: {as_data(job.unit)} starts by it, and may do more than this"
        )
    return to_decide(f"take {place} out, then {RELOAD}")


def _is_ours_alone(writes: list[Write]) -> bool:
    """Does one command do nothing but write what is asked for here?"""
    return bool(writes) and all(map(_known, writes))


def _writes(root: Sysroot, job: Job) -> Iterator[tuple[str, Write]]:
    """(file, write) of a job and of the script that it runs."""
    if not job.command:
        yield from ((job.file, one) for one in _of_script(root, job.file))
        return
    yield from ((job.file, one._replace(line=job.line)) for one in writes_of(job.command))
    for command in (job.command, *_inner(job.command)):
        if path := script_of(command).lstrip("/"):
            yield from ((path, one) for one in _of_script(root, path))


def _inner(command: str) -> list[str]:
    """What `sh -c` is given."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return [after for word, after in pairwise(words) if re.fullmatch(r"-\w*c", word)]


def _of_script(root: Sysroot, path: str) -> Iterator[Write]:
    """The writes of a short text: a program of the machine's has zero bytes, and a long one is an application."""
    text = root.get_named(path, _SCRIPT_BYTES - 1)
    if "\0" in text:
        return
    first = text.partition("\n")[0]
    if not first.startswith("#!") or re.search(r"\b(?:ba|da|k|z)?sh\b", first):
        yield from writes_of(text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if _END.match(line):
            return
        if not line.lstrip().startswith("#") and _WRITING.search(line):
            yield from (Write(number, path=place, key=place) for place in _PLACE.findall(line))


def _known(write: Write) -> tuple[str, str, str] | None:
    """(knob, its name there, text) of a write to something of ours."""
    if write.path:
        if _MASKS.match(write.path):
            return "irq.affinity", write.path, _list(write.value)
        if knob := knob_at(write.path):
            return knob, write.path, _state(knob, write)
        if write.path.startswith("/proc/sys/"):
            key = write.path.removeprefix("/proc/sys/").replace("/", ".")
            return (places().sysctls[key], write.path, write.value) if key in places().sysctls else None
    elif write.sysctl:
        knob = places().sysctls.get(normal_key(write.sysctl), "")
        return (knob, write.key, write.value) if knob else None
    elif write.knob in KNOBS:
        return write.knob, write.key, write.value
    return None


def _state(knob: str, write: Write) -> str:
    """An idle state that is switched off is what we want as well; one that is switched on may not be."""
    if knob == "cpuidle.max_latency_us" and normal_path(write.path).endswith("/disable"):
        return "0" if write.value == "1" else ""
    return write.value


def _list(mask: str) -> str:
    """A mask of CPUs as a list; "" where it is none."""
    try:
        return format_cpulist(parse_cpumask(mask)) if mask else ""
    except UsageError:
        return ""
