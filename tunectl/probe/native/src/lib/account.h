/* What the kernel has accounted to us: what kept our threads from their CPUs. Reading only, and no CPU is interrupted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ACCOUNT_UNKNOWN = -1 };

/* The calling thread's at one moment. */
struct account {
    unsigned cpu;           /* where it runs */
    uint64_t waited_ns;     /* runnable, and not running (CONFIG_SCHED_INFO; else 0) */
    int64_t migrations;     /* ACCOUNT_UNKNOWN without CONFIG_SCHED_DEBUG */
};

struct account account_now(void);

/* Of the control groups that hold a process, and of its threads, at one moment. */
struct throttle {
    uint64_t us;            /* for how long those that can be seen were out of their cpu.max (v1: their quota) since they were made */
    bool is_whole;          /* there is none beyond: all of them can be seen, up to the root of the hierarchy */
    int64_t waited_ns;      /* what the threads waited, ready to run, since they began; ACCOUNT_UNKNOWN without CONFIG_SCHED_INFO */
};

/*
 * Below `root`, "" for the running host. Outside what is seen may stand a limit on us: above the root of a control group namespace, where
 * the hierarchy is not mounted or hidden, and where the mount begins at a group. cgroup_namespaces(7), proc_pid_mountinfo(5)
 */
struct throttle throttle_read(const char *root, pid_t pid);

/* Adds what a thread has waited until now. */
void throttle_add_wait(struct throttle *throttle, pid_t tid);

/*
 * For how long a limit kept the threads from their CPUs between two looks, in us, or ACCOUNT_UNKNOWN. It did so for no longer than they
 * waited. A wait of less than 1 ms, the shortest period of a limit (kernel/sched/core.c, min_cfs_quota_period), is no throttling.
 */
int64_t throttled_us(const struct throttle *before, const struct throttle *after);

/* The number behind `key` at the beginning of a line and blanks or colons; `otherwise` where there is none. Pure. */
int64_t account_value(const char *text, const char *key, int64_t otherwise);
