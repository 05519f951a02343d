/*
 * Gaps joined with trace events: what each gap of one CPU was for. Pure but for memory.
 *
 * Gaps and events are both in the order of time and carry stamps of the same counter, so one pass does it: the causes of the
 * events between a gap's two stamps, in the order they came, are that gap's cause ("local timer + softirq TIMER"). While
 * another thread has the CPU, what interrupts that thread is no cause: the probe would not run either way.
 */
#ifndef TUNECTL_JITTER_CAUSES_H
#define TUNECTL_JITTER_CAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"
#include "jitter/tracetext.h"

/* Labels that always exist. */
enum cause_label {
    CAUSE_OUTSIDE_KERNEL,   /* traced, and no event fell into the gap */
    CAUSE_NOT_TRACED,       /* began after the trace buffer was full */
    CAUSE_NOT_LISTED,       /* beyond the list of gaps; never a listed gap's cause */
    CAUSE_OTHER,            /* so many different causes that no room was left for one more */
    CAUSE_FIXED_LABELS,
};

enum { CAUSE_LABELS_MAX = 1024, CAUSE_PARTS_MAX = 4, CAUSE_LABEL_SIZE = 320 };

/* One line of the table. Lengths in ticks. */
struct cause_row {
    uint32_t label;
    uint64_t count;
    uint64_t total;
    uint64_t max;
};

struct causes {
    char **labels;          /* n_labels texts; the first ones are CAUSE_... */
    uint32_t n_labels;
    uint32_t *of_gap;       /* a label for each listed gap; NULL before causes_init */
    uint64_t events;        /* trace events read */
    uint64_t events_apart;  /* of those, in no recorded gap: shorter than the threshold, or around the run */
    uint64_t events_lost;   /* events the trace buffer had no room for */

    const struct gap *gaps;
    size_t n_gaps;
    uint64_t own_tid;
    size_t at;              /* the gap being joined */
    uint64_t last_ticks;    /* of the latest event */
    char parts[CAUSE_PARTS_MAX][TRACE_CAUSE_SIZE];
    size_t n_parts;         /* one more than fit means "and more" */
    bool is_away;           /* another thread has the CPU */
};

/* For the gaps of one CPU, probed by the thread `own_tid`; they must live as long. Returns 0 or -ENOMEM. */
int causes_init(struct causes *c, const struct gap *gaps, size_t n, uint64_t own_tid);
void causes_deinit(struct causes *c);

/* Events in the order of time. Returns 0 or -ENOMEM. */
int causes_add(struct causes *c, const struct trace_event *event);

/* Once, after the last event; `events_lost` beyond 0 means that gaps after that event were not traced. */
int causes_finish(struct causes *c, uint64_t events_lost);

/*
 * The table, in `rows` for up to CAUSE_LABELS_MAX of them, longest total first: each gap in exactly one row, those the
 * recorder could not list in CAUSE_NOT_LISTED. Counts add up to r->gaps_total, totals to r->stolen_ticks.
 */
size_t causes_table(struct cause_row *rows, const struct causes *c, const struct recorder *r);

#endif
