/* The loop on a counter that we write down ourselves: which turns are gaps, to the tick. */
#include "check.h"
#include "recorders.h"
#include "lib/ticks.h"

#include <stddef.h>

static const uint64_t *script;
static size_t script_at;

static uint64_t scripted_ticks(void)
{
    return script[script_at++];
}

/* The same source once more, with another counter; its names must differ from those of the library. */
#define ticks_now scripted_ticks
#define loop_run scripted_loop_run
#define loop_run_from scripted_loop_run_from
#define loop_step_ticks scripted_loop_step_ticks
#define loop_first_step_ticks scripted_loop_first_step_ticks
#define loop_default_threshold_ns scripted_loop_default_threshold_ns
#include "lib/loop.c"

enum { THRESHOLD = 100, DEADLINE = 2000 };

static struct loop_totals run(struct recorder *r, const uint64_t *ticks)
{
    _Atomic uint64_t deadline = DEADLINE;
    struct loop_totals totals;
    script = ticks;
    script_at = 0;
    recorder_reset(r);
    scripted_loop_run(r, THRESHOLD, &deadline, &totals);
    recorder_finish(r);
    return totals;
}

static bool is_gap(const struct recorder *r, size_t at, uint64_t start, uint64_t end)
{
    return at < r->gaps_listed && r->gaps[at].start == start && r->gaps[at].end == end;
}

static void a_turn_of_the_threshold_is_none_and_one_tick_more_is_a_gap(struct recorder *r)
{
    struct loop_totals t = run(r, (const uint64_t[]){1000, 1010, 1110, 1120, 1221, 1230, 1330, 1340, 1941, 1950, 1960, 2000});
    CHECK(r->gaps_total == 2 && is_gap(r, 0, 1120, 1221) && is_gap(r, 1, 1340, 1941));
    CHECK(t.turns == 11 && t.quiet_turns == 9 && t.steps_back == 0);
    CHECK(t.start == 1000 && t.end == 2000 && t.quiet_ticks + r->stolen_ticks == 1000);
}

static void the_run_ends_at_its_deadline_or_with_the_gap_across_it(struct recorder *r)
{
    struct loop_totals t = run(r, (const uint64_t[]){1000, 1090, 1180, 1981, 1990, 1999, 2000});
    CHECK(t.end == 2000 && r->gaps_total == 1);
    t = run(r, (const uint64_t[]){1000, 1950, 1999, 2099, 2199});
    CHECK(t.end == 2099 && r->gaps_total == 1);
    t = run(r, (const uint64_t[]){1000, 1950, 1999, 2100, 2199});
    CHECK(t.end == 2100 && r->gaps_total == 2 && is_gap(r, 1, 1999, 2100));
}

static void what_nearly_equal_loops_ask_for_is_one_round_figure(void)
{
    const double asked_ns[] = {0.0, 100.0, 131.0, 134.0, 138.0, 200.0, 201.0, 501.0, 1000.5, 3000.0};
    const uint64_t round_ns[] = {100, 100, 200, 200, 200, 200, 500, 1000, 2000, 5000};
    for (size_t i = 0; i < sizeof(asked_ns) / sizeof(*asked_ns); i++)
        CHECK(scripted_loop_default_threshold_ns(asked_ns[i] / DEFAULT_THRESHOLD_STEPS, 1.0) == round_ns[i]);
    CHECK(scripted_loop_default_threshold_ns(1.0, 40.0) == 200);
}

void test_threshold(void)
{
    what_nearly_equal_loops_ask_for_is_one_round_figure();
    struct recorder r;
    CHECK(recorder_init(&r, 16) == 0);
    a_turn_of_the_threshold_is_none_and_one_tick_more_is_a_gap(&r);
    the_run_ends_at_its_deadline_or_with_the_gap_across_it(&r);
    recorder_deinit(&r);
}
