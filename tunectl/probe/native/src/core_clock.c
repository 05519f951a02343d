#include "core_clock.h"

#include <stdint.h>

#include "ticks.h"

enum { CHAIN_TURNS = 1024, CHAIN_ADDS = 64, CHAIN_ROUNDS = 16 };

/*
 * CHAIN_TURNS * CHAIN_ADDS additions, each waiting for the one before: one cycle each on every core we know.
 * Register to register on purpose: cores since Golden Cove fold an added constant away at rename (measured: nine additions
 * a cycle), and the chain would show a clock nine times too fast.
 */
static __attribute__((noinline)) uint64_t chain_ticks(void)
{
    uint64_t sum = 1;
    uint64_t addend = 3;
    uint64_t start = ticks_now();
    for (unsigned i = 0; i < CHAIN_TURNS; i++) {
#if defined(__x86_64__)
        __asm__ volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend));
#else
        __asm__ volatile(".rept 64\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(addend));
#endif
    }
    return ticks_now() - start;
}

double core_clock_cycles_per_tick(void)
{
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i < CHAIN_ROUNDS; i++) {
        uint64_t ticks = chain_ticks();
        if (ticks && ticks < best)
            best = ticks;
    }
    return (double)(CHAIN_TURNS * CHAIN_ADDS) / (double)best;
}
