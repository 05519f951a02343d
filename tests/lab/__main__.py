"""The lab from a shell: python -m tests.lab up|ssh|put|heat|reboot|kill|down|... (docs/lab.md)."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import fresh, product
from .lab import COOL, HOT, Lab
from .platforms import chosen
from .shell import LabError

Action = Callable[[argparse.Namespace], None]


def _up(options: argparse.Namespace) -> None:
    lab = Lab(options.name)
    if options.keep:
        lab.boot()
    else:
        lab.up()
    _status(options)


def _ssh(options: argparse.Namespace) -> None:
    lab = Lab(options.name)
    argv = fresh.connect(lab.vm).argv(options.user, tty=sys.stdin.isatty() and not options.command)
    os.execvp(argv[0], argv + options.command)


def _status(options: argparse.Namespace) -> None:
    vm = Lab(options.name).vm
    state = f"runs, ssh on port {vm.port}" if vm.alive() else "is off"
    cards = ", ".join(nic.name for nic in vm.nics) or "none"
    print(f"{options.name}: {state}; extra cards: {cards}; files in {vm.folder}")


def _console(options: argparse.Namespace) -> None:
    log = Lab(options.name).vm.folder / "console.log"
    if options.follow:
        os.execvp("tail", ["tail", "-n", "50", "-f", str(log)])
    sys.stdout.write(log.read_text(errors="replace"))


def _install(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lab = Lab(options.name)
        wheels = product.build_wheels(folder, lab.platform)
        product.install(lab, product.unpack_wheels(folder, wheels, lab.platform))


def _nic_add(options: argparse.Namespace) -> None:
    print(Lab(options.name).nic_add(options.card, options.model))


COMMANDS: dict[str, tuple[str, Action]] = {
    "build": (
        "build the image and the booted state, if the cache lacks them",
        lambda o: print(fresh.booted(fresh.image(chosen())).folder),
    ),
    "up": ("start a fresh host", _up),
    "ssh": ("a shell, or one command, in the host", _ssh),
    "put": ("copy a file, or a folder's contents, into the host", lambda o: Lab(o.name).put(o.source, o.target)),
    "install": ("install this tree, with a host file that isolates CPUs 2-3", _install),
    "heat": ("set the temperature: from 90 degrees on the firmware throttles", lambda o: Lab(o.name).heat(o.celsius)),
    "cool": ("the fan works again", lambda o: Lab(o.name).heat(COOL)),
    "reboot": ("reboot in order, through GRUB", lambda o: Lab(o.name).reboot()),
    "kill": ("power loss; `up --keep` boots again", lambda o: Lab(o.name).kill()),
    "down": ("throw the host away", lambda o: Lab(o.name).down(keep=o.keep)),
    "save": ("keep this moment under a name", lambda o: Lab(o.name).save(o.moment)),
    "restore": ("go back to a saved moment", lambda o: Lab(o.name).restore(o.moment)),
    "status": ("what runs", _status),
    "console": ("what the host wrote to its serial console", _console),
    "nic-add": ("plug in a network card", _nic_add),
    "nic-del": ("pull a network card", lambda o: Lab(o.name).nic_del(o.card)),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("--name", default="default", help="which host; several may run")
    commands = parser.add_subparsers(dest="command_name", required=True)
    made = {name: commands.add_parser(name, help=text) for name, (text, _) in COMMANDS.items()}
    made["up"].add_argument("--keep", action="store_true", help="boot the disk that kill or down --keep left")
    made["down"].add_argument("--keep", action="store_true", help="shut down in order and keep the disk")
    made["ssh"].add_argument("--user", default="root")
    made["ssh"].add_argument("command", nargs=argparse.REMAINDER)
    made["put"].add_argument("source", type=Path)
    made["put"].add_argument("target")
    made["heat"].add_argument("celsius", type=int, nargs="?", default=HOT)
    made["console"].add_argument("-f", "--follow", action="store_true")
    for name in ("nic-add", "nic-del"):
        made[name].add_argument("card", nargs="?", default="nic1")
    made["nic-add"].add_argument("--model", default="virtio-net-pci")
    for name in ("save", "restore"):
        made[name].add_argument("moment")
    return parser


def main() -> int:
    """Run one command; 1 when the lab failed."""
    options = _parser().parse_args()
    start = time.monotonic()
    try:
        COMMANDS[options.command_name][1](options)
    except (LabError, AssertionError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    print(f"lab: {options.command_name} took {time.monotonic() - start:.1f} s", file=sys.stderr)
    return 0


sys.exit(main())
