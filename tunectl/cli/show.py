"""tunectl show"""

from tunectl.bootloader.families import detect
from tunectl.cli.command import emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.host.adjtimex import read_kernel_clock
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.guest import read_guest
from tunectl.host.identity import read_firmware, read_identity
from tunectl.host.sysroot import Sysroot, is_missing
from tunectl.host.topology import read_topology
from tunectl.report.findings import counts
from tunectl.shapes import replaced
from tunectl.tuners.find import read_tuners
from tunectl.tuning.inspection import open_inspection
from tunectl.tuning.show import Roles, roles_of_kernel, show_body
from tunectl.tuning.trial import waiting


@tunectl_command(
    examples=(
        Example("This host, as tunectl sees it:", "tunectl show"),
        Example("For a program:", "tunectl show --format json"),
        Example("A recorded host:", "tunectl show --root /tmp/tx-01"),
    ),
)
def command(options: Options) -> int:
    """This host: CPUs, SMT siblings, caches, NUMA, NICs, interrupts, drivers, what is tuned, who else tunes."""
    root = open_root(options)
    with root.one_look():
        return _show(options, root)


def _show(options: Options, root: Sysroot) -> int:
    inspection = None
    if options.host or not is_missing(options.host_path):  # a file that was named must exist
        inspection = open_inspection(root, options.host_path, options.state_path, options.invocation, today())
    facts = read_scope_facts(root)
    isolated = inspection.config.scope.isolated if inspection else facts.quiet
    stay_off(root, isolated)
    topology = read_topology(root, quiet=isolated)
    roles = Roles(isolated, inspection.config.origin) if inspection else roles_of_kernel(topology)
    found = counts(inspection.assess().findings) if inspection else {}
    tuned = {str(outcome): count for outcome, count in found.items()} if inspection else None
    identity = read_identity(root)
    loader = detect(root, inspection.config.bootloader if inspection else "")
    guest = read_guest(root, topology.drivers.hypervisor)
    body = show_body(topology, read_tuners(root), roles, identity, tuned, loader, guest)
    waits = waiting(options.state_path, root, identity.boot_id)
    unknown = [waits.said] if waits.said and not waits.change else []
    body = replaced(body, firmware=read_firmware(root), kernel_clock=read_kernel_clock() if root.live else None)
    emit(options, "show", identity, replaced(body, unconfirmed=waits.change, notes=unknown))
    return OK
