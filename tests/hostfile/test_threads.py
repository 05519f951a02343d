"""[[threads]]: what a host file may declare of the operator's own threads."""

from pathlib import Path

import pytest

from tests.hostfile.test_config import LOW, config
from tunectl.errors import UsageError
from tunectl.model import Trading

RX = '[[threads]]\nunit = "feed"\nthread = "rx"\ncpu = 2\npolicy = "fifo"\npriority = 50\n'
BOOK = '[[threads]]\ncommand = "orderbook"\ncpu = 3\nlocked_memory = false\nfed_by = ["rx"]\n'
NETWORK = '[network]\ninterfaces = ["eth0"]\n'


def test_what_is_declared_is_found(tmp_path: Path) -> None:
    found = config(tmp_path, LOW + NETWORK + RX + BOOK).threads
    assert found == (
        Trading("rx", "feed.service", "", "rx", 2, "fifo", 50, True, ("eth0",)),
        Trading("orderbook", "", "orderbook", "", 3, "other", 0, False, ("rx",)),
    )


def test_nothing_needs_to_be_declared(tmp_path: Path) -> None:
    assert config(tmp_path, LOW).threads == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RX.replace("cpu = 2", "cpu = 1"), r"threads\[0\]\.cpu: CPU 1 is not isolated"),
        (RX + BOOK.replace("cpu = 3", "cpu = 2"), r"threads\[1\]\.cpu: CPU 2 is rx's"),
        (RX + RX.replace("cpu = 2", "cpu = 3"), r"threads\[1\]: there is a thread named 'rx' already"),
        (RX + 'command = "feed"\n', r"threads\[0\]: which process is it"),
        ("[[threads]]\ncpu = 2\n", r"threads\[0\]: which process is it"),
        (RX + 'user = "trader"\n', r"threads\[0\]\.user: a unit says itself whose its process is"),
        (RX.replace("50", "0"), r"threads\[0\]\.priority: 0: SCHED_FIFO has 1 to 99"),
        (RX.replace("50", "100"), r"SCHED_FIFO has 1 to 99"),
        (RX.replace('"fifo"', '"other"'), r"threads\[0\]\.priority: other has no real-time priority"),
        (RX.replace('"fifo"', '"realtime"'), r"threads\[0\]\.policy"),
        (RX.replace('"rx"', f'"{"r" * 16}"'), r"the kernel keeps 15 characters"),
        (RX + 'fed_by = ["eth9"]\n', r"threads\[0\]\.fed_by: nothing else here is named 'eth9'"),
        (RX + 'fed_by = ["rx"]\n', r"nothing else here is named 'rx'"),
        (RX + "cpus = 2\n", r"unknown key 'threads\[0\]\.cpus'"),
    ],
)
def test_what_cannot_be_is_refused_by_row_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config(tmp_path, LOW + NETWORK + text)


@pytest.mark.parametrize("priority", [1, 99])
def test_what_is_at_its_limit_is_let_in(tmp_path: Path, priority: int) -> None:
    text = LOW + RX.replace("50", str(priority)).replace('"rx"', f'"{"r" * 15}"')
    assert [(one.priority, one.thread) for one in config(tmp_path, text).threads] == [(priority, "r" * 15)]
