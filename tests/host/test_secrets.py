"""No secret of a host is in its recording, nobody else may read that, and nobody else chooses where it is written."""

import json
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import complaint, unprivileged
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory, build_named
from tests.nobody import needs_root
from tests.ran import Ran
from tunectl.host.recording import record
from tunectl.host.secrets import GRAMMARS, LEFT_OUT, is_secret_file, without_secrets
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import files_read
from tunectl.shapes import plain

Run = Callable[..., Ran]
# One file a way to write a secret; HIDDEN stands for it. Beside it: what must stay as it is.
PLANTED = {
    "boot/grub/custom.cfg": (
        'set superusers="root"\npassword_pbkdf2 root grub.pbkdf2.sha512.10000.HIDDEN\n  password root HIDDEN; echo hi\n'
        'if true; then password root "HIDDEN;HIDDEN"; fi\npassword_pbkdf2 root \\\n  HIDDEN\npassword --md5 HIDDEN\n'
    ),
    "etc/grub.d/01_users": 'cat <<EOF\npassword root HIDDEN\nEOF\necho "password_pbkdf2 u HIDDEN"\npassword="$given"\n',
    "etc/default/grub.d/x.cfg": (
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX rd.luks.key=HIDDEN nohz_full=3"\n'
        'A=\'rd.luks.key=HIDDEN isolcpus=3\'\nB="systemd.set_credential=a:\\"HIDDEN HIDDEN\\" quiet"\n'
    ),
    "boot/user.cfg.cfg": "GRUB2_PASSWORD=HIDDEN\n",
    "proc/cmdline": (
        'ro "rd.luks.key=HIDDEN HIDDEN" cryptkey="HIDDEN HIDDEN" systemd.set_credential_binary=a:HIDDEN '
        "rd.iscsi.password=HIDDEN netroot=iscsi:u:HIDDEN@1.2.3.4::x vconsole.keymap=de snd_hda_intel.power_save=1\n"
    ),
    "etc/wpa_supplicant/w.conf": 'network={\n psk="HIDDEN HIDDEN"\n sae_password=HIDDEN HIDDEN\n key_mgmt=SAE\n}\n',
    "etc/NetworkManager/system-connections/w": (
        "[wifi-security]\nkey-mgmt=wpa-psk\npsk=HIDDEN HIDDEN\npsk-flags=0\n[vpn-secrets]\nXauth password=HIDDEN x\n"
    ),
    "etc/network/interfaces.d/w": "iface w inet dhcp\n wpa-ssid x\n wpa-psk HIDDEN HIDDEN\n wireless-key1 s:HIDDEN\n",
    "etc/netplan/1.yaml": (
        'network:\n w:\n  password: "HIDDEN HIDDEN"\n  auth: {method: eap, password: HIDDEN}\n w:\n  key: HIDDEN\n'
        "  keys:\n   private: HIDDEN\n   shared: |\n    HIDDEN\n    HIDDEN\n  mtu: 1500\n"
    ),
    "etc/systemd/network/wg.netdev": "[WireGuard]\nPrivateKey=HIDDEN=\nPresharedKey = HIDDEN=\nPrivateKeyFile=/a\n",
    "etc/systemd/system/irqbalance.service.d/x.conf": (
        '[Service]\nEnvironment=A_TOKEN=HIDDEN IRQBALANCE_BANNED_CPULIST=3 "B_SECRET=HIDDEN HIDDEN" D=1\n'
        'Environment="MY_PASSWORD=HIDDEN HIDDEN"\nSetCredential=x:HIDDEN\nPassCredentials=yes\nLoadCredential=a:/b\n'
        'ExecStart=/x --api-key HIDDEN --password=HIDDEN -H "Authorization: Bearer HIDDEN"\n'
    ),
    "etc/tunectl/host.toml.d/x.toml": (
        '[[monitor.webhooks]]\nurl = "https://u:HIDDEN@host/HIDDEN"\ntoken = "HIDDEN"\ntoken_file = "/run/token"\n'
        'secret = """\nHIDDEN\n"""\n[[monitor.hooks]]\ncommand = ["/bin/x", "--token", "HIDDEN"]\n'
    ),
    "etc/sysctl.d/x.conf": (
        "net.ipv4.tcp_fastopen_key = HIDDEN\nvm.swappiness = 7\n# https://hooks.slack.com/services/HIDDEN\n"
        "# ghp_HIDDENHIDDENHIDDENHIDDEN and $6$salt$HIDDENHIDDENHIDDENHIDDEN\n"
    ),
    "etc/tlp.conf": (
        "A=1\n-----BEGIN OPENSSH PRIVATE KEY-----\nHIDDEN\nHIDDEN\n-----END OPENSSH PRIVATE KEY-----\nB=1\n"
        "-----BEGIN CERTIFICATE-----\npublic\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nHIDDEN\n"
    ),
    "etc/kernelstub/configuration": '{"user": {"kernel_options": ["rd.luks.key=HIDDEN H"],"token":"HIDDEN", "b": 1}}\n',
}
NEVER = ("etc/shadow", "etc/ssl/host.key", "boot/grub2/user.cfg")
KEPT = (
    "superusers", "nohz_full=3", "isolcpus=3", "vconsole.keymap=de", "snd_hda_intel.power_save=1", "key_mgmt=SAE",
    "psk-flags=0", "mtu: 1500", "PrivateKeyFile=/a", "IRQBALANCE_BANNED_CPULIST=3", "PassCredentials=yes",
    "LoadCredential=a:/b", 'token_file = "/run/token"', "vm.swappiness = 7", "public", 'password="$given"', "echo hi",
)  # fmt: skip


def plant(root: Path) -> None:
    for path, text in PLANTED.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path in NEVER:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("HIDDEN\n")


def members(archive: Path) -> dict[str, bytes]:
    """Every file of an archive, unpacked."""
    with tarfile.open(archive) as packed:
        return {entry.name: packed.extractfile(entry).read() for entry in packed if entry.isfile()}  # type: ignore[union-attr]


def test_no_secret_of_any_grammar_is_in_the_archive(tmp_path: Path) -> None:
    root = build_named(tmp_path / "host", "vm2")
    plant(root)
    summary = record(Sysroot(str(root)), str(tmp_path / "a.tgz"), files=(*files_read(), *PLANTED, *NEVER))
    recorded = members(tmp_path / "a.tgz")
    assert [name for name, data in recorded.items() if b"HIDDEN" in data] == []
    assert "HIDDEN" not in str(summary)
    everything = b"".join(recorded.values()).decode()
    assert [words for words in KEPT if words not in everything] == []
    for path, text in PLANTED.items():
        assert recorded[path].decode().count("\n") == text.count("\n"), path
    reason = "its name says that it is a secret"
    assert [each.path for each in summary.skipped if each.reason == reason] == [f"/{path}" for path in sorted(NEVER)]


def test_what_was_taken_out_is_named_and_every_grammar_is_played(tmp_path: Path) -> None:
    root = build_named(tmp_path / "host", "vm2")
    plant(root)
    summary = record(Sysroot(str(root)), str(tmp_path / "a.tgz"), files=PLANTED)
    note = json.loads(members(tmp_path / "a.tgz")["tunectl-recording.json"])
    assert note["left_out"] == plain(summary.left_out)
    assert {each["grammar"] for each in note["left_out"]} == {grammar.name for grammar in GRAMMARS}
    of_grub = [each["line"] for each in note["left_out"] if each["path"] == "/boot/grub/custom.cfg"]
    assert of_grub == [2, 3, 4, 6, 7]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xeon2s", "lab4"])
def test_a_host_without_secrets_is_recorded_as_it_is(host_root: HostFactory, tmp_path: Path, name: str) -> None:
    root = host_root(name)
    summary = record(Sysroot(str(root)), str(tmp_path / "a.tgz"), files=files_read())
    assert summary.left_out == []
    recorded = members(tmp_path / "a.tgz")
    for path in ("boot/grub/grub.cfg", "etc/default/grub", "proc/cmdline"):
        if (root / path).exists():
            assert recorded[path] == (root / path).read_bytes()


def test_taking_out_twice_is_taking_out_once() -> None:
    for path, text in PLANTED.items():
        once, _ = without_secrets(path, text.encode())
        assert without_secrets(path, once) == (once, [])
        assert LEFT_OUT in once


@pytest.mark.parametrize(
    "word", ["key", '"', "password ", "$6$", "://", 'token="', "-----BEGIN PRIVATE KEY-----", "\\\n"]
)
def test_a_hostile_file_costs_no_more_than_its_size(word: str) -> None:
    """A quadratic pattern would take hours."""
    for path in ("etc/x.yaml", "etc/NetworkManager/x", "boot/grub/x.cfg"):
        without_secrets(path, (word * (1 << 14)).encode())


def test_names_of_files() -> None:
    assert all(map(is_secret_file, (*NEVER, "etc/gshadow-", "etc/ssh/ssh_host_ed25519_key", "root/.ssh/id_rsa")))
    assert not any(map(is_secret_file, ("boot/grub/grub.cfg", "etc/ssh/ssh_host_rsa_key.pub", "etc/sysctl.conf")))


@pytest.mark.slow
def test_the_recording_of_a_host_with_secrets_is_judged_as_the_host(
    tunectl: Run, host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    host = write_host_file(root, LOW_LATENCY)
    with (root / "boot/grub/grub.cfg").open("a") as config:
        config.write('set superusers="root"\npassword_pbkdf2 root grub.pbkdf2.sha512.10000.HIDDEN\n')
    line = (root / "proc/cmdline").read_text().rstrip("\n")
    (root / "proc/cmdline").write_text(f"{line} rd.luks.key=HIDDEN\n")
    (root / "etc/default/grub.d").mkdir(exist_ok=True)
    (root / "etc/default/grub.d/a.cfg").write_text('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX rd.luks.key=HIDDEN"\n')
    made = tunectl("snapshot", "-o", tmp_path / "a.tgz", "--root", root)
    assert (made.code, made.err) == (0, "")
    assert "Secrets taken out (3)" in made.out
    assert "/proc/cmdline, line 1" in made.out
    (tmp_path / "copy").mkdir()
    subprocess.run(["tar", "xf", tmp_path / "a.tgz", "-C", tmp_path / "copy"], check=True)

    def findings(of: Path) -> object:
        return tunectl("verify", "--root", of, "--host", host, "--format", "json").json["findings"]

    assert json.dumps(findings(tmp_path / "copy")).replace(str(tmp_path / "copy"), str(root)) == json.dumps(
        findings(root)
    ).replace("HIDDEN", LEFT_OUT.decode())


# --- who may read it, and where it is


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o377])
def test_the_archive_is_for_its_owner_alone_whatever_the_umask(
    host_root: HostFactory, tmp_path: Path, mask: int
) -> None:
    archive = tmp_path / "a.tgz"
    archive.write_text("an older one")
    archive.chmod(0o644)
    before = os.umask(mask)
    try:
        record(Sysroot(str(host_root("vm2"))), str(archive))
    finally:
        os.umask(before)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


@pytest.fixture
def shared(public: Path) -> Path:
    """A directory in which everybody may write, and nobody remove what is another's: /tmp."""
    public.chmod(0o1777)
    return public


def as_nobody(script: str, place: Path) -> None:
    subprocess.run([*unprivileged(), "sh", "-euc", script], cwd=place, check=True)


@needs_root
@pytest.mark.parametrize("name", ["a.tgz.part", "a.tgz.new"])
@pytest.mark.parametrize("how", ["ln -s victim", "cp victim", "mkfifo"])
def test_what_a_user_puts_beside_the_archive_is_left_alone(
    tunectl: Run, host_root: HostFactory, shared: Path, name: str, how: str
) -> None:
    (shared / "victim").write_text("root's own\n")
    as_nobody(f"umask 0; {how} {name}", shared)
    done = tunectl("snapshot", "-o", shared / "a.tgz", "--root", host_root("vm2"))
    assert (done.code, done.err) == (0, "")
    about = (shared / "a.tgz").stat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (0, 0o600)
    assert (shared / "victim").read_text() == "root's own\n"
    assert (shared / name).lstat().st_uid != 0


@needs_root
@pytest.mark.parametrize("command", ["snapshot", "propose", "report"])
def test_a_link_of_another_user_leads_no_result_anywhere(
    tunectl: Run, host_root: HostFactory, shared: Path, command: str
) -> None:
    (shared / "victim").write_text("root's own\n")
    as_nobody("ln -s victim result", shared)
    more: dict[str, list[str | Path]] = {"report": [shared / "no.json"], "propose": ["--host", shared / "result"]}
    line = complaint(
        tunectl(command, *more.get(command, []), "--output", shared / "result", "--root", host_root("vm2")), 2
    )
    assert line == f"--output {shared}/result: {shared}/result is a link of another user (uid 65534)"
    assert (shared / "victim").read_text() == "root's own\n"


@needs_root
def test_a_file_of_another_user_in_its_place_is_not_what_is_written_to(
    tunectl: Run, host_root: HostFactory, shared: Path
) -> None:
    """Who opened it before would read the archive in it."""
    as_nobody("umask 0; : >a.tgz", shared)
    with (shared / "a.tgz").open() as held:
        assert tunectl("snapshot", "-o", shared / "a.tgz", "--root", host_root("vm2")).code == 0
        assert held.read() == ""
    about = (shared / "a.tgz").stat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (0, 0o600)


def test_a_link_of_ones_own_is_followed(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "a.tgz").symlink_to("kept/b.tgz")
    assert tunectl("snapshot", "-o", tmp_path / "a.tgz", "--root", host_root("vm2")).code == 0
    assert (tmp_path / "a.tgz").is_symlink()
    assert stat.S_IMODE((tmp_path / "kept/b.tgz").stat().st_mode) == 0o600


def test_a_fifo_is_no_place_for_an_archive(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tgz")
    line = complaint(tunectl("snapshot", "-o", tmp_path / "a.tgz", "--root", host_root("vm2")), 2)
    assert line == f"--output {tmp_path}/a.tgz: not a regular file"
