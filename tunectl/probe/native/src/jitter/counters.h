/*
 * The kernel's own counters around a run: what else happened on the probed CPUs. The parsers are pure, text in and numbers
 * out; any bytes are survived.
 */
#ifndef TUNECTL_JITTER_COUNTERS_H
#define TUNECTL_JITTER_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cpus.h"
#include "lib/files.h"
#include "lib/span.h"

struct counter_row {
    struct span key;            /* "36", "LOC", "TIMER" */
    struct span description;    /* "PCI-MSI 524288-edge nvme0q0", "Local timer interrupts"; empty in /proc/softirqs */
};

/* Rows of a table, for the wanted CPUs only. Spans point into the parsed text, which must live as long. */
struct counter_table {
    struct counter_row *rows;
    uint64_t *counts;            /* n_rows * n_cpus */
    size_t n_rows;
    size_t n_cpus;
};

/*
 * /proc/interrupts or /proc/softirqs: a header naming the CPUs that have a column, then "key: count... description".
 * Columns are found by name, as an offline CPU has none in /proc/interrupts; a CPU without a column counts 0.
 * Rows that are not per CPU (ERR, MIS) are left out. Returns 0, -EINVAL (no header) or -ENOMEM.
 */
int counter_table_parse(struct counter_table *table, const char *text, size_t length, const struct cpu_list *cpus);
void counter_table_deinit(struct counter_table *table);

/*
 * How far row `row` of `after` moved on the CPU with index `cpu`, `before` is an earlier table for the same CPUs. A row
 * that was not there counts from 0. The kernel's counters are 32 bits wide and wrap; a count that fell by more than a wrap
 * explains belongs to an interrupt that was freed and requested again, and is taken as it is.
 */
uint64_t counter_delta(const struct counter_table *before, const struct counter_table *after, size_t row, size_t cpu);

/* Times of one CPU from /proc/stat, in clock ticks of USER_HZ since boot. */
struct cpu_times {
    uint64_t busy;      /* all but idle and iowait */
    uint64_t idle;
    uint64_t steal;
};

/* Returns false when the text has no line for `cpu`. */
bool cpu_times_parse(struct cpu_times *times, const char *text, size_t length, unsigned cpu);

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
