/*
 * The measured loop.
 *
 * Conservation: a turn runs from one stamp to the next, and the stamp that ends a turn begins the next one. Nothing is
 * stamped anew after a gap was recorded, so the time recording takes belongs to the turn that follows and is seen like
 * any other. Every tick from the first stamp to the last is therefore in exactly one turn, and
 *     end - start == quiet_ticks + recorder.stolen_ticks
 * once the recorder is finished.
 * A gap that crosses the deadline is recorded whole, and the run ends where it ends.
 */
#ifndef TUNECTL_LOOP_H
#define TUNECTL_LOOP_H

#include <stdatomic.h>
#include <stdint.h>

#include "recorder.h"

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
 * `turns` turns of the least loop that can see a gap: read, compare, next. What the real loop is judged against.
 * Returns the ticks taken without those of the gaps, and the gaps' number in `*gaps`.
 */
uint64_t loop_bare(uint64_t turns, uint64_t threshold, uint64_t *gaps);

#endif
