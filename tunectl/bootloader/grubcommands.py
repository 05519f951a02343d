"""GRUB's own commands, by what they mean for the next boot. Data.

Source: GRUB manual, "Available commands"; the modules that Debian, Ubuntu, SUSE and Arch load in their grub.cfg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# Each loads a Linux kernel; the words behind it are the image and the kernel's line.
LOADERS = ("linux", "linux16", "linuxefi")
# Each loads something else: another boot loader, a hypervisor, another kernel.
_OTHER_LOADERS = """
chainloader multiboot multiboot2 ntldr freedos kfreebsd knetbsd kopenbsd truecrypt xen_hypervisor xen_linux
xnu_kernel xnu_kernel64 plan9 pxechainloader
"""
OTHER_LOADERS = tuple(_OTHER_LOADERS.split())
LEAVING = ("exit", "halt", "reboot", "fwsetup")
# They show, load or look for something, or set a variable that an option names; the menu stays as it is.
_EFFECTLESS = """
initrd initrd16 initrdefi module module2 devicetree xen_module xen_initrd insmod rmmod loadfont
echo clear cls sleep play date help ls lsmod lsfonts lspci lsacpi lssal lsefi lsefimmap lsefisystab lscoreboot cat
hexdump terminal_input terminal_output terminfo serial keymap keystatus videoinfo videotest vbeinfo vbetest usb acpi
background_color background_image gfxmenu password password_pbkdf2 authenticate cryptomount loopback
search search.file search.fs_label search.fs_uuid search.fs_type probe regexp read smbios cpuid rdmsr wrmsr
inb inl inw outb outl outw read_byte read_dword read_word setpci parttool gptsync hdparm drivemap nativedisk
list_env list_trusted trust distrust verify_detached hashsum md5sum sha1sum sha256sum sha512sum crc cmp testspeed
time pcidump efitextmode net_bootp net_bootp6 net_dhcp net_add_addr net_add_dns net_add_route net_ls_addr
net_ls_cards net_ls_dns net_ls_routes net_nslookup increment decrement sendkey btrfs-get-default-subvol
btrfs-list-subvols
"""
EFFECTLESS = frozenset(_EFFECTLESS.split())
# Functions that grub-mkconfig's scripts define. Where one is not defined, GRUB says so and goes on.
MKCONFIGS_FUNCTIONS = ("load_video", "gfxmode", "savedefault", "recordfail", "initrdfail")
_NAMING = ("--set", "-s", "--var", "-v")


def assigned_by(texts: Sequence[str]) -> Iterator[str]:
    """The variables that a command of EFFECTLESS may set: those that an option names, or their place."""
    name, words = texts[0], texts[1:]
    if name in ("read", "increment", "decrement"):
        yield from words[-1:]
    if name.startswith("search"):
        yield "root"
    if name.startswith("search."):
        yield from words[1:2]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in _NAMING:
            yield (value if equals else following).rpartition(":")[2]
