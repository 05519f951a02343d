#!/bin/sh
# Each script of the packages begins with this.
set -e

ours="tunectl-monitor.service tunectl-repair.path tunectl-repair.service"

# systemd runs this host: sd_booted(3)
booted() { [ -d /run/systemd/system ]; }

# The journal is there from the first write of apply until restore has taken back the last. One that restore set aside,
# because it does not tell all, may be the only way back to what is left. The last two only apply writes.
tuned() {
    for file in /var/lib/tunectl/journal.jsonl /var/lib/tunectl/newest /var/lib/tunectl/journal.jsonl.damaged.* \
        /etc/systemd/system/tunectl-apply.service /etc/default/grub.d/99-tunectl.cfg; do
        if [ -e "$file" ]; then return 0; fi
    done
    return 1
}

say_what_stands() {
    tuned || return 0
    cat >&2 <<EOF
tunectl: this host is tuned, and its tuning stands: the boot arguments, units and other files that apply wrote, and until
tunectl: the next boot the values in /proc and /sys. tunectl-apply.service, where apply wrote it, can no longer start.
tunectl: What everything was before is kept in /var/lib/tunectl, also when the package is purged. To take the tuning back:
tunectl: install tunectl again, run "sudo tunectl restore", reboot where it says so, and only then remove the package.
EOF
}

stop_monitor() {
    booted || return 0
    # shellcheck disable=SC2086  # one word a unit
    systemctl --no-reload disable --now $ours >/dev/null 2>&1 || true
}

reread_units() {
    booted || return 0
    systemctl daemon-reload || true
}

# A monitor that runs goes on with the new program; one that does not run is left alone.
restart_monitor() {
    booted || return 0
    systemctl try-restart tunectl-monitor.service || true
}
