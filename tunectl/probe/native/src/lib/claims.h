/*
 * Somebody else's threads that want the CPUs of a run: told from the kernel's account of threads, which is memory. Nothing here
 * is done on those CPUs, and no CPU is interrupted.
 */
#ifndef TUNECTL_LIB_CLAIMS_H
#define TUNECTL_LIB_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/cpus.h"
#include "lib/facts.h"
#include "lib/tasks.h"

enum { CLAIMS_FIRST_LOOK_US = 20000 };

struct claims;

/* Is handed a thread that wants one of the CPUs, or another hardware thread of its core; `task->cpu` says where. */
typedef void (*claim_heard)(const struct task *task, void *context);

/*
 * `cpus` are those of the run, `elsewhere` those on which nobody measures; all three are borrowed. Reads every thread of the
 * host, for those that may run nowhere else. NULL without memory.
 */
struct claims *claims_new(const struct cpu_list *cpus, const struct cpu_list *elsewhere, const struct host_facts *facts);
void claims_free(struct claims *claims);

/* Those that may run nowhere else and are awake, or were since the last look. Reads them alone. */
void claims_look(struct claims *claims, claim_heard heard, void *context);

/* Those that have come since, and run. Reads every thread of the host. */
void claims_search(struct claims *claims, claim_heard heard, void *context);

/* Is `cpu` the run's CPU of this index, or another hardware thread of its core? */
bool claims_is_near(const struct claims *claims, size_t index, unsigned cpu);

/* A thread of our own, between two looks at it. */
struct own_thread {
    uint64_t switches;      /* how often it had left a CPU at the last look */
};

/* Is it runnable, and kept from its CPU for longer than an interruption by the kernel itself takes? */
bool own_thread_is_kept(struct own_thread *thread, pid_t tid);

#endif
