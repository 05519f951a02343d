#include "jitter/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* cgroup.procs of the group that this process is in. */
void partition_open_home(struct partition *p)
{
    static const char key[] = "0::";
    char path[PATH_MAX];
    struct text text = file_read("", "/proc/self/cgroup");
    char *found = !text.bytes ? NULL : strncmp(text.bytes, key, sizeof(key) - 1) == 0 ? text.bytes : strstr(text.bytes, "\n0::");
    p->home = -1;
    if (found) {
        found = strchr(found, '/');
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cgroup.procs", (int)strcspn(found, "\n"), found);
        p->home = open(path, O_WRONLY | O_CLOEXEC);
    }
    text_deinit(&text);
}

pid_t partition_fork(struct partition *p, const struct cpus *cpus)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child > 0) {
        p->child = child;
        return child;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    /*
     * Since Linux 6.2 a thread keeps the CPUs it asked for where its cpuset changes (8f9ea86fdf99): so it enters on the CPUs to
     * be probed, and on no other of the partition's, where an engine may run. Before, each worker moves on by itself.
     */
    (void)cpus_pin(0, cpus);
    /* "0": the writer itself. */
    ssize_t written = write(p->procs, "0", 1);
    (void)written;  /* refused: its CPUs are out of reach, and each worker says so */
    return 0;
}

void partition_leave(const struct partition *p)
{
    if (p->child > 0 && p->home >= 0)
        (void)dprintf(p->home, "%d", (int)p->child);
}
