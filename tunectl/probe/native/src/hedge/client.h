/*
 * The client of two servers: it knows what becomes of each request, and does what the policy says. Like the policy it has no clock: it
 * is told what happens, and when, in ticks from the start; the live run and the simulation tell it the same.
 *
 * Open loop: when a request is due, and where its first copy goes, is fixed beforehand. Its latency counts from then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hedge/lane.h"
#include "hedge/policy.h"

enum { SERVER_A, SERVER_B, SERVERS, NOWHERE = -1, QUARTERS = 4 };

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
