"""The connection of an experiment between two hosts, here with the other one as a thread; a refusal is one line."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from tunectl.errors import TunectlError
from tunectl.experiments import feed, wake
from tunectl.experiments.link import SMALLEST, Asked, Link, Reflect, UnreachableError, listen, serve

KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


@contextmanager
def _echo(_words: Sequence[str], connection: socket.socket) -> Iterator[None]:
    """Sends back what comes, as a program would that has the socket for itself."""
    own = connection.dup()

    def back() -> None:
        with own, suppress(OSError):
            while data := own.recv(1000):
                own.sendall(data)

    threading.Thread(target=back, daemon=True).start()
    yield


@contextmanager
def other_host(experiment: str = "feed", reflect: Reflect = _echo) -> Iterator[str]:
    """Its address."""
    with listen("127.0.0.1:0") as listener:

        def stay() -> None:
            with suppress(OSError):  # until it is closed
                serve(listener, experiment, 2_000_000_000, 3, reflect)

        threading.Thread(target=stay, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def stranger(answer: bytes | None) -> Iterator[str]:
    """Somebody who hears a greeting and says this; None: hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve_one() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(answer or b"")

        threading.Thread(target=serve_one, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("transport", KINDS)
@pytest.mark.parametrize("size", [SMALLEST, 1400])
def test_messages_come_back_case_after_case(transport: str, size: int) -> None:
    with other_host() as address:
        link = Link("feed", address)
        assert (link.peer, link.interface()) == ((address, 2_000_000_000, 3), "lo")
        for _ in range(3):
            with link.case(Asked(transport, size, ("a", "b"))) as connection:
                assert connection.type == KINDS[transport]
                connection.settimeout(10)
                connection.send(b"x" * 99)
                assert connection.recv(100) == b"x" * 99
        link.close()
        Link("feed", address).close()  # it serves one after the other


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"tunectl-feed 3 2000000000 3\n", "no `tunectl probe feed --listen` of this version answers there"),
        (b"tunectl-feed 5 2000000000 3\n", "no `tunectl probe feed --listen` of this version answers there"),
        (b"tunectl-feed 4 fast 3\n", "no `tunectl probe feed --listen` of this version answers there"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "no `tunectl probe feed --listen` of this version answers there"),
        (None, "no `tunectl probe feed --listen` of this version answers there"),
        (b"x" * 300, "Message too long"),
        (
            b"tunectl-wake 4 2000000000 3\n",
            "`tunectl probe wake --listen` answers there, and not `tunectl probe feed --listen`",
        ),
    ],
)
def test_who_else_answers_is_named(answer: bytes | None, said: str) -> None:
    with stranger(answer) as address, pytest.raises(TunectlError) as caught:
        Link("feed", address)
    assert str(caught.value) == f"--connect {address}: {said}"


def test_a_listener_of_another_experiment_says_which_it_is() -> None:
    with other_host("feed") as address:
        with pytest.raises(TunectlError, match="`tunectl probe feed --listen` answers there, and not"):
            Link("wake", address)
        Link("feed", address).close()


def test_what_the_other_hosts_program_refuses_is_the_cases_reason() -> None:
    @contextmanager
    def refuse(words: Sequence[str], _: socket.socket) -> Iterator[None]:
        if words[0] == "no":
            raise TunectlError("CPU 3\x1b[1m is not online")
        yield

    with other_host(reflect=refuse) as address:
        link = Link("feed", address)
        with (
            pytest.raises(UnreachableError, match=r"the other host: CPU 3\?\[1m is not online"),
            link.case(Asked("tcp", SMALLEST, ("no",))),
        ):
            pass
        with link.case(Asked("tcp", SMALLEST, ("yes",))):
            pass
        link.close()


def test_words_that_are_none_end_the_connection_and_the_next_case_says_so() -> None:
    with other_host(reflect=lambda words, _: _echo(feed.far_words(words), _)) as address:
        link = Link("feed", address)
        with pytest.raises(UnreachableError), link.case(Asked("tcp", SMALLEST, ("tcp", "poll", "many"))):
            pass
        with (
            pytest.raises(UnreachableError, match="the other host went away"),
            link.case(Asked("tcp", SMALLEST, ("tcp", "poll", "50"))),
        ):
            pass
        Link("feed", address).close()


def test_the_other_hosts_program_is_asked_in_our_words_alone() -> None:
    """What comes over the wire names a case, and can add no option."""
    assert feed.far_words(["udp", "--root", "7"]) == [
        *("--transport", "udp", "--format", "binary", "--waiting", "--root", "--busy-poll-us", "7")
    ]
    assert wake.far_words(["tcp", "block", "7", "64", "1"]) == [
        *("--case", "tcp:block:0", "--busy-poll-us", "7", "--bytes", "64", "--fds", "1")
    ]
    for words in (["udp"], ["udp", "poll", "x"], ["udp", "poll", "1", "--root", "/tmp"]):
        with pytest.raises(ValueError):
            feed.far_words(words)
    with pytest.raises(ValueError):
        wake.far_words(["tcp", "block", "7", "64"])
