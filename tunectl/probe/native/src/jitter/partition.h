/*
 * The workers' process, where the probed CPUs belong to an isolated partition of control group v2: nothing outside the partition
 * may run on them, and nothing inside it anywhere else. So the workers, and they alone, live in a process of their own in there.
 */
#pragma once

#include <sys/types.h>

#include "lib/cpus.h"

struct partition {
    int procs;          /* the open cgroup.procs of a group inside it; -1: the workers are threads of this process */
    int home;           /* that of this process's own group, for the way out; -1 where it cannot be opened */
    pid_t child;
};

/* `procs` as above. Before partition_fork. */
void partition_init(struct partition *p, int procs);

/*
 * In the child: enters the partition, on no other CPU than these. Returns the child's process id, 0 in the child, or -errno. Where
 * the partition would not take it, the workers cannot run on their CPUs. What both share must be mapped as shared before.
 */
pid_t partition_fork(struct partition *p, const struct cpus *cpus);

/* Takes the child out of the partition, to this process's CPUs. */
void partition_leave(const struct partition *p);

/* Ends the child at once. */
void partition_end(const struct partition *p);
