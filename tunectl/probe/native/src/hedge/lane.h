/*
 * The copies of requests on their way to one server: a queue with one writer and one reader, long enough for a whole run, so that it is
 * never full and no place is used twice. A copy is a word: the request, and whether it was started or cancelled, whichever was first.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANE_STARTED (UINT32_C(1) << 31)
#define LANE_CANCELLED (UINT32_C(1) << 30)

struct lane {
    _Atomic uint32_t *copies;           /* of zeros, one more than there can be copies */
    _Alignas(128) size_t sent;          /* the client's */
    _Alignas(128) size_t taken;         /* the server's */
};

/* Returns its place. */
static inline uint32_t lane_send(struct lane *lane, uint32_t request)
{
    /* release: who sees the copy sees the request */
    atomic_store_explicit(&lane->copies[lane->sent], request + 1, memory_order_release);
    return (uint32_t)lane->sent++;
}

/* By the client. False where the server has started it. */
static inline bool lane_cancel(struct lane *lane, uint32_t place)
{
    return !(atomic_fetch_or_explicit(&lane->copies[place], LANE_CANCELLED, memory_order_relaxed) & LANE_STARTED);
}

/* By the server: starts the next that is not cancelled. False where there is none. */
static inline bool lane_take(struct lane *lane, uint32_t *request)
{
    while (atomic_load_explicit(&lane->copies[lane->taken], memory_order_relaxed)) {
        uint32_t word = atomic_fetch_or_explicit(&lane->copies[lane->taken++], LANE_STARTED, memory_order_acquire);
        *request = word - 1;
        if (!(word & LANE_CANCELLED))
            return true;
    }
    return false;
}
