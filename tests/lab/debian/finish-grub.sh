#!/bin/sh
# Runs in the guest at its first boot, which QEMU started with -kernel: in a chroot on a loop device update-grub
# finds no kernel and no disk to name. From here on GRUB boots the machine.
set -eu

grub-install --target=i386-pc /dev/vda
update-grub
sync
