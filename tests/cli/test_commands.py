"""Every command, in every format, with its exit codes: docs/interface.md, as the installed program keeps it."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.places import (
    PROGRAM,
    as_nobody,
    complaint,
    environment,
    on_terminal,
    started,
    this_host_file,
    wait_until_it_waits,
)
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hostfile.test_config import INTERFACE_EXAMPLE
from tests.hosts.builder import HostFactory
from tests.ran import JITTER, Ran
from tests.schemas import fits
from tests.trees import differences, picture
from tunectl import __version__
from tunectl.cpulist import named_cpus, parse_cpulist
from tunectl.host.refusals import AS_ROOT
from tunectl.tuning.catalogue import catalogue, found, nearest

Run = Callable[..., Ran]
DOCS = Path(__file__).parents[2] / "docs"
GATE = ("text", "json", "junit", "nagios", "prometheus")
DATA = ("text", "json")
OFFERED = {
    "show": DATA,
    "propose": ("text", "toml", "json"),
    "knobs": (*DATA, "markdown"),
    "plan": DATA,
    "verify": GATE,
    "check": GATE,
    "preflight": GATE,
}
QUICK = {"check": ["--window", "0.1"], "preflight": ["--window", "0.1", "--duration", "0.1"]}
STOCK_CODES = {"show": 0, "propose": 0, "knobs": 0, "plan": 3, "verify": 3, "check": 3, "preflight": 3}
NAGIOS_CODES = {"verify": 2, "check": 2, "preflight": 2}
CASES = [(command, fmt) for command, formats in OFFERED.items() for fmt in formats]


def valid(name: str, text: str) -> Any:
    """The document, once it satisfies its published schema."""
    document = fits(name, json.loads(text))
    assert document["schema"] == f"tunectl.{name}/1"
    assert document["tunectl_version"] == __version__
    assert set(document["host"]) == {"hostname", "kernel", "boot_id", "machine"}
    return document


# ---- formats


@pytest.mark.parametrize(("command", "fmt"), CASES)
def test_every_format_of_every_command(tunectl: Run, stock: Path, command: str, fmt: str) -> None:
    before = picture(stock)
    done = tunectl(command, *QUICK.get(command, []), "--format", fmt, "--root", stock)
    assert (done.code, done.err) == (NAGIOS_CODES[command] if fmt == "nagios" else STOCK_CODES[command], "")
    assert done.out.endswith("\n")
    assert done.out.replace("\n", "").isprintable()
    assert not differences(before, stock)


L1_SUBSTATES = ("l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm")


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("irq.affinity", ["irq.affinity"]),
        ("pcie", [f"pcie.{name}" for name in ("aspm_policy", "l0s_aspm", "l1_aspm", *L1_SUBSTATES, "runtime_power")]),
        ("governor", ["cpufreq.governor"]),
        ("khz", ["cpufreq.max_khz", "cpufreq.min_khz", "uncore.max_khz", "uncore.min_khz"]),
        ("isolcpus", ["boot.isolcpus"]),
        ("isolcpus=domain,2-3", ["boot.isolcpus"]),
        ("nohz_full", ["boot.nohz_full"]),
        ("scaling_governor", ["cpufreq.governor"]),
        ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", ["cpufreq.governor"]),
        ("cpufreq/scaling_governor", ["cpufreq.governor"]),
        ("/etc/default/irqbalance", ["irqbalance.banned_cpus"]),
        ("vm.swappiness", ["mm.swappiness"]),
        ("transparent_hugepage", ["mm.thp_enabled", "mm.thp_defrag"]),
        ("workqueue", ["workqueue.cpumask"]),
    ],
)
def test_a_knob_is_found_by_name_argument_and_file(word: str, names: list[str]) -> None:
    assert [row.name for row in found(catalogue().knobs, word)] == names


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("swapines", "mm.swappiness"),
        ("scaling_gouvernor", "cpufreq.governor"),
        ("isolcpsu", "boot.isolcpus"),
        ("transparent_hugepages", "mm.thp_enabled"),
        ("max_cstate", ""),
        ("xy", ""),
    ],
)
def test_a_word_that_is_misspelt_is_nearly_a_knob(word: str, meant: str) -> None:
    assert found(catalogue().knobs, word) == []
    assert nearest(catalogue().knobs, word) == meant


def test_propose_prints_a_host_file_that_is_accepted(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    for name in ("lab4", "xeon2s", "epyc", "hybrid", "vm2"):
        done = tunectl("propose", "--format", "toml", "--root", host_root(name))
        path = tmp_path / f"{name}.toml"
        path.write_text(done.out)
        assert tunectl("verify", "--root", host_root(name), "--host", path).code in (3, 4)


def test_what_is_proposed_for_a_recorded_host_is_written_below_it_alone(
    tunectl: Run, host_root: HostFactory, tmp_path: Path
) -> None:
    stock = host_root.fresh("lab4", tmp_path)
    (tmp_path / "link").symlink_to("/etc")
    for output in ("/etc/tunectl-of-a-test/host.toml", "/tmp/../etc/tunectl-of-a-test/x", tmp_path / "link/tunectl-t"):
        for host in ((), ("--host", output)):
            refused = complaint(tunectl("propose", "--root", stock, *host, "--output", output, "--force"), 2)
            assert f"that is this machine's, and --root is not (--output {stock}/etc/tunectl-" in refused
    (stock / "out").symlink_to(tmp_path)
    for output in (tmp_path / "x.toml", stock / "out/x.toml", f"{stock}/../x.toml", f"{stock}-x.toml"):
        refused = complaint(tunectl("propose", "--root", stock, "--output", output, "--force"), 2)
        assert "that is this machine's, and --root is not" in refused
        assert not Path(output).exists()
    done = tunectl("propose", "--root", stock, "--output", stock / "etc/tunectl-t/host.toml")
    assert (done.code, f"written to {stock}/etc/tunectl-t/host.toml" in " ".join(done.out.split())) == (0, True)


def test_propose_writes_it_and_overwrites_nothing(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    """Where the host file of a recorded host is to lie elsewhere, --host says so, too."""
    stock = host_root.fresh("lab4", tmp_path)
    for path, host in (
        (stock / "etc/tunectl/host.toml", ()),
        (tmp_path / "new/host.toml", ("--host", tmp_path / "new/host.toml")),
    ):
        words = ("propose", "--root", stock, *host, "--output", path)
        assert tunectl(*words).code == 0
        assert "isolated" in path.read_text()
        line = complaint(tunectl(*words), 2)
        assert line == f"--output {path}: there is a file already (--force overwrites it)"
        assert tunectl(*words, "--force").code == 0


def test_no_cpu_can_be_isolated(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("vm2", tmp_path)
    for name in ("present", "online", "possible"):
        (root / f"sys/devices/system/cpu/{name}").write_text("0\n")
    done = tunectl("propose", "--root", root, "--format", "json")
    assert (done.code, done.err) == (1, "")
    valid("propose", done.out)
    done = tunectl("preflight", *QUICK["preflight"], "--root", root, "--format", "json")
    assert done.code == 3
    assert valid("preflight", done.out)["verdict"] == "no-go"


def test_json_of_the_commands_that_write(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    applied = valid("apply", tunectl("apply", "--yes", "--format", "json", "--root", lab4).out)
    assert {one["result"] for one in applied["changes"]} == {"changed"}
    assert applied["journal"] == f"{lab4}/var/lib/tunectl/journal.jsonl"
    assert [line for line in applied["not_run"] if "update-grub" in line]
    again = valid("apply", tunectl("apply", "--yes", "--format", "json", "--root", lab4).out)
    assert again["changes"] == []
    snapshot = valid("snapshot", tunectl("snapshot", "-o", tmp_path / "x", "--format", "json", "--root", lab4).out)
    assert snapshot["bytes"] == (tmp_path / "x").stat().st_size
    preview = valid("restore", tunectl("restore", "--dry-run", "--format", "json", "--root", lab4).out)
    # This boot had none of our arguments, so that it needs no other one to be rid of them.
    assert (preview["reboot_required"], {one["result"] for one in preview["results"]}) == (False, {"would-restore"})
    line = (lab4 / "proc/cmdline").read_text()
    (lab4 / "proc/cmdline").write_text(f"{line.rstrip()} nohz_full=2-3\n")
    assert tunectl("restore", "--dry-run", "--format", "json", "--root", lab4).json["reboot_required"]
    (lab4 / "proc/cmdline").write_text(line)
    assert valid("apply", tunectl("apply", "--yes", "--format", "json", "--root", lab4).out)["changes"] == []
    restored = valid("restore", tunectl("restore", "--format", "json", "--root", lab4).out)
    assert [one["path"] for one in preview["results"]] == [one["path"] for one in restored["results"]]
    assert {one["result"] for one in restored["results"]} <= {"restored", "already"}
    assert valid("restore", tunectl("restore", "--format", "json", "--root", lab4).out)["results"] == []


KINDS_OF_HOST = {"xeon2s": 31, "epyc": 31, "hybrid": 15, "vm2": 1, "arm64": 63, "sparse": 12}  # and its last CPU


@pytest.mark.parametrize("name", KINDS_OF_HOST)
@pytest.mark.parametrize("command", ["show", "propose", "verify"])
def test_json_on_every_kind_of_host(
    tunectl: Run, host_root: HostFactory, tmp_path: Path, command: str, name: str
) -> None:
    host = tmp_path / "host.toml"
    isolated = {"sparse": "9"}.get(name, "N")
    host.write_text(f'profile = "low-latency"\nisolated = "{isolated}"\nallow_split_siblings = true\n')
    words = {"propose": ()}.get(command, ("--host", host))
    done = tunectl(command, "--format", "json", "--root", host_root(name), *words)
    assert done.err == ""
    assert valid(command, done.out).get("cpus", [{"cpu": KINDS_OF_HOST[name]}])[-1]["cpu"] == KINDS_OF_HOST[name]


def test_the_catalogue_in_docs_is_this_one(tunectl: Run) -> None:
    assert tunectl("knobs", "--format", "markdown").out == (DOCS / "knobs.md").read_text()


# ---- options


@pytest.mark.parametrize("late", [True, False])
def test_options_before_and_after_the_name(tunectl: Run, stock: Path, tmp_path: Path, late: bool) -> None:
    host = tmp_path / "host.toml"
    host.write_text(LOW_LATENCY.replace("2-3", "3"))
    words = ["--root", stock, "--host", host, "--state", tmp_path / "state", "--format", "json", "-q", "-v"]
    done = tunectl("verify", *words) if late else tunectl(*words, "verify")
    assert (done.code, done.err) == (3, "")
    assert valid("verify", done.out)["host_file"] == str(host)


def test_what_stands_after_the_name_wins(tunectl: Run, stock: Path) -> None:
    done = tunectl("--format", "nagios", "--root", "/no/such", "verify", "--root", stock, "--format", "json")
    assert done.code == 3
    valid("verify", done.out)


@pytest.mark.pins
@pytest.mark.slow
def test_the_probe_without_a_host_file_measures_what_would_be_proposed(tunectl: Run) -> None:
    proposed = tunectl("propose", "--format", "json")
    isolated = Path("/sys/devices/system/cpu/isolated").read_text().strip()
    if proposed.code or isolated or Path("/etc/tunectl/host.toml").exists():
        pytest.skip("this machine has isolated CPUs, a host file, or no CPU to isolate")
    cpus = proposed.json["isolated"]
    measured = tunectl("--format", "json", *JITTER, "--duration", "0.2").json
    assert {one["cpu"] for one in measured["cpus"]} == parse_cpulist(cpus)
    assert measured["warnings"][0] == f"no host file: `tunectl propose` names {named_cpus(parse_cpulist(cpus))}"


@pytest.mark.alone
def test_options_around_a_command_of_two_words(tunectl: Run) -> None:
    first = min(os.sched_getaffinity(0))
    done = tunectl("--format", "json", *JITTER, "--cpus", first, "--duration", "0.2")
    document = valid("probe.jitter", done.out)
    assert (done.code, done.err) == (0, "")
    assert document["duration_requested_s"] == 0.2
    assert [cpu["cpu"] for cpu in document["cpus"]] == [first]


@pytest.mark.alone
def test_causes_are_asked_for_in_the_words_of_the_interface(tunectl: Run) -> None:
    last = max(os.sched_getaffinity(0))
    done = tunectl("--format", "json", *JITTER, "--cpus", last, "--duration", "0.2", "--attribute")
    document = valid("probe.jitter", done.out)
    assert (done.code, done.err) == (0, "")
    # Whether this machine lets anyone trace decides how; either way it is said.
    assert bool(document["attribution"]["reason"]) is (document["attribution"]["method"] == "counters")


@pytest.mark.slow
@pytest.mark.alone
def test_a_gap_that_was_waited_for_is_status_3_and_a_length_below_the_threshold_a_usage_error(tunectl: Run) -> None:
    words = [*JITTER, "--cpus", min(os.sched_getaffinity(0)), "--duration"]
    done = tunectl(*words, "5", "--until", "1000", "--format", "json")
    document = valid("probe.jitter", done.out)
    assert (done.code, document["ended_by"]) == (3, "until")
    done = tunectl(*words, "0.1", "--until", "99000000000", "--format", "json")
    assert (done.code, valid("probe.jitter", done.out)["ended_by"]) == (0, "duration")
    done = tunectl(*words, "0.1", "--until", "50", "--threshold-ns", "5000")
    assert (done.code, done.out) == (2, "")
    assert "--until 50: at least the threshold, which is 5000 ns" in done.err
    several = tunectl(*words, "5", "--until", "1000", "--runs", "2", "--pause", "0", "--format", "json")
    assert several.code == 3
    assert [run["ended_by"] for run in valid("probe.jitter.runs", several.out)["runs"]] == ["until", "until"]


@pytest.mark.slow
@pytest.mark.alone
def test_a_budget_decides_the_exit_code_of_the_probe(tunectl: Run, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs: one is for housekeeping")
    host, result = this_host_file(tmp_path, "[budget]\nmax_ns = 1\n"), tmp_path / "result.json"
    words = [*JITTER, "--duration", "0.3", "--threshold-ns", "200", "--host", host, "--output", result]
    done = tunectl(*words, "--format", "json")
    assert (done.code, done.err) == (3, "")
    assert valid("probe.jitter", done.out)["budget"]["broken"]
    # With stolen_ppm, a limit that a busy machine keeps would need longer runs.
    (tmp_path / "mine.toml").write_text('description = "no limit at all"\n')
    limits = "max_ns = 4.9e8\np99_9_ns = 4.9e8\ninterruptions_per_s = 9e8\n"
    this_host_file(tmp_path, f"[budget]\n{limits}", "mine.toml")
    # A machine that stalls measures for longer, and rightly finds a gap that no limit allows: not again and again.
    assert any(tunectl(*words).code == 1 for _ in range(10))
    assert "this limit needs 1 s" in json.loads(result.read_text())["budget"]["reason"]
    # Beside ordinary threads a limit is not kept; on a busy machine they would have the CPU for a tenth of the run.
    fifo = ("--fifo", "1") if os.geteuid() == 0 else ()
    assert any(tunectl(*words, *fifo, "--duration", "1").code == 0 for _ in range(10))
    assert json.loads(result.read_text())["budget"]["verdict"] == "within"


def test_environment_variables(tunectl: Run, stock: Path, lab4: Path, tmp_path: Path) -> None:
    env = {"TUNECTL_ROOT": str(stock), "TUNECTL_FORMAT": "json", "TUNECTL_QUIET": "1", "TUNECTL_VERBOSE": "2"}
    assert valid("verify", tunectl("verify", env=env).out)["host"]["hostname"] == "lab4"
    assert tunectl("verify", "--format", "nagios", env=env).out.startswith("TUNECTL CRITICAL - ")
    host = tmp_path / "host.toml"
    host.write_text(LOW_LATENCY)
    env |= {"TUNECTL_HOST": str(host), "TUNECTL_STATE": str(tmp_path / "state"), "TUNECTL_ROOT": str(lab4)}
    assert tunectl("apply", "--yes", env=env).json["host_file"] == str(host)
    assert (tmp_path / "state/journal.jsonl").exists()
    assert not (lab4 / "var/lib/tunectl").exists()
    assert tunectl("restore", env=env).code == 0


def test_nagios_from_the_environment(tunectl: Run, stock: Path) -> None:
    done = tunectl("verfy", env={"TUNECTL_FORMAT": "nagios"})
    assert done.code == 3
    assert done.out.startswith("TUNECTL UNKNOWN - No such command 'verfy'.")


def test_a_relative_root(stock: Path) -> None:
    command = [*PROGRAM, "verify", "--root", stock.name, "--format", "json"]
    done = subprocess.run(command, cwd=stock.parent, capture_output=True, text=True, env=environment())
    assert done.returncode == 3
    assert json.loads(done.stdout)["host_file"] == f"{stock}/etc/tunectl/host.toml"


# ---- exit codes


@pytest.mark.slow
def test_pending_reboot_and_compliant(tunectl: Run, lab4: Path, tuned: Path) -> None:
    for root, code, verdict, nagios in ((lab4, 4, "pending-reboot", 1), (tuned, 0, "compliant", 0)):
        assert tunectl("apply", "--yes", "--root", root).code == code
        done = tunectl("verify", "--format", "json", "--root", root)
        assert (done.code, done.json["verdict"]) == (code, verdict)
        assert tunectl("verify", "--format", "nagios", "--root", root).code == nagios
        plan = tunectl("plan", "--format", "json", "--root", root)
        assert (plan.code, plan.json["changes"], plan.json["reboot_required"]) == (code, [], code == 4)
    assert tunectl("apply", "--root", tuned).code == 0  # nothing to ask


WAIVED = '\n[[waivers]]\nknob = "mm.swappiness"\nreason = "the database wants it"\nuntil = {}\n'


@pytest.mark.parametrize(("until", "code", "outcome"), [("2999-01-01", 0, "waived"), ("2020-01-01", 3, "drifted")])
def test_a_waiver_and_its_end(tunectl: Run, tuned: Path, until: str, code: int, outcome: str) -> None:
    tunectl("apply", "--yes", "--root", tuned)
    (tuned / "proc/sys/vm/swappiness").write_text("60\n")
    assert tunectl("verify", "--root", tuned).code == 3
    write_host_file(tuned, LOW_LATENCY + WAIVED.format(until))
    done = tunectl("verify", "--format", "json", "--root", tuned)
    (finding,) = [one for one in done.json["findings"] if one["knob"] == "mm.swappiness"]
    assert (done.code, finding["outcome"]) == (code, outcome)
    assert ("the database wants it" if code == 0 else "expired on 2020-01-01") in finding["reason"]
    changes = tunectl("plan", "--format", "json", "--root", tuned).json["changes"]
    assert [change["knob"] for change in changes] == ([] if code == 0 else ["mm.swappiness"])


@pytest.mark.slow
def test_what_cannot_be_read_fails_only_where_it_must(tunectl: Run, host_root: HostFactory, public: Path) -> None:
    root = host_root.fresh("lab4", public, tuned_boot=frozenset({2, 3}))
    write_host_file(root, LOW_LATENCY)
    assert tunectl("apply", "--yes", "--root", root).code == 0
    (root / "proc/sys/vm/swappiness").chmod(0)
    done = as_nobody("verify", "--format", "json", "--root", root)
    (finding,) = [one for one in done.json["findings"] if one["knob"] == "mm.swappiness"]
    assert (done.code, finding["outcome"], finding["fix"]) == (0, "unreadable", str(AS_ROOT))
    done = as_nobody("verify", "--strict", "--format", "json", "--root", root)
    assert (done.code, valid("verify", done.out)["verdict"]) == (1, "unreadable")
    assert as_nobody("verify", "--strict", "--format", "nagios", "--root", root).code == 3


def test_the_example_of_the_interface_is_accepted_as_it_is(tunectl: Run, lab4: Path) -> None:
    write_host_file(lab4, INTERFACE_EXAMPLE)
    done = tunectl("plan", "--format", "json", "--root", lab4)
    chosen = "boot loader: grub, by /etc/default/grub, /boot/grub/grub.cfg"
    assert (done.code, done.err, done.json["notes"]) == (3, "", [chosen])
    assert tunectl("apply", "--yes", "--root", lab4).code == 4


def test_plan_of_a_candidate_names_the_host_file_it_would_become(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    tunectl("apply", "--yes", "--root", lab4)
    candidate = tmp_path / "candidate.toml"
    candidate.write_text((lab4 / "etc/tunectl/host.toml").read_text())
    words = ("plan", "--format", "json", "--root", lab4, "--candidate", candidate)
    same = tunectl(*words)
    assert (same.code, same.json["changes"]) == (4, [])
    candidate.write_text(LOW_LATENCY.replace("2-3", "3"))
    assert {one["knob"] for one in tunectl(*words).json["changes"]} >= {"boot.nohz_full"}
    candidate.write_text(LOW_LATENCY.replace("2-3", "2-9"))
    refused = tunectl(*words)
    assert refused.code == 2
    assert f"{lab4}/etc/tunectl/host.toml: isolated" in refused.err
    assert tunectl("plan", "--root", lab4, "--candidate", tmp_path / "none").code == 2


# ---- preflight on a recorded host


@pytest.mark.slow
def test_preflight_claims_nothing_it_did_not_measure(tunectl: Run, tuned: Path) -> None:
    tunectl("apply", "--yes", "--root", tuned)
    done = tunectl("preflight", *QUICK["preflight"], "--format", "json", "--root", tuned)
    document = valid("preflight", done.out)
    assert (done.code, done.err) == (1, "")
    assert document["verdict"] == "unknown"
    assert document["probe"] is None
    assert "probe: a recorded host cannot be measured" in document["reasons"]
    assert document["verify"]["verdict"] == "compliant"
    assert tunectl("preflight", *QUICK["preflight"], "--format", "nagios", "--root", tuned).code == 3


def test_preflight_without_a_host_file_judges_its_own_proposal(tunectl: Run, host_root: HostFactory) -> None:
    done = tunectl("preflight", *QUICK["preflight"], "--format", "json", "--root", host_root("epyc"))
    document = valid("preflight", done.out)
    assert (done.code, document["verdict"]) == (3, "no-go")
    assert [note for note in document["notes"] if "own proposal" in note]


# ---- apply asks


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["n\n", "\n", "\x03", "\x04"])
def test_no_means_no(lab4: Path, answer: str) -> None:
    before = picture(lab4)
    code, shown = on_terminal("apply", "--root", lab4, at="Apply these changes?", answer=answer)
    assert code == 1
    assert "swappiness 60 → 1" in shown
    assert "Traceback" not in shown
    assert ("tunectl: nothing was changed" in shown) is ("\n" in answer)
    assert not differences(before, lab4)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected", "has_boot"), [((), 4, True), (("--runtime",), 3, False)])
def test_yes_means_yes_and_what_is_asked_is_what_will_be_done(
    lab4: Path, words: tuple[str, ...], expected: int, has_boot: bool
) -> None:
    code, shown = on_terminal("apply", *words, "--root", lab4, at="Apply these changes?", answer="y\n")
    assert code == expected
    assert ("swappiness 60 → 1" in shown, "isolcpus - → managed_irq" in shown) == (True, has_boot)
    assert (lab4 / "proc/sys/vm/swappiness").read_text() == "1\n"


@pytest.mark.slow
def test_restore_asks_on_a_terminal_and_yes_is_its_answer(tunectl: Run, lab4: Path) -> None:
    original = picture(lab4)
    assert tunectl("apply", "--yes", "--runtime", "--root", lab4).code == 3
    applied = picture(lab4)
    code, shown = on_terminal("restore", "--root", lab4, at="Restore all this?", answer="n\n")
    assert (code, "tunectl: nothing was restored" in shown, "swappiness" in shown) == (1, True, True)
    assert [line for line in shown.splitlines() if cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) > 80] == []
    assert not differences(applied, lab4)
    code, shown = on_terminal("restore", "--root", lab4, at="Restore all this?", answer="y\n")
    assert code == 0
    assert not differences(original, lab4)
    code, shown = on_terminal("restore", "--root", lab4)  # nothing to ask about
    assert (code, "Restore all this?" in shown) == (0, False)
    for words in (("--yes",), ("-y",), ("--dry-run",)):
        tunectl("apply", "--yes", "--runtime", "--root", lab4)
        code, shown = on_terminal("restore", *words, "--root", lab4)
        assert (code, "Restore all this?" in shown) == (0, False)
    assert tunectl("restore", "--root", lab4).code == 0  # a program is not asked


def test_check_without_a_host_file_looks_at_its_own_proposal(tunectl: Run, host_root: HostFactory, stock: Path) -> None:
    bare = host_root("lab4")
    done = tunectl("check", "--window", "0.05", "--format", "json", "--root", bare)
    document = valid("check", done.out)
    assert {one["target"] for one in document["findings"]} >= {"check.tick_off[2]", "check.tick_off[3]"}
    assert [note for note in document["notes"] if "own proposal, isolated = 2-3" in note]
    # Nothing of the host file's own is said where there is one, and a file that was named has to be there.
    assert tunectl("check", "--window", "0.05", "--format", "json", "--root", stock).json["notes"] == []
    assert "there is no host file" in complaint(tunectl("check", "--root", bare, "--host", bare / "none.toml"), 2)


def test_verify_without_a_host_file_judges_its_own_proposal(tunectl: Run, host_root: HostFactory, stock: Path) -> None:
    bare = host_root("lab4")
    done = tunectl("verify", "--format", "json", "--root", bare)
    document = valid("verify", done.out)
    assert (done.code, document["verdict"]) == (3, "drifted")
    assert {one["target"]: one["desired"] for one in document["findings"]}["boot.isolcpus"] == "managed_irq,domain,2-3"
    assert [note for note in document["notes"] if "own proposal, isolated = 2-3" in note]
    assert not [
        note for note in tunectl("verify", "--format", "json", "--root", stock).json["notes"] if "propos" in note
    ]
    assert "there is no host file" in complaint(tunectl("verify", "--root", bare, "--host", bare / "none.toml"), 2)
    assert "there is no host file" in complaint(tunectl("plan", "--root", bare), 2)


# ---- the terminal

COLOUR = r"\x1b\[[0-9;]*[349][0-9]m"


@pytest.mark.slow
def test_progress_is_for_a_terminal(tunectl: Run, stock: Path) -> None:
    words = ["preflight", *QUICK["preflight"], "--root", stock]
    assert tunectl(*words).err == ""
    _, shown = on_terminal(*words)
    assert "checking" in shown
    for options, env in ((["-q"], {}), ([], {"TERM": "dumb"})):
        _, quiet = on_terminal(*words, *options, env=env)
        assert quiet == ""
    _, plain = on_terminal(*words, env={"NO_COLOR": "1"})  # asks for no colour, and for nothing else
    assert "checking" in plain
    assert not re.search(COLOUR, plain)


@pytest.mark.slow
def test_colour_is_for_a_terminal_and_may_be_refused(stock: Path) -> None:
    for env in ({}, {"NO_COLOR": ""}):  # empty: nothing is asked for (no-color.org)
        _, coloured = on_terminal("verify", "--root", stock, env=env, result_too=True)
        assert re.search(COLOUR, coloured)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, plain = on_terminal("verify", "--root", stock, env=env, result_too=True)
        assert "DRIFTED" in plain
        assert not re.search(COLOUR, plain)


@pytest.mark.parametrize("command", ["show", "verify", "plan", "knobs", "propose"])
def test_a_narrow_terminal(tunectl: Run, stock: Path, command: str) -> None:
    done = tunectl(command, "--root", stock, env={"COLUMNS": "80"})
    prose = [line for line in done.out.splitlines() if f"--root {stock}" not in line]  # a command is not broken
    assert max(map(len, prose)) <= 80


@pytest.mark.parametrize("words", [["knobs"], ["verify", "--format", "json"], ["--help"]])
def test_output_that_nobody_reads_any_more(stock: Path, words: list[str]) -> None:
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.close(read)
    process = started(*words, *([] if words == ["--help"] else ["--root", stock]), stdout=write)
    os.close(write)
    _, said = process.communicate(timeout=60)
    assert said == ""
    assert process.returncode == 1


def test_ctrl_c_while_it_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import sys, time\nprint('here', flush=True)\ntime.sleep(60)\n")
    process = started("--version", env={"PYTHONPATH": str(tmp_path)})
    assert process.stdout
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGINT


def interrupted(public: Path, command: str, sent: Callable[[int, int], None]) -> Ran:
    """A command that ^C ends while it looks at this machine: it leaves no process."""
    words = (command, "--window", "600", "--host", this_host_file(public), "--state", public / "state")
    process = started(*words, start_new_session=True)
    try:
        wait_until_it_waits(process)
        sent(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert until_gone(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Ran(process.returncode, out, err)


def until_gone(group: int) -> bool:
    """Whether no process of the group is left: who was killed goes once init has asked about it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


by_whom = pytest.mark.parametrize("sent", [os.killpg, os.kill])  # a terminal sends it to everybody


@by_whom
@pytest.mark.slow
def test_ctrl_c_is_one_line(public: Path, sent: Callable[[int, int], None]) -> None:
    # on a terminal ^C stands on the line: the message starts a new one
    assert interrupted(public, "check", sent) == Ran(1, "", "\ntunectl: interrupted\n")


@by_whom
@pytest.mark.slow
def test_ctrl_c_has_preflight_say_what_it_found(public: Path, sent: Callable[[int, int], None]) -> None:
    done = interrupted(public, "preflight", sent)
    assert (done.code in (1, 3), done.err) == (True, "")  # what was found by then may be a NO-GO
    assert done.out.split()[0] in ("UNKNOWN", "NO-GO")
    assert "interrupted while the checks ran" in " ".join(done.out.split())


# ---- snapshot


@pytest.mark.slow
def test_a_snapshot_is_a_host(tunectl: Run, host_root: HostFactory, public: Path) -> None:
    source = host_root("lab4", tuned_boot=frozenset({2, 3}))
    archive, root = public / "host.tar.gz", public / "host"
    public.chmod(0o777)
    assert tunectl("snapshot", "-o", archive, "--root", source).code == 0
    root.mkdir()
    subprocess.run(["tar", "xf", archive, "-C", root], check=True)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "65534:65534", root], check=True)
        root.chmod(0o755)
    write_host_file(root, LOW_LATENCY)
    before = picture(root)
    words = ["--root", root, "--state", public / "state"]
    assert as_nobody("verify", *words).code == 3
    assert as_nobody("plan", *words).code == 3
    assert as_nobody("apply", "--yes", *words).code == 0
    assert as_nobody("verify", *words).code == 0
    assert as_nobody("restore", *words).code == 0
    assert not differences(before, root)


@pytest.mark.parametrize(
    ("words", "judged"),
    [("boot", 7), ("irq.*", 14), ("irq.affinity[4]", 1), ("mm.swappiness boot", 8), ("mm.swappiness mm.swappines?", 1)],
)
def test_verify_judges_the_knobs_that_are_named_alone(tunectl: Run, lab4: Path, words: str, judged: int) -> None:
    done = tunectl("verify", *words.split(), "--root", lab4, "--format", "json")
    found = valid("verify", done.out)
    assert (done.code, len(found["findings"])) == (3, judged)
    assert f"judged: {words} alone, {judged} of" in found["notes"][0]


def test_verify_is_compliant_where_the_named_knobs_are(tunectl: Run, lab4: Path) -> None:
    (lab4 / "proc/sys/vm/swappiness").write_text("0\n")
    assert tunectl("verify", "mm.swappiness", "--root", lab4).code == 0
    complaint(tunectl("verify", "mm.swapines", "--root", lab4), 2)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("isolcpus", "did you mean boot.isolcpus?"),
        ("mm.swapines", "did you mean mm.swappiness?"),
        ("net.busy", "did you mean net.busy_poll or net.busy_read?"),
        ("hugepages_1gib", "see `tunectl knobs`"),  # a knob that this host is not asked for
    ],
)
def test_a_word_that_names_no_target_is_looked_for_as_knobs_does(
    tunectl: Run, lab4: Path, word: str, hint: str
) -> None:
    done = tunectl("verify", word, "--root", lab4)
    complaint(done, 2)
    assert hint in done.err


@pytest.mark.parametrize(("option", "value"), [("--only", "compliant"), ("--severity", "hygiene")])
def test_what_verify_shows_does_not_change_what_it_judges(tunectl: Run, lab4: Path, option: str, value: str) -> None:
    whole = tunectl("verify", "--root", lab4, "--format", "json").json
    done = tunectl("verify", option, value, "--root", lab4, "--format", "json")
    found = valid("verify", done.out)
    assert (done.code, found["verdict"], found["headline"]) == (3, "drifted", "42 drifted")
    assert 0 < len(found["findings"]) < len(whole["findings"])
    assert {value} == {one["outcome" if option == "--only" else "severity"] for one in found["findings"]}
    for counts in ("nagios", "junit", "prometheus"):  # they would count what is shown alone
        refused = tunectl("verify", option, value, "--root", lab4, "--format", counts)
        assert refused.code == (3 if counts == "nagios" else 2)  # a plugin's UNKNOWN
        assert f"{option} with --format {counts}" in refused.err


def test_a_question_about_boot_has_the_answer_that_the_next_boot_is_not_known(tunectl: Run, lab4: Path) -> None:
    assert tunectl("apply", "--yes", "--root", lab4, "-q").code == 4
    grub = lab4 / "boot/grub"
    grub.mkdir(parents=True, exist_ok=True)
    (grub / "custom.cfg").write_text("set default=other\n")
    whole = tunectl("verify", "--root", lab4, "--format", "json").json["findings"]
    named = tunectl("verify", "boot", "--root", lab4, "--format", "json").json["findings"]
    unknown = [one["knob"] for one in whole if one["knob"] == "nextboot"]
    assert [one["knob"] for one in named if one["knob"] == "nextboot"] == unknown


def test_the_monitor_names_what_could_not_be_read_and_what_is_wrong(tunectl: Run, lab4: Path) -> None:
    swappiness = lab4 / "proc/sys/vm/swappiness"
    swappiness.write_bytes(b"\xff\x00")
    done = tunectl("monitor", "--once", "--interval", "0.05", "--root", lab4)
    assert "mm.swappiness: " in " ".join(done.out.split())
    assert "Not known" in done.out
    for knob in ("mm.thp_enabled", "boot.isolcpus", "net.busy_poll"):
        assert knob in done.out
