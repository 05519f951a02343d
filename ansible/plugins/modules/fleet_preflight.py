#!/usr/bin/python
# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""The documentation of an action plugin: the code is in plugins/action/fleet_preflight.py."""

DOCUMENTATION = r"""
---
module: fleet_preflight
short_description: Preflight on one host of a fleet, kept in a session on the controller
version_added: 0.1.0
author:
  - The tunectl authors (@tunectl)
description:
  - Calls C(tunectl preflight) once on the host, through the module M(tunectl.host.tunectl), and keeps the whole
    document in the session's directory on the controller. The task's result holds the verdict and the first reasons
    only, so that the documents of a large fleet do not gather in the controller's memory.
  - Where there is no document, the reason is kept in its stead; C(tunectl fleet report) calls that host missing, and
    counts it as UNKNOWN.
  - A verdict is data. The task fails only where there is no document.
options:
  session:
    description: The session's directory on the controller, as C(tunectl fleet open) has made it.
    type: path
    required: true
  program:
    description: As of M(tunectl.host.tunectl).
    type: path
  root:
    description: As of M(tunectl.host.tunectl).
    type: path
  host_file:
    description: As of M(tunectl.host.tunectl).
    type: path
  state_dir:
    description: As of M(tunectl.host.tunectl).
    type: path
  strict:
    description: Whether what cannot be read fails the host, too.
    type: bool
    default: false
  duration_s:
    description: How long to probe; without it as long as the limits of the host's budget need.
    type: float
  window_s:
    description: How long to watch the host.
    type: float
  load:
    description: Measure once more beside these loads, such as V(memory,timers), V(all), or V(none); without it what the
      host file says. Refused beside a running engine.
    type: str
  feed:
    description: Whether C(probe feed) is measured, too; without it what the host file says.
    type: bool
attributes:
  action:
    description: Runs on the controller and calls a module on the target.
    support: full
  check_mode:
    description: Changes nothing on the target; the document is kept in check mode, too.
    support: full
  diff_mode:
    description: There is nothing that could differ.
    support: none
seealso:
  - module: tunectl.host.tunectl
"""

EXAMPLES = r"""
- name: May this host trade?
  tunectl.host.fleet_preflight:
    session: /var/lib/cage/sessions/monday
    duration_s: 30
"""

RETURN = r"""
verdict:
  description: V(go), V(no-go), V(pending-reboot) or V(unknown).
  returned: when there is a document
  type: str
headline:
  description: The verdict in words, with each limit that is looser than the profile's and the waivers that stand.
  returned: when there is a document
  type: str
reasons:
  description: The first reasons why the verdict is not V(go).
  returned: when there is a document
  type: list
  elements: str
outcomes:
  description: How many findings there are of each outcome.
  returned: when there is a document
  type: dict
document_file:
  description: Where the document is kept on the controller.
  returned: when there is a document
  type: str
exit_code:
  description: That of tunectl.
  returned: when tunectl was called
  type: int
"""
