#!/bin/sh
# Runs in the guest at its first boot, which QEMU started with -kernel. From here on the firmware starts GRUB, from
# where it looks by itself, and GRUB writes where the firmware does.
set -eu

sed -i 's/ttyS0,115200/ttyAMA0/; s/^GRUB_TERMINAL=.*/GRUB_TERMINAL=console/; /^GRUB_SERIAL/d' /etc/default/grub
grub-install --target=arm64-efi --efi-directory=/boot/efi --removable --no-nvram
update-grub
sync
