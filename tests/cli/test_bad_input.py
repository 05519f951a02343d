"""Bad input: one clear line, the right exit code, nothing changed, nothing lost, no traceback.

tests/golden/refused.py has the host files and the command lines that cannot be, and its goldens what is said of them.
"""

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import as_nobody, complaint, needs_mounts, on_terminal, started, this_host_file, with_mounts
from tests.conftest import LOW_LATENCY, write_host_file
from tests.golden.refused import HOST_FILES
from tests.hosts.builder import HostFactory
from tests.nobody import as_user
from tests.ran import Ran
from tests.trees import differences, picture

pytestmark = pytest.mark.slow

Run = Callable[..., Ran]
LIVE_CPUS = sorted(os.sched_getaffinity(0))


ENDLESS = {"number": f"{LOW_LATENCY}x = {'1' * 5000}\n", "nesting": f"{LOW_LATENCY}x = {'[' * 5000}\n"}


@pytest.mark.parametrize("text", [*HOST_FILES.values(), *ENDLESS.values()], ids=[*HOST_FILES, *ENDLESS])
def test_a_host_file_that_cannot_be(tunectl: Run, stock: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "host.toml").write_text(text)
    before = picture(stock)
    assert complaint(tunectl("apply", "--yes", "--root", stock, "--host", tmp_path / "host.toml"), 2)
    assert not differences(before, stock)


@pytest.mark.parametrize("command", ["show", "plan", "verify", "check", "preflight"])
def test_every_command_that_reads_the_host_file_refuses_it_alike(
    tunectl: Run, stock: Path, tmp_path: Path, command: str
) -> None:
    host = tmp_path / "host.toml"
    host.write_bytes(b"\xff\xfe")
    assert complaint(tunectl(command, "--root", stock, "--host", host), 2).startswith(f"{host}: not TOML: ")


def test_behind_a_directory_that_may_not_be_entered_nothing_is_called_missing(
    host_root: HostFactory, public: Path
) -> None:
    root = host_root.fresh("vm2", public)
    (root / "etc/tunectl").mkdir(exist_ok=True)
    (root / "etc/tunectl").chmod(0o700)
    denied = f"cannot read {root}/etc/tunectl/host.toml: Permission denied"
    for command in (["verify"], ["check"], ["preflight"], ["show"], ["monitor", "--once"]):
        assert complaint(as_nobody(*command, "--root", root), 2) == denied
    script = (
        "from tunectl.cli.options import Options; from tunectl.cli.probing import config_of\n"
        "from tunectl.errors import UsageError; from tunectl.host.cpusets import read_scope_facts\n"
        "from tunectl.host.sysroot import Sysroot\n"
        f"try: print(config_of(Options({str(root)!r}), read_scope_facts(Sysroot({str(root)!r}))))\n"
        "except UsageError as error: print(error)"
    )
    assert as_user(script, sys.executable).strip() == denied
    root.chmod(0)
    for closed in (root, root / "etc"):
        assert complaint(as_nobody("show", "--root", closed), 2) == f"--root {closed}: Permission denied"
    root.chmod(0o755)


def test_a_host_file_that_may_be_there_is_not_to_be_written_by_propose(host_root: HostFactory, public: Path) -> None:
    root = host_root.fresh("lab4", public, tuned_boot=frozenset({2, 3}))
    (root / "etc/default").mkdir(parents=True, exist_ok=True)
    (root / "etc/default/irqbalance").write_text("IRQBALANCE_BANNED_CPULIST=\n")
    (root / "etc/tunectl").mkdir(exist_ok=True)
    for mode, proposed in ((0o755, True), (0o700, False)):
        (root / "etc/tunectl").chmod(mode)
        done = as_nobody("monitor", "--once", "--root", root, "--format", "json")
        assert (" propose" in done.out + done.err) is proposed
        assert (" apply" in done.out) is proposed
        assert ("Permission denied" in done.err) is not proposed


@pytest.mark.parametrize(
    ("mine", "other", "named"),
    [
        ('inherits = "nobody"\n', "", "mine.toml: inherits"),
        ('inherits = "mine.toml"\n', "", "mine.toml -> mine.toml"),
        ('inherits = "other.toml"\n', 'inherits = "mine.toml"\n', "mine.toml -> other.toml -> mine.toml"),
        ('inherits = "other.toml"\n', 'inherits = "other.toml"\n', "other.toml -> other.toml"),
        ("[knobs]\n'mm.ksm' = 'stopped'\n", "", "mm.ksm"),
        ("[knobs.'mm.ksm']\nvalue = 'stopped'\n", "", "'reason'"),
        ("[knobs.'mm.kms']\nvalue = 'stopped'\nreason = 'x'\n", "", "mm.ksm"),
        ("[knobs.'mm.ksm']\nvalue = 'merged'\nreason = 'x'\n", "", "mm.ksm"),
        ("knob = 1\n", "", "'knob'"),
    ],
)
def test_a_profile_of_ones_own_that_cannot_be(
    tunectl: Run, stock: Path, tmp_path: Path, mine: str, other: str, named: str
) -> None:
    (tmp_path / "mine.toml").write_text(mine)
    (tmp_path / "other.toml").write_text(other)
    (tmp_path / "host.toml").write_text('profile = "mine.toml"\nisolated = "2-3"\n')
    assert named in complaint(tunectl("plan", "--root", stock, "--host", tmp_path / "host.toml"), 2)


def test_a_profile_that_cannot_be_looked_up(tunectl: Run, lab4: Path) -> None:
    (lab4 / "etc/tunectl/mine").symlink_to("mine")
    write_host_file(lab4, 'profile = "mine/a.toml"\nisolated = "2-3"\n')
    line = complaint(tunectl("plan", "--root", lab4), 2)
    assert f"host.toml: profile: cannot read {lab4}/etc/tunectl/mine" in line
    assert "Too many levels of symbolic links" in line


# ---- the journal


def journal_of(root: Path) -> Path:
    return root / "var/lib/tunectl/journal.jsonl"


def alien(text: str) -> bytes:
    """A line of the journal that is whole, and says what no version of ours wrote."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


@pytest.mark.parametrize("line", [b"garbage\n", b"\0" * 40 + b"\n", b"\n", alien('{"type":"before","seq":3}')])
def test_a_broken_journal(tunectl: Run, lab4: Path, line: bytes) -> None:
    tunectl("apply", "--yes", "--root", lab4)
    lines = journal_of(lab4).read_bytes().splitlines(keepends=True)
    journal_of(lab4).write_bytes(b"".join([*lines[:3], line, *lines[4:]]))
    before = picture(lab4)
    (lab4 / "proc/sys/vm/swappiness").write_text("60\n")
    assert complaint(tunectl("apply", "--yes", "--root", lab4), 1)
    (lab4 / "proc/sys/vm/swappiness").write_text("1\n")
    for words in ("verify", "apply --yes"):  # there is nothing to write
        looked = tunectl(*words.split(), "--root", lab4, "--format", "json")
        first = looked.json["findings"][0]
        assert (looked.code, first["target"], first["outcome"]) == (3, "journal", "drifted")
        assert first["observed"] == "damaged"
    assert tunectl("restore", "--dry-run", "--root", lab4).code == 1
    assert not differences(before, lab4)
    restored = tunectl("restore", "--root", lab4)
    assert (restored.code, restored.err) == (1, "")
    assert journal_of(lab4).with_name("journal.jsonl.damaged.1").exists()
    assert (lab4 / "proc/sys/vm/swappiness").read_text() == "60\n"


NO_FILE, DIRECTORY = "not a regular file", "Is a directory"
READS = ("verify", "plan", "apply --yes", "restore", "restore --dry-run", "monitor --once")


@pytest.mark.parametrize(
    ("make", "name", "words", "said"),
    [
        *((os.mkfifo, "journal.jsonl", words, f"cannot read the journal {{}}: {NO_FILE}") for words in READS),
        *((os.mkfifo, "lock", words, f"cannot take the lock {{}}: {NO_FILE}") for words in ("apply --yes", "restore")),
        *((os.mkdir, "journal.jsonl", words, f"cannot read the journal {{}}: {DIRECTORY}") for words in READS[:4:2]),
    ],
)
def test_what_is_no_file_where_the_state_has_one(
    tunectl: Run, lab4: Path, make: Callable[[Path], None], name: str, words: str, said: str
) -> None:
    place = journal_of(lab4).with_name(name)
    place.parent.mkdir(parents=True)
    make(place)
    before = picture(lab4)
    assert complaint(tunectl(*words.split(), "--root", lab4), 1) == said.format(place)
    assert not differences(before, lab4)


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_a_truncated_journal(tunectl: Run, lab4: Path, cut: int) -> None:
    before = picture(lab4)
    tunectl("apply", "--yes", "--root", lab4)
    os.truncate(journal_of(lab4), journal_of(lab4).stat().st_size - cut)
    done = tunectl("restore", "--root", lab4, "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert [note for note in done.json["notes"] if "cut off" in note]
    assert not differences(before, lab4)


def test_a_file_where_the_state_directory_should_be(tunectl: Run, lab4: Path) -> None:
    journal_of(lab4).parent.parent.mkdir(parents=True)
    journal_of(lab4).parent.touch()
    before = picture(lab4)
    assert "cannot" in complaint(tunectl("apply", "--yes", "--root", lab4), 1)
    assert not differences(before, lab4)


# ---- what is no regular file where the host should have one


def instead(root: Path, path: str) -> Path:
    """A FIFO in the place of a file."""
    place = root / path
    place.unlink()
    os.mkfifo(place)
    return place


def test_a_command_line_that_is_a_fifo_is_unreadable(tunectl: Run, lab4: Path) -> None:
    tunectl("apply", "--yes", "--root", lab4)
    instead(lab4, "proc/cmdline")
    looked = tunectl("verify", "--root", lab4, "--format", "json")
    outcomes = {one["outcome"] for one in looked.json["findings"] if one["knob"].startswith("boot.")}
    assert outcomes == {"unreadable"}
    assert looked.json["verdict"] != "pending-reboot"


def test_an_interrupt_table_that_is_a_fifo_is_unreadable(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, LOW_LATENCY)
    for counts in root.glob("sys/kernel/irq/*/per_cpu_count"):
        counts.unlink()
    tunectl("apply", "--yes", "--root", root)
    for irq in root.glob("proc/irq/*/smp_affinity_list"):
        irq.chmod(0o444)  # the kernel moves them itself
        irq.write_text("2\n")
        (irq.parent / "effective_affinity_list").write_text("2\n")
    judged = tunectl("verify", "--root", root, "--format", "json").json["findings"]
    refused = {one["target"] for one in judged if one["outcome"] == "refused" and one["knob"] == "irq.affinity"}
    assert refused
    instead(root, "proc/interrupts")
    judged = tunectl("verify", "--root", root, "--format", "json").json["findings"]
    assert refused == {one["target"] for one in judged if "/proc/interrupts cannot be read" in one["reason"]}
    assert {one["outcome"] for one in judged if one["target"] in refused} == {"unreadable"}


def test_a_fifo_is_never_replaced(tunectl: Run, lab4: Path) -> None:
    place = instead(lab4, "etc/default/irqbalance")
    applied = tunectl("apply", "--yes", "--root", lab4, "--format", "json").json
    assert [one["outcome"] for one in applied["findings"] if one["knob"] == "irqbalance.banned_cpus"] == ["unreadable"]
    assert place.is_fifo()
    tunectl("restore", "--root", lab4)
    assert place.is_fifo()


def test_a_fifo_in_the_place_of_what_we_wrote_is_not_restored(tunectl: Run, lab4: Path) -> None:
    tunectl("apply", "--yes", "--root", lab4)
    place = instead(lab4, "etc/default/irqbalance")
    done = tunectl("restore", "--root", lab4, "--format", "json")
    assert done.code == 1
    (result,) = [one for one in done.json["results"] if one["path"] == "/etc/default/irqbalance"]
    assert (result["result"], result["message"]) == ("failed", f"{place}: not a regular file")
    assert place.is_fifo()
    assert journal_of(lab4).exists()


# ---- disks


FULL = """
mount -t tmpfs -o size=16k tmpfs "$1"
head -c "$2" /dev/zero >"$1/fill"
run apply --yes --root "$3" --state "$1/state"
rm "$1/fill"
run restore --root "$3" --state "$1/state"
"""


@needs_mounts
@pytest.mark.parametrize(("taken", "wrote"), [(16384, False), (12288, True), (8192, True), (4096, True)])
def test_a_full_disk_under_the_journal(lab4: Path, tmp_path: Path, taken: int, wrote: bool) -> None:
    before = picture(lab4)
    disk = tmp_path / "disk"
    disk.mkdir()
    applied, restored = with_mounts(FULL, disk, taken, lab4)
    line = complaint(applied, 1)
    assert line.startswith(f"cannot write the journal {disk}/state/journal.jsonl: No space left on device")
    assert (f"tunectl --root {lab4} --state {disk}/state restore" in line) is wrote, "nothing else is to be undone"
    assert (restored.code, restored.err) == (0, "")
    assert not differences(before, lab4)


FULL_TARGET = """
mount -t tmpfs -o size=4k tmpfs "$1/etc/default/grub.d"
head -c 4096 /dev/zero >"$1/etc/default/grub.d/fill.txt"
run apply --yes --root "$1"
run restore --root "$1"
ls -A "$1/etc/default/grub.d" >"$2"
"""


@needs_mounts
def test_a_full_disk_under_the_target(lab4: Path, tmp_path: Path) -> None:
    before = picture(lab4)
    listing = tmp_path / "listing"
    applied, restored = with_mounts(FULL_TARGET, lab4, listing)
    dropin = lab4 / "etc/default/grub.d/99-tunectl.cfg"
    assert complaint(applied, 1).startswith(f"cannot write {dropin}: No space left on device")
    assert (restored.code, restored.err) == (0, "")
    assert listing.read_text() == "fill.txt\n"
    assert not differences(before, lab4)


READ_ONLY = """
mount --bind "$1/sys" "$1/sys"
mount -o remount,ro,bind "$1/sys"
run apply --yes --root "$1"
run verify --root "$1"
umount "$1/sys"
run restore --root "$1"
"""


@needs_mounts
def test_a_read_only_sys(lab4: Path) -> None:
    before = picture(lab4)
    applied, verified, restored = with_mounts(READ_ONLY, lab4)
    line = complaint(applied, 1)
    assert line.startswith(f"cannot write {lab4}/sys/")
    assert ": Read-only file system (" in line
    assert f"tunectl --root {lab4} restore" in line
    assert (verified.code, restored.code) == (3, 0)
    assert not differences(before, lab4)


READ_ONLY_STATE = """
mkdir -p "$1/var/lib"
mount --bind "$1/var/lib" "$1/var/lib"
mount -o remount,ro,bind "$1/var/lib"
run apply --yes --root "$1"
"""


@needs_mounts
def test_a_read_only_state_directory(lab4: Path) -> None:
    (lab4 / "var/lib").mkdir(parents=True)
    before = picture(lab4)
    (applied,) = with_mounts(READ_ONLY_STATE, lab4)
    assert complaint(applied, 1) == (f"cannot make the state directory {lab4}/var/lib/tunectl: Read-only file system")
    assert not differences(before, lab4)


# ---- no root


@pytest.fixture
def live_host_file(public: Path) -> Path:
    """A host file that fits the machine these tests run on."""
    if len(LIVE_CPUS) < 2:
        pytest.skip("needs two CPUs: one is for housekeeping")
    return this_host_file(public, '[knobs]\n"systemd.apply_at_boot" = "unmanaged"\n')


@pytest.mark.parametrize("command", ["apply", "restore"])
def test_writing_the_running_host_needs_root(live_host_file: Path, public: Path, command: str) -> None:
    words = ["--host", live_host_file, "--state", public / "state"]
    line = complaint(as_nobody(command, *words, *(["--yes"] if command == "apply" else [])), 1)
    again = f"sudo tunectl --host {live_host_file} --state {public}/state {command}"
    assert line == f"{command} writes to /sys, /proc and /etc and needs root ({again})"
    assert not (public / "state").exists()


@pytest.mark.parametrize("command", ["show", "plan", "verify", "propose"])
def test_looking_at_the_running_host_needs_none(live_host_file: Path, public: Path, command: str) -> None:
    words = ["--state", public / "state", "--host", live_host_file, "--format", "json"]
    done = as_nobody(command, *words)
    assert done.code in ((0, 1) if command == "propose" else (0, 3, 4))
    assert done.err == ""
    assert done.json["schema"] == f"tunectl.{command}/1"


def test_a_snapshot_of_the_running_host_needs_none(public: Path) -> None:
    public.chmod(0o777)
    done = as_nobody("snapshot", "-o", public / "host.tar.gz", "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert done.json["files"] > 10
    assert (public / "host.tar.gz").exists()


def test_an_apply_without_permission_says_so(host_root: HostFactory, public: Path) -> None:
    root = host_root.fresh("lab4", public)
    write_host_file(root, LOW_LATENCY)
    for directory, _, _ in os.walk(root):
        os.chmod(directory, 0o555)
    before = picture(root)
    line = complaint(as_nobody("apply", "--yes", "--root", root), 1)
    assert line == f"cannot make the state directory {root}/var/lib/tunectl: Permission denied"
    assert not differences(before, root)


# ---- others at work


def test_a_knob_that_vanishes_between_plan_and_apply(tunectl: Run, lab4: Path) -> None:
    def unplug() -> None:
        for name in ("smp_affinity_list", "effective_affinity_list"):
            (lab4 / "proc/irq/32" / name).unlink()
        (lab4 / "proc/sys/vm/stat_interval").unlink()

    code, shown = on_terminal("apply", "--root", lab4, at="Apply these changes?", answer="y\n", then=unplug)
    assert "affinity[" in shown
    assert code == 4
    done = tunectl("verify", "--root", lab4, "--format", "json")
    gone = {one["target"] for one in done.json["findings"] if one["outcome"] == "unsupported"}
    assert gone >= {"irq.affinity[32]", "kernel.stat_interval"}
    assert done.code == 4


def test_two_applies_at_once(tunectl: Run, lab4: Path) -> None:
    before = picture(lab4)
    pair = [started("apply", "--yes", "--wait", "60", "--root", lab4, "--format", "json") for _ in range(2)]
    said = [process.communicate(timeout=120) for process in pair]
    assert [process.returncode for process in pair] == [4, 4]
    assert [err for _, err in said] == ["", ""]
    assert tunectl("restore", "--root", lab4).code == 0
    assert not differences(before, lab4)


# ---- the command line


@pytest.mark.parametrize(
    ("words", "said"),
    [("jitter --cpus 99999", "past the last CPU"), ("selftest --cpu 60000", "CPU 60000 is not online")],
)
def test_a_cpu_that_this_machine_has_not(tunectl: Run, words: str, said: str) -> None:
    assert said in complaint(tunectl("probe", *words.split()), 2)


@pytest.mark.parametrize("command", ["restore", "verify"])
def test_a_state_directory_that_is_none_is_no_host_without_a_journal(
    tunectl: Run, stock: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "fifo")
    said = {"file": "not a directory", "fifo": "not a directory", "file/x": "Not a directory"}
    said["loop"] = "Too many levels of symbolic links"
    for name, why in said.items():
        line = complaint(tunectl(command, "--root", stock, "--state", tmp_path / name), 2)
        assert line == f"--state {tmp_path}/{name}: {why}"
    line = complaint(tunectl(command, "--root", stock, "--state", "/dev/null"), 2)
    assert line == "--state /dev/null: not a directory"
    for state in (tmp_path, tmp_path / "none"):
        assert tunectl("restore", "--root", stock, "--state", state).code == 0


@needs_mounts
def test_without_sys_the_running_host_is_no_snapshot() -> None:
    (done,) = with_mounts("mount -t tmpfs none /sys; run verify")
    assert complaint(done, 1) == "no CPUs are described in /sys/devices/system/cpu (is /sys mounted?)"


@pytest.mark.parametrize("command", ["show", "propose", "plan", "verify", "check", "preflight", "snapshot -o x"])
def test_a_root_without_cpus(tunectl: Run, tmp_path: Path, command: str) -> None:
    words = command.replace("-o x", f"-o {tmp_path}/x").split()
    root = tmp_path / "empty"
    root.mkdir()
    line = complaint(tunectl(*words, "--root", root), 1)
    assert line.startswith(f"no CPUs are described in {root}/sys/devices/system/cpu")
    assert list(tmp_path.iterdir()) == [root]


@pytest.mark.parametrize(
    ("variable", "value", "code", "said"),
    [
        ("ROOT", "/no/such/place", 2, "--root /no/such/place: no such directory"),
        ("HOST", "/no/such/host.toml", 2, "there is no host file /no/such/host.toml"),
        ("FORMAT", "xml", 2, "--format xml: 'verify' writes"),
        ("QUIET", "maybe", 2, "(env var: 'TUNECTL_QUIET'): 'maybe' is not a valid boolean"),
        ("VERBOSE", "much", 2, "(env var: 'TUNECTL_VERBOSE')"),
        ("STATE", "/proc/version/state", 2, "--state /proc/version/state: Not a directory"),
    ],
)
def test_wrong_environment_variables(
    tunectl: Run, stock: Path, variable: str, value: str, code: int, said: str
) -> None:
    env = {"TUNECTL_ROOT": str(stock), f"TUNECTL_{variable}": value}
    words = ["apply", "--yes"] if variable == "STATE" else ["verify"]
    assert said in complaint(tunectl(*words, env=env), code)


# ---- garbage in the host's own files

EVIL = b"\x1b[31m\x1b]0;title\x07[bold red]evil[/][/nothing]\r\x00\xff\xc2\x85 &<\">|'\\\n"


CPUS, MENU = "sys/devices/system/cpu", "boot/grub/grub.cfg"
ODD = (
    *("etc/default/irqbalance", "etc/default/grub", "proc/cmdline", "proc/50000/comm", "proc/sys/kernel/hostname"),
    *("proc/sys/vm/swappiness", "sys/kernel/irq/32/actions", "sys/kernel/irq/33/actions"),
    *(f"{CPUS}/isolated", f"{CPUS}/online", f"{CPUS}/cpu1/cpufreq/scaling_governor"),
    *(f"{CPUS}/cpu2/cpuidle/state1/latency", "sys/kernel/mm/transparent_hugepage/enabled"),
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
)


@pytest.fixture(scope="session")
def garbage(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host whose files hold what nobody expects. Read only."""
    root = host_root.fresh("lab4", tmp_path_factory.mktemp("garbage"))
    write_host_file(root, LOW_LATENCY)
    huge = b"A" * (1 << 20)
    for path in ODD:
        if (root / path).exists():
            (root / path).write_bytes(EVIL)
    for path in ("proc/sys/vm/stat_interval", "proc/irq/31/smp_affinity_list", "sys/kernel/mm/ksm/run", MENU):
        (root / path).write_bytes(huge)
    (root / "proc/interrupts").write_bytes(b"     CPU0 CPU1\n" + EVIL + b" 24: " + huge[:9999] + b"\n")
    (root / "proc/irq/not-a-number").mkdir()
    (root / "proc/irq/77").mkdir()
    os.mkfifo(root / "proc/irq/77/smp_affinity_list")
    nic = root / "sys/class/net" / os.fsdecode(b"\x1b[2J[red]eth\xff")
    nic.mkdir()
    (nic / "operstate").write_bytes(EVIL)
    return root


GATE = ("text", "json", "junit", "nagios", "prometheus")
FORMATS = {
    "propose": ("text", "toml", "json"),
    **dict.fromkeys(("show", "plan"), GATE[:2]),
    **dict.fromkeys(("verify", "check", "preflight"), GATE),
}


@pytest.mark.parametrize(("command", "fmt"), [(name, fmt) for name, fmts in FORMATS.items() for fmt in fmts])
def test_garbage_in_the_hosts_files(tunectl: Run, garbage: Path, command: str, fmt: str) -> None:
    words = ["--window", "0.1"] if command in ("check", "preflight") else []
    done = tunectl(command, *words, "--format", fmt, "--root", garbage)
    assert done.code in (0, 1, 2, 3, 4)
    assert done.err == ""
    assert len(done.out) < 300_000
    assert "".join(char for char in done.out if not char.isprintable()).strip("\n") == ""


def test_apply_and_restore_on_a_host_full_of_garbage(tunectl: Run, garbage: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", garbage, tmp_path / "copy"], check=True)
    root = tmp_path / "copy"
    (root / "proc/irq/77/smp_affinity_list").unlink()  # picture() would wait for a writer
    before = picture(root)
    done = tunectl("apply", "--yes", "--root", root)
    assert done.code in (1, 3)
    assert done.err == ""
    assert tunectl("restore", "--root", root).code == 0
    assert not differences(before, root)
