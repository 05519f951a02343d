/* The counter the whole probe runs on: x86 TSC, or the arm64 virtual counter. */
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#define TICKS_SOURCE "tsc"
#elif defined(__aarch64__)
#define TICKS_SOURCE "cntvct_el0"
#else
#error "tunectl-probe knows the counters of x86-64 and aarch64"
#endif

/*
 * The counter now, in ticks. No fence: a fence costs half a turn again, and an interruption, which is what is looked
 * for, is itself serialising.
 */
static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/*
 * The same, but not before every earlier load has its value. For the stamp behind a receive: unfenced, it can be taken while
 * the load that finds the message is still on its way from the sender's cache.
 */
static inline uint64_t ticks_after_loads(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
    return __builtin_ia32_rdtsc();
#else
    __asm__ volatile("dsb ishld\n\tisb" ::: "memory");
    return ticks_now();
#endif
}

/* Work whose length is decided by a count, and by the clock that the core runs at: it asks no counter when it is over. */
enum { CHAIN_ADDS = 64 };   /* of a turn */

/*
 * `turns` times CHAIN_ADDS additions, each waiting for the one before: one cycle each on every core we know.
 * Register to register on purpose: cores since Golden Cove fold an added constant away at rename (measured: nine additions
 * a cycle), and the chain would show a clock nine times too fast.
 */
static inline void chain_run(uint64_t turns)
{
    uint64_t sum = 1;
    uint64_t addend = 3;
    for (uint64_t i = 0; i < turns; i++) {
#if defined(__x86_64__)
        __asm__ volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend));
#else
        __asm__ volatile(".rept 64\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(addend));
#endif
    }
}

/* How long that takes, in ticks. The second stamp waits for the chain: unfenced, it would be taken some hundred additions early. */
static __attribute__((noinline, unused)) uint64_t chain_ticks(uint64_t turns)
{
    uint64_t start = ticks_now();
    chain_run(turns);
    return ticks_after_loads() - start;
}
