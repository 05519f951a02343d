/*
 * An instance of the kernel's tracing that is ours alone: <tracefs>/instances/tunectl-PID-START. Whatever else is traced on
 * the host stays as it is.
 *
 * The name says whose it is: PID, and that process's start time from /proc/PID/stat, which no later process of the same number
 * shares. A process killed with SIGKILL leaves its instance behind, tracing on; the next one to start removes it.
 */
#ifndef TUNECTL_JITTER_TRACEFS_H
#define TUNECTL_JITTER_TRACEFS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/cpus.h"
#include "lib/span.h"

struct trace_instance {
    char path[PATH_MAX];    /* empty: there is none */
    int switch_fd;          /* its tracing_on; while it is open, nobody can remove the instance */
};

/* Where the first file system of type tracefs in a text like /proc/mounts is mounted; false where none is. Pure. */
bool tracefs_mount_point(struct span mounts, struct span *point);

/* Field 22 of a text like /proc/PID/stat: when the process started, in ticks since boot. False in any other text. Pure. */
bool tracefs_start_time(struct span stat, uint64_t *start);

/* The directory of tracefs below `root`, into `path`. Mounts nothing. Returns 0, -ENOENT (not mounted) or -errno. */
int tracefs_find(char path[PATH_MAX], const char *root);

/* Removes the instances of processes that are no more. */
void tracefs_sweep(const char *tracefs, const char *root);

/* A new instance, switched off. Returns 0 or -errno. */
int trace_instance_init(struct trace_instance *t, const char *tracefs, const char *root);

/* Removes it. Returns 0 or -errno; harmless where there is none. */
int trace_instance_deinit(struct trace_instance *t);

/* `text` into the instance's file printf(`path`). Returns 0 or -errno. */
int trace_instance_write(const struct trace_instance *t, const char *text, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

/* tracing_cpumask := `cpus`. Returns 0 or -errno. */
int trace_instance_confine(const struct trace_instance *t, const struct cpu_list *cpus);

/* Tracing on or off; cheap and safe at any moment. Returns 0 or -errno. */
int trace_instance_switch(const struct trace_instance *t, bool on);

#endif
