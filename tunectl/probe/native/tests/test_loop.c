#include "check.h"
#include "loop.h"
#include "ticks.h"

enum { RUN_TICKS = 5000000 };

/* Whatever happened meanwhile, every tick is in exactly one quiet turn or one gap. */
static void conserves_every_tick(uint64_t threshold, size_t capacity)
{
    struct recorder r;
    struct loop_totals t;
    bool locked;
    CHECK(recorder_init(&r, capacity, &locked) == 0);
    uint64_t deadline_ticks = ticks_now() + RUN_TICKS;
    _Atomic uint64_t deadline = deadline_ticks;
    loop_run(&r, threshold, &deadline, &t);
    recorder_finish(&r);
    CHECK(t.steps_back == 0);
    CHECK(t.end >= deadline_ticks);
    CHECK(t.end - t.start == t.quiet_ticks + r.stolen_ticks);
    CHECK(t.turns == t.quiet_turns + r.gaps_total + r.turns_merged);
    CHECK(r.gaps_total == r.gaps_listed + r.gaps_lost);
    for (size_t i = 0; i < r.gaps_listed; i++) {
        CHECK(r.gaps[i].end - r.gaps[i].start > threshold);
        CHECK(i == 0 || r.gaps[i].start > r.gaps[i - 1].end);
    }
    recorder_deinit(&r);
}

static void a_stop_ends_it_at_once(void)
{
    struct recorder r;
    struct loop_totals t;
    bool locked;
    CHECK(recorder_init(&r, 4, &locked) == 0);
    _Atomic uint64_t deadline = 0;
    loop_run(&r, UINT64_MAX, &deadline, &t);
    recorder_finish(&r);
    CHECK(t.turns == 1 && r.gaps_total == 0);
    recorder_deinit(&r);
}

/* With a threshold of 0 the last turn before the deadline is a gap as well, and must be in the result. */
static void a_gap_across_the_end_is_recorded(void)
{
    struct recorder r;
    struct loop_totals t;
    bool locked;
    CHECK(recorder_init(&r, 4, &locked) == 0);
    _Atomic uint64_t deadline = ticks_now() + 100000;
    loop_run(&r, 0, &deadline, &t);
    recorder_finish(&r);
    CHECK(r.gaps_total > 0);
    CHECK(t.end - t.start == t.quiet_ticks + r.stolen_ticks);
    recorder_deinit(&r);
}

static void measures_its_own_step(void)
{
    double step_ticks = loop_step_ticks(100000, 50, 20000);
    CHECK(step_ticks > 0.5 && step_ticks < 2000.0);
    uint64_t gaps;
    uint64_t ticks = loop_bare(10000, 100000, &gaps);
    CHECK(ticks > 0 && gaps < 100);
}

void test_loop(void)
{
    conserves_every_tick(UINT64_MAX, 4);
    conserves_every_tick(1000, 65536);
    conserves_every_tick(100, 16);
    conserves_every_tick(0, 1000);
    a_stop_ends_it_at_once();
    a_gap_across_the_end_is_recorded();
    measures_its_own_step();
}
