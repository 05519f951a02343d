/*
 * Two threads, each pinned to its CPU: one sends, the other receives; or three, of which the first decides when the work is over. The
 * main thread has them do it step by step: they prepare, compare their clocks where they are two, work, and end.
 *
 * SIGINT and its like are blocked in them: the main thread takes signals, and the first looks at the flag. A thread that waits in
 * vain is left waiting: it ends with the process.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/claims.h"
#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/json.h"
#include "lib/thread.h"

enum { SENDER, RECEIVER, ENDS, ENDS_MOST };

/* How far the receiver's counter is ahead of the sender's: a bound from both sides, by stamps sent to and fro. */
struct clock_offset {
    bool is_known;              /* not where both are on one CPU */
    int64_t least_ticks;        /* where least > most, the counters have no common time at all */
    int64_t most_ticks;
};

/* One side's stamp, for the other to read. */
struct clock_stamp {
    _Alignas(128) _Atomic uint64_t turn;
    uint64_t ticks;
};

/* What a thread of the pair does, in its own context. */
typedef void (*pair_step)(void *context);

struct pair;

struct pair_thread {
    struct pair *pair;
    pthread_t thread;
    unsigned side;              /* its place among the ends: of two, SENDER or RECEIVER */
    unsigned cpu;
    _Atomic pid_t tid;          /* 0 before it has one */
    int status;                 /* EXIT_OK once it is where it belongs */
    sem_t is_over;
    struct clock_stamp stamp;
    int64_t nearest_ticks;      /* the least difference it has seen to a stamp of the other's */
};

/* What the ends are called, and what --cpus has to say for them. */
struct pair_roles {
    size_t n;
    const char *names[ENDS_MOST];
    const char *expected;
};

extern const struct pair_roles pair_sender_and_receiver;

struct pair {
    const char *name;           /* "wake": the threads are called wake-sender and wake-receiver */
    const struct pair_roles *roles; /* NULL: pair_choose makes it these two */
    int fifo_priority;          /* 0: the scheduling class stays */
    double ticks_per_ns;
    pair_step prepare[ENDS_MOST]; /* once on its CPU: memory is touched there */
    pair_step work[ENDS_MOST];
    void *context;
    struct cpus cpus;           /* all of them */
    struct cpus housekeeping;   /* where the main thread is; empty when no CPU is left for it */
    struct claims *claims;      /* NULL: nobody watches */
    struct watch watch;
    bool is_locked;             /* its memory */
    uint64_t timer_slack_ns;    /* of the receiver */
    uint64_t throttled_us;      /* by a cgroup's cpu.max, while they worked */
    struct clock_offset offset;
    pthread_barrier_t barrier;
    struct pair_thread ends[ENDS_MOST];
};

/*
 * Their CPUs: "S,R", one for each end, or, where `text` is NULL, the last ones that are isolated, or that this process may use. Returns
 * EXIT_OK, or EXIT_USAGE with the reason on stderr.
 */
int pair_choose(struct pair *pair, const char *text, const struct host_facts *facts);

/* The main thread off their CPUs; where none is left for it, to the first one's. */
void pair_leave_cpus(struct pair *pair, const struct host_facts *facts);

/* The calling thread, `what`, to the CPU and its scheduling class. Returns EXIT_OK, or EXIT_FAILED with the reason on stderr. */
int pair_settle(const char *what, unsigned cpu, int fifo_priority);

/*
 * The other host's end of a round trip: the calling thread is `name`, at the receiver's CPU, its memory locked. Returns as pair_settle.
 */
int pair_reflector_settle(const struct pair *pair, const char *name, int fifo_priority);

/* Says in a line of JSON how fast this host's counter is: it sends back what comes from now on. Returns as pair_settle. */
int pair_reflector_say_ready(void);

/*
 * Starts the threads, waits until they are prepared, locks what memory there is, and has two find `offset`; of three it stays unknown.
 * Returns EXIT_OK, or EXIT_FAILED with the reason on stderr.
 *
 * From now on, but not where it `intrudes` or no CPU is left for it, a guard watches from a housekeeping CPU: a thread of somebody
 * else that wakes on one of their CPUs, or on another hardware thread of their cores, gets it. All are moved away, which needs no
 * time on the CPUs that they leave, and the program ends with the reason: what was measured is void.
 */
int pair_start(struct pair *pair, const struct host_facts *facts, bool intrudes);

/*
 * Lets them work. One that is not done so many ms after the first, `patience_ms(context)`, is left. Returns whether all came to their
 * end; otherwise one is still there.
 */
bool pair_work(struct pair *pair, int (*patience_ms)(const void *context));

/* Nobody watches any more. The threads end where the work `is_over`; else one still waits, and ends with the process. */
void pair_end(struct pair *pair, bool is_over);

/* `cpus`, `clock` and `facts` of a document, into the open object. */
void pair_write(struct json *j, const struct pair *pair, const struct clock_span *clock, const struct host_facts *facts);
