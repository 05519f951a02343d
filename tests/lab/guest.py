"""A running guest: commands and files."""

import io
import shlex
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import emulator, fresh, times
from .shell import HERE, EmulatorError, LabError
from .ssh import Result, time_left
from .vm import Vm


class Guest:
    """What one can do in a host that runs, over ssh; as root unless a user is named."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm

    def run(
        self,
        command: str,
        *,
        user: str = "root",
        stdin: str | bytes = b"",
        timeout: float = 120,
        check: bool = True,
    ) -> Result:
        """Run a shell command in the guest; AssertionError if it fails and check holds."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with self.explained(), times.noted(self.vm, command):
            result = fresh.connect(self.vm).run(command, user, data, timeout)
        if check and result.code != 0:
            raise AssertionError(str(result))
        return result

    def read(self, path: str) -> str:
        """A guest file's text without the last newline."""
        return self.run(f"cat {shlex.quote(path)}").out.removesuffix("\n")

    def write(self, path: str, text: str) -> None:
        """Write a guest file as `echo >` does: one write, which is what /proc and /sys want."""
        self.run(f"cat > {shlex.quote(path)}", stdin=text)

    def put(self, source: Path, target: str) -> None:
        """Copy a file to a path, or a folder's contents into a folder, of the guest."""
        archive = io.BytesIO()
        folder = source.is_dir()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(source, arcname="." if folder else Path(target).name, filter=_as_root)
        where = shlex.quote(target if folder else str(Path(target).parent))
        self.run(f"mkdir -p {where} && tar -C {where} --no-overwrite-dir -xf -", stdin=archive.getvalue())

    def get(self, path: str) -> bytes:
        """A guest file's bytes."""
        return self.run(f"cat {shlex.quote(path)}").raw

    def fingerprint(self, *roots: str) -> dict[str, str]:
        """{path: "mode owner group sha256-or-link-target"} of everything below the roots."""
        words = " ".join(map(shlex.quote, roots))
        script = (HERE / "fingerprint.py").read_bytes()
        lines = self.run(f"python3 - {words}", stdin=script, timeout=300).out.splitlines()
        return {path: facts for path, _, facts in (line.partition("\t") for line in lines)}

    def wait_for(self, command: str, timeout: float = 30) -> None:
        """Repeat a shell command in the guest until it succeeds; AssertionError after timeout seconds."""
        left = time_left(timeout, self.vm.waited_s)
        while (result := self.run(command, check=False)).code != 0:
            if left() <= 0:
                raise AssertionError(f"not within {timeout:.0f} s: {result}")
            time.sleep(0.2)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """A failure of the lab shows the console's last lines; EmulatorError where QEMU is to blame, and provably."""
        try:
            yield
        except LabError as error:
            if "the console of" in str(error):
                raise
            text = f"{error}\n{self.vm.console_tail()}"
            if proof := emulator.fault(self.vm):
                raise EmulatorError(f"QEMU failed (emulator.py): {proof}\n{text}") from error
            raise LabError(text) from error


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
