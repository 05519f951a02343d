/* Random numbers that are the same on every host: integers and comparisons alone, no logarithm of some library. */
#pragma once

#include <stdint.h>

/* A stream of 64-bit numbers (splitmix64); `state` is its seed. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 to below 1. */
static inline double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/*
 * Exponential, of mean 1 (von Neumann, 1951): of numbers below 1 that fall, a run that begins with x has an odd length with
 * probability exp(-x). Each run of even length adds 1.
 */
static inline double random_exponential(uint64_t *state)
{
    for (double whole = 0.0;; whole += 1.0) {
        double first = random_unit(state);
        unsigned length = 1;
        for (double last = first, next; (next = random_unit(state)) < last; last = next)
            length++;
        if (length % 2)
            return whole + first;
    }
}
