#!/bin/sh
# Runs in the guest at its first boot, which QEMU started with -kernel. From here on the firmware starts GRUB, from
# where it looks by itself, and GRUB writes where the firmware does.
set -eu

mkfs.vfat -F 32 -n ESP /dev/vda1 >/dev/null
mkdir -p /boot/efi
echo 'LABEL=ESP  /boot/efi  vfat  umask=0077  0  0' >>/etc/fstab
systemctl daemon-reload
mount /boot/efi

sed -i 's/ttyS0,115200/ttyAMA0/; s/^GRUB_TERMINAL=.*/GRUB_TERMINAL=console/; /^GRUB_SERIAL/d' /etc/default/grub
grub-install --target=arm64-efi --efi-directory=/boot/efi --removable --no-nvram
update-grub
sync
