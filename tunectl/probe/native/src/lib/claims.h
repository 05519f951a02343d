/*
 * Somebody else's threads that want the CPUs of a run: told from the kernel's account of threads, which is memory. Nothing here
 * is done on those CPUs, and no CPU is interrupted.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "lib/host.h"
#include "lib/tasks.h"

enum { CLAIMS_FIRST_LOOK_US = 20000 };

struct claims;

/* Is handed a thread that wants one of the CPUs, or another hardware thread of its core; `task->cpu` says where. */
typedef void (*claim_heard)(const struct task *task, void *context);

/*
 * `cpus` are those of the run, `elsewhere` those on which nobody measures, `own` the number of our threads on `cpus`; the facts
 * are borrowed. Reads every thread of the host, for those that may run nowhere else. NULL without memory.
 */
struct claims *claims_new(const struct cpus *cpus, const struct cpus *elsewhere, size_t own, const struct host_facts *facts,
                          claim_heard heard, void *context);
void claims_free(struct claims *claims);

/* Those that may run nowhere else and are awake, or were since the last look. Reads them alone. */
void claims_look(struct claims *claims);

/* Those that have come since, and run. Reads every thread of the host. */
void claims_search(struct claims *claims);

/*
 * claims_look, and now and then claims_search: while one of our own threads, `tids` (0: none), is runnable, and kept from its
 * CPU for longer than an interruption by the kernel itself takes. To be called once a poll.
 */
void claims_poll(struct claims *claims, const pid_t *tids);
