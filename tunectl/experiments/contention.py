"""`contention`, locks and allocators between two threads: what is asked for, which cases, and how each is measured."""

from dataclasses import dataclass
from itertools import product
from typing import Any

from tunectl.errors import UsageError
from tunectl.experiments.contention_cells import RawCase, explained_contention
from tunectl.experiments.ends import SENDER_AND_RECEIVER, CaseRun, EndsRequest, Placed, place_request, require_two
from tunectl.experiments.frame import Takes, check_duration, chosen
from tunectl.work import Tell

BUFFERS, HAND_OVERS = ("malloc", "pool"), ("mutex", "futex", "ring")
RATE, DURATION_S, THREADS, BYTES = 20_000, 5.0, 2, 16_384  # where nothing else is asked for
MOST_BUFFERS = 3_999_000  # of a case: the program keeps the stamps of each
_WARM_UPS = 1000  # of the native program
_CASE_S = 0.5  # beyond its schedule: the counter's rate


@dataclass(frozen=True)
class ContentionRequest(EndsRequest):
    """The options of `tunectl probe contention`, lists as text."""

    options = ("duration_s", "fifo", "intrude")
    buffers: str = ",".join(BUFFERS)
    hand_over: str = ",".join(HAND_OVERS)
    threads: int = THREADS
    buffer_bytes: int = BYTES
    rate: int = RATE
    duration_s: float = DURATION_S

    def check(self) -> None:
        """UsageError for a duration that is none, or for too many buffers."""
        check_duration(self.duration_s)
        count = round(self.rate * self.duration_s)
        if not 1 <= count <= MOST_BUFFERS:
            what = f"--rate {self.rate} for --duration {self.duration_s:g}: that is {count:,} buffers"
            raise UsageError(what, f"from 1 to {MOST_BUFFERS:,} in a case")


def plan(request: ContentionRequest, placed: Placed) -> list[RawCase]:
    """The cases of a request, in their order. UsageError where it names what there is not."""
    request.check()
    require_two(request, placed)
    buffers = chosen("--buffers", request.buffers, BUFFERS)
    hand_overs = chosen("--hand-over", request.hand_over, HAND_OVERS)
    of_all = (request.threads, request.buffer_bytes, request.rate)
    return [RawCase.of(*case, *of_all) for case in product(buffers, hand_overs)]


def run_contention(request: ContentionRequest, on_progress: Tell) -> dict[str, Any]:
    """The tunectl.probe.contention/1 document. UsageError for a wrong request; else as CaseRun.measure()."""
    placed = place_request(SENDER_AND_RECEIVER, request)
    takes = Takes(_WARM_UPS / request.rate, _CASE_S + request.duration_s)
    run = CaseRun("contention", request, placed, plan(request, placed), lambda _: takes, on_progress)
    return run.noted(explained_contention(run.measure(run.counted)))
