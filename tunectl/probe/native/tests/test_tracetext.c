#include "check.h"
#include "jitter/tracestream.h"
#include "jitter/tracetext.h"

#include <stdlib.h>
#include <string.h>

enum { OWN = 4711 };

static struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* The line is an event at `ticks` that says `cause` in `role`. */
static void says(const char *line, uint64_t ticks, enum trace_role role, const char *cause)
{
    struct trace_event event;
    char text[TRACE_CAUSE_SIZE] = "";
    bool is_event = trace_event_parse(&event, span_of(line));
    CHECK(is_event);
    if (!is_event)
        return;
    CHECK(event.ticks == ticks);
    CHECK(trace_event_cause(text, &event, OWN) == role);
    if (strcmp(text, cause) != 0) {
        (void)fprintf(stderr, "%s\n says \"%s\", not \"%s\"\n", line, text, cause);
        CHECK(false);
    }
}

static void is_no_event(const char *line)
{
    struct trace_event event;
    CHECK(!trace_event_parse(&event, span_of(line)));
}

/* As kernels 6.18 and 6.1 wrote them, apart from the odd names. */
static void names_causes(void)
{
    says(" qemu-system-x86-3039    [001] d.h.. 36356935452468: local_timer_entry: vector=236", 36356935452468,
         TRACE_INTERRUPTION, "local timer");
    says(" qemu-system-x86-3039    [001] d.h.. 5: irq_handler_entry: irq=36 name=virtio1-req.0", 5, TRACE_INTERRUPTION,
         "irq 36 virtio1-req.0");
    says("          <idle>-0       [000] d.h1. 6: irq_handler_entry: irq=9 name=two words", 6, TRACE_INTERRUPTION,
         "irq 9 two words");
    says("           <...>-9       [001] ..s.. 7: softirq_entry: vec=1 [action=TIMER]", 7, TRACE_INTERRUPTION, "softirq TIMER");
    says("          python-3342    [001] d.... 8: page_fault_user: address=0x7fca2e45e030 ip=0x7fca2edaf8bb error_code=0x6", 8,
         TRACE_INTERRUPTION, "page fault");
    says("     kworker/1:2-32198   [001] ..... 9: workqueue_execute_start: work struct 000000000e31c2ef: function vmstat_update",
         9, TRACE_THREAD, "work vmstat_update");
    says("           probe-4711    [128] d..2. 10: sched_switch: prev_comm=probe prev_pid=4711 prev_prio=120 prev_state=R ==> "
         "next_comm=kworker/1:2 next_pid=32198 next_prio=120", 10, TRACE_THREAD, "thread kworker/1:2");
    says("     kworker/1:2-32198   [001] d..2. 11: sched_switch: prev_comm=kworker/1:2 prev_pid=32198 prev_prio=120 "
         "prev_state=I ==> next_comm=probe next_pid=4711 next_prio=120", 11, TRACE_BACK, "");
    says("           probe-4711    [001] d..2. 12: sched_switch: prev_comm=probe prev_pid=4711 prev_prio=120 prev_state=T ==> "
         "next_comm=swapper/1 next_pid=0 next_prio=120", 12, TRACE_THREAD, "idle (the probe was stopped, throttled or waiting)");
    says("              sh-3369    [001] d..2. 13: tlb_flush: pages:0 reason:flush on task switch (0)", 13, TRACE_NOTHING, "");
    says("              sh-3369    [001] d.h2. 14: tlb_flush: pages:3 reason:remote shootdown (1)", 14, TRACE_INTERRUPTION,
         "TLB shootdown");
    says("              sh-3369    [001] d.Z1. 15: nmi_handler: perf_event_nmi_handler+0x0/0x50 delta_ns: 2311 handled: 1", 15,
         TRACE_INTERRUPTION, "NMI perf_event_nmi_handler");
    says("              sh-3369    [001] d.h1. 16: ipi_entry: (Rescheduling interrupts)", 16, TRACE_INTERRUPTION,
         "IPI (Rescheduling interrupts)");
    says("              sh-3369    [001] d.h1. 17: something_else: 1", 17, TRACE_NOTHING, "");
}

/* Options of the host, or another kernel's columns, that choose_format could not switch off. */
static void reads_other_columns(void)
{
    says("              sh-3369    [001] 18: local_timer_entry: vector=236", 18, TRACE_INTERRUPTION, "local timer");
    says("              sh-3369    ( 3369) [001] d.h1. 19: local_timer_entry: vector=236", 19, TRACE_INTERRUPTION, "local timer");
    says("              sh-3369    (-------) [001] d.h1. 20: local_timer_entry: vector=236", 20, TRACE_INTERRUPTION, "local timer");
    is_no_event("# entries-in-buffer/entries-written: 3161/3161   #P:2");
    is_no_event("");
    is_no_event("CPU:1 [LOST 12 EVENTS]");
    is_no_event("              sh-3369    [001] d.h1.  1234.567890: local_timer_entry: vector=236");
    is_no_event("              sh-3369    [001] d.h1. 1234 local_timer_entry: vector=236");
    is_no_event("              sh-33x9    [001] d.h1. 1234: local_timer_entry: vector=236");
    is_no_event("              sh-3369    [001] d.h1. 1234: local_timer_entry");
    is_no_event("              sh-3369    [0x1] d.h1. 1234: local_timer_entry: vector=236");
}

/* Threads may call themselves anything. */
static void is_not_led_astray_by_names(void)
{
    says("  a-1 [001] 5: x-3369    [001] d.h1. 21: local_timer_entry: vector=236", 21, TRACE_INTERRUPTION, "local timer");
    says("               x-1       [001] d..2. 22: sched_switch: prev_comm= ==> next_comm= prev_pid=1 prev_prio=120 prev_state=R "
         "==> next_comm=a next_pid=0 x next_pid=77 next_prio=120", 22, TRACE_THREAD, "thread a next_pid=0 x");
    says("               x-1       [001] d.h1. 23: irq_handler_entry: irq=5", 23, TRACE_INTERRUPTION, "irq 5");
    char line[1000] = "               x-1       [001] d.h1. 24: irq_handler_entry: irq=5 name=";
    memset(line + strlen(line), 'n', 500);
    struct trace_event event;
    char text[TRACE_CAUSE_SIZE];
    CHECK(trace_event_parse(&event, span_of(line)));
    CHECK(trace_event_cause(text, &event, OWN) == TRACE_INTERRUPTION && strlen(text) == TRACE_CAUSE_SIZE - 1);
}

static void counts_what_was_lost(void)
{
    CHECK(trace_stats_lost(span_of("entries: 3161\noverrun: 4\ncommit overrun: 1\nbytes: 9\ndropped events: 30\nread events: 7\n")) ==
          35);
    CHECK(trace_stats_lost(span_of("")) == 0);
    CHECK(trace_stats_lost(span_of("overrun: x\ndropped events:\n")) == 0);
    CHECK(trace_stats_lost(span_of("overrun: 99999999999999999999999\noverrun: 5\n")) == UINT64_MAX);
}

struct heard {
    uint64_t ticks[8];
    size_t n;
};

static int hear(void *context, const struct trace_event *event)
{
    struct heard *heard = context;
    heard->ticks[heard->n++] = event->ticks;
    return heard->n == 4 ? -7 : 0;
}

/* However the text is cut into pieces, the same events come out; a line without an end, or too long, is none. */
static void pieces_make_the_same_lines(void)
{
    static const char text[] = "# tracer: nop\n"
                               "              sh-1       [001] d.h1. 1: local_timer_entry: vector=236\n"
                               "              sh-1       [001] d.h1. 2: reschedule_entry: vector=253\n\n"
                               "              sh-1       [001] d.h1. 3: irq_work_entry: vector=253\n"
                               "              sh-1       [001] d.h1. 4: cut";
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct tracestream *s = calloc(1, sizeof(*s));
        struct heard heard = {.n = 0};
        CHECK(s != NULL);
        for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
            size_t length = sizeof(text) - 1 - at < piece ? sizeof(text) - 1 - at : piece;
            CHECK(tracestream_feed(s, text + at, length, hear, &heard) == 0);
        }
        CHECK(heard.n == 3 && heard.ticks[0] == 1 && heard.ticks[2] == 3);
        free(s);
    }
}

static void skips_endless_lines_and_stops_when_told(void)
{
    static const char good[] = "              sh-1       [001] d.h1. 9: local_timer_entry: vector=236\n";
    struct tracestream *s = calloc(1, sizeof(*s));
    struct heard heard = {.n = 0};
    CHECK(s != NULL);
    for (int i = 0; i < 3 * TRACESTREAM_LINE; i++)
        CHECK(tracestream_feed(s, "x", 1, hear, &heard) == 0);
    CHECK(tracestream_feed(s, "\n", 1, hear, &heard) == 0 && heard.n == 0);
    for (int i = 0; i < 3; i++)
        CHECK(tracestream_feed(s, good, sizeof(good) - 1, hear, &heard) == 0);
    CHECK(tracestream_feed(s, good, sizeof(good) - 1, hear, &heard) == -7 && heard.n == 4);
    CHECK(tracestream_read("/nonexistent", hear, &heard) == -2);
    free(s);
}

void test_tracetext(void)
{
    names_causes();
    reads_other_columns();
    is_not_led_astray_by_names();
    counts_what_was_lost();
    pieces_make_the_same_lines();
    skips_endless_lines_and_stops_when_told();
}
