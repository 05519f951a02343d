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
        for file, write in _writes(root, job):
            if write.loads:
                path = write.loads.lstrip("/")
                for key, knob, value, line in _loaded(root, path):
                    yield Setting(knob, key, value, f"/{path}", line, wins=True)
            elif write.knob:
                yield _setting(write, file, _ends(job, file, write))


def settings_of_command(command: str, file: str, line: int) -> Iterator[Setting]:
    """The same of one command, in a line of a file, without what it runs."""
    yield from (_setting(write._replace(line=line), file) for write in read_line(command) if write.knob)


def _setting(write: Write, file: str, ends: Fix = NOTHING) -> Setting:
    return Setting(write.knob, write.key, write.value, f"/{file}", write.line, True, ends, write.instance, write.named)


def _loaded(root: Sysroot, path: str) -> Iterator[tuple[str, str, str, int]]:
    """(sysctl, knob, value, line) of the lines of `sysctl -p FILE` which count, the last of each sysctl."""
    lines = {line.key: line for line in parse_sysctl_d(root.get_named(path))}
    for key, knob in places().sysctls.items():
        line = lines.get(key) or next((line for line in lines.values() if fnmatchcase(key, line.key)), None)
        if line:
            yield key, knob, line.value, line.line


def _ends(job: Job, file: str, write: Write) -> Fix:
    """What ends a service's write, and nothing else that the service does; "" where the line alone has to go."""
    if not job.unit or file != job.file or write.named:  # a program is read anew at each run
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
    return bool(writes) and all(write.knob for write in writes)


def _writes(root: Sysroot, job: Job) -> Iterator[tuple[str, Write]]:
    """(file, write) of a job and of the program that it runs."""
    if not job.command:
        yield from ((job.file, write) for write in _of_file(root, job.file))
        return
    yield from ((job.file, write._replace(line=job.line)) for write in read_line(job.command))
    for path in programs_of(job.command):
        yield from ((path, write) for write in _of_file(root, path))


def _of_file(root: Sysroot, path: str) -> Iterator[Write]:
    """The writes of a short text: a program of the machine's has zero bytes, and a long one is an application."""
    text = root.get_named(path, _PROGRAM_BYTES - 1)
    return read_program(text) if "\0" not in text else iter(())
