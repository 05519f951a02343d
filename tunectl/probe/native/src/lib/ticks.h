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

/* A length in half the memory; UINT32_MAX also for more. */
static inline uint32_t ticks_narrowed(uint64_t ticks)
{
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}
