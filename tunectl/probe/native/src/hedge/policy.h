/*
 * Whether a request is taken, when it is sent to a second server, too, and whether the one that is left over is cancelled. Decided on
 * any clock: a time is what the caller hands in, in ticks of its own, and nothing here asks for one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/histogram.h"

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
