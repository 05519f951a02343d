#!/bin/sh
# Runs in the guest before the script of a loader that UEFI starts, in the same shell: the EFI system partition.
set -eu

mkfs.vfat -F 32 -n ESP /dev/vda1 >/dev/null
mkdir -p /boot/efi
echo 'LABEL=ESP  /boot/efi  vfat  umask=0077  0  0' >>/etc/fstab
systemctl daemon-reload
mount /boot/efi
