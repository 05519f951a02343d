/* The text of the kernel's trace buffer, a line an event. Pure: text in, values out; any bytes are survived. */
#ifndef TUNECTL_JITTER_TRACETEXT_H
#define TUNECTL_JITTER_TRACETEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/span.h"

struct trace_event {
    uint64_t ticks;         /* of the counter, as the clock x86-tsc gives them */
    struct span name;       /* "irq_handler_entry" */
    struct span details;    /* "irq=36 name=virtio1-req.0" */
};

/* The longest name of a cause; a longer one is cut. */
enum { TRACE_CAUSE_SIZE = 96 };

/*
 * One line of <instance>/per_cpu/cpuN/trace:
 *     "          <idle>-0       [001] d.h1. 36356935452468: local_timer_entry: vector=236"
 * A line of any other shape (comments, lost-event marks, times in seconds) is no event: false.
 */
bool trace_event_parse(struct trace_event *event, struct span line);

/* What an event means to the thread that was interrupted. */
enum trace_role {
    TRACE_NOTHING,          /* interrupts nobody, or is not known */
    TRACE_INTERRUPTION,     /* of whatever runs: an interrupt, a softirq, a page fault */
    TRACE_THREAD,           /* another thread has the CPU from here on, or says what it does with it */
    TRACE_BACK,             /* the interrupted thread has it again */
};

/*
 * What the event says the CPU was taken for, in words: "irq 36 virtio1-req.0", "softirq TIMER", "thread kworker/1:2". `text`
 * is set for TRACE_INTERRUPTION and TRACE_THREAD. `own_tid` is the interrupted thread's.
 */
enum trace_role trace_event_cause(char text[TRACE_CAUSE_SIZE], const struct trace_event *event, uint64_t own_tid);

/* From <instance>/per_cpu/cpuN/stats: how many events did not make it into the buffer. */
uint64_t trace_stats_lost(struct span text);

/* The events to ask for, as "system/event", NULL at the end. A kernel has only some of them. */
extern const char *const trace_events_wanted[];

#endif
