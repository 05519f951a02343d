/* The host's own counters around a run: what else happened on the probed CPUs. */
#ifndef TUNECTL_COUNTERS_H
#define TUNECTL_COUNTERS_H

#include "cpus.h"
#include "proctext.h"
#include "sysfile.h"

struct counter_texts {
    struct text interrupts;
    struct text softirqs;
    struct text stat;
};

struct counters {
    struct counter_texts texts_before;
    struct counter_texts texts_after;
    struct counter_table irq_before;
    struct counter_table irq_after;
    struct counter_table softirq_before;
    struct counter_table softirq_after;
};

/* Reading only; a file that cannot be read is empty, and its counters are then absent. */
void counters_read_before(struct counters *c, const char *root);
void counters_read_after(struct counters *c, const char *root);

/* Parses what was read, for `cpus`. Returns 0 or -ENOMEM. */
int counters_parse(struct counters *c, const struct cpu_list *cpus);
void counters_deinit(struct counters *c);

/* How the times of `cpu` moved, in USER_HZ ticks. False when /proc/stat did not name the CPU. */
bool counters_cpu_times(const struct counters *c, unsigned cpu, struct cpu_times *moved);

/* Timer interrupts on the CPU with index `cpu`: x86 "LOC", arm64 "arch_timer". */
uint64_t counters_timer_interrupts(const struct counters *c, size_t cpu);

#endif
