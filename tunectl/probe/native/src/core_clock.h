/* The clock the core really runs at, without a privileged read. */
#ifndef TUNECTL_CORE_CLOCK_H
#define TUNECTL_CORE_CLOCK_H

/* Core cycles per tick of the counter, from the fastest of 16 timed chains of dependent additions (about 0.3 ms in all). */
double core_clock_cycles_per_tick(void);

#endif
