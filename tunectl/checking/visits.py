"""What ran on an isolated CPU between two looks, and was gone, or elsewhere, at both. Pure.

The kernel counts how often it puts a thread on a CPU. What the threads that were seen do not account for was something
else: one that began and ended meanwhile, or came by. A trace of sched_switch on that CPU has its name.

Source: Documentation/scheduler/sched-stats.rst; include/trace/events/sched.h (sched_switch).
"""

import re
from collections import Counter

from tunectl.checking.window import Window

SWITCHES = ("sched/sched_switch",)
# " <idle>-0 [002] d..2. 1.5: sched_switch: prev_comm=swapper/2 ... ==> next_comm=a b next_pid=8 next_prio=120"
_LINE = re.compile(r".*? \[(\d+)\] .*: sched_switch: .* ==> next_comm=(.*) next_pid=(\d+) next_prio=-?\d+$")
_LAST = 2  # a kworker of the CPU that has nothing to do is woken once more, to end


def unseen_visits(window: Window, cpu: int) -> int | None:
    """How often something ran on a CPU that is none of the threads seen there; None where the kernel does not count.

    A thread that was there at either end accounts for all that it ran, wherever that was: what is left is certain.
    """
    before, after = window.before, window.after
    if cpu not in before.slices or cpu not in after.slices:
        return None
    then, now = {**before.probes, **before.threads}, {**after.threads, **after.probes}
    own = [key for key, thread in then.items() if thread.kernel and not thread.movable and thread.cpu == cpu]
    known = _LAST * len([key for key in own if key not in now])
    for key, thread in now.items():
        earlier = then.get(key)
        if earlier is None or earlier.began != thread.began:
            known += thread.slices if thread.cpu == cpu else 0
        elif cpu in (earlier.cpu, thread.cpu):
            known += max(thread.slices - earlier.slices, 0)
    return max(after.slices[cpu] - before.slices[cpu] - known, 0)


def visitors(text: str, cpu: int) -> list[tuple[str, int, int]]:
    """By a trace's text, (name, pid, times) of each thread that was put on a CPU, the most frequent first."""
    matches = (_LINE.match(line) for line in text.split("\n"))
    found = Counter((match[2], int(match[3])) for match in matches if match and int(match[1]) == cpu)
    return [(comm, pid, times) for (comm, pid), times in found.most_common() if pid]
