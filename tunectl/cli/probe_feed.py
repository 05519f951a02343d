"""tunectl probe feed"""

from __future__ import annotations

from collections.abc import Mapping

import click

from tunectl.cli.command import progress, tunectl_command
from tunectl.cli.exits import DRIFTED, FAILED, OK
from tunectl.cli.helped import Example
from tunectl.cli.options import Options, intrude_option, pair_options
from tunectl.cli.probing import (
    code_of_cases,
    emit_and_write,
    end_by_signals,
    pair_of,
    refuse_beside_listen,
    refuse_taken,
)
from tunectl.cli.values import some_of
from tunectl.errors import UsageError
from tunectl.experiments.feed import (
    DURATION_S,
    FORMATS,
    MOST_A_SECOND,
    MOST_ALLOCATIONS,
    MOST_SYMBOLS,
    RATE,
    STAMPS,
    TLS,
    TRANSPORTS,
    WAITS,
    FeedRequest,
    replayed,
    run_feed,
    serve_feed,
)
from tunectl.experiments.feed_budget import judge_feed
from tunectl.experiments.pair import asked_cpus
from tunectl.host.identity import read_identity
from tunectl.shapes import Feed, plain, typed

_MOST_AT_ONCE = 256


@tunectl_command(
    name="feed",
    short_help="Market data from a socket to a book, stage by stage.",
    exits={OK: "measured, and within [budget.feed] if there is one", DRIFTED: "over [budget.feed]"},
    examples=(
        Example("WebSocket messages with JSON, 10,000 a second:", "sudo tunectl probe feed"),
        Example(
            "JSON over UDP, in bursts:",
            "sudo tunectl probe feed --transport udp --message-format json --burst 32",
        ),
        Example("As a capture has it, twice as fast:", "sudo tunectl probe feed --replay open.pcap --speed 2"),
    ),
)
@click.option("--cpus", metavar="S,R", help="The sender's CPU and the receiver's [two isolated ones, on two cores].")
@click.option(
    "--transport",
    default="tcp",
    metavar="LIST",
    shell_complete=some_of(lambda: TRANSPORTS),
    help=f"Of {', '.join(TRANSPORTS)} [tcp].",
)
@click.option(
    "--message-format",
    default="ws-json",
    metavar="LIST",
    shell_complete=some_of(lambda: FORMATS),
    help=f"Of {', '.join(FORMATS)} [ws-json].",
)
@click.option("--symbols", default="1", metavar="LIST", help=f"How many instruments, 1 to {MOST_SYMBOLS} [1].")
@click.option(
    "--rate",
    type=click.IntRange(1, MOST_A_SECOND),
    metavar="N",
    help="Messages a second, of all symbols together [10000; with --replay the capture's].",
)
@click.option(
    "--burst",
    type=click.IntRange(1, _MOST_AT_ONCE),
    metavar="N",
    help="So many messages are due at the same time; the rate stays [1].",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Send when the UDP datagrams of this pcap file came, as long as they were.",
)
@click.option("--speed", type=click.FloatRange(1e-6, 1e6), metavar="X", help="With --replay: times faster [1].")
@click.option(
    "--waiting",
    default="poll0",
    metavar="LIST",
    shell_complete=some_of(lambda: WAITS),
    help=f"How the receiver waits: {', '.join(WAITS)} [poll0].",
)
@click.option(
    "--tls", default="off", metavar="LIST", shell_complete=some_of(lambda: TLS), help=f"Of {', '.join(TLS)} [off]."
)
@click.option(
    "--alloc",
    default="0",
    metavar="LIST",
    help=f"How often the receiver copies each message into new memory, 0 to {MOST_ALLOCATIONS} [0].",
)
@click.option(
    "--stamps",
    type=click.Choice(STAMPS),
    default="auto",
    show_default=True,
    help="Receive stamps, which tell wire and kernel apart: the kernel's (sw), or the network card's (hw, with "
    "--connect). auto: the card's where it has them.",
)
@click.option(
    "--duration", "duration_s", type=float, metavar="S", help="Of each case [10; with --replay the capture's]."
)
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="Both threads as SCHED_FIFO at this priority.")
@intrude_option
@pair_options
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too.")
def feed(
    options: Options,
    cpus: str | None,
    transport: str,
    message_format: str,
    symbols: str,
    rate: int | None,
    burst: int | None,
    replay: str | None,
    speed: float | None,
    waiting: str,
    tls: str,
    alloc: str,
    stamps: str,
    duration_s: float | None,
    fifo: int | None,
    intrude: bool,
    busy_poll_us: int | None,
    listen: str | None,
    connect: str | None,
    output: str | None,
) -> int:
    """Market data from a socket to a book: what each message takes from when it is due, stage by stage."""
    pair = pair_of(options, cpus, intrude, output)
    request = FeedRequest(
        cpus=cpus,
        among=pair.among,
        transport=transport,
        format=message_format,
        symbols=symbols,
        rate=rate or RATE,
        burst=burst or 1,
        waiting=waiting,
        tls=tls,
        alloc=alloc,
        stamps=stamps,
        duration_s=DURATION_S if duration_s is None else duration_s,
        fifo=fifo,
        intrude=intrude,
        busy_poll_us=busy_poll_us,
        listen=listen,
        connect=connect,
    )
    if replay is not None:
        _refuse({"--burst": burst, "--duration": duration_s}, "with --replay", "the capture decides it")
        _refuse({"--speed": speed if rate else None}, "with --rate", "one of the two decides how fast it is replayed")
        request = replayed(request, replay, speed, rate)
    _refuse({"--speed": None if replay else speed}, "without --replay", "it is how fast a capture is replayed")
    refuse_beside_listen(listen, output)
    refuse_taken(pair.root, pair.facts, asked_cpus(cpus, pair.among), pair.config, intrude)
    end_by_signals(request)
    if listen:
        serve_feed(request, lambda line: click.echo(line, err=True))
        return OK
    with progress(options) as tell:
        result = run_feed(request, tell)
    limits = pair.config.feed_limits if pair.config and not connect else {}  # they are about one host
    budget = judge_feed(typed(result, Feed), limits)
    result["budget"] = plain(budget)
    emit_and_write(options, "probe.feed", read_identity(pair.root), result, output)
    if budget.verdict == "broken":
        return DRIFTED
    return code_of_cases(result) if not limits or budget.verdict == "within" else FAILED


def _refuse(options: Mapping[str, float | None], beside: str, reason: str) -> None:
    """UsageError for the first of these options that was given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {value:g}: not {beside}", reason)
