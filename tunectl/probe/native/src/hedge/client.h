/*
 * The client of two servers: it knows what becomes of each request, and does what the policy says. Like the policy it has no clock: it
 * is told what happens, and when, in ticks from the start; the live run and the simulation tell it the same.
 *
 * Open loop: when a request is due, and where its first copy goes, is fixed beforehand. Its latency counts from then.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

/*
 * The copies of requests on their way to one server: a queue with one writer and one reader, long enough for a whole run, so that it is
 * never full and no place is used twice. A copy is a word: the request, and whether it was started or cancelled, whichever was first.
 */
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

/*
 * Whether a request is taken, when it is sent to a second server, too, and whether the one that is left over is cancelled. Decided on
 * any clock: a time is what the caller hands in, in ticks of its own, and nothing here asks for one.
 */
#define POLICY_NEVER UINT64_MAX

enum {
    POLICY_WINDOW = 4096,       /* answers that a percentile is of: the last ones */
    POLICY_FEWEST = 100,        /* without so many nothing is hedged by percentile */
    POLICY_BUCKET = 100,        /* hedges that can be saved up: what a stall of a hundred service times holds up */
};

/* What was asked for. */
struct policy_rules {
    uint64_t delay;             /* from due, in ticks; POLICY_NEVER: nothing is hedged */
    double percentile;          /* as a share: the delay is this percentile of the latest answers; 0: it is `delay` */
    double budget;              /* hedges for each request, on average; 1 and more: no limit */
    unsigned shed;              /* a queue that long refuses; 0: none does */
    bool cancels;
};

/* A percentile of the latest answers, exact to a bucket of the histogram: it moves by what comes and what goes. */
struct follower {
    uint16_t counts[HISTOGRAM_BUCKETS];
    uint16_t window[POLICY_WINDOW];     /* the bucket of each; the oldest is at `next` once it is full */
    size_t next;
    size_t n;
    size_t bucket;              /* that holds the percentile, */
    size_t below;               /* and how many answers are in the buckets before it */
};

struct policy {
    struct policy_rules rules;
    uint64_t delay;             /* in force */
    double tokens;
    struct follower follower;
};

enum policy_verdict {
    POLICY_WAIT,
    POLICY_HEDGE,
    POLICY_DENIED,              /* it is late, and the other queue is full */
    POLICY_OVER_BUDGET,         /* it is late, and no token is left */
};

void policy_init(struct policy *p, const struct policy_rules *rules);

/* Is a request taken that meets a queue of so many? Each that is taken earns its share of a hedge. */
bool policy_admits(struct policy *p, size_t queue);

/* What becomes at `now` of a request that was due at `due` and has no answer, where the other server has a queue of so many. */
enum policy_verdict policy_judge(struct policy *p, uint64_t due, uint64_t now, size_t queue);

/* When such a request is late, as things stand; POLICY_NEVER. */
uint64_t policy_late_at(const struct policy *p, uint64_t due);

/* An answer took so long from due: the delay that follows a percentile follows. */
void policy_learn(struct policy *p, uint64_t latency);

enum { SERVER_A, SERVER_B, SERVERS, NOWHERE = -1, QUARTERS = 4 };

/* A length in half the memory; UINT32_MAX also for more. */
static inline uint32_t ticks_narrowed(uint64_t ticks)
{
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

/* What became of a request: bits. Of a copy: by its server. */
enum {
    REQUEST_CAME = 1,
    REQUEST_ADMITTED = 2,
    REQUEST_HEDGED = 4,
    REQUEST_DENIED = 8,
    REQUEST_OVER_BUDGET = 16,
    REQUEST_ANSWERED = 32,
    REQUEST_WON = 64,           /* by the hedge */
    REQUEST_DONE = 128,         /* << server: the copy came back */
    REQUEST_CANCELLED = 512,    /* << server: and this one never will */
};

struct request {
    uint64_t due;
    uint64_t answered;
    uint32_t sent[SERVERS];     /* its copy there, in ticks from due; UINT32_MAX also for more */
    uint32_t place[SERVERS];    /* of that copy, in its lane */
    uint32_t delay;             /* that was in force when it was hedged; as `sent` */
    uint16_t first;             /* the server of its first copy */
    uint16_t state;
};

struct client {
    struct request *requests;
    size_t n;
    size_t warm_ups;            /* the first of them, which are not counted */
    struct policy policy;
    struct lane lanes[SERVERS];
    size_t next;                /* the first that is not due yet */
    size_t oldest;              /* the first that may still be hedged */
    size_t queue[SERVERS];      /* copies that are there, and not cancelled */
    size_t queue_most;
    uint64_t queues[QUARTERS];  /* in each quarter of the requests: of all that came, what both queues held, summed */
    uint64_t arrivals[QUARTERS];
    uint64_t busy_ticks;        /* work that came back between the first and the last counted due time */
    uint64_t wasted_ticks;      /* work on copies whose request had its answer already */
    uint64_t fastest_ticks;     /* the shortest time from the sending of a copy to its answer; UINT64_MAX without any */
};

/* Over requests and lanes of zeros, which the caller has. */
void client_init(struct client *c, struct request *requests, size_t n, size_t warm_ups, const struct policy_rules *rules);

/* When something is to be done next, as things stand: a request is due, or late. POLICY_NEVER. */
uint64_t client_next(const struct client *c);

/* The next request, which is due. Returns the server that a copy was sent to, or NOWHERE. */
int client_arrive(struct client *c, uint64_t now);

/* Hedges the oldest request that is late. Returns the server that a copy was sent to, or NOWHERE: then there is none more. */
int client_hedge(struct client *c, uint64_t now);

/* A copy came back from its server, which took so long with it. */
void client_answer(struct client *c, unsigned server, uint32_t request, uint32_t work_ticks, uint64_t now);

/* Did all come, and is nothing under way? */
bool client_is_done(const struct client *c);
