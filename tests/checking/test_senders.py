"""Who interrupts other CPUs, by the kernel's trace."""

import os
from pathlib import Path

import pytest

from tunectl.checking.ipis import Sender, busy_senders, senders_to
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import events_of, trace_instance

# As fs/tracefs shows them: TASK-PID, CPU, flags, time; formats of include/trace/events/ipi.h.
TRACE = """# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
     rdmsr loop-612 [001] d..1. 100.000001: ipi_send_cpu: cpu=3 callsite=gen_single+0x3/0x9 callback=__rdmsr+0x0/0x5
     rdmsr loop-612 [001] d..1. 100.000002: ipi_send_cpu: cpu=3 callsite=gen_single+0x3/0x9 callback=__rdmsr+0x0/0x5
     rdmsr loop-612 [001] d..1. 100.000003: ipi_send_cpu: cpu=0 callsite=gen_single+0x3/0x9 callback=__rdmsr+0x0/0x5
      alloc-x-1-701 [000] d..1. 100.000004: ipi_send_cpumask: cpumask=0000000c callsite=many+0x1 callback=flush+0x0
          <idle>-0 [000] d.h1. 100.000005: ipi_send_cpu: cpu=3 callsite=wake+0x1/0x2 callback=0x0
           <...>-99 [000] d.h1. 100.000006: ipi_raise: target_mask=00000008 (Rescheduling interrupts)
         tunectl-77 [001] d..1. 100.000007: ipi_send_cpumask: cpumask=ff callsite=poke+0x1 callback=sync+0x0
"""


def test_each_sender_is_named_with_its_code() -> None:
    assert senders_to(TRACE, 3, without=77) == [
        Sender("rdmsr loop", 612, "gen_single", "__rdmsr", 2),
        Sender("alloc-x-1", 701, "many", "flush", 1),
        Sender("<idle>", 0, "wake", "", 1),
        Sender("<...>", 99, "", "", 1),
    ]


@pytest.mark.parametrize(("times", "named"), [(5, 0), (6, 1)])
def test_a_sender_of_a_handful_is_not_blamed(times: int, named: int) -> None:
    """Half a second is traced, and ten a second are let pass."""
    line = " reader-612 [001] d..1. 100.000001: ipi_send_cpu: cpu=3 callsite=one+0x3/0x9 callback=__rdmsr+0x0/0x5\n"
    assert len(busy_senders(line * times, 3, without=77)) == named


@pytest.mark.parametrize(
    ("sent", "named"),
    [((6, 5), [1]), ((5, 6), [2]), ((7, 6), [1, 2]), ((3, 3), [1, 2]), ((3, 2), [])],
)
def test_who_sends_too_much_alone_is_named_alone(sent: tuple[int, int], named: list[int]) -> None:
    text = "".join(
        f" s-{pid} [001] d..1. 100.000001: ipi_send_cpu: cpu=3 callsite=one+0x3/0x9 callback=x+0x0/0x5\n" * times
        for pid, times in zip((1, 2), sent, strict=True)
    )
    assert [one.pid for one in busy_senders(text, 3, without=77)] == named


def test_another_cpu_has_other_senders() -> None:
    assert [(one.pid, one.times) for one in senders_to(TRACE, 2, without=77)] == [(701, 1)]
    assert senders_to(TRACE, 1, without=77) == []
    assert senders_to("", 3, without=77) == []


AT = "sys/kernel/tracing"
EVENT = "ipi/ipi_send_cpu"


@pytest.fixture
def tracefs(tmp_path: Path) -> Path:
    """A directory that fills each new instance with files, as tracefs does, and lets it be taken away."""
    (tmp_path / AT / "instances").mkdir(parents=True)
    (tmp_path / AT / f"events/{EVENT}").mkdir(parents=True)
    (tmp_path / AT / f"events/{EVENT}/enable").write_text("0\n")
    (tmp_path / AT / "current_tracer").write_text("nop\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/self").symlink_to(str(os.getpid()))
    (tmp_path / f"proc/{os.getpid()}").mkdir()
    (tmp_path / f"proc/{os.getpid()}/stat").write_text(Path("/proc/self/stat").read_text())
    return tmp_path


def test_only_events_that_the_kernel_has_are_asked_for(tracefs: Path) -> None:
    assert events_of(Sysroot(str(tracefs)), AT, [EVENT, "ipi/ipi_send_cpumask"]) == [EVENT]


def test_an_instance_that_cannot_be_set_up_is_taken_away(tracefs: Path) -> None:
    """Here the kernel makes no files in it: the first write fails, and nothing stays behind."""
    root = Sysroot(str(tracefs))
    with pytest.raises(FileNotFoundError), trace_instance(root, AT, [EVENT], frozenset({0, 1})):
        pass
    assert list((tracefs / AT / "instances").iterdir()) == []
    assert (tracefs / AT / f"events/{EVENT}/enable").read_text() == "0\n"  # the global trace is not touched
