"""tunectl's own services, beside the one at boot: that one is the knob systemd.apply_at_boot."""

from tunectl.checking import Severity, compliant, costs, failing, unsupported
from tunectl.fix import in_turn
from tunectl.host.ask import read_unit_state
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.ourboot import installed_services, of_state


@costs(Severity.HYGIENE)
def test_own_services(host: Sysroot) -> None:
    """A monitor that did not start watches nothing, and a repair that failed leaves what has drifted as it is.

    Looked at: what systemd says of the monitor and of the repair in this boot, where they are installed and enabled.
    Source: org.freedesktop.systemd1(5).
    """
    installed = installed_services(host)
    if not installed:
        compliant("no service of tunectl's is installed beside the one at boot")
    states = {name: state for name in installed if (state := read_unit_state(host, name))}
    if not states:
        unsupported("systemd was not asked, or does not answer")
    found = {name: trouble for name, state in states.items() if (trouble := of_state(name, state)) and trouble.fix}
    if found:
        reason = "; ".join(f"{name}: {trouble.reason}" for name, trouble in found.items())
        shown = ", ".join(f"{name} {trouble.value}" for name, trouble in found.items())
        failing(reason, in_turn(*(trouble.fix for trouble in found.values())), observed=shown)
    compliant(", ".join(states))
