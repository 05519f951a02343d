"""The power and thermal half of the machine's firmware: firmware.asl for as many CPUs as the machine has."""

import re
from pathlib import Path

from .image import locked
from .machine import Machine
from .shell import HERE, cache, digest, run

_REPEATED = re.compile(r"^ *// each CPU\n(.*?)^ *// end\n", re.MULTILINE | re.DOTALL)


def source(machine: Machine) -> str:
    """The table's text. QEMU names the CPUs C000, C001, ..., in hexadecimal."""
    text = (HERE / "firmware.asl").read_text()
    return _REPEATED.sub(lambda found: "".join(_of(found[1], cpu) for cpu in range(machine.cpus)), text)


def compiled(machine: Machine) -> Path:
    """The table as QEMU takes it; made once for each content."""
    text = source(machine).encode()
    table = cache() / "firmware" / f"{digest([text])}.aml"
    with locked(cache() / "firmware.lock"):
        if not table.exists():
            table.parent.mkdir(parents=True, exist_ok=True)
            written, half = table.with_suffix(".asl"), table.with_suffix(".part")
            written.write_bytes(text)
            run(["iasl", "-p", half, written])
            half.with_suffix(".aml").rename(table)
    return table


def _of(text: str, cpu: int) -> str:
    return text.replace("C000", f"C{cpu:03X}")
