#!/usr/bin/python
# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""One call of tunectl on the target, its document as data."""

DOCUMENTATION = r"""
---
module: tunectl
short_description: Tune, prove and watch a Linux host for low-latency trading
version_added: 0.1.0
author:
  - The tunectl authors (@tunectl)
description:
  - Runs one command of the tunectl that is installed on the target and returns its document as data.
  - What it finds is a result, not a failure. C(verdict) says how the host stands, and C(reboot_required) whether
    something waits for the next boot. The module fails only where tunectl could not do what it was asked to.
  - With O(host), O(command=plan), O(command=apply) and O(command=configure) first have tunectl judge these values on
    the target. Values that do not fit that host are refused with the reason, before anything is written.
requirements:
  - tunectl on the target, see the role tunectl.host.tunectl_install
  - Python >= 3.9 for the module itself; tunectl brings its own
options:
  command:
    description:
      - What to do.
      - V(plan) says what V(apply) would change. V(apply) puts the host file in force. V(configure) only writes it.
        V(confirm) keeps what V(apply) with O(confirm_within) made.
      - V(verify), V(check), V(preflight) and V(probe) judge and change nothing. V(restore) takes back what V(apply)
        did. V(propose) and V(show) describe the host. V(service) installs or removes a unit of tunectl's own.
    type: str
    required: true
    choices: [plan, apply, confirm, configure, verify, check, preflight, restore, probe, propose, show, service]
  host:
    description:
      - The content of the host file, for O(command=plan), O(command=apply) and O(command=configure).
      - Without it the host file on the target is used as it is.
    type: dict
    suboptions:
      # The host file's keys, from docs/schema/hostfile.schema.json: begin
      profile:
        description: A profile that tunectl ships, or a path.
        type: str
        default: low-latency
      isolated:
        description:
          - The isolated CPUs in the kernel's own grammar, such as 2-7 or 4-N.
          - With proposal the host's own host file keeps its list while that fits the host; where there is no host
            file yet, tunectl proposes a list.
        type: str
        default: proposal
      nic:
        description: With proposal as the isolated CPUs, the interface that carries market data; CPUs next to it are
          taken.
        type: str
      count:
        description: With proposal as the isolated CPUs, how many logical CPUs to isolate, rounded up to whole cores.
        type: int
      renew:
        description: With proposal as the isolated CPUs, ask for a proposal even where the host file has a list
          already.
        type: bool
        default: false
      bootloader:
        description: Who boots the host, where what is found there contradicts itself.
        type: str
      isolation:
        description: Whether CPUs are isolated by boot arguments, without a reboot by a control group, or by both.
        type: str
        choices:
          - boot
          - runtime
          - both
      allow_split_siblings:
        description: Whether one thread of a core may be isolated without its sibling.
        type: bool
      network:
        description: The network cards.
        type: dict
        suboptions:
          interfaces:
            description: The network cards that carry market data.
            type: list
            elements: str
      budget:
        description: What the probe is judged by; a limit left out is the profile's.
        type: dict
        suboptions:
          max_ns:
            description: The longest gap.
            type: float
          p99_9_ns:
            description: The 99.9th percentile of a randomly timed message's wait.
            type: float
          interruptions_per_s:
            description: How often the loop is interrupted.
            type: float
          stolen_ppm:
            description: The part of the time that is lost, in millionths.
            type: float
          smis_per_s:
            description: System management interrupts of the host, where they are counted; 0 permits none.
            type: float
          feed:
            description: What `probe feed` is judged by.
            type: dict
            suboptions:
              due_to_book_p99_9_ns:
                description: The 99.9th percentile of the time from when a message is due until the book has it.
                type: float
      thermal:
        description: What the clock is held to.
        type: dict
        suboptions:
          base_frequency_khz:
            description: The base frequency, instead of what the host says.
            type: int
          min_ratio:
            description: The least part of the base frequency that is enough.
            type: float
      clock:
        description: How far the clock may be from UTC.
        type: dict
        suboptions:
          rule:
            description: 'The rule that it has to keep: 100 µs, 1 ms or 50 ms.'
            type: str
            choices:
              - rts25-high-frequency
              - rts25
              - cat
          max_error_ns:
            description: A limit of the site's own, instead of the rule's.
            type: float
      preflight:
        description: What preflight does beyond the usual.
        type: dict
        suboptions:
          load:
            description: Measure once more beside these loads on the housekeeping CPUs; never beside a running engine.
            type: list
            elements: str
            choices:
              - memory
              - faults
              - files
              - network
              - timers
              - all
              - none
          feed:
            description: Run `probe feed` for a few seconds, too; never beside a running engine.
            type: bool
      report:
        description: What becomes of the documents of the timer's preflights.
        type: dict
        suboptions:
          keep:
            description: How many of its documents this host keeps; one that waits stays.
            type: int
          textfile:
            description: A .prom file in the directory of node_exporter's textfile collector.
            type: str
          folder:
            description: A folder of another host to hand each document to; or url.
            type: str
          mount:
            description: What must be mounted for that; without it the folder itself. / is a folder of this host's.
            type: str
          url:
            description: An address to post each document to; {id} in it becomes the document's own.
            type: str
          token_file:
            description: A file with the bearer token for it; only its owner may read it.
            type: str
          certificate_file:
            description: This host's own certificate for it.
            type: str
          key_file:
            description: The certificate's key; only its owner may read it. By default in the same file.
            type: str
          ca_file:
            description: The certificates to trust.
            type: str
          timeout_s:
            description: How long to wait for an answer.
            type: float
      monitor:
        description: The monitor's settings.
        type: dict
        suboptions:
          interval_s:
            description: How often frequency and temperature are read.
            type: float
          drift_interval_s:
            description: How often every knob is read again; an event reads them at once.
            type: float
          log:
            description: Where alerts are logged.
            type: str
            choices:
              - journal
              - syslog
              - none
          repair:
            description: Whether a drift asks for an apply.
            type: bool
          sla:
            description: Limits for each window of an application's latencies.
            type: dict
            suboptions:
              window_s:
                description: The window's length.
                type: float
              p99_9_ns:
                description: The limit of the 99.9th percentile.
                type: float
              max_ns:
                description: The limit of the longest.
                type: float
              socket:
                description: A datagram socket to which an application sends its latencies.
                type: str
              socket_group:
                description: The group that may send to it, where it is a path; without it, the monitor's own.
                type: str
          sentinel:
            description: A resident probe on a CPU that is given up for it.
            type: dict
            suboptions:
              cpu:
                description: The CPU that is given up for it.
                type: int
                required: true
          prometheus:
            description: Where Prometheus finds the figures.
            type: dict
            suboptions:
              listen:
                description: An address to serve the figures at, such as 127.0.0.1:9750.
                type: str
              textfile:
                description: A .prom file in the directory of node_exporter's textfile collector.
                type: str
          webhooks:
            description: Who is notified over HTTP.
            type: list
            elements: dict
            suboptions:
              url:
                description: The address to post to; this or url_file.
                type: str
              format:
                description: The form of what is posted.
                type: str
                choices:
                  - alertmanager
                  - json
              token_file:
                description: 'A file with the secret, sent as Authorization: Bearer.'
                type: str
              url_file:
                description: A file with the address, where that is a secret; only its owner may read it.
                type: str
              ca_file:
                description: The certificates to trust.
                type: str
              timeout_s:
                description: How long to wait for an answer.
                type: float
              resend_s:
                description: With alertmanager, how often a firing alert is sent again; less than its resolve_timeout.
                type: float
          hooks:
            description: Programs to start, without a shell, with the alert as JSON on their standard input.
            type: list
            elements: dict
            suboptions:
              command:
                description: The program and its arguments.
                type: list
                elements: str
                required: true
              timeout_s:
                description: How long it may take.
                type: float
      knobs:
        description: The site's own values over the profile's, by knob.
        type: dict
      threads:
        description: The site's own trading threads, which tunectl check looks for.
        type: list
        elements: dict
        suboptions:
          cpu:
            description: The isolated CPU it has for itself.
            type: int
            required: true
          unit:
            description: The systemd unit whose process it belongs to; this or command.
            type: str
          command:
            description: The name of the process it belongs to.
            type: str
          user:
            description: 'Whose process the command is, by name or number: any user may take the name.'
            type: str
          thread:
            description: The thread's own name; without it, the process's first thread.
            type: str
          name:
            description: What findings call it.
            type: str
          policy:
            description: How it is scheduled.
            type: str
            choices:
              - other
              - batch
              - idle
              - fifo
              - rr
              - deadline
          priority:
            description: The priority of fifo and rr.
            type: int
          locked_memory:
            description: Whether all its memory has to be locked.
            type: bool
          fed_by:
            description: Interfaces and other declared threads that feed it; without it, all the network cards.
            type: list
            elements: str
          spins:
            description: 'Whether it never sleeps: it polls for what it waits for.'
            type: bool
      waivers:
        description: What may differ, and why.
        type: list
        elements: dict
        suboptions:
          knob:
            description: The knob.
            type: str
            required: true
          reason:
            description: Why the host may differ.
            type: str
            required: true
          until:
            description: The last day on which the waiver holds, such as 2027-03-31.
            type: str
            required: true
          target:
            description: One of its targets, or several by number, such as 2-3; without it, all.
            type: str
      # end
  program:
    description:
      - The program on the target. By default V(/opt/tunectl/bin/tunectl), else the C(tunectl) on the target's PATH.
      - The environment variable E(TUNECTL_PROGRAM), on the target, names it, too.
    type: path
  root:
    description: Work on the recorded host below this directory of the target, not on the target itself.
    type: path
  host_file:
    description: The host file's path. By default tunectl's own, C(/etc/tunectl/host.toml).
    type: path
  state_dir:
    description: The journal's directory. By default tunectl's own, C(/var/lib/tunectl).
    type: path
  strict:
    description: Whether what cannot be read fails O(command=verify), O(command=check) and O(command=preflight), too.
    type: bool
    default: false
  confirm_within:
    description:
      - With O(command=apply), take everything back unless O(command=confirm) comes within this time, such as V(10m).
      - Refused where nobody would take it back; O(command=plan) says why as C(confirm_refused).
    type: str
  try_boot:
    description:
      - With O(command=apply), have the next boot alone take the boot arguments and settings; nothing else is written.
        That boot proves itself within ten minutes, or the host boots its old line again; O(command=confirm) keeps it.
      - Refused where the boot loader cannot; O(command=plan) says why as C(try_refused).
    type: bool
    default: false
  attended:
    description: With O(try_boot), that somebody at the console can type a passphrase.
    type: bool
    default: false
  without_watchdog:
    description: With O(try_boot), try it also where no watchdog would end a hang.
    type: bool
    default: false
  reach:
    description:
      - With O(try_boot) and O(confirm_within), who has to answer, as HOST:PORT, or V(auto) for the peer of the ssh
        connection. It is watched only if it answers before the first write.
    type: str
  id:
    description: With O(command=confirm), the change, as C(unconfirmed) names it; another one is refused.
    type: str
  runtime:
    description: With O(command=apply), only what lasts until the next boot.
    type: bool
    default: false
  force:
    description: With O(command=restore), bring back what somebody changed since, too.
    type: bool
    default: false
  salvage:
    description: With O(command=restore), restore what the intact lines of a damaged journal tell.
    type: bool
    default: false
  wait_s:
    description: How long O(command=apply), O(command=confirm) and O(command=restore) wait for another tunectl.
    type: float
  duration_s:
    description: How long O(command=probe) and O(command=preflight) probe; without it 5 seconds, and a preflight for as
      long as the limits of its budget need.
    type: float
  feed:
    description: With O(command=preflight), whether C(probe feed) is measured, too; without it what the host file says.
    type: bool
  window_s:
    description: How long O(command=check) and O(command=preflight) watch the host.
    type: float
  load:
    description: With O(command=preflight), measure once more beside these loads on the housekeeping CPUs, such as
      V(memory,timers), V(all), or V(none); without it what the host file says. Refused beside a running engine.
    type: str
  paths:
    description: With O(command=check), pytest modules on the target instead of the checks that tunectl ships.
    type: list
    elements: path
  cpus:
    description: With O(command=probe), the CPUs instead of the isolated ones.
    type: str
  threshold_ns:
    description: With O(command=probe), the shortest gap that counts.
    type: int
  events:
    description: With O(command=probe), how many gaps to list for each CPU.
    type: int
  attribute:
    description: With O(command=probe), trace the kernel to name the cause of each gap.
    type: bool
    default: false
  nic:
    description: With O(command=propose), the interface that carries market data.
    type: str
  count:
    description: With O(command=propose), how many logical CPUs to isolate.
    type: int
  profile:
    description: With O(command=propose), the profile that the proposed host file names.
    type: str
  name:
    description: With O(command=service), the service.
    type: str
    choices: [monitor, apply, repair, preflight]
  state:
    description: With O(command=service), whether its units are to be there.
    type: str
    choices: [present, absent]
    default: present
  repair:
    description: With O(command=service) and O(name=monitor), whether the monitor asks for a repair when a knob drifts.
    type: bool
    default: false
  at:
    description:
      - With O(command=service) and O(name=preflight), when it runs, such as V(Mon..Fri 07:45 Europe/London).
      - Without it, the installed timer keeps its time.
    type: str
  document:
    description:
      - Whether the result holds tunectl's whole document.
      - By default it does with O(command=confirm), O(command=probe), O(command=restore), O(command=propose),
        O(command=show) and O(command=service), whose documents say what no other value does, and does not repeat the
        others.
      - A failed task never holds it.
    type: bool
attributes:
  check_mode:
    description: O(command=apply) becomes a plan, O(command=confirm) a look, O(command=restore) a dry run; nothing is
      written.
    support: full
  diff_mode:
    description:
      - What is there before and after, for the host file, for the settings and for each file.
      - Settings of several CPUs, interrupts or the like that change alike are one line.
    support: full
"""

EXAMPLES = r"""
- name: What would be changed
  tunectl.host.tunectl:
    command: plan
    host:
      profile: low-latency
      isolated: "2-7"

- name: Tune the host as its own proposal says
  tunectl.host.tunectl:
    command: apply
    host:
      isolated: proposal
      network:
        interfaces: [eth0]
      budget:
        max_ns: 50000
  register: tuned

- name: Tune a host that nobody can walk to
  tunectl.host.tunectl:
    command: apply
    confirm_within: 10m
  register: tuned

- name: Keep it, once the host was reached again
  tunectl.host.tunectl:
    command: confirm
    id: "{{ tuned.unconfirmed.id }}"
  when: tuned.unconfirmed is defined

- name: Is everything in force?
  tunectl.host.tunectl:
    command: verify
  register: verified
  failed_when: verified is failed or verified.verdict == 'drifted'

- name: May this host trade?
  tunectl.host.tunectl:
    command: preflight
    duration_s: 30
  register: flight

- name: Take everything back
  tunectl.host.tunectl:
    command: restore
"""

RETURN = r"""
msg:
  description: What came of it, in one line.
  returned: always
  type: str
document:
  description: The whole document of tunectl, as docs/schema describes it.
  returned: as O(document) says, when tunectl gave one
  type: dict
verdict:
  description:
    - V(compliant), V(drifted), V(pending-reboot) or V(unreadable); of a preflight V(go), V(no-go), V(pending-reboot) or
      V(unknown); of a probe V(within), V(broken) or V(not-judged).
  returned: when the command judges
  type: str
headline:
  description: A preflight's verdict in words, with each limit looser than the profile's and the waivers that stand.
  returned: with O(command=preflight)
  type: str
reasons:
  description: Why the verdict is not the best one, a line each; settings of several CPUs that differ alike are one.
  returned: when the command judges
  type: list
  elements: str
findings:
  description: The findings that are not compliant, each with target, outcome, observed, desired, reason and fix.
  returned: when the command judges
  type: list
  elements: dict
outcomes:
  description: How many findings there are of each outcome.
  returned: when the command judges
  type: dict
  sample: {"compliant": 56, "waived": 1}
changes:
  description: What was changed, or in check mode and by a plan would be.
  returned: with the commands plan and apply
  type: list
  elements: dict
reboot_required:
  description: Whether something takes effect only with the next boot.
  returned: with the commands plan, apply, verify, preflight and restore
  type: bool
unconfirmed:
  description: The change that is taken back unless it is confirmed, with id, kind, back_at, overdue and tried.
  returned: when one waits, with the commands plan, apply, verify and show
  type: dict
returned:
  description: The change that came back by itself and that the host file has still, with id, at, why and journal.
  returned: when there is one, with the command verify
  type: dict
confirm_refused:
  description: Why O(confirm_within) is refused on this host; empty where it is not.
  returned: with the command plan
  type: str
try_refused:
  description: Why O(try_boot) is refused on this host; empty where it is not, or no boot argument changes.
  returned: with the command plan
  type: str
boot_id:
  description: The boot that was looked at.
  returned: when tunectl gave a document
  type: str
host_file:
  description: The host file's path.
  returned: when there is a host file
  type: str
host_file_changed:
  description: Whether the host file was another before, or with the command plan and in check mode would be.
  returned: with O(host)
  type: bool
isolated:
  description: The isolated CPUs that the host file has now, or in check mode would have.
  returned: with O(host)
  type: str
exit_code:
  description: That of tunectl.
  returned: when tunectl was called
  type: int
program:
  description: The program that was called.
  returned: when it was found
  type: str
"""

import os
import tempfile
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule, env_fallback
from ansible.module_utils.common.text.converters import to_native
from ansible_collections.tunectl.host.plugins.module_utils import commands, hostfile, outcome

PROGRAM = "/opt/tunectl/bin/tunectl"
# What their documents say, no other value does.
_TOLD_ONCE = ("confirm", "probe", "restore", "propose", "show", "service")
_OF_TRIAL = ("unconfirmed", "returned", "confirm_refused", "try_refused")
_JUDGING = ("plan", "apply", "configure", "verify", "check", "preflight", "probe")

ARGUMENTS: dict[str, Any] = {
    "command": {"type": "str", "required": True, "choices": list(commands.SCHEMAS)},
    "host": {"type": "dict", "options": hostfile.arguments()},
    "program": {"type": "path", "fallback": (env_fallback, ["TUNECTL_PROGRAM"])},
    "root": {"type": "path"},
    "host_file": {"type": "path"},
    "state_dir": {"type": "path"},
    "strict": {"type": "bool", "default": False},
    "confirm_within": {"type": "str"},
    "try_boot": {"type": "bool", "default": False},
    "attended": {"type": "bool", "default": False},
    "without_watchdog": {"type": "bool", "default": False},
    "reach": {"type": "str"},
    "id": {"type": "str"},
    "runtime": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
    "salvage": {"type": "bool", "default": False},
    "wait_s": {"type": "float"},
    "duration_s": {"type": "float"},
    "window_s": {"type": "float"},
    "load": {"type": "str"},
    "feed": {"type": "bool"},
    "paths": {"type": "list", "elements": "path"},
    "cpus": {"type": "str"},
    "threshold_ns": {"type": "int"},
    "events": {"type": "int"},
    "attribute": {"type": "bool", "default": False},
    "nic": {"type": "str"},
    "count": {"type": "int"},
    "profile": {"type": "str"},
    "name": {"type": "str", "choices": ["monitor", "apply", "repair", "preflight"]},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "repair": {"type": "bool", "default": False},
    "at": {"type": "str"},
    "document": {"type": "bool"},
}


class Tool:
    """tunectl on this host, called with the module's parameters."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params: dict[str, Any] = module.params
        self.result: dict[str, Any] = {"msg": "", "changed": False, "program": self._find()}
        self.document: dict[str, Any] = {}
        self.diff: list[dict[str, str]] = []

    def _find(self) -> str:
        """The program, or the end of the module with how to get it."""
        named = self.params["program"]
        if named or os.path.exists(PROGRAM):
            path = named or PROGRAM
        else:
            path = self.module.get_bin_path("tunectl") or PROGRAM
        if not os.access(path, os.X_OK):
            self.module.fail_json(
                msg=f"there is no {path} on this host: the role tunectl.host.tunectl_install puts it there"
            )
        return str(path)

    def fail(self, said: str, **more: Any) -> NoReturn:
        """The end of the module: one line that says what is wrong, ahead of a few short facts."""
        self.module.fail_json(**dict(self.result, msg=said, **more))
        raise AssertionError("fail_json does not return")

    def call(self, command: str, check_mode: bool = False, candidate: str = "", **params: Any) -> dict[str, Any]:
        """One command's document. Ends the module where tunectl gives none."""
        words = commands.words(command, dict(self.params, **params), check_mode, candidate)
        code, out, err = self.module.run_command([self.result["program"], *words])
        self.result["exit_code"] = code
        if code == 2 or not out.strip():
            said = outcome.complaint(err, code)
            if outcome.too_old(said):
                said = f"{self.result['program']} is too old for this collection: {said}"
            self.fail(said.replace(candidate, self._host_file()) if candidate else said)
        try:
            document: dict[str, Any] = outcome.parse(out, commands.schema(command, check_mode))
        except ValueError as error:
            self.fail(f"{self.result['program']}: {error}")
        self.document = document
        self.result.update(boot_id=document["host"]["boot_id"])
        for key in _OF_TRIAL:
            self.result.pop(key, None)  # of the call before
        self.result.update({key: document[key] for key in _OF_TRIAL if key in document})
        if document.get("host_file") and command != "propose":
            self.result["host_file"] = document["host_file"]
        if said := outcome.failure(command, document, code):
            self.fail(said, changed=outcome.changed(command, document))
        return document

    def _host_file(self) -> str:
        return str(self.params["host_file"] or "the host file")

    # -- the host file

    def configure(self, write: bool) -> str:
        """Judges the wanted host file on this host and, for `write`, puts it in place: the candidate's path."""
        wanted = self.params["host"]
        isolated = wanted["isolated"] if wanted["isolated"] != hostfile.PROPOSAL else self._proposal(wanted)
        for name in hostfile.exposed(wanted):
            self.module.warn(
                f"{name}.url: everybody on the host may read the host file; where its path is a secret, "
                "put it into a file that only root may read and name that in url_file (docs/ansible.md)"
            )
        try:
            text = hostfile.render(wanted, isolated)
        except ValueError as error:
            self.fail(f"host.{error}")
        descriptor, candidate = tempfile.mkstemp(suffix=".toml", dir=self.module.tmpdir)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        path = self.call("configure", candidate=candidate)["host_file"]
        self.result["isolated"] = isolated
        before = _read(path)
        self.result["host_file_changed"] = before != text
        if before != text:
            self.result["changed"] = self.params["command"] != "plan"
            self.diff.append(outcome.difference(path, hostfile.redacted(before), hostfile.redacted(text)))
            if write and not self.module.check_mode:
                self._put(candidate, path)
        return candidate

    def _proposal(self, wanted: dict[str, Any]) -> str:
        """The list that the host file has already, else tunectl's own: a proposal may differ from day to day."""
        if not wanted["renew"]:
            shown = self.call("show")
            if str(shown["roles_from"]).startswith("/"):  # a file, and not "the kernel"
                return str(shown["cpu_sets"]["isolated"])
        return str(self.call("propose", **{key: wanted[key] for key in ("nic", "count")})["isolated"])

    def _put(self, candidate: str, path: str) -> None:
        try:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            if not os.path.exists(path):
                os.chmod(candidate, 0o644)
            self.module.atomic_move(candidate, path)
        except OSError as error:
            self.fail(f"cannot write {path}: {error.strerror}")

    # -- the whole

    def run(self) -> NoReturn:
        """The command, and the end of the module with what came of it."""
        command, check_mode = self.params["command"], self.module.check_mode
        if command in commands.WRITES and not check_mode and not self.params["root"] and not _below_root():
            self._require_root(command)
        candidate = self.configure(command != "plan") if self.params["host"] else ""
        asked = candidate if command == "plan" or check_mode else ""
        if command != "configure":
            document = self.call(command, check_mode, candidate=asked)
            self._judge(command, document)
        self.result["msg"] = _line(self.result, command)
        if self.document and (self.params["document"] or (self.params["document"] is None and command in _TOLD_ONCE)):
            self.result["document"] = self.document
        if self.diff:
            self.result["diff"] = self.diff
        self.module.exit_json(**self.result)
        raise AssertionError("exit_json does not return")

    def _require_root(self, command: str) -> None:
        if os.geteuid() != 0:
            self.fail(f"{command} writes to the host and needs root: set become to true")

    def _judge(self, command: str, document: dict[str, Any]) -> None:
        result = self.result
        if command in _JUDGING:
            verdict = outcome.verdict(document, result["exit_code"])
            result.update(verdict=verdict, reasons=outcome.reasons(document))
            if "headline" in document:
                result["headline"] = document["headline"]
            result.update(findings=outcome.notable(document), outcomes=outcome.outcomes(document))
            pending = result["outcomes"].get("pending-reboot", 0) > 0
            result["reboot_required"] = document.get("reboot_required", pending)
        if "changes" in document:
            wanted = [one for one in document["changes"] if not self.params["runtime"] or one["lifetime"] == "runtime"]
            document["changes"] = wanted
            result["changes"] = wanted
        if command == "restore":
            result["reboot_required"] = document["reboot_required"]
        if command == "service":
            result["changed"] |= outcome.service_changed(document, self.params["state"])
        else:
            result["changed"] |= outcome.changed(command, document)
        self.diff += outcome.diff(document)


def _below_root() -> bool:
    """Does the environment lead tunectl to a recorded host?"""
    return os.path.realpath(os.environ.get("TUNECTL_ROOT") or "/") != "/"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _line(result: dict[str, Any], command: str) -> str:
    """What came of it, for who reads along."""
    said = [str(result.get("verdict") or ("changed" if result["changed"] else "nothing to change"))]
    if result.get("changes"):
        said.append(f"{len(result['changes'])} change(s)")
    if result.get("reboot_required") and said[0] != "pending-reboot":
        said.append("a reboot is pending")
    if command == "apply" and "unconfirmed" in result:
        back_at = result["unconfirmed"].get("back_at")
        said.append(f"to be confirmed by {back_at}" if back_at else "the next boot is tried")
    return f"{command}: {', '.join(said)}"


def main() -> None:
    """The module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_if=[("command", "service", ["name"]), ("command", "configure", ["host"])],
    )
    if module.params["host"] and module.params["command"] not in ("plan", "apply", "configure"):
        module.fail_json(
            msg=f"host: has a meaning with plan, apply and configure only, not with {module.params['command']}"
        )
    try:
        Tool(module).run()
    except OSError as error:
        module.fail_json(msg=f"tunectl: {to_native(error)}")


if __name__ == "__main__":
    main()
