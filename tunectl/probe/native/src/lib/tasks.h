/* The threads of the host, as /proc shows them. Reading only; what is read is in memory, and no CPU is interrupted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/host.h"

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

/* /proc/PID/task/TID/schedstat; all 0 without CONFIG_SCHED_INFO. */
struct task_account {
    uint64_t ran_ns;
    uint64_t waited_ns;         /* runnable, while another thread had the CPU */
    uint64_t slices;            /* how often it was put on a CPU */
};

struct task_account task_account(pid_t pid, pid_t tid);

/* How often it left a CPU, of its own will or not, from /proc/PID/task/TID/status. */
uint64_t task_switches(pid_t pid, pid_t tid);

/*
 * Can every thread of the host be seen? The kernel's own kthreadd, process 2 on each, is hidden by hidepid= from whoever is not
 * root, and in a PID namespace other than the host's.
 */
bool tasks_are_all_seen(void);

/* Hands every thread of user space that is not of a tunectl-probe to `visit`, the latest processes first. */
typedef void (*task_visitor)(const struct task *task, void *context);
void tasks_visit(task_visitor visit, void *context);

/*
 * Somebody else's threads that want the CPUs of a run: told from the kernel's account of threads, which is memory. Nothing here
 * is done on those CPUs, and no CPU is interrupted.
 */
enum { CLAIMS_FIRST_LOOK_US = 20000, CLAIMS_WANTED_NS = 3000000 };

struct claims;

/*
 * EXIT_OK, or EXIT_FAILED with the reason on stderr: where threads are hidden, nobody can say whose CPU it is. Not for a run that
 * is to take time from others.
 */
int claims_check(void);

/*
 * `cpus` are those of the run, `elsewhere` those on which nobody measures, `own` the number of our threads on `cpus`; the facts
 * are borrowed. Reads every thread of the host, for those that may run nowhere else. NULL without memory. `heard` is handed the threads
 * that want one of the CPUs, or another hardware thread of its core; `task->cpu` says where.
 */
struct claims *claims_new(const struct cpus *cpus, const struct cpus *elsewhere, size_t own, const struct host_facts *facts,
                          task_visitor heard, void *context);
void claims_free(struct claims *claims);

/*
 * Looks at those that may run nowhere else, or were found there. Of a core that all of them together wanted for 3 ms beyond a share of
 * 3 ms a second, it hands over the one that wanted it most. Who wants less is a gap of the measurement, like any other. Reads them alone.
 */
void claims_look(struct claims *claims);

/*
 * What goes beyond that share, `passed_ns` after it was `beyond_ns`. A sum of time does not depend on when looks come: a late one sees no
 * more. Pure.
 */
uint64_t claims_beyond_share(uint64_t beyond_ns, uint64_t wanted_ns, uint64_t passed_ns);

/* From now on those are looked at, too, that have come since, and run. Reads every thread of the host. */
void claims_search(struct claims *claims);

/*
 * claims_look, and now and then claims_search: while one of our own threads, `tids` (0: none), is runnable, and kept from its
 * CPU for longer than an interruption by the kernel itself takes. To be called once a poll.
 */
void claims_poll(struct claims *claims, const pid_t *tids);
