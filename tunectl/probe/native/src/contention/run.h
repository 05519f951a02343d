/*
 * The experiment `contention`: what do a lock and an allocator cost two threads that share them? A run is one case: whence buffers
 * come, and how they are handed over.
 *
 * Open loop: buffer i is due at start + i * period, whatever became of those before it. The sender takes it and writes to each of its
 * pages, and hands it over; the receiver reads it, keeps it while HELD more come, and gives it back. A sender that is late sends at
 * once and keeps the schedule: from due to had holds that.
 *
 * A pool belongs to the sender. Buffers come back in the order in which they were taken: so it is two counters, one of each thread.
 * The size of a buffer is drawn, the same in each run: up to --bytes from malloc; of a pool all are that large.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pair.h"

enum contention_buffers { FROM_MALLOC, FROM_POOL };
enum contention_hand_over { BY_MUTEX, BY_FUTEX, BY_RING };

enum {
    CONTENTION_MOST = 4000000,      /* buffers of a run: 32 bytes of memory each */
    CONTENTION_WARM_UPS = 1000,
    SLOTS = 64,                     /* handed over and not yet had; a power of two */
    HELD = 32,
    POOL_BUFFERS = 2 * (SLOTS + HELD),
};

struct pool {
    unsigned char *memory;
    size_t bytes;                   /* of each buffer */
    _Alignas(128) size_t taken;     /* its owner's */
    _Alignas(128) _Atomic size_t given;
};

/* A ring, and around it what the case asks for. */
struct queue {
    pthread_mutex_t mutex;
    void *slots[SLOTS];
    _Alignas(128) _Atomic size_t put;
    _Alignas(128) _Atomic size_t had;
    _Alignas(128) _Atomic uint32_t is_asleep;
};

/* By buffer, in ticks. */
struct contention_stamps {
    uint64_t *begun;                /* the sender's */
    uint64_t *taken;
    uint64_t *had;                  /* the receiver's */
    uint64_t *giving;               /* how long the giving back of an earlier one took */
};

struct contention_run {
    struct pair pair;
    size_t buffers;                 /* warm-ups among them */
    uint64_t start_ticks;
    uint64_t period_ticks;
    struct pool pool;
    struct queue queue;
    struct contention_stamps stamps;
    struct usage used[ENDS];        /* from the last warm-up to the end */
    _Atomic size_t sent;            /* by the sender, and no more once it is over */
    _Atomic size_t arrived;
    _Atomic bool is_over;
};

extern const struct command contention_command;
extern const struct pair_experiment contention_experiment;
