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
#pragma once

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
 * Spins until the counter passes `*deadline`, recording every turn longer than `threshold` ticks, or until a gap reaches
 * `r->until_ticks`: asked only where a gap was recorded, never in a quiet turn.
 *
 * The deadline is also the stop flag: a signal handler stores 0. One load serves both, and a SCHED_FIFO spinner that
 * starves every other thread of its CPU still ends on time.
 */
void loop_run(struct recorder *r, uint64_t threshold, const _Atomic uint64_t *deadline, struct loop_totals *totals);

/* The same with a first stamp that was taken before: whatever kept the thread from the loop since then is in the first turn. */
void loop_run_from(uint64_t start, struct recorder *r, uint64_t threshold, const _Atomic uint64_t *deadline,
                   struct loop_totals *totals);

/*
 * The cost of one undisturbed turn in ticks: the cheapest of `batches` runs of the loop of `batch_ticks` each, those with
 * a gap left out. 0 when every batch was disturbed.
 */
double loop_step_ticks(uint64_t threshold, unsigned batches, uint64_t batch_ticks);

/* The same before any threshold is known, on a counter of `hz`. */
double loop_first_step_ticks(double hz);

/*
 * The threshold when none is asked for: this many times the cost of a turn, or this many granules of a coarse counter,
 * rounded up to 100, 200, 500, 1000, ... ns: two runs on one host have the same, and count the same gaps.
 * Anything shorter than a few turns is the loop itself; recording a gap costs about one turn from a warm cache and
 * some ten from a cold one; and the shortest way into the kernel and back takes longer than 16 turns.
 */
enum { DEFAULT_THRESHOLD_STEPS = 16, DEFAULT_THRESHOLD_GRANULES = 4 };

/* That threshold, from what a turn takes on the slowest of the CPUs, and from the counter's granule. Pure. */
uint64_t loop_default_threshold_ns(double step_ns, double granule_ns);
