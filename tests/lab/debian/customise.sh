#!/bin/sh
# Runs in a chroot of the new system, after debootstrap and after the files of debian/root are in place.
set -eu

# Timers would start package downloads, file-system scrubs and index builds in the middle of a measurement; the
# guest has no screen; the network is up when ssh answers; and nothing uses these modules and file systems.
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer man-db.timer systemd-tmpfiles-clean.timer getty@tty1.service \
    systemd-networkd-wait-online.service systemd-pstore.service systemd-network-generator.service \
    modprobe@drm.service modprobe@loop.service modprobe@dm_mod.service modprobe@fuse.service \
    systemd-logind.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount
systemctl enable systemd-networkd.service irqbalance.service ssh.service

# The kernel package's own hook was held back (INITRD=No) so that the image is built once, and small.
update-initramfs -c -k all

useradd --create-home --shell /bin/bash ops
for home in /root /home/ops; do
    install -d -m 700 "$home/.ssh"
    install -m 600 /lab.pub "$home/.ssh/authorized_keys"
done
chown -R ops:ops /home/ops/.ssh
rm /lab.pub

chmod 440 /etc/sudoers.d/ops
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/* /var/log/journal/*
