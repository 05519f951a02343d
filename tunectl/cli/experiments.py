"""tunectl probe wake, feed, hedge and contention: a table of cases, each measured in its turn"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from tunectl.cli.command import check_output, progress, tunectl_command
from tunectl.cli.helped import DRIFTED, FAILED, OK, Example
from tunectl.cli.options import Options, intrude_option, pair_options, result_option
from tunectl.cli.probing import Pair, code_of_cases, emit_and_write, end_by_signals, pair_of, refuse_taken, this_machine
from tunectl.cli.values import Number, some_of
from tunectl.errors import UsageError
from tunectl.experiments import contention as contentions
from tunectl.experiments import feed as feeds
from tunectl.experiments import hedge as hedges
from tunectl.experiments import wake as wakes
from tunectl.experiments.contention import ContentionRequest, run_contention
from tunectl.experiments.ends import PairRequest, asked_cpus
from tunectl.experiments.feed import FeedRequest, replayed, run_feed
from tunectl.experiments.feed_budget import judge_feed
from tunectl.experiments.hedge import HedgeRequest, run_hedge
from tunectl.experiments.link import serve_pair
from tunectl.experiments.wake import WakeRequest, run_wake
from tunectl.host.ending import ENDING
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Budget, Feed, plain, typed
from tunectl.work import Tell

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
R = TypeVar("R")
P = TypeVar("P", bound=PairRequest)
_MOST_MESSAGES = 10_000_000
_MOST_AT_ONCE = 256
_MOST_SEED = 10**15
_SENDER_AND_RECEIVER = click.option(
    "--cpus", metavar="S,R", help="The sender's CPU and the receiver's [two isolated ones, on two cores]."
)
_CLIENT_AND_SERVERS = click.option(
    "--cpus", metavar="C,A,B", help="The client's CPU and those of both servers [three isolated ones, on three cores]."
)


def _number(
    *names: str, most: int, help: str, least: int = 1, metavar: str = "N", usual: int | None = None
) -> Decorator:
    """An option that takes a whole number."""
    kind = click.IntRange(least, most)
    return click.option(*names, type=kind, default=usual, show_default=usual is not None, metavar=metavar, help=help)


def _list(*names: str, help: str, usual: str | None = None, of: Iterable[str] = ()) -> Decorator:
    """An option that takes a list, of these names where there are any."""
    completed: dict[str, Any] = {"shell_complete": some_of(lambda: of)} if of else {}
    return click.option(*names, default=usual, metavar="LIST", help=help, **completed)


def _listed(name: str, usual: str, names: Sequence[str], text: str) -> Decorator:
    """The same, and its help says them."""
    return _list(name, help=f"{text}{', '.join(names)} [{usual}].", usual=usual, of=names)


def _fifo(who: str) -> Decorator:
    return _number("--fifo", most=99, metavar="PRIO", help=f"{who} as SCHED_FIFO at this priority.")


def _duration(usual: float) -> Decorator:
    return click.option(
        "--duration", "duration_s", type=float, default=usual, show_default=True, metavar="S", help="Of each case."
    )


_OF_CASES = {OK: "at least one case has a result", FAILED: "no case has one, or the command failed"}


@tunectl_command(
    name="wake",
    short_help="Spinning against sleeping: how long a message takes to a waiting thread.",
    exits=_OF_CASES,
    examples=(
        Example("The usual cases, on two isolated CPUs:", "sudo tunectl probe wake"),
        Example("Two mechanisms, a message each millisecond:", "tunectl probe wake --mechanisms pipe,tcp --idle-ms 1"),
    ),
)
@_SENDER_AND_RECEIVER
@_list(
    "--mechanisms",
    "--transport",
    of=wakes.MECHANISMS,
    help="Of channel, eventfd, pipe, unix, tcp, udp (together: messages), vsock, eventloop, timerfd, clock_nanosleep "
    "(timers) [messages].",
)
@_list(
    "--waiting",
    of=dict.fromkeys((*wakes.WAYS.values(), *wakes.WAYS)),
    help="sleeping, spinning, busy-poll; or single ways: block, poll, ... [all].",
)
@_list("--idle-ms", help="From message to message, in ms [0,1,10,100].")
@_number("--messages", most=_MOST_MESSAGES, help="In each case [99].")
@_number("--bytes", "message_bytes", least=32, most=4096, help="Of each message [32].")
@_number("--fds", most=65536, help="In a poll or epoll set, all but one idle [1].")
@_number(
    "--dirty-kib",
    most=1 << 20,
    help="The receiver writes to so much memory after each message: the next finds its caches cold.",
)
@click.option(
    "--cold-sender", is_flag=True, help="Let the sender grow cold between messages, as the published benchmark does."
)
@_fifo("Both threads")
@intrude_option
@pair_options
@result_option
def wake(options: Options, output: str | None, **asked: Any) -> int:
    """Spinning against sleeping: how long a message takes to a waiting thread, by each mechanism and wait method."""
    pair = pair_of(options, asked["cpus"], asked["intrude"], output)
    return _of_pair(options, pair, "wake", WakeRequest(among=pair.among, **asked), run_wake, wakes.far_words, output)


@tunectl_command(
    name="feed",
    short_help="Market data from a socket to a book, stage by stage.",
    exits={
        OK: "measured, and within [budget.feed] if there is one",
        FAILED: "no case has a result, or a limit could not be judged, or the command failed",
        DRIFTED: "over [budget.feed]",
    },
    examples=(
        Example("WebSocket messages with JSON, 10,000 a second:", "sudo tunectl probe feed"),
        Example(
            "JSON over UDP, in bursts:", "sudo tunectl probe feed --transport udp --message-format json --burst 32"
        ),
        Example("As a capture has it, twice as fast:", "sudo tunectl probe feed --replay open.pcap --speed 2"),
    ),
)
@_SENDER_AND_RECEIVER
@_listed("--transport", "tcp", feeds.TRANSPORTS, "Of ")
@_listed("--message-format", "ws-json", feeds.FORMATS, "Of ")
@_list("--symbols", usual="1", help=f"How many instruments, 1 to {feeds.MOST_SYMBOLS} [1].")
@_number(
    "--rate",
    most=feeds.MOST_A_SECOND,
    help="Messages a second, of all symbols together [10000; with --replay the capture's].",
)
@_number("--burst", most=_MOST_AT_ONCE, help="So many messages are due at the same time; the rate stays [1].")
@click.option(
    "--replay",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Send when the UDP datagrams of this pcap file came, as long as they were.",
)
@click.option("--speed", type=Number(1e-6, 1e6), metavar="X", help="With --replay: times faster [1].")
@_listed("--waiting", "poll0", feeds.WAITS, "How the receiver waits: ")
@_listed("--tls", "off", feeds.TLS, "Of ")
@_list(
    "--alloc",
    usual="0",
    help=f"How often the receiver copies each message into new memory, 0 to {feeds.MOST_ALLOCATIONS} [0].",
)
@click.option(
    "--stamps",
    type=click.Choice(feeds.STAMPS),
    default="auto",
    show_default=True,
    help="Receive stamps, which tell wire and kernel apart: the kernel's (sw), or the network card's (hw, with "
    "--connect). auto: the card's where it has them.",
)
@_number(
    "--rcvbuf",
    most=1 << 30,
    metavar="BYTES",
    help="Asked for of each socket that receives datagrams; root gets it beyond net.core.rmem_max [8388608].",
)
@click.option(
    "--duration", "duration_s", type=float, metavar="S", help="Of each case [10; with --replay the capture's]."
)
@_fifo("Both threads")
@intrude_option
@pair_options
@result_option
def feed(options: Options, replay: str | None, speed: float | None, output: str | None, **asked: Any) -> int:
    """Market data from a socket to a book: what each message takes from when it is due, stage by stage."""
    pair = pair_of(options, asked["cpus"], asked["intrude"], output)
    rate, burst, duration_s = asked.pop("rate"), asked.pop("burst"), asked.pop("duration_s")
    request = FeedRequest(
        among=pair.among,
        format=asked.pop("message_format"),
        rate=rate or feeds.RATE,
        burst=burst or 1,
        duration_s=feeds.DURATION_S if duration_s is None else duration_s,
        **asked,
    )
    if replay is not None:
        _refuse({"--burst": burst, "--duration": duration_s}, "with --replay", "the capture decides it")
        _refuse({"--speed": speed if rate else None}, "with --rate", "one of the two decides how fast it is replayed")
        request = replayed(request, replay, speed, rate)
    _refuse({"--speed": None if replay else speed}, "without --replay", "it is how fast a capture is replayed")
    limits = pair.config.feed_limits if pair.config and not request.connect else {}  # they are about one host
    return _of_pair(options, pair, "feed", request, partial(_judged, limits), feeds.far_words, output)


def _judged(limits: Mapping[str, float], request: FeedRequest, tell: Tell) -> dict[str, Any]:
    result = run_feed(request, tell)
    return result | {"budget": plain(judge_feed(typed(result, Feed), limits))}


@tunectl_command(
    name="hedge",
    short_help="A second copy of each late request: does it help, and when not?",
    exits=_OF_CASES,
    examples=(
        Example("On three isolated CPUs:", "sudo tunectl probe hedge"),
        Example("On simulated time, which needs no CPU of its own:", "tunectl probe hedge --simulate --load 0.3,0.7"),
    ),
)
@_CLIENT_AND_SERVERS
@click.option(
    "--simulate",
    is_flag=True,
    help="The same client and policy on simulated time: needs no CPU, and is no measurement.",
)
@_number("--service-ns", least=500, most=hedges.MOST_SERVICE_NS, usual=hedges.SERVICE_NS, help="Work of a request.")
@_list("--load", usual=hedges.LOADS, help=f"Of each server, without second copies and stalls [{hedges.LOADS}].")
@_list(
    "--delay",
    usual=hedges.DELAYS,
    help="When a request without an answer gets a second copy: ns from due, or pNN, that percentile of the latest "
    f"answers; without any is always measured, too [{hedges.DELAYS}].",
)
@click.option(
    "--cancel/--no-cancel", default=True, help="Cancel a copy that is not needed, where it has not begun [yes]."
)
@click.option(
    "--budget", type=float, metavar="X", help="Second copies for each request, on average, 0 to 1 [no limit]."
)
@_number("--shed", most=1_000_000, help="A queue of N refuses what comes [none does].")
@_list(
    "--stall",
    usual="none",
    of=hedges.STALLS,
    help=f"Who stalls for 300 us, 1 % of the time: {', '.join(hedges.STALLS)} (both at the same instants) [none].",
)
@_duration(hedges.DURATION_S)
@_number("--seed", least=0, most=_MOST_SEED, usual=1, help="Of arrivals and stalls.")
@_fifo("All threads")
@intrude_option
@result_option
def hedge(options: Options, output: str | None, **asked: Any) -> int:
    """A second copy of each late request to another server: does it help, at which delay, when does it collapse?"""
    root, request = this_machine(options), HedgeRequest(**asked)
    if not request.simulate:
        pair = pair_of(options, request.cpus, request.intrude, output, threads=3)
        request = HedgeRequest(among=pair.among, **asked)
        refuse_taken(root, pair.facts, asked_cpus(request.cpus, pair.among), pair.config, request.intrude)
    elif output is not None:
        check_output(output)
    ENDING.keep()
    return _measured(options, root, "hedge", run_hedge, request, output)


@tunectl_command(
    name="contention",
    short_help="Locks and allocators: what they cost two threads that share them.",
    exits=_OF_CASES,
    examples=(
        Example("On two isolated CPUs:", "sudo tunectl probe contention"),
        Example(
            "Beside six more threads that take buffers, on other CPUs:",
            "sudo tunectl probe contention --threads 8 --hand-over ring",
        ),
    ),
)
@_SENDER_AND_RECEIVER
@_listed(
    "--buffers",
    ContentionRequest.buffers,
    contentions.BUFFERS,
    "Whence buffers come, the sender's own pool or malloc: ",
)
@_listed(
    "--hand-over",
    ContentionRequest.hand_over,
    contentions.HAND_OVERS,
    "Under a lock, to a sleeper, or without a lock: ",
)
@_number(
    "--threads",
    least=2,
    most=64,
    usual=contentions.THREADS,
    help="That take buffers and give them back; those beyond two on other CPUs than these.",
)
@_number("--bytes", "buffer_bytes", least=64, most=1 << 20, usual=contentions.BYTES, help="Of the largest buffer.")
@_number("--rate", most=feeds.MOST_A_SECOND, usual=contentions.RATE, help="Buffers a second.")
@_duration(contentions.DURATION_S)
@_fifo("Both threads")
@intrude_option
@result_option
def contention(options: Options, output: str | None, **asked: Any) -> int:
    """Locks and allocators: buffers from malloc or a pool, handed over by a mutex, a futex or a ring, step by step."""
    pair = pair_of(options, asked["cpus"], asked["intrude"], output)
    request = ContentionRequest(among=pair.among, **asked)
    refuse_taken(pair.root, pair.facts, asked_cpus(request.cpus, pair.among), pair.config, request.intrude)
    ENDING.keep()
    return _measured(options, pair.root, "contention", run_contention, request, output)


Run = Callable[[R, Tell], dict[str, Any]]


def _measured(options: Options, root: Sysroot, name: str, run: Run[R], request: R, output: str | None) -> int:
    """Measures the cases and emits the result; the exit code."""
    with progress(options) as tell:
        result = run(request, tell)
    emit_and_write(options, f"probe.{name}", read_identity(root), result, output)
    budget = typed(result.get("budget", {}), Budget)
    if budget.verdict == "broken":
        return DRIFTED
    return code_of_cases(result) if not budget.limits or budget.verdict == "within" else FAILED


def _of_pair(
    options: Options,
    pair: Pair,
    name: str,
    request: P,
    run: Run[P],
    far_words: Callable[[Sequence[str]], list[str]],
    output: str | None,
) -> int:
    """The same with a sender and a receiver, where none of their CPUs is wanted; or is the other host."""
    if request.listen and output is not None:
        raise UsageError(f"--output {output}: not with --listen", "the host of --connect has the result")
    refuse_taken(pair.root, pair.facts, asked_cpus(request.cpus, pair.among), pair.config, request.intrude)
    end_by_signals(request)
    if not request.listen:
        return _measured(options, pair.root, name, run, request, output)
    serve_pair(name, request, far_words, partial(click.echo, err=True))
    return OK


def _refuse(options: Mapping[str, float | None], beside: str, reason: str) -> None:
    """UsageError for the first of these options that was given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {value:g}: not {beside}", reason)
