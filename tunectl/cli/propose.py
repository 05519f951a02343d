"""tunectl propose"""

import os
from typing import Any

import click
import msgspec

from tunectl.cli.command import emit, open_root, stay_off, tunectl_command, write_new
from tunectl.cli.helped import FAILED, OK, Example
from tunectl.cli.options import Options
from tunectl.cli.values import a_path, interfaces, one_of, profiles
from tunectl.errors import UsageError
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_topology
from tunectl.hostfile.config import UNMANAGED
from tunectl.hostfile.profile import load_profile
from tunectl.tuning.propose import Proposal, propose, propose_body


@tunectl_command(
    exits={FAILED: "no CPU can be isolated here, or the command failed"},
    formats=("text", "toml", "json"),
    examples=(
        Example("Which CPUs, and why:", "tunectl propose"),
        Example("Four CPUs next to the NIC that carries market data:", "tunectl propose --nic eth0 --count 4"),
        Example("Write the host file:", "sudo tunectl propose --output /etc/tunectl/host.toml"),
    ),
)
@click.option(
    "--nic",
    metavar="IF",
    shell_complete=one_of(interfaces),
    help="The interface that carries market data: CPUs next to it are taken.",
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="How many logical CPUs, rounded up to whole cores.")
@click.option(
    "--profile",
    default="low-latency",
    show_default=True,
    metavar="NAME",
    shell_complete=a_path(names=one_of(profiles)),
    help="A shipped profile, or a path.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the host file there; with --root, below DIR.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--from-tuned", is_flag=True, help="Take over the CPUs and values of TuneD's chosen profile.")
def command(
    options: Options,
    nic: str | None,
    count: int | None,
    profile: str,
    output: str | None,
    force: bool,
    from_tuned: bool,
) -> int:
    """Propose isolated CPUs, with the reason for each choice, and print a host file."""
    root = open_root(options)
    asked = load_profile(profile)
    if from_tuned and count:
        raise UsageError("--count with --from-tuned: TuneD's profile says which CPUs", "leave one of them out")
    facts = read_scope_facts(root)
    quiet = facts.quiet
    stay_off(root, quiet)
    identity = read_identity(root)
    if from_tuned:
        wanted = {name: line.value for name, line in asked.knobs.items() if line.value != UNMANAGED}
        proposal = _taken_over(root, facts, wanted, nic)
    else:
        proposal = propose(read_topology(root, quiet=quiet), nic=nic, count=count)
    if proposal.refusal and (nic or count):
        raise UsageError(proposal.refusal)
    body = propose_body(proposal, profile, identity.hostname, asked.budget)
    if output and not proposal.refusal:
        _require_own(output, options, root)
        write_new(output, body.host_file, force=force)
        body = msgspec.structs.replace(body, written=os.path.abspath(output))
    emit(options, "propose", identity, body)
    return FAILED if proposal.refusal else OK


def _require_own(output: str, options: Options, root: Sysroot) -> None:
    """What is proposed for a recorded host stays below it, or is what --host names outside /etc. UsageError."""
    place = os.path.realpath(output)
    is_named = options.host and place == os.path.realpath(options.host) and not place.startswith("/etc/")
    if root.live or is_named or place.startswith(os.path.realpath(root.root) + "/"):
        return
    inside = os.path.join(root.root, place[1:])
    raise UsageError(f"--output {output}: that is this machine's, and --root is not", f"--output {inside}")


def _taken_over(root: Sysroot, facts: CpuFacts, wanted: dict[str, Any], nic: str | None) -> Proposal:
    from tunectl.tuners.tuned import isolated_by, read_profile, read_tuned  # only here: most hosts have no TuneD
    from tunectl.tuning.fromtuned import not_covered, take_over

    if nic and not root.exists(f"sys/class/net/{nic}"):
        raise UsageError(f"there is no network interface '{nic}'")
    tuned, settings = read_profile(root), read_tuned(root)
    rest = not_covered(tuned, settings or ())
    return take_over(tuned, settings, isolated_by(tuned), facts, wanted, rest, nic)
