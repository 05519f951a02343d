"""Everything here that knows the product's insides: a rename in the product touches this file and no other.

Each function returns text, made of the samples that the product's own tests use.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import yaml
from msgspec.structs import asdict

from tests.golden.once import short_json
from tests.monitor.receivers.receiver import Receiver, receiving
from tests.monitor.receivers.samples import HOST, fired, over, status
from tests.monitor.receivers.test_logs import NASTY
from tests.monitor.rules import words
from tests.report.documents import NAMES as DOCUMENTS
from tests.report.documents import document
from tunectl.cli.main import cli
from tunectl.hostfile.shape import Hook, Webhook
from tunectl.monitor.delivery_queue import DeliveryQueues
from tunectl.monitor.model import Alert, Severity
from tunectl.monitor.receivers import Receiver as AlertReceiver
from tunectl.monitor.receivers.hook import open_hook
from tunectl.monitor.receivers.logs import open_journal, open_syslog
from tunectl.monitor.receivers.textfile import file_exporter
from tunectl.monitor.receivers.webhook import open_webhook
from tunectl.monitor.rules import RULES
from tunectl.monitor.store import Store
from tunectl.report import render
from tunectl.units import SERVICES, units_of

__all__ = ["DOCUMENTS", "SERVICES", "drawn"]

_ANSIBLE = Path(__file__).parents[2] / "ansible"
_ALERTS = (
    fired(),
    over(fired()),
    fired(1, observed=None, expected="2-3", cpus="", severity=Severity.WARNING),
    over(fired(1, observed=None, expected="2-3", cpus="", severity=Severity.WARNING)),
    fired(2, summary=NASTY, fix="", severity=Severity.INFO),
)


def drawn(name: str, fmt: str) -> str:
    """The sample document of that name in one format."""
    text = render(document(name), fmt, width=80)
    return short_json(text) if fmt == "json" else text


# ---- the monitor


def metrics(place: Path) -> str:
    """What Prometheus is shown of a board with one of everything."""
    path = place / "x.prom"
    exporter = file_exporter(str(path))
    exporter.show(status())
    exporter.close()
    return path.read_text()


def rules() -> str:
    """Each rule: its name, severity, and how many bad and good looks begin and end it."""
    rows = [f"{rule.name} {rule.severity.value} bad={rule.bad} good={rule.good} lasts={rule.lasts}" for rule in RULES]
    return "\n".join([*rows, ""])


def alerts() -> str:
    """What each rule says when it fires."""
    return words.alerts()


def webhook_json(_: Path) -> str:
    """What a plain webhook is sent."""
    with receiving() as receiver:
        open_webhook(Webhook(receiver.url), HOST).deliver(_ALERTS)
        return _posted(receiver)


def webhook_alertmanager(_: Path) -> str:
    """What Alertmanager is sent."""
    with receiving() as receiver:
        open_webhook(Webhook(receiver.url, format="alertmanager"), HOST).deliver(_ALERTS)
        return _posted(receiver)


def _posted(receiver: Receiver) -> str:
    text = ""
    for request in receiver.taken:
        text += f"POST {request.path}\n"
        names = ("Content-Type", "User-Agent", "Idempotency-Key", "Authorization")
        text += "".join(
            f"{name}: {request.headers[name.lower()]}\n" for name in names if name.lower() in request.headers
        )
        text += json.dumps(request.body, indent=1, ensure_ascii=False) + "\n"
    return text


def journald(place: Path) -> str:
    """The datagrams that journald is sent, MESSAGE_ID among their fields."""
    with _listening(place / "journal") as (path, received):
        open_journal(HOST, path).deliver(_ALERTS)
        return "\n".join(one.decode("utf-8", "backslashreplace") for one in received())


def syslog(place: Path) -> str:
    """The lines that syslog is sent; the process's number aside."""
    with _listening(place / "log") as (path, received):
        open_syslog(HOST, path).deliver(_ALERTS)
        lines = [one.decode() for one in received()]
    return "".join(re.sub(r"tunectl\[\d+\]", "tunectl[PID]", one, count=1) + "\n" for one in lines)


@contextmanager
def _listening(path: Path) -> Iterator[tuple[str, Callable[[], Sequence[bytes]]]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
        ours.bind(str(path))
        ours.setblocking(False)

        def received() -> list[bytes]:
            found = []
            try:
                while True:
                    found.append(ours.recv(1 << 16))
            except BlockingIOError:
                return found

        yield str(path), received
    path.unlink()


def hook(place: Path) -> str:
    """What a hook is given: words, environment, standard input."""
    program, out = place / "hook", place / "hook.out"
    ours = 'echo "words: $*"; env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort; cat'  # and not the shell's
    program.write_text(f'#!/bin/sh\n{{ {ours}; }} >>"{out}"\n')
    program.chmod(0o755)
    out.unlink(missing_ok=True)
    open_hook(Hook([str(program), "one", "two words"]), HOST).deliver(_ALERTS[:2])
    return out.read_text()


def units(service: str) -> str:
    """The unit files of one service, for a program in /opt and for one with odd words."""
    usual = (("/opt/tunectl/bin/tunectl",), ())
    odd = (("/home/me/bin/tunectl", "--host", "/etc/50%/a b.toml"), ("--repair",))
    text = ""
    for invocation, options in (usual, odd):
        text += f"# {' '.join((*invocation, *options))}\n"
        text += "".join(f"--- {unit.path}\n{unit.text}" for unit in units_of(service, invocation, options))
    return text


def delivered_from(state: Path, receiver: str) -> list[Mapping[str, Any]]:
    """What the delivery queue of this receiver, opened on a state directory, hands over; in order, until none waits."""
    taken: list[Alert] = []
    store = Store(str(state / "monitor"))
    store.open()
    queues = DeliveryQueues([AlertReceiver(receiver, taken.extend)], store)
    queues.start()
    end = time.monotonic() + 60
    while queues.own()[f"outbox_depth[{receiver}]"] and time.monotonic() < end:
        time.sleep(0.01)
    queues.close()
    store.close()
    return list(map(asdict, taken))


# ---- the command line


def options() -> str:
    """Every command with its options and arguments, as click knows them: no help texts."""
    lines = []
    for path, command in _commands("tunectl", cli):
        lines.append(path)
        for param in command.params:
            lines.append(f"  {_words(param)}")
    return "\n".join([*lines, ""])


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            if below := command.get_command(ctx, name):
                yield from _commands(f"{path} {name}", below)


def _words(param: click.Parameter) -> str:
    kind = param.type.name
    choices = getattr(param.type, "choices", None)
    said = [
        " ".join([*param.opts, *param.secondary_opts]),
        f"{kind}({', '.join(map(str, choices))})" if choices else kind,
    ]
    for name in ("required", "multiple", "is_flag", "count", "hidden"):
        said += [name] if getattr(param, name, False) else []
    said += [f"nargs={param.nargs}"] if param.nargs != 1 else []
    said += [f"env={param.envvar}"] if param.envvar else []
    default = "" if callable(param.default) else repr(param.default)
    # What click puts where nothing was given differs between its releases.
    said += [f"default={default}"] if default not in ("", "None", "False", "0", "Sentinel.UNSET") else []
    return "; ".join(said)


# ---- Ansible


def ansible_modules() -> str:
    """Arguments and return keys of each module, from its documentation; no texts."""
    text = ""
    for path in sorted((_ANSIBLE / "plugins/modules").glob("*.py")):
        found: dict[str, str] = {}
        exec(compile(path.read_text().partition("\nimport ")[0], str(path), "exec"), found)
        arguments, returned = (yaml.safe_load(found[name]) for name in ("DOCUMENTATION", "RETURN"))
        text += f"# {path.name}\n"
        text += _yaml(
            {"options": arguments.get("options"), "attributes": arguments.get("attributes"), "return": returned}
        )
    return text


def ansible_roles() -> str:
    """The arguments of each role, and its defaults."""
    text = ""
    for role in sorted((_ANSIBLE / "roles").iterdir()):
        files = {"specs": role / "meta/argument_specs.yml", "defaults": role / "defaults/main.yml"}
        read = {name: yaml.safe_load(path.read_text()) for name, path in files.items()}
        text += f"# {role.name}\n{_yaml(read)}"
    return text


def _yaml(tree: Any) -> str:
    """One option a line."""
    return str(yaml.safe_dump(_without_texts(tree), width=120, default_flow_style=None))


def _without_texts(tree: Any) -> Any:
    texts = ("description", "short_description", "details", "sample", "author", "notes")
    if isinstance(tree, Mapping):
        # An option may be called `description`: a text is a string or a list.
        return {
            key: _without_texts(each) for key, each in tree.items() if key not in texts or isinstance(each, Mapping)
        }
    return [_without_texts(one) for one in tree] if isinstance(tree, list) else tree
