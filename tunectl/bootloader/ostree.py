"""rpm-ostree (Fedora Silverblue and IoT, RHEL for Edge): the deployments' entries in /boot/loader/entries.

A new deployment takes its arguments from the entry of the one before it, so the entries are also the source of those
to come. A staged deployment has taken them already, and writes its entry at shutdown: then it is too late to edit, and
rpm-ostree is asked what it took. `rpm-ostree kargs --append=...` stages one, too.
Source: ostree's ostree-sysroot-deploy.c (the merge deployment's bootconfig); rpm-ostree(1).
"""

from tunectl.bootloader.bls import expanded
from tunectl.bootloader.editor import Look, files_family
from tunectl.bootloader.entries import entry_files, entry_point, read_entries, version_key
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.command import as_data
from tunectl.host.ask import KARGS, ask
from tunectl.host.sysroot import Sysroot


def look(root: Sysroot) -> Look:
    """The deployments' entries; the one with the highest version is booted."""
    try:
        entries = [entry for entry in read_entries(root, ("boot",)) if entry.id.startswith("ostree-")]
    except OSError as error:
        return Look((), cannot_read(error))
    if not entries:
        return Look((), Upcoming((), "there is no deployment's entry in /boot/loader/entries"))
    holders = tuple(entry.holder for entry in entries)
    if root.exists(KARGS.needs):
        refusal = "an update is staged and will boot with the arguments it was staged with: reboot into it first"
        upcoming = Upcoming((), "an update is staged, and rpm-ostree was not asked which arguments it boots with")
        if line := ask(root, KARGS):
            upcoming = Upcoming((Point("the staged deployment (rpm-ostree kargs)", line.strip()),))
        return Look(holders, upcoming, refusal)
    default = max(entries, key=lambda entry: version_key(entry.version))
    points = (entry_point(root, default, expanded(default.line, {})),)
    refusal = ""
    if default.options != 1:
        refusal = (
            f"{as_data(f'/{default.path}')} has {default.options} lines of options, and a deployment's entry has one"
        )
    return Look(holders, Upcoming(points), refusal)


FAMILY: Family = files_family(look, entry_files(("boot",)))
