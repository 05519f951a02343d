/* Interruptions of known length at known times. */
#ifndef TUNECTL_SELFTEST_INJECTOR_H
#define TUNECTL_SELFTEST_INJECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

struct injection {
    unsigned cpu;
    size_t n;
    uint64_t length_ticks;      /* each is at least so long; 0: as short as a thread can be there */
    uint64_t pause_ns;          /* from the end of one to the next */
    struct gap *truths;         /* n of them, filled in: from the first stamp taken to the last */
};

/*
 * A thread of the next higher kind, SCHED_FIFO, takes the CPU away from whatever ordinary thread runs there. Between its two
 * stamps this CPU ran that thread, or what interrupted it, and not the victim. Blocks until all are done. Returns 0 or -errno: -EPERM without CAP_SYS_NICE.
 */
int inject_by_preemption(struct injection *i);

/*
 * Interrupts from another CPU, by membarrier(2): the kernel sends one to every CPU that runs a thread of this process and waits
 * until each has answered. The truth brackets the interruption: it is within, not as long. The caller must not run on the
 * CPU. Returns 0 or -errno: -ENOSYS or -EINVAL where the kernel lacks it.
 */
int inject_by_ipi(struct injection *i);

#endif
