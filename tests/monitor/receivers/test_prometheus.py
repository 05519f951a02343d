"""The endpoint and the textfile: names and units, bounds, what is stale, and only /metrics to read."""

import http.client
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.monitor.receivers.samples import DROP, HOST, OVER, OWN, fired, over, status
from tests.report.documents import document, hostile
from tunectl.errors import TunectlError, UsageError
from tunectl.hostfile.monitor import parse_listen
from tunectl.hostfile.shape import Monitor, Prometheus
from tunectl.monitor.model import Freshness, Sample, Severity, Status
from tunectl.monitor.receivers import open_exporters
from tunectl.monitor.receivers.metric_rows import MOST
from tunectl.monitor.receivers.metrics import Shown
from tunectl.monitor.receivers.naming import ANNOTATIONS, LABELS, LONGEST, PARTS, annotations_of, labels_of
from tunectl.monitor.receivers.prometheus import Endpoint
from tunectl.monitor.receivers.webhook import posted
from tunectl.report import render

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(text: str) -> Series:
    """Every sample by name and labels; a duplicate or a time stamp fails."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            assert sample.timestamp is None
            found[key] = sample.value
    return found


def shown(*boards: Status) -> Series:
    of = Shown()
    for each in boards:
        of.see(each)
    return series(generate_latest(of.registry).decode())


def value(found: Series, name: str, **labels: str) -> float | None:
    return found.get((f"tunectl_{name}", frozenset(labels.items())))


def names(found: Series) -> set[str]:
    return {name for name, _ in found}


# What each quantity of a board becomes, in base units, and that what is stale or unknown is no measurement:
# tests/golden/expected/monitor-metrics.txt.


def landings(counts: dict[int, int]) -> Status:
    samples = (Sample("interrupts", f"irq{irq}", count, "interrupts", kind="x") for irq, count in counts.items())
    return status()._replace(snapshot=status().snapshot._replace(samples=tuple(samples)))


def test_of_many_interrupts_the_busiest_are_shown() -> None:
    """IRQ 3400 came last of all to an isolated CPU, and comes 5,000 times a second: its alert fires."""
    before = dict.fromkeys(range(MOST + 50), 1_000_000)
    shown = Shown()

    def irqs(counts: dict[int, int]) -> set[str]:
        shown.see(landings(counts))
        found = series(generate_latest(shown.registry).decode())
        return {dict(labels)["irq"] for name, labels in found if name == "tunectl_isolated_interrupts_total"}

    assert len(irqs(before)) == MOST
    noisy = {**before, 3400: 5_000}
    irqs(noisy)
    for second in (2, 3):
        noisy[3400] = 5_000 * second
        assert "3400" in irqs(noisy)
        assert "3400" in irqs(noisy)  # it was quiet for a moment
        assert len(irqs(noisy)) == MOST
    noisy = {irq: count + 1 for irq, count in noisy.items()}
    assert "3400" in irqs(noisy)
    assert "tunectl_monitor_series_dropped" in names(series(generate_latest(shown.registry).decode()))


def test_an_alert_of_metrics_and_of_a_webhook_have_the_same_labels_and_words() -> None:
    """Whatever the text: what a label cannot hold is cut for both."""
    long = 'irq "eth0]\\ ' + 1000 * "µ\n"
    alerts = (fired(), fired(1, summary=long, fix=long, observed=None, cpus=""), replace(DROP, subject="cpu12" * 50))
    found = shown(status(firing=alerts))
    listed = {frozenset(labels) for name, labels in found if name == "tunectl_alert_info"}
    for alert in alerts:
        made: Any = posted(alert, HOST)
        assert made["labels"].pop("instance") == made["labels"]["host"] == HOST.hostname
        assert made["labels"].pop("job") == "tunectl"
        whole = dict.fromkeys((*LABELS, *ANNOTATIONS), "") | made["labels"] | made["annotations"]
        assert frozenset(whole.items()) in listed
        assert max(len(text.encode()) for text in whole.values()) <= LONGEST


@pytest.mark.parametrize(
    ("rule", "subject", "part"),
    [
        ("FrequencyDrop", "package1", {"package": "1"}),
        ("FrequencyDrop", "cpu12", {"cpu": "12"}),
        ("InterruptOnIsolatedCpu", "irq3400", {"irq": "3400"}),
        ("KnobDrift", "cpufreq.governor", {"knob": "cpufreq.governor"}),
        ("LatencySla", "application", {}),
        ("DeviceChanged", "queues/cpu1", {}),
        ("SourceLost", "cpu", {}),
    ],
)
def test_a_subject_is_named_as_the_metrics_name_it(rule: str, subject: str, part: dict[str, str]) -> None:
    made = labels_of(replace(DROP, rule=rule, subject=subject), HOST)
    assert {name: made[name] for name in PARTS if name in made} == part


def test_what_joins_an_alert_later_changes_its_words_and_not_its_labels() -> None:
    grown = replace(DROP, summary="the firmware permits CPUs 0-39 no more", cpus="0-39", observed=1, at=OVER)
    assert labels_of(grown, HOST) == labels_of(DROP, HOST) == labels_of(over(DROP), HOST)
    assert annotations_of(grown, HOST)["cpus"] == "0-39"


def test_what_comes_once_is_added_up() -> None:
    """A scrape sees one cycle in ten: what a single cycle says must not be lost in between."""
    quiet = status(Sample("own_interruptions", "cpu2", 0, "audit"), seconds=102)
    first = status()
    found = shown(first, first, status(seconds=101), quiet)
    assert value(found, "own_interruptions_total", cpu="2") == 4, "the same board shown twice counts once"
    assert value(found, "device_events_total", kind="net", action="add") == 2


def test_the_number_of_series_is_bounded_and_what_is_left_out_is_counted() -> None:
    samples = [Sample("interrupts", f"irq{number}", number, "interrupts", kind="nvme") for number in range(5000)]
    samples += [Sample("knob", f"irq.affinity[{number}]", "drifted", "drift") for number in range(5000)]
    firing = (*(fired(number, severity=Severity.WARNING) for number in range(3000)), DROP)
    of = shown(status(*samples, firing=firing))
    counts = {name: sum(name == each for each, _ in of) for name in names(of)}
    assert counts["tunectl_isolated_interrupts_total"] == MOST
    assert counts["tunectl_knob_drifted"] == MOST
    assert counts["tunectl_alert_info"] == MOST
    assert [labels for name, labels in of if name == "tunectl_alert_info" and ("severity", "critical") in labels]
    assert value(of, "alerts_firing", severity="warning") == 3000
    assert value(of, "monitor_series_dropped", metric="tunectl_knob_drifted") == 4900
    assert value(of, "monitor_series_dropped", metric="tunectl_isolated_interrupts_total") == 4899
    for number in range(500):
        samples.append(Sample("latency_max_ns", f"app{number}", 1, "latency"))
    of = shown(status(*samples))
    assert sum(name == "tunectl_latency_max_seconds" for name, _ in of) == 100


def test_a_host_of_512_cpus_is_shown_whole() -> None:
    samples = [Sample("frequency_khz", f"cpu{cpu}", 3_000_000, "frequency") for cpu in range(512)]
    found = shown(status(*samples))
    assert sum(name == "tunectl_cpu_frequency_hertz" for name, _ in found) == 512


_values = st.none() | st.booleans() | st.integers() | st.floats() | hostile


@pytest.mark.slow
@given(st.lists(st.builds(Sample, hostile | st.sampled_from(["frequency_khz", "interrupts", "knob", "device"]),
                          hostile, _values, hostile, st.sampled_from(Freshness), hostile)))  # fmt: skip
def test_no_sample_breaks_the_format(samples: list[Sample]) -> None:
    assert value(shown(status(*samples)), "monitor_cpu_seconds_total") == 1.25


def test_before_the_first_board() -> None:
    assert names(shown()) == {"tunectl_monitor_info"}


def test_promtool_likes_the_names() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package: prometheus)")
    of = Shown()
    of.see(status())
    text = generate_latest(of.registry)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_monitors_metrics_are_not_the_reports() -> None:
    """Both may stand in one textfile directory, where the same name with another text is refused."""
    reports = {name for each in ("verify", "preflight") for name in names(series(render(document(each), "prometheus")))}
    assert not reports & names(shown(status()))


# --- the endpoint


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint("127.0.0.1", 0)
    made.show(status())
    yield made
    made.close()


def ask(endpoint: Endpoint, method: str = "GET", path: str = "/metrics", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=60)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def test_get_and_head(endpoint: Endpoint) -> None:
    answer = ask(endpoint)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    found = series(answer.read().decode())
    assert value(found, "core_throttles_total", core="0", cpu="0") == 7
    head = ask(endpoint, "HEAD")
    assert (head.status, head.read()) == (200, b"")
    assert int(head.headers["Content-Length"]) > 1000
    newer = ask(endpoint, Accept="application/openmetrics-text; version=1.0.0")
    assert newer.read().endswith(b"# EOF\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_else_can_be_done(endpoint: Endpoint, method: str) -> None:
    answer = ask(endpoint, method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metrics/../etc/passwd", "/favicon.ico"])
def test_nothing_else_can_be_read(endpoint: Endpoint, path: str) -> None:
    assert ask(endpoint, path=path).status == 404


_SLOW = b"GET /metrics HTTP/1.1\r\nX: "


@contextmanager
def serving(limit_s: float = 3600, at_once: int = 4, board: Status | None = None) -> Iterator[Endpoint]:
    made = Endpoint("127.0.0.1", 0, limit_s, at_once)
    made.show(board or status())
    try:
        yield made
    finally:
        made.close()


@contextmanager
def clients(endpoint: Endpoint, count: int, said: bytes, buffer: int = 0) -> Iterator[list[socket.socket]]:
    """Connections one after the other, each of which has said this."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            client = opened.enter_context(socket.socket())
            if buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.connect(("127.0.0.1", endpoint.port))
            client.sendall(said)
            found.append(client)
        yield found


def cut(endpoint: Endpoint) -> dict[str, float]:
    """How many clients were cut, by reason, as a scrape has it."""
    found = series(ask(endpoint).read().decode())
    return {dict(labels)["reason"]: count for (name, labels), count in found.items() if "scrapes_cut_total" in name}


def is_hung_up_on(client: socket.socket) -> bool:
    """Waits for a moment for the end of a connection; what came before it counts for nothing."""
    client.settimeout(0.02)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def until_late(endpoint: Endpoint) -> None:
    """Waits until somebody was cut who was not done in time."""
    while True:
        with suppress(OSError, http.client.HTTPException):  # on a busy machine a scrape may be late, too
            if cut(endpoint)["late"]:
                return


def big_board() -> Status:
    return status(*(Sample("frequency_khz", f"cpu{cpu}", 3_000_000, "frequency") for cpu in range(2048)))


def test_a_scrape_beside_64_slow_senders_is_answered_and_who_gave_way_is_counted() -> None:
    with serving() as made, clients(made, 64, _SLOW) as slow:
        assert cut(made) == {"late": 0, "crowded": 61, "too-long": 0}
        assert is_hung_up_on(slow[0])
        assert not is_hung_up_on(slow[-1])


def test_a_scrape_beside_slow_readers_is_answered() -> None:
    with serving(board=big_board()) as made, clients(made, 6, _SLOW + b"\r\n\r\n", buffer=4096):
        assert cut(made) == {"late": 0, "crowded": 3, "too-long": 0}


def test_a_byte_now_and_then_begins_no_new_limit() -> None:
    with serving(limit_s=0.5) as made, clients(made, 1, _SLOW) as (slow,):
        with suppress(ConnectionError):
            while not is_hung_up_on(slow):
                slow.sendall(b"a")
        until_late(made)


@pytest.mark.slow
def test_who_does_not_read_his_answer_is_cut() -> None:
    with serving(limit_s=2, board=big_board()) as made, clients(made, 1, _SLOW + b"\r\n\r\n", buffer=4096):
        until_late(made)


def test_a_request_without_an_end_is_cut() -> None:
    with serving() as made, clients(made, 1, _SLOW) as (endless,):
        with suppress(ConnectionError):
            while not is_hung_up_on(endless):
                endless.sendall(bytes(10_000))
        assert cut(made) == {"late": 0, "crowded": 0, "too-long": 1}


def test_who_was_cut_stands_in_the_log_and_not_with_every_cycle(caplog: pytest.LogCaptureFixture) -> None:
    with serving(at_once=1) as made:
        for _ in range(2):
            with clients(made, 3, _SLOW):
                assert cut(made)["crowded"]
            made.show(status())
        assert [record.message for record in caplog.records] == [
            f"cut 3 clients that came first when all 1 places were taken (port {made.port})"
        ]
    assert "crowded" not in generate_latest(Shown().registry).decode(), "a textfile has no clients"


def test_its_end_hangs_up_on_all_and_it_is_one_thread() -> None:
    with serving() as made, clients(made, 3, _SLOW) as slow:
        own = [thread for thread in threading.enumerate() if thread.name == "tunectl-metrics"]
        assert all(thread.daemon for thread in own)
        made.close()
        assert len([thread for thread in own if not thread.is_alive()]) == 1
        while not all(map(is_hung_up_on, slow)):
            pass
    with pytest.raises(ConnectionError):
        ask(made)


def test_a_port_that_is_taken_is_tried_again(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunectl.monitor.receivers.prometheus._AGAIN_S", 0.0)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        made = Endpoint("127.0.0.1", holder.getsockname()[1])
        made.show(status())
        assert caplog.text.count("Address already in use") == 1
    made.show(status())
    assert ask(made).status == 200
    made.close()


@pytest.mark.parametrize("name", ["a..b.invalid", f"{'a' * 64}.invalid"])
def test_a_name_that_no_host_can_have_is_said_and_ends_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    made = Endpoint(*parse_listen(f"{name}:9750"))
    made.show(status())
    made.close()
    assert f"cannot listen on {name}" in caplog.text


@pytest.mark.parametrize(
    "listen",
    ["9750", ":9750", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:9750", "", "a\0b:1", "a b:1", "\x1b:1",
     "h:" + "9" * 5000],
)  # fmt: skip
def test_an_address_that_cannot_be_listened_on(listen: str) -> None:
    with pytest.raises(UsageError, match="listen"):
        parse_listen(listen)


def test_addresses() -> None:
    assert parse_listen("[::1]:9750") == ("::1", 9750)
    assert parse_listen("0.0.0.0:9750") == ("0.0.0.0", 9750)


# --- the textfile


def opened(path: Path | str) -> Monitor:
    return Monitor(prometheus=Prometheus(textfile=str(path)))


def test_a_textfile_is_whole_and_readable(tmp_path: Path) -> None:
    path = tmp_path / "tunectl.prom"
    (exporter,) = open_exporters(opened(path), lambda: {"outbox_depth[hook-x]": 4.0})
    exporter.show(status())
    found = series(path.read_text())
    assert value(found, "core_throttles_total", core="0", cpu="0") == 7
    assert value(found, "monitor_outbox_depth", notifier="hook-x") == 4
    assert value(found, "monitor_cycles_total") == OWN["cycles_total"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["tunectl.prom"]


def test_it_is_written_when_it_is_time_or_something_fires(tmp_path: Path) -> None:
    path = tmp_path / "tunectl.prom"
    (exporter,) = open_exporters(opened(path))
    exporter.show(status(firing=(), seconds=100))
    path.unlink()
    exporter.show(status(firing=(), seconds=105))
    assert not path.exists()
    exporter.show(status(seconds=106))
    assert path.exists()
    path.unlink()
    exporter.show(status(seconds=117))
    assert path.exists()


def test_a_directory_that_is_missing_for_a_while(tmp_path: Path) -> None:
    """The loop says what an exporter raises once."""
    path = tmp_path / "late" / "tunectl.prom"
    (exporter,) = open_exporters(opened(path))
    for seconds in (100, 101):
        with pytest.raises(TunectlError, match=f"cannot write {path}: No such file"):
            exporter.show(status(seconds=seconds))
    path.parent.mkdir()
    exporter.show(status(seconds=102))
    assert path.exists()


def test_a_file_that_no_collector_reads() -> None:
    for path in ("tunectl.prom", "/tmp/tunectl.txt"):
        with pytest.raises(UsageError, match=r"\.prom"):
            open_exporters(opened(path))


def test_nothing_configured_is_nothing_opened() -> None:
    assert open_exporters(Monitor()) == ()
