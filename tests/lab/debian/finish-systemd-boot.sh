#!/bin/sh
# Runs in the guest at its first boot, which QEMU started with -kernel. The kernel's own hook builds an image only where
# there is a boot partition, and that is here from now on.
set -eu

printf 'layout=uki\nuki_generator=ukify\n' >/etc/kernel/install.conf
# The same words as /etc/default/grub has for GRUB.
echo 'root=LABEL=lab ro console=ttyS0,115200 mitigations=off norandmaps quiet' >/etc/kernel/cmdline
bootctl --esp-path=/boot/efi --no-variables install
printf 'timeout 0\n' >/boot/efi/loader/loader.conf
kernel-install add "$(uname -r)" "/boot/vmlinuz-$(uname -r)"
rm /etc/default/grub
sync
