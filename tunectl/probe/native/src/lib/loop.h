/*
 * The measured loop.
 *
 * Conservation: a turn runs from one stamp to the next, and the stamp that ends a turn begins the next one. Nothing is
 * stamped again after a gap was recorded, so the time recording takes belongs to the turn that follows and is seen like
 * any other. Every tick from the first stamp to the last is therefore in exactly one turn, and
 *     end - start == quiet_ticks + recorder.stolen_ticks
 * once the recorder is finished.
 * A gap that crosses the deadline is recorded whole, and the run ends where it ends.
 */
#ifndef TUNECTL_LIB_LOOP_H
#define TUNECTL_LIB_LOOP_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/recorder.h"

struct loop_totals {
    uint64_t start;         /* first stamp */
    uint64_t end;           /* last stamp */
    uint64_t turns;         /* all turns, those that were gaps included */
    uint64_t quiet_turns;
    uint64_t quiet_ticks;   /* the sum of those */
    uint64_t steps_back;    /* turns in which the counter went backwards: it is not usable on this host */
};

/*
 * Spins until the counter passes `*deadline`, recording every turn longer than `threshold` ticks.
 *
 * The deadline is also the stop flag: a signal handler stores 0. One load serves both, and a SCHED_FIFO spinner that
 * starves every other thread of its CPU still ends on time.
 */
void loop_run(struct recorder *r, uint64_t threshold, const _Atomic uint64_t *deadline, struct loop_totals *totals);

/*
 * The cost of one undisturbed turn in ticks: the cheapest of `batches` runs of the loop of `batch_ticks` each, those with
 * a gap left out. 0 when every batch was disturbed.
 */
double loop_step_ticks(uint64_t threshold, unsigned batches, uint64_t batch_ticks);

/*
 * The threshold when none is asked for: this many times the cost of a turn, or this many granules of a coarse counter.
 * Anything shorter than a few turns is the loop itself; recording a gap costs about one turn from a warm cache and
 * some ten from a cold one; and the shortest way into the kernel and back takes longer than 16 turns.
 */
enum { DEFAULT_THRESHOLD_STEPS = 16, DEFAULT_THRESHOLD_GRANULES = 4 };

/* That threshold in ticks, found by running the loop on the CPU the caller is on. */
uint64_t loop_default_threshold_ticks(const struct clock_span *clock);

/*
 * How far quiet turns and gaps together miss the length of the run on CLOCK_MONOTONIC_RAW, in ppm. The two sides share
 * nothing but the counter's rate `hz`: turns and gaps were added up one by one, the length is read off another clock, by the
 * pairs taken `before` and `after` the run on the same CPU. Pure.
 */
double loop_conservation_ppm(const struct loop_totals *totals, const struct recorder *r, const struct clock_pair *before,
                             const struct clock_pair *after, double hz);

/*
 * `turns` turns of the least loop that can see a gap: read, compare, next. What the real loop is judged against.
 * Returns the ticks taken without those of the gaps, and the gaps' number in `*gaps`.
 */
uint64_t loop_bare(uint64_t turns, uint64_t threshold, uint64_t *gaps);

#endif
