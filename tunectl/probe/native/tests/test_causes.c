#include "jitter/causes.h"
#include "check.h"

#include <string.h>

enum { OWN = 4711 };

static void add(struct causes *c, uint64_t ticks, const char *name, const char *details)
{
    struct trace_event event = {ticks, {name, strlen(name)}, {details, strlen(details)}};
    CHECK(causes_add(c, &event) == 0);
}

static void add_switch(struct causes *c, uint64_t ticks, const char *next, unsigned tid)
{
    char details[200];
    (void)snprintf(details, sizeof(details), "prev_comm=x prev_pid=1 prev_prio=1 prev_state=R ==> next_comm=%s next_pid=%u next_prio=1",
                   next, tid);
    add(c, ticks, "sched_switch", details);
}

static const char *cause_of(const struct causes *c, size_t gap)
{
    return c->labels[c->of_gap[gap]];
}

static void record(struct recorder *r, const struct gap *gaps, size_t n, size_t capacity)
{
    bool locked;
    CHECK(recorder_init(r, capacity, &locked) == 0);
    for (size_t i = 0; i < n; i++)
        recorder_add(r, gaps[i].start, gaps[i].end);
    recorder_finish(r);
}

static const struct gap gaps[] = {{100, 110}, {200, 230}, {300, 350}, {400, 405}, {500, 590}, {600, 601}, {700, 720}};

enum { GAPS = sizeof(gaps) / sizeof(*gaps) };

static void joins_by_time(void)
{
    struct causes c;
    CHECK(causes_init(&c, gaps, GAPS, OWN) == 0);
    add(&c, 50, "local_timer_entry", "vector=236");         /* before all */
    add(&c, 100, "local_timer_entry", "vector=236");        /* on the very edge */
    add(&c, 205, "local_timer_entry", "vector=236");
    add(&c, 210, "softirq_entry", "vec=1 [action=TIMER]");
    add(&c, 215, "softirq_entry", "vec=1 [action=TIMER]");  /* once is enough */
    add(&c, 250, "reschedule_entry", "vector=253");         /* between two gaps: shorter than the threshold */
    add(&c, 301, "reschedule_entry", "vector=253");
    add_switch(&c, 302, "kworker/1:2", 9);
    add(&c, 303, "workqueue_execute_start", "work struct 0: function vmstat_update");
    add(&c, 304, "local_timer_entry", "vector=236");        /* interrupts the other thread, not the probe */
    add_switch(&c, 310, "probe", OWN);
    add(&c, 320, "irq_handler_entry", "irq=7 name=eth0");
    for (uint64_t i = 0; i < 6; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "t%u", (unsigned)i);
        add_switch(&c, 500 + i, name, 20 + (unsigned)i);
    }
    add_switch(&c, 590, "probe", OWN);
    CHECK(causes_finish(&c, 0) == 0);
    CHECK(strcmp(cause_of(&c, 0), "local timer") == 0);
    CHECK(strcmp(cause_of(&c, 1), "local timer + softirq TIMER") == 0);
    CHECK(strcmp(cause_of(&c, 2), "reschedule IPI + thread kworker/1:2 + work vmstat_update + irq 7 eth0") == 0);
    CHECK(c.of_gap[3] == CAUSE_OUTSIDE_KERNEL);
    CHECK(strcmp(cause_of(&c, 4), "thread t0 + thread t1 + thread t2 + thread t3 + more") == 0);
    CHECK(c.of_gap[5] == CAUSE_OUTSIDE_KERNEL && c.of_gap[6] == CAUSE_OUTSIDE_KERNEL);
    CHECK(c.events == 19 && c.events_apart == 2);
    causes_deinit(&c);
}

/* A gap behind the last event may have had a cause that found no room: it is not blamed on the hardware. */
static void what_was_not_traced_is_not_known(void)
{
    struct causes c;
    CHECK(causes_init(&c, gaps, GAPS, OWN) == 0);
    add(&c, 205, "local_timer_entry", "vector=236");
    CHECK(causes_finish(&c, 3) == 0);
    CHECK(c.of_gap[0] == CAUSE_OUTSIDE_KERNEL && strcmp(cause_of(&c, 1), "local timer") == 0);
    for (size_t i = 2; i < GAPS; i++)
        CHECK(c.of_gap[i] == CAUSE_NOT_TRACED);
    causes_deinit(&c);
}

static void the_table_holds_every_gap_once(size_t capacity)
{
    struct recorder r;
    struct causes c;
    static struct cause_row rows[CAUSE_LABELS_MAX];
    uint64_t count = 0;
    uint64_t total = 0;
    record(&r, gaps, GAPS, capacity);
    CHECK(causes_init(&c, r.gaps, r.gaps_listed, OWN) == 0);
    add(&c, 100, "local_timer_entry", "vector=236");
    add(&c, 205, "local_timer_entry", "vector=236");
    CHECK(causes_finish(&c, 0) == 0);
    size_t n = causes_table(rows, &c, &r);
    for (size_t i = 0; i < n; i++) {
        count += rows[i].count;
        total += rows[i].total;
        CHECK(rows[i].count && rows[i].max <= rows[i].total);
        CHECK(i == 0 || rows[i].total <= rows[i - 1].total);
    }
    CHECK(count == r.gaps_total && total == r.stolen_ticks);
    CHECK(n == (capacity < GAPS ? 3U : 2U));
    causes_deinit(&c);
    recorder_deinit(&r);
}

/* A thread a time, each with a name of its own: labels are bounded, gaps are not lost. */
static void very_many_causes_share_a_label(void)
{
    enum { MANY = CAUSE_LABELS_MAX + 50 };
    static struct gap many[MANY];
    struct causes c;
    for (size_t i = 0; i < MANY; i++)
        many[i] = (struct gap){100 * i + 10, 100 * i + 20};
    CHECK(causes_init(&c, many, MANY, OWN) == 0);
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "t%u", (unsigned)i);
        add_switch(&c, 100 * i + 11, name, 20);
    }
    CHECK(causes_finish(&c, 0) == 0);
    CHECK(c.n_labels == CAUSE_LABELS_MAX && c.of_gap[MANY - 1] == CAUSE_OTHER && c.of_gap[0] == CAUSE_FIXED_LABELS);
    causes_deinit(&c);
}

void test_causes(void)
{
    joins_by_time();
    what_was_not_traced_is_not_known();
    the_table_holds_every_gap_once(GAPS);
    the_table_holds_every_gap_once(3);
    very_many_causes_share_a_label();
}
