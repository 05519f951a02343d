"""The drop-in, and what grub-mkconfig sees: evaluated here, read by a real sh, and by the real grub-mkconfig."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bootloader.trees import DEFAULTS, grub_host, write
from tunectl.bootloader.cmdline import Arg
from tunectl.bootloader.grub import parse_dropin, render_dropin
from tunectl.bootloader.grubmenu import BootEntry, Menu
from tunectl.bootloader.grubsettings import (
    DROPIN,
    Configured,
    Placed,
    configured,
    read_menu,
    run_shell,
    settings_files,
    source_live,
)
from tunectl.bootloader.nextboot import next_boot
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

ARGS = ("isolcpus=managed_irq,domain,2-3", "nohz_full=2-3", "nosoftlockup", "tsc=reliable")
FILE = (
    "# Written by tunectl: the boot arguments that isolate the trading CPUs.\n"
    "# Edits are lost with the next 'tunectl apply'; 'tunectl restore' removes this file.\n"
    'GRUB_CMDLINE_LINUX_DEFAULT="${GRUB_CMDLINE_LINUX_DEFAULT}'
    ' isolcpus=managed_irq,domain,2-3 nohz_full=2-3 nosoftlockup tsc=reliable"\n'
)
OURS = "/" + DROPIN


def test_render_is_the_whole_file() -> None:
    assert render_dropin(ARGS) == FILE
    assert parse_dropin(FILE) == ARGS


@pytest.mark.parametrize(
    "arg",
    ["", "a b", "a\n", "a$b", "a`b`", 'a"b', "a'b", "a\\n", "a;b", "a{b", "a|b", "a&b", "a#b", "~a", "-a", "a*",
     "\u00e9"],
)  # fmt: skip
def test_render_refuses_what_a_shell_or_grub_would_change(arg: str) -> None:
    with pytest.raises(UsageError):
        render_dropin(["quiet", arg])


def test_render_refuses_the_empty_file() -> None:
    with pytest.raises(UsageError, match="no boot argument"):
        render_dropin([])


@pytest.mark.parametrize(
    "text",
    [
        "",
        FILE + "\n",
        FILE.removesuffix("\n"),
        FILE.replace("tsc=reliable", "tsc=$(reboot)"),
        FILE.replace(" nohz", "  nohz"),
        FILE.replace("# Written", "# written"),
        FILE + 'GRUB_CMDLINE_LINUX_DEFAULT="${GRUB_CMDLINE_LINUX_DEFAULT} x"\n',
    ],
)
def test_parse_takes_only_our_own_text(text: str) -> None:
    assert parse_dropin(text) is None


def test_a_real_shell_reads_the_drop_in_back(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {DROPIN: FILE})
    paths = tuple(root.path(path) for path in settings_files(root))
    sourced = run_shell(root, paths)
    assert (sourced.problem, sourced.linux) == (None, "console=ttyS0")
    assert sourced.linux_default == "quiet " + " ".join(ARGS)
    assert sourced.args == configured(root).args
    assert [str(arg) for arg in sourced.args] == ["console=ttyS0", "quiet", *ARGS]


def test_configured(tmp_path: Path) -> None:
    root = grub_host(
        tmp_path, {"etc/default/grub.d/50-cloudimg.cfg": "GRUB_CMDLINE_LINUX_DEFAULT='console=tty1'\n", DROPIN: FILE}
    )
    cloud = "/etc/default/grub.d/50-cloudimg.cfg"
    assert configured(root, without_ours=True) == Configured(
        "console=ttyS0",
        "console=tty1",
        ("/etc/default/grub", cloud),
        None,
        (Placed(Arg("console", "ttyS0"), "/etc/default/grub:5"), Placed(Arg("console", "tty1"), f"{cloud}:1")),
        f"{cloud}:1",
    )
    ours = configured(root)
    assert ours.line == "console=ttyS0 console=tty1 " + " ".join(ARGS)
    assert {placed.where for placed in ours.placed[2:]} == {f"{OURS}:3"}
    assert ours.default_set_at == f"{OURS}:3"


def test_order_names_and_links(tmp_path: Path) -> None:
    files = {f"etc/default/grub.d/{name}": f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {name}"\n' for name in (
        "b.cfg", "B.cfg", "10.cfg", "a_.cfg", "a-.cfg", ".hidden.cfg", "x.cfg.dpkg-old", "99-tunectl.cfg.tunectl-tmp"
    )}  # fmt: skip
    root = grub_host(tmp_path, files)
    (tmp_path / "etc/default/grub.d/dangling.cfg").symlink_to("nowhere")
    (tmp_path / "etc/default/grub.d/out.cfg").symlink_to("/etc/default/linked")
    write(tmp_path, {"etc/default/linked": 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX linked"\n'})
    assert configured(root).linux == "console=ttyS0 10.cfg B.cfg a-.cfg a_.cfg b.cfg linked"


def test_hosts_with_less(tmp_path: Path) -> None:
    assert configured(Sysroot(str(tmp_path))) == Configured()
    root = write(tmp_path, {"etc/default/grub": "GRUB_TIMEOUT=1\n"})
    assert configured(root) == Configured(files=("/etc/default/grub",))
    (tmp_path / "etc/default/grub.d/dir.cfg").mkdir(parents=True)
    assert configured(root).problem == "cannot read /etc/default/grub.d/dir.cfg: Is a directory"


HOSTILE = [
    'GRUB_CMDLINE_LINUX_DEFAULT="$(touch @)"',
    "GRUB_CMDLINE_LINUX_DEFAULT=`touch @`",
    'GRUB_CMDLINE_LINUX_DEFAULT="${X:-$(touch @)}"',
    "touch @",
    "GRUB_CMDLINE_LINUX_DEFAULT=quiet; touch @",
    "GRUB_CMDLINE_LINUX_DEFAULT=quiet > @",
    "GRUB_CMDLINE_LINUX_DEFAULT=quiet touch @",
    "PATH=. touch @",
    "if true; then touch @; fi",
    ". /proc/self/environ; touch @",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_recorded_hosts_files_are_never_run(text: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    root = grub_host(tmp_path / "host", {"etc/default/grub.d/1.cfg": text.replace("@", str(made)) + "\n"})
    assert configured(root).problem == "needs a shell: /etc/default/grub.d/1.cfg:1"
    assert next_boot(root).points[0].line is None
    assert source_live(root).problem == "needs a shell, and files of a recorded host are never run"
    assert not made.exists()


@pytest.mark.parametrize(("shell", "added"), [("bash", "console=tty0 isolcpus=2-3"), ("dash", None)])
def test_what_an_operator_appends_is_known_where_sh_is_bash(shell: str, added: str | None, tmp_path: Path) -> None:
    more = 'GRUB_CMDLINE_LINUX="console=tty0"\nGRUB_CMDLINE_LINUX+=" isolcpus=2-3"\n'
    root = grub_host(tmp_path, {"etc/default/grub.d/1.cfg": more})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to(shell)
    settings = configured(root)
    assert (None if settings.problem else settings.linux) == added


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 0\n", "exit status 0"),
        ("false\n", "exit status 1"),
        ("GRUB_A+=x\n", "not found"),
        ("if\n", "yntax error"),
    ],
)
def test_a_file_that_breaks_the_shell_is_a_problem(text: str, problem: str, tmp_path: Path) -> None:
    root = grub_host(tmp_path, {"etc/default/grub": text})
    sourced = run_shell(root, (root.path("etc/default/grub"),))
    assert sourced.problem is not None
    assert problem in sourced.problem
    assert sourced.args == ()


def test_what_a_file_prints_is_not_a_value(tmp_path: Path) -> None:
    root = grub_host(tmp_path, {"etc/default/grub": "echo hello\nGRUB_CMDLINE_LINUX=$(echo a b)\nfile=x\n"})
    assert run_shell(root, (root.path("etc/default/grub"),)).linux == "a b"


def grub_mkconfig(root: Sysroot, below: Path) -> str:
    """What the real grub-mkconfig writes for a tree: /etc/default and /boot are the tree's, in a mount namespace."""
    scripts = below / "grub.d"
    scripts.mkdir()
    for name in ("00_header", "10_linux", "41_custom"):  # the others ask for disks a container does not have
        shutil.copy2(f"/etc/grub.d/{name}", scripts)
    script = (
        'mount --bind "$1" /etc/default; mount --bind "$2" /boot; mount --bind "$3" /etc/grub.d; exec grub-mkconfig'
    )
    places = [root.path("etc/default"), root.path("boot"), str(scripts)]
    try:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-ec", script, "sh", *places], capture_output=True, text=True, check=False
        )
    except OSError as error:
        pytest.skip(f"no mount namespace: {error}")
    if done.returncode:
        pytest.skip(f"grub-mkconfig does not run here: {done.stderr.strip()[-200:]}")
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
@pytest.mark.skipif(not shutil.which("grub-mkconfig"), reason="grub-common and grub2-common are not installed")
@pytest.mark.parametrize("default", ["0", "saved", "1>2"])
def test_the_real_grub_mkconfig_gives_what_we_foretell(default: str, on_disk: Path) -> None:
    text = DEFAULTS.replace("DEFAULT=0", f"DEFAULT='{default}'") + "GRUB_TERMINAL=console\n"
    quoted = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX dyndbg=\\"file a.c +p\\""\n'
    root = grub_host(
        on_disk / "host",
        {
            "etc/default/grub": text,
            "etc/default/grub.d/20-debug.cfg": quoted,
            DROPIN: FILE,
            "boot/vmlinuz-6.1.0-39-amd64": "kernel",
            "boot/vmlinuz-5.10.0-9-amd64": "kernel",
            "boot/initrd.img-6.1.0-39-amd64": "initrd",
        },
    )
    made = grub_mkconfig(root, on_disk)
    assert "isolcpus=managed_irq,domain,2-3" in made
    write(on_disk / "host", {"boot/grub/grub.cfg": made})
    found = next_boot(root)
    assert (found.problem, found.note) == ("", "")
    menu = read_menu(root)
    assert isinstance(menu, Menu)
    entry = menu.entry
    assert isinstance(entry, BootEntry)
    assert not entry.recovery
    kernel = "5.10.0-9" if default == "1>2" else "6.1.0-39"
    assert entry.image.endswith(f"vmlinuz-{kernel}-amd64")
    assert found.points[0].line == 'console=ttyS0 "dyndbg=file a.c +p" quiet ' + " ".join(ARGS)
    assert entry.args.endswith(f" ro {found.points[0].line}")
