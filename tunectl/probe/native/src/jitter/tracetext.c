#include "jitter/tracetext.h"

#include <stdio.h>
#include <string.h>

/* The task's name is right-aligned in as many columns, whatever bytes it holds; a dash and the thread's id follow. */
enum { COMM_COLUMNS = 16 };

/* Entries only: where an interruption ends, the probe's own stamp tells, and each event more is time taken from the CPU. */
const char *const trace_events_wanted[] = {
    "irq_vectors/local_timer_entry",
    "irq_vectors/reschedule_entry",
    "irq_vectors/call_function_entry",
    "irq_vectors/call_function_single_entry",
    "irq_vectors/irq_work_entry",
    "irq_vectors/thermal_apic_entry",
    "irq_vectors/threshold_apic_entry",
    "irq_vectors/deferred_error_apic_entry",
    "irq_vectors/error_apic_entry",
    "irq_vectors/spurious_apic_entry",
    "irq_vectors/x86_platform_ipi_entry",
    "irq/irq_handler_entry",
    "irq/softirq_entry",
    "nmi/nmi_handler",
    "sched/sched_switch",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
    "tlb/tlb_flush",
    "ipi/ipi_entry",
    "workqueue/workqueue_execute_start",
    NULL,
};

/* Events that need no details to be named. */
static const struct {
    const char *event;
    const char *cause;
} plain[] = {
    {"local_timer_entry", "local timer"},
    {"reschedule_entry", "reschedule IPI"},
    {"call_function_entry", "function call IPI"},
    {"call_function_single_entry", "function call IPI"},
    {"irq_work_entry", "irq_work"},
    {"thermal_apic_entry", "thermal interrupt"},
    {"threshold_apic_entry", "machine check threshold interrupt"},
    {"deferred_error_apic_entry", "deferred machine check interrupt"},
    {"error_apic_entry", "APIC error interrupt"},
    {"spurious_apic_entry", "spurious interrupt"},
    {"x86_platform_ipi_entry", "platform IPI"},
    {"page_fault_user", "page fault"},
    {"page_fault_kernel", "page fault"},
};

/* "[001]" */
static bool is_cpu_column(struct span word)
{
    uint64_t cpu;
    return word.length > 2 && word.at[0] == '[' && word.at[word.length - 1] == ']' &&
           span_number((struct span){word.at + 1, word.length - 2}, &cpu);
}

/* `word` without the colon it must end in. */
static bool ends_in_colon(struct span *word)
{
    if (word->length < 2 || word->at[word->length - 1] != ':')
        return false;
    word->length--;
    return true;
}

/* The stamp stands right behind the CPU, or behind one column of flags. */
static bool parse_ticks(struct span *rest, uint64_t *ticks)
{
    for (int column = 0; column < 2; column++) {
        struct span word = span_word(rest);
        if (ends_in_colon(&word) && span_number(word, ticks))
            return true;
    }
    return false;
}

bool trace_event_parse(struct trace_event *event, struct span line)
{
    uint64_t tid;
    if (line.length <= COMM_COLUMNS || line.at[COMM_COLUMNS] != '-')
        return false;
    struct span rest = {line.at + COMM_COLUMNS + 1, line.length - COMM_COLUMNS - 1};
    if (!span_number(span_word(&rest), &tid))
        return false;
    struct span word = span_word(&rest);
    if (word.length && word.at[0] == '(')   /* the thread group, "(  123)" in two words or "(12345)" in one */
        while (word.length && word.at[word.length - 1] != ')')
            word = span_word(&rest);
    if (!is_cpu_column(word))
        word = span_word(&rest);
    if (!is_cpu_column(word) || !parse_ticks(&rest, &event->ticks))
        return false;
    event->name = span_word(&rest);
    event->details = span_trimmed(rest);
    return ends_in_colon(&event->name);
}

static const struct span nothing = {"", 0};

/* For "%.*s": more than a cause holds is cut anyway. */
static int columns(struct span s)
{
    return s.length < TRACE_CAUSE_SIZE ? (int)s.length : TRACE_CAUSE_SIZE;
}

/* The kind and one or two names, each up to a NUL it may hold; too long ones are cut. */
static enum trace_role say(char text[TRACE_CAUSE_SIZE], enum trace_role role, const char *kind, struct span a, struct span b)
{
    (void)snprintf(text, TRACE_CAUSE_SIZE, "%s%.*s%s%.*s", kind, columns(a), a.at,
                   b.length ? " " : "", columns(b), b.at);
    return role;
}

/* "irq=36 name=virtio1-req.0" */
static enum trace_role irq_cause(char text[TRACE_CAUSE_SIZE], struct span details)
{
    struct span name = nothing;
    struct span number = span_word(&details);
    if (!span_starts(number, "irq="))
        return TRACE_NOTHING;
    details = span_trimmed(details);
    if (span_starts(details, "name="))
        name = (struct span){details.at + 5, details.length - 5};
    return say(text, TRACE_INTERRUPTION, "irq ", (struct span){number.at + 4, number.length - 4}, name);
}

/* "vec=1 [action=TIMER]" */
static enum trace_role softirq_cause(char text[TRACE_CAUSE_SIZE], struct span details)
{
    struct span name;
    if (!span_behind_last(details, "action=", &name))
        return TRACE_NOTHING;
    return say(text, TRACE_INTERRUPTION, "softirq ", span_until(name, "]"), nothing);
}

/*
 * "prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120"
 * Names may hold blanks, arrows and all; the last mark of each kind is the kernel's own.
 */
static enum trace_role switch_cause(char text[TRACE_CAUSE_SIZE], struct span details, uint64_t own_tid)
{
    struct span next;
    struct span behind;
    uint64_t tid;
    if (!span_behind_last(details, " ==> next_comm=", &next) || !span_behind_last(next, " next_pid=", &behind))
        return TRACE_NOTHING;
    size_t mark_length = sizeof(" next_pid=") - 1;
    struct span name = {next.at, (size_t)(behind.at - next.at) - mark_length};
    if (!span_number(span_word(&behind), &tid))
        return TRACE_NOTHING;
    if (tid == own_tid)
        return TRACE_BACK;
    if (tid == 0)
        return say(text, TRACE_THREAD, "idle (the probe was stopped, throttled or waiting)", nothing, nothing);
    return say(text, TRACE_THREAD, "thread ", name, nothing);
}

/* "work struct 000000000e31c2ef: function vmstat_update" */
static enum trace_role work_cause(char text[TRACE_CAUSE_SIZE], struct span details)
{
    struct span function;
    if (!span_behind_last(details, "function ", &function))
        return TRACE_NOTHING;
    return say(text, TRACE_THREAD, "work ", function, nothing);
}

/* Flushes that come with a switch or with the thread's own calls interrupt nobody. */
static enum trace_role tlb_cause(char text[TRACE_CAUSE_SIZE], struct span details)
{
    struct span reason;
    if (!span_behind_last(details, "reason:", &reason) || !span_starts(reason, "remote shootdown"))
        return TRACE_NOTHING;
    return say(text, TRACE_INTERRUPTION, "TLB shootdown", nothing, nothing);
}

enum trace_role trace_event_cause(char text[TRACE_CAUSE_SIZE], const struct trace_event *event, uint64_t own_tid)
{
    struct span name = event->name;
    struct span details = event->details;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (span_is(name, plain[i].event))
            return say(text, TRACE_INTERRUPTION, plain[i].cause, nothing, nothing);
    if (span_is(name, "irq_handler_entry"))
        return irq_cause(text, details);
    if (span_is(name, "softirq_entry"))
        return softirq_cause(text, details);
    if (span_is(name, "sched_switch"))
        return switch_cause(text, details, own_tid);
    if (span_is(name, "workqueue_execute_start"))
        return work_cause(text, details);
    if (span_is(name, "tlb_flush"))
        return tlb_cause(text, details);
    if (span_is(name, "nmi_handler"))
        return say(text, TRACE_INTERRUPTION, "NMI ", span_until(details, "+"), nothing);
    if (span_is(name, "ipi_entry"))
        return say(text, TRACE_INTERRUPTION, "IPI ", details, nothing);
    return TRACE_NOTHING;
}

uint64_t trace_stats_lost(struct span text)
{
    static const char *const counters[] = {"overrun:", "commit overrun:", "dropped events:"};
    uint64_t lost = 0;
    struct span line;
    while (span_line(&text, &line))
        for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
            size_t length = strlen(counters[i]);
            uint64_t count;
            if (span_starts(line, counters[i]) &&
                span_number(span_trimmed((struct span){line.at + length, line.length - length}), &count))
                lost = lost > UINT64_MAX - count ? UINT64_MAX : lost + count;
        }
    return lost;
}
