"""Which settings of ours the programs name that this host runs by itself: cron's jobs, rc.local, services, hooks.

A command is looked at, and the text of the program that it runs, line by line (programs.py). Nothing is followed.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from tunectl.command import argv, as_data
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.jobs import Job
from tunectl.host.sysctld import Setting, parse_sysctl_d
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import RELOAD
from tunectl.tuners.places import places
from tunectl.tuners.programs import commands_of, programs_of, read_line, read_program
from tunectl.tuners.tools import Write

_PROGRAM_BYTES = 1 << 16


def settings_of(root: Sysroot, jobs: Iterable[Job]) -> Iterator[Setting]:
    """What of ours the commands of jobs and the programs that they run write or name. Never raises."""
    for job in jobs:
        for write in read_line(job.command):
            yield from _settings(root, write._replace(line=job.line), job.file, _ends(job, write))
        for path in programs_of(job.command) if job.command else (job.file,):
            # A program of the machine's has zero bytes, and a long one is an application.
            text = root.get_named(path, _PROGRAM_BYTES - 1)
            for write in read_program(text) if "\0" not in text else ():
                yield from _settings(root, write, path)


def _settings(root: Sysroot, write: Write, file: str, ends: Fix = NOTHING) -> Iterator[Setting]:
    if write.knob:
        path, named = f"/{file}", write.named
        yield Setting(write.knob, write.key, write.value, path, write.line, True, ends, write.instance, named)
    if not write.loads:
        return
    path = write.loads.lstrip("/")
    lines = {line.key: line for line in parse_sysctl_d(root.get_named(path))}  # the last of each sysctl counts
    for key, knob in places().sysctls.items():
        if line := lines.get(key) or next((line for line in lines.values() if fnmatchcase(key, line.key)), None):
            yield Setting(knob, key, line.value, f"/{path}", line.line, wins=True)


def _ends(job: Job, write: Write) -> Fix:
    """What ends a write of a service's own line, and nothing else that the service does; "" where the line has to go.

    A program is read anew at each run, and needs no more.
    """
    if not job.unit or write.named:
        return NOTHING
    commands = list(commands_of(job.command))
    if job.alone and all(writes and all(write.knob for write in writes) for writes in commands):
        return to_type(argv("sudo", "systemctl", "disable", "--now", of=[job.alone]))
    place = as_data(f"/{job.file}:{job.line}")
    if job.needed:
        return to_decide(
            f"decide what {place} shall do instead: {as_data(job.unit)} starts by it, and may do more than this"
        )
    return to_decide(f"take {place} out, then {RELOAD}")
