/* The threads of the host, as /proc shows them. Reading only; what is read is in memory, and no CPU is interrupted. */
#ifndef TUNECTL_LIB_TASKS_H
#define TUNECTL_LIB_TASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/cpus.h"

enum { TASK_NAME_SIZE = 64, TASK_TEXT_SIZE = 160 };

/* /proc/PID/task/TID/stat at one moment. */
struct task {
    pid_t pid;
    pid_t tid;
    char name[TASK_NAME_SIZE];  /* comm; what is not printable is a question mark */
    char state;
    unsigned long flags;        /* PF_..., include/linux/sched.h */
    unsigned cpu;               /* where it runs, waits or ran last */
    unsigned rt_priority;       /* 1 to 99 for SCHED_FIFO and SCHED_RR, else 0 */
    unsigned policy;            /* SCHED_..., include/uapi/linux/sched.h */
};

/* False for a text that is none. A comm may hold blanks and parentheses. Pure. */
bool task_parse(struct task *task, const char *text);

/* "engine (tid 77, SCHED_FIFO 50)" into `text`. Returns `text`. */
char *task_format(const struct task *task, char text[TASK_TEXT_SIZE]);

bool task_is_kernel(const struct task *task);

/* False where it has ended. */
bool task_read(struct task *task, pid_t pid, pid_t tid);

/* How often it was put on a CPU, from /proc/PID/task/TID/schedstat; 0 without CONFIG_SCHED_INFO. */
uint64_t task_slices(pid_t pid, pid_t tid);

/* How often it left a CPU, of its own will or not, from /proc/PID/task/TID/status. */
uint64_t task_switches(pid_t pid, pid_t tid);

/* The CPUs it may use; empty where it has ended. Returns 0 or -ENOMEM. */
int task_allowed(struct cpu_list *allowed, pid_t pid, pid_t tid);

/*
 * Hands every thread of user space that is not of a tunectl-probe to `visit`, the latest processes first, until that returns
 * true. Returns whether it did.
 */
bool tasks_find(bool (*visit)(const struct task *task, void *context), void *context);

#endif
