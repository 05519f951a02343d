/* Interruptions of known length at known times, on purpose: `tunectl probe selftest` looks for them in what was recorded. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

struct injection {
    unsigned cpu;
    int (*inject)(struct injection *i);     /* NULL: none was asked for */
    size_t n;
    uint64_t length_ticks;      /* each is at least so long; 0: as short as a thread can be there */
    uint64_t pause_ns;          /* from the end of one to the next */
    struct gap *truths;         /* room for n */
    size_t done;                /* of them; fewer where a signal ended the run */
    int error;                  /* -errno; -EPERM without CAP_SYS_NICE; -ENOSYS or -EINVAL where the kernel lacks membarrier */
};

/*
 * From "KIND,N,LENGTH_NS,PAUSE_NS"; NULL asks for none. The kinds:
 *
 * preemption: a thread of the next higher kind, SCHED_FIFO, takes the CPU away from whatever ordinary thread runs there. Between
 * its two stamps this CPU ran that thread, or what interrupted it, and not the victim.
 *
 * ipi: interrupts from another CPU, by membarrier(2): the kernel sends one to every CPU that runs a thread of this process and
 * waits until each has answered. The truth brackets the interruption: it is within, not as long.
 *
 * Returns EXIT_OK, or EXIT_USAGE or EXIT_FAILED with the reason on stderr.
 */
int injection_init(struct injection *i, const char *text, unsigned cpu, double hz);
void injection_deinit(struct injection *i);

/* Blocks until all are done. For ipi the caller must not be on the CPU. */
void injection_run(struct injection *i);
