"""From nothing to a booted host, quickly: the image and the booted state are both made once and kept."""

import os
import shutil
import sys
from pathlib import Path

from . import firmware
from . import image as images
from .checkpoint import Checkpoint
from .image import Image, locked
from .platforms import LOADERS, Platform
from .shell import HERE, LabError, cache, digest, run
from .ssh import Ssh
from .vm import Vm

BOOT_TIMEOUT = 240.0
# A boot takes half a minute. One that says nothing for so long stopped in the kernel's first second, where it patches
# its own code while several emulated CPUs run: seen once, with a command line that boots otherwise. It looks like what
# emulator.py proves of a guest that is up.
STUCK_S = 150.0
# On a machine with much other work a boot takes longer on the clock, but no more CPU time. So one that has not used so
# much of that is given the same time again, and again.
BOOT_CPU_S = 240.0  # 6.12 takes 150
PATIENCE = 6


def say(text: str) -> None:
    """Progress, for the minutes in which nothing else appears."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def image(platform: Platform) -> Image:
    """The platform's image by today's recipe. One that is there waits for nobody who builds another."""
    if built(platform):
        return Image(_folder(platform), platform)
    return images.build(platform, _finish, say)


def built(platform: Platform) -> bool:
    """Whether the cache holds the image, so that nothing needs root."""
    return _folder(platform).exists()


def _folder(platform: Platform) -> Path:
    return cache() / "images" / images.recipe(platform)


def booted(made: Image) -> Checkpoint:
    """A saved machine that its loader has booted and that has settled: where each fresh lab starts from."""
    machine, loader = made.platform.machine, LOADERS[made.platform.loader]
    version = run([machine.board.program, "--version"])
    recipe = f"{(HERE / 'machine.py').read_text()}{machine}{firmware.source(machine)}{loader.booted}"
    folder = cache() / "booted" / digest([made.folder.name.encode(), recipe.encode(), version.encode()])
    if (folder / "nics.json").exists():
        return Checkpoint.load(folder)
    with locked(cache() / "booted.lock"):
        if not (folder / "nics.json").exists():
            say(f"booting {made.platform.name} through {made.platform.loader}, once")
            work = folder.with_suffix(".part")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            _save_booted(made, Checkpoint(work))
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    return Checkpoint.load(folder)


def connect(vm: Vm) -> Ssh:
    """The ssh way into a machine that runs."""
    return Ssh(vm.folder, vm.image.key, vm.port, vm.waited_s)


def settle(vm: Vm) -> Ssh:
    """Wait until the guest has started everything it starts; a unit that fails is the caller's to judge.

    A guest that does not come up is reset once. One that our writing left unbootable does not come up then, either.
    """
    ssh = connect(vm)
    try:
        _greeted(vm, ssh)
    except LabError:
        if not vm.alive():
            raise
        say(f"{vm.name} hangs in its boot, and is reset, once\n{vm.console_tail(3)}")
        with vm.qmp() as qmp:
            qmp.execute("system_reset")
        ssh.wait(BOOT_TIMEOUT, vm.alive)
    ssh.run("systemctl is-system-running --wait; udevadm settle", "root", None, BOOT_TIMEOUT)
    return ssh


def _greeted(vm: Vm, ssh: Ssh) -> None:
    """Wait for the greeting; LabError once a boot that had the CPU time it needs has not come so far."""
    before = vm.cpu_s()
    for turn in range(PATIENCE):
        try:
            ssh.wait(STUCK_S, vm.alive)
            return
        except LabError:
            if not vm.alive() or vm.cpu_s() - before > BOOT_CPU_S or turn == PATIENCE - 1:
                raise


def _save_booted(made: Image, checkpoint: Checkpoint) -> None:
    vm = Vm(f"booting-{os.getpid()}", made)
    vm.clear(made.disk, "raw")
    try:
        vm.power_on()
        ssh = settle(vm)
        _set_up(ssh, LOADERS[made.platform.loader].booted)
        ssh.close()
        vm.save(checkpoint)
    except LabError as error:
        raise LabError(f"{error}\n{vm.console_tail()}") from error
    finally:
        vm.kill()
        shutil.rmtree(vm.folder, ignore_errors=True)


def _set_up(ssh: Ssh, script: str) -> None:
    """Run it in the guest; LabError where it fails."""
    done = ssh.run("sh -s", "root", script.encode(), 240)
    if done.code != 0:
        raise LabError(str(done))


def _finish(half: Image, kernel_arguments: str) -> None:
    """The image's first boot, by QEMU itself, in which the guest sets up its boot loader."""
    vm = Vm(f"building-{os.getpid()}", half)
    vm.clear(half.disk, "raw")
    kernel = ["-kernel", half.folder / "vmlinuz", "-initrd", half.folder / "initrd.img"]
    try:
        vm.power_on([*map(str, kernel), "-append", kernel_arguments], uefi=False)
        ssh = settle(vm)
        _set_up(ssh, "\n".join(path.read_text() for path in images.scripts(half.platform)))
        ssh.run("systemctl poweroff", "root", None, 60)
        if not vm.wait_off(90):
            raise LabError("the guest did not power off")
        run(["qemu-img", "commit", "-q", vm.disk])
    except LabError as error:
        raise LabError(f"{error}\n{vm.console_tail()}") from error
    finally:
        vm.kill()
        shutil.rmtree(vm.folder, ignore_errors=True)
