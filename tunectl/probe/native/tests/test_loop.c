#include "check.h"
#include "recorders.h"
#include "lib/loop.h"
#include "lib/ticks.h"

#include <signal.h>
#include <sys/time.h>

enum { RUN_TICKS = 5000000 };

/* Whatever happened meanwhile, every tick is in exactly one quiet turn or one gap. */
static void conserves_every_tick(uint64_t threshold, size_t capacity)
{
    struct recorder r;
    struct loop_totals t;
    CHECK(recorder_init(&r, capacity) == 0);
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
    CHECK(recorder_init(&r, 4) == 0);
    _Atomic uint64_t deadline = 0;
    loop_run(&r, UINT64_MAX, &deadline, &t);
    recorder_finish(&r);
    /* and once round more: what the stop may have hidden would show */
    CHECK(t.turns == 2 && t.quiet_turns == 2 && r.gaps_total == 0);
    CHECK(t.end - t.start == t.quiet_ticks);
    recorder_deinit(&r);
}

/* The gap that is long enough is the last one, and no shorter one ends the loop. */
static void a_gap_that_reaches_the_limit_ends_it(void)
{
    struct recorder r;
    struct loop_totals t;
    CHECK(recorder_init(&r, 65536) == 0);
    _Atomic uint64_t deadline = ticks_now() + 1000 * (uint64_t)RUN_TICKS;
    r.until_ticks = 200;
    loop_run(&r, 0, &deadline, &t);
    struct gap last = r.open;
    CHECK(last.end - last.start >= 200 && t.end == last.end && t.end < deadline);
    recorder_finish(&r);
    CHECK(r.max_ticks == last.end - last.start);
    CHECK(t.end - t.start == t.quiet_ticks + r.stolen_ticks);
    recorder_deinit(&r);
}

static _Atomic uint64_t stoppable;
static const uint64_t away_ticks = 3000000;
static uint64_t came_at;

/* Interrupts the loop wherever it is, keeps it away, and stops it. */
static void on_alarm(int number)
{
    uint64_t start = came_at = ticks_now();
    (void)number;
    while (ticks_now() - start < away_ticks)
        continue;
    atomic_store(&stoppable, 0);
}

/* Between a stamp and the look at the deadline as well as anywhere else: the gap a stop comes in is recorded. */
static void the_gap_a_stop_comes_in_is_recorded(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction before;
    struct itimerval soon = {.it_value = {.tv_usec = 2000}};
    struct recorder r;
    int seen = 0;
    CHECK(recorder_init(&r, 65536) == 0);
    CHECK(sigaction(SIGALRM, &action, &before) == 0);
    for (int i = 0; i < 30; i++) {
        struct loop_totals t;
        recorder_reset(&r);
        atomic_store(&stoppable, UINT64_MAX);
        CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
        loop_run(&r, 1000, &stoppable, &t);
        recorder_finish(&r);
        CHECK(t.end - t.start == t.quiet_ticks + r.stolen_ticks);
        if (came_at < t.start)
            continue; /* on a busy machine it may come before the loop begins: no gap of the loop */
        seen++;
        CHECK(r.max_ticks >= away_ticks && r.stolen_ticks >= away_ticks);
    }
    CHECK(seen > 0);
    (void)sigaction(SIGALRM, &before, NULL);
    recorder_deinit(&r);
}

/* With a threshold of 0 the last turn before the deadline is a gap as well, and must be in the result. */
static void a_gap_across_the_end_is_recorded(void)
{
    struct recorder r;
    struct loop_totals t;
    CHECK(recorder_init(&r, 4) == 0);
    _Atomic uint64_t deadline = ticks_now() + 100000;
    loop_run(&r, 0, &deadline, &t);
    recorder_finish(&r);
    CHECK(r.gaps_total > 0);
    CHECK(t.end - t.start == t.quiet_ticks + r.stolen_ticks);
    recorder_deinit(&r);
}

/* A CPU that was given too late: the time until then is the first gap, even where nothing of the run is left. */
static void what_kept_it_from_the_start_is_recorded(void)
{
    struct recorder r;
    struct loop_totals t;
    CHECK(recorder_init(&r, 4) == 0);
    uint64_t start = ticks_now();
    _Atomic uint64_t deadline = start + 50000;
    while (ticks_now() < start + 100000)
        continue;
    loop_run_from(start, &r, 50000, &deadline, &t);
    recorder_finish(&r);
    CHECK(t.start == start && t.quiet_ticks == 0);
    CHECK(r.gaps_total == 1 && r.gaps[0].start == start && r.stolen_ticks >= 100000);
    CHECK(t.end - t.start == r.stolen_ticks);
    recorder_deinit(&r);
}

static void measures_its_own_step(void)
{
    double step_ticks = loop_step_ticks(100000, 50, 20000);
    CHECK(step_ticks > 0.5 && step_ticks < 2000.0);
}

void test_loop(void)
{
    conserves_every_tick(UINT64_MAX, 4);
    conserves_every_tick(1000, 65536);
    conserves_every_tick(100, 16);
    conserves_every_tick(0, 1000);
    a_stop_ends_it_at_once();
    a_gap_that_reaches_the_limit_ends_it();
    the_gap_a_stop_comes_in_is_recorded();
    a_gap_across_the_end_is_recorded();
    what_kept_it_from_the_start_is_recorded();
    measures_its_own_step();
}
