"""rpm-ostree (Fedora Silverblue and IoT, RHEL for Edge): the deployments' entries in /boot/loader/entries.

A new deployment takes its arguments from the entry of the one before it, so the entries are also the source of those
to come. A staged deployment has taken them already, and writes its entry at shutdown: then it is too late to edit.
Source: ostree's ostree-sysroot-deploy.c (the merge deployment's bootconfig); rpm-ostree(1).
"""

from tunectl.bootloader.bls import expanded
from tunectl.bootloader.editor import Look, files_family
from tunectl.bootloader.entries import entry_files, entry_point, read_entries, version_key
from tunectl.bootloader.family import Family, Upcoming, cannot_read
from tunectl.command import as_data
from tunectl.host.sysroot import Sysroot

_STAGED = "run/ostree/staged-deployment"


def look(root: Sysroot) -> Look:
    """The deployments' entries; the one with the highest version is booted."""
    try:
        entries = [entry for entry in read_entries(root, ("boot",)) if entry.id.startswith("ostree-")]
    except OSError as error:
        return Look((), cannot_read(error))
    if not entries:
        return Look((), Upcoming((), "there is no deployment's entry in /boot/loader/entries"))
    default = max(entries, key=lambda entry: version_key(entry.version))
    points = (entry_point(root, default, expanded(default.line, {})),)
    refusal = ""
    if root.exists(_STAGED):
        refusal = "an update is staged and will boot with the arguments it was staged with: reboot into it first"
    elif default.options != 1:
        refusal = (
            f"{as_data(f'/{default.path}')} has {default.options} lines of options, and a deployment's entry has one"
        )
    return Look(tuple(entry.holder for entry in entries), Upcoming(points), refusal)


FAMILY: Family = files_family(look, entry_files(("boot",)))
