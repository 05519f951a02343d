"""Who answers, which way leads there, and who is connected by ssh."""

import os
import socket
from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.reach import answers, peer_of_ssh, read_links
from tunectl.host.sysroot import Sysroot


def test_who_listens_answers_and_so_does_who_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert answers("127.0.0.1", port)
    assert answers("127.0.0.1", port)
    assert not answers("nobody.invalid", 22)


def test_this_machines_own_interface_is_among_its_links() -> None:
    links = read_links(Sysroot())
    assert "127.0.0.1" in links["lo"].split()
    assert read_links(Sysroot()) == links


@pytest.mark.parametrize(
    ("said", "peer"),
    [
        ("192.0.2.7 50022 192.0.2.1 22", "192.0.2.7:22"),
        ("2001:db8::7 50022 2001:db8::1 22", "[2001:db8::7]:22"),
        ("", ""),
        ("$(reboot) 1 2 3", ""),
        ("nobody.invalid 1 2 3", ""),
    ],
)
def test_the_peer_is_an_address_or_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, peer: str
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", said)
    assert peer_of_ssh(Sysroot(str(tmp_path))) == peer


def test_sudo_hides_it_and_the_parents_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    parent = os.getppid()
    write(tmp_path, f"proc/{parent}/environ", "PATH=/bin\0")
    write(tmp_path, f"proc/{parent}/stat", f"{parent} (sudo) S 17 1 1 0")
    write(tmp_path, "proc/17/environ", "HOME=/root\0SSH_CONNECTION=192.0.2.7 1 192.0.2.1 22\0")
    assert peer_of_ssh(Sysroot(str(tmp_path))) == "192.0.2.7:22"
