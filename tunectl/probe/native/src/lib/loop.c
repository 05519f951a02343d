#include "lib/loop.h"

#include "lib/ticks.h"

/* How a stretch of quiet turns ended: by a gap from `before` to `after`, or, when they are equal, by the deadline. */
struct stretch {
    uint64_t before;
    uint64_t after;
    uint64_t turns;
};

/*
 * The hot loop. It is a function of its own, with locals only, so that nothing but a counter read, two compares and an
 * increment can end up in it; all of those hide behind the counter read.
 * noinline: in the caller the recording code would compete with it for registers.
 */
static __attribute__((noinline)) struct stretch spin(uint64_t start, uint64_t threshold, const _Atomic uint64_t *deadline)
{
    uint64_t before = start;
    uint64_t turns = 0;
    for (;;) {
        uint64_t now = ticks_now();
        turns++;
        /* unsigned: a counter that goes backwards looks like an endless gap and leaves the loop as well */
        if (__builtin_expect(now - before > threshold, 0))
            return (struct stretch){before, now, turns};
        before = now;
        /* relaxed: the deadline guards no other data, and a late look costs one turn */
        if (__builtin_expect(now >= atomic_load_explicit(deadline, memory_order_relaxed), 0))
            return (struct stretch){now, now, turns};
    }
}

/* One stretch from `stamp` on, into the recorder and the totals. Returns the stamp it ended with. */
static uint64_t run_stretch(struct recorder *r, uint64_t stamp, uint64_t threshold, const _Atomic uint64_t *deadline,
                            struct loop_totals *t)
{
    struct stretch s = spin(stamp, threshold, deadline);
    t->turns += s.turns;
    t->quiet_turns += s.turns - (s.before != s.after);
    t->quiet_ticks += s.before - stamp;
    if (s.after > s.before)
        recorder_add(r, s.before, s.after);
    else if (s.after < s.before)
        t->steps_back++;
    return s.after;
}

void loop_run(struct recorder *r, uint64_t threshold, const _Atomic uint64_t *deadline, struct loop_totals *totals)
{
    loop_run_from(ticks_now(), r, threshold, deadline, totals);
}

void loop_run_from(uint64_t start, struct recorder *r, uint64_t threshold, const _Atomic uint64_t *deadline,
                   struct loop_totals *totals)
{
    struct loop_totals t = {.start = start};
    uint64_t stamp = t.start;
    do
        stamp = run_stretch(r, stamp, threshold, deadline, &t);
    while (stamp < atomic_load_explicit(deadline, memory_order_relaxed) && !recorder_has_reached(r));
    /*
     * A stop that comes while this thread is away, between a stamp and its look at the deadline, would end the run at that
     * stamp and hide the gap. So a run that is stopped comes round once more.
     */
    if (atomic_load_explicit(deadline, memory_order_relaxed) < t.start && !recorder_has_reached(r)) {
        _Atomic uint64_t now = ticks_now();
        stamp = run_stretch(r, stamp, threshold, &now, &t);
    }
    t.end = stamp;
    *totals = t;
}

double loop_step_ticks(uint64_t threshold, unsigned batches, uint64_t batch_ticks)
{
    double best = 0.0;
    for (unsigned i = 0; i < batches; i++) {
        uint64_t start = ticks_now();
        _Atomic uint64_t deadline = start + batch_ticks;
        struct stretch s = spin(start, threshold, &deadline);
        if (s.before != s.after)
            continue;
        double step = (double)(s.after - start) / (double)s.turns;
        if (best == 0.0 || step < best)
            best = step;
    }
    return best;
}

double loop_first_step_ticks(double hz)
{
    uint64_t batch_ticks = (uint64_t)(20e-6 * hz);
    return loop_step_ticks(batch_ticks, 50, batch_ticks);
}

uint64_t loop_default_threshold_ns(double step_ns, double granule_ns)
{
    double by_step = step_ns * (double)DEFAULT_THRESHOLD_STEPS;
    double by_granule = granule_ns * (double)DEFAULT_THRESHOLD_GRANULES;
    double least = by_step > by_granule ? by_step : by_granule;
    uint64_t round = 100;
    while ((double)round * 10.0 < least && round < UINT64_C(1000000000))
        round *= 10;
    return least <= (double)round ? round : least <= (double)round * 2.0 ? round * 2
         : least <= (double)round * 5.0 ? round * 5 : round * 10;
}
