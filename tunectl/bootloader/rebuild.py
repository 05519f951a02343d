"""A unified kernel image's line is inside it: may kernel-install make the image anew, and of which kernel?

kernel-install names what it makes TOKEN-VERSION.efi, with a boot counter perhaps. An image of another name has another
builder (mkinitcpio, dracut's own call, a vendor), and kernel-install would put a second one beside it.
Source: systemd's 90-uki-copy.install and 60-ukify.install; ukify(1), uki.conf; sbctl's 91-sbctl.install.
"""

from __future__ import annotations

import re

from tunectl.bootloader.defaultsource import CMDLINE
from tunectl.bootloader.entries import Entry
from tunectl.host.sysroot import Sysroot

_COUNTER = r"(?:\+[0-9]+(?:-[0-9]+)?)?"
_CONFIGURATIONS = ("etc/kernel/uki.conf", "run/kernel/uki.conf", "usr/lib/kernel/uki.conf")
_SBCTL = ("etc/kernel/install.d/91-sbctl.install", "usr/lib/kernel/install.d/91-sbctl.install")
_SIGNS = re.compile(r"^\s*(?:SecureBootPrivateKey|SecureBootCertificateName)\s*=\s*\S", re.MULTILINE)


def kernel_of(root: Sysroot, image: Entry) -> str:
    """The kernel that kernel-install makes this image of, as a path; "" where it did not make it or has none."""
    if not image.kernel or not re.search(rf"-{re.escape(image.kernel)}{_COUNTER}\.efi\Z", image.path, re.IGNORECASE):
        return ""
    paths = (f"usr/lib/modules/{image.kernel}/vmlinuz", f"boot/vmlinuz-{image.kernel}")
    return next((path for path in paths if root.exists(path)), "")


def refusal(root: Sysroot, image: Entry) -> str:
    """Why the image that is booted next is not to be made anew; "" for nothing."""
    if not root.exists(CMDLINE):
        return (
            f"there is no /{CMDLINE}, so kernel-install would put this boot's own line into the image: write one "
            "first, with root= and whatever else the image's line has (`bootctl list` shows it)"
        )
    if not kernel_of(root, image):
        return (
            f"kernel-install did not make /{image.path}, or its kernel is not there: add the arguments where its "
            "builder takes the line from, and build it anew"
        )
    if image.signed and not _signs(root):
        return (
            f"/{image.path} is signed, and nothing says that kernel-install signs a new one (SecureBootPrivateKey= in "
            "/etc/kernel/uki.conf, or sbctl): unsigned it would not boot under Secure Boot"
        )
    return ""


def _signs(root: Sysroot) -> bool:
    configured = any(_SIGNS.search(root.get_text(path)) for path in _CONFIGURATIONS)
    return configured or any(root.exists(path) for path in _SBCTL)
