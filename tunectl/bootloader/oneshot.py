"""The boot of an entry of ours, once: what all families share. Only reads.

A tried line has an id on it, by which the boot that was tried knows itself, and words that have a kernel that panicked
or an initramfs that stopped at its prompt boot again: the next boot is then the old one.
Source: kernel-parameters.txt (panic=); kernel/params.c, unknown_bootoption(): a word with a dot in its key is taken for
a module's, and handed to nobody; initramfs-tools(7), panic; dracut.cmdline(7), rd.shell, rd.emergency; crypttab(5);
systemd's TPM2_PCR_MEASUREMENTS.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.bootloader.family import Family, Once, Refusal
from tunectl.bootloader.hang import DRACUT, PANIC, arming, has_dracut, own_panic
from tunectl.bootloader.started import boots_next
from tunectl.bootloader.words import Desired, Same, append, merge
from tunectl.command import as_data, quoted
from tunectl.host.sysroot import Sysroot

# Of an entry's name. Menus are in the order of versions, the newest first, and there an A alone is below every other
# name: so ours never becomes the first, which boots where nothing else is chosen.
# Source: systemd's strverscmp_improved(), efi_loader_entry_name_valid() (no tilde); rpm's rpmvercmp(), as in blscfg.c.
PREFIX = "A-tunectl-try-"
KEY = "tunectl.try"
ID = "[0-9a-f]{8}"  # of a trial
_CRYPTTAB = "etc/crypttab"
# Arch's encrypt hook; dracut and systemd-cryptsetup-generator(8).
_UNLOCKED_BY_LINE = ("cryptdevice", "rd.luks.uuid", "rd.luks.name", "luks.uuid", "luks.name")


def entry_name(trial_id: str) -> str:
    """The name of a trial's entry, wherever it stands."""
    assert re.fullmatch(ID, trial_id)
    return PREFIX + trial_id


def is_our_entry(name: str) -> bool:
    """Is this the name of a trial's entry, with or without the suffix of its file?"""
    return re.fullmatch(rf"{PREFIX}{ID}(\..*)?", name) is not None


def without_our_choice(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment block as it is for the boots behind the one that is tried: that boot alone takes our entry."""
    return {name: value for name, value in variables.items() if name != "next_entry" or not is_our_entry(value)}


def tried_next(root: Sysroot, family: Family) -> str:
    """What the next boot alone takes, where that is an entry of ours; "" otherwise, and where it cannot be read."""
    with suppress(OSError):
        armed = family.once.armed(root) if family.once else ""
        return f"the next boot alone is tried: it takes {quoted(armed)}" if is_our_entry(armed) else ""
    return ""


def tried_id(line: str) -> str:
    """The id of the trial whose line this boot has; "" for none."""
    found = [arg.value or "" for arg in kernel_args(parse_cmdline(line)) if arg.key == KEY]
    return found[-1] if found and re.fullmatch(ID, found[-1]) else ""


def tried_line(root: Sysroot, line: str, desired: Sequence[Desired], same: Same, trial_id: str) -> str:
    """The default entry's line with our words as apply would put them, and the trial's.

    UsageError for a desired argument that would need quoting.
    """
    panic = "" if own_panic(line) else PANIC
    words = (f"{KEY}={trial_id}", panic, DRACUT if has_dracut(root) else "", arming(root))
    return append(merge((line,), desired, same), " ".join(filter(None, words)))[0]


def refusals(root: Sysroot, once: Once | None, name: str) -> tuple[Refusal, ...]:
    """Why `name`, a boot loader or kexec, cannot try a line for one boot on this host; () where it can."""
    if once is None:
        return (Refusal(f"tunectl cannot have {name} boot an entry once"),)
    if armed := once.armed(root):  # what is the default otherwise is not seen
        who = "an earlier try" if is_our_entry(armed) else "somebody"
        return (Refusal(f"{who} has chosen {quoted(armed)} for the next boot already"),)
    told = [Refusal(other)] if (other := boots_next(root)) else []
    return (*told, *_asks_at_boot(root), *once.refusals(root))


def _asks_at_boot(root: Sysroot) -> tuple[Refusal, ...]:
    """A passphrase that somebody has to type, or a TPM that may no longer give the key.

    A TPM gives a key for what it has measured, and boot loaders have it measure the kernel's line (PCR 8, 12).
    """
    told = [_asked_for(line) for line in root.get_text(_CRYPTTAB).splitlines()]
    args = kernel_args(parse_cmdline(root.get_text("proc/cmdline")))
    told += [f"{as_data(arg)} is on this boot's line" for arg in args if arg.key in _UNLOCKED_BY_LINE]
    why = next(filter(None, told), "")
    return (Refusal(f"the boot may wait for a passphrase: {why}", attended=True),) if why else ()


def _asked_for(line: str) -> str:
    """What of a line of crypttab(5) may need somebody at the console; "" for nothing. A key file asks nobody."""
    words = line.split()
    if len(words) < 2 or words[0].startswith("#"):
        return ""
    key, options = (*words[2:4], "", "")[:2]
    given = {option.partition("=")[0] for option in options.split(",")}
    if "noauto" in given:
        return ""
    if "tpm2-device" in given:
        return f"a TPM unlocks {as_data(words[0])} in /{_CRYPTTAB}, and it may have measured the line"
    return f"/{_CRYPTTAB} has no key file for {as_data(words[0])}" if key in ("", "none", "-") else ""
