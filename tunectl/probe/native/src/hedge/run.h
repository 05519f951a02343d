/*
 * The experiment `hedge`: does a second copy of a late request help, and when does it break down? A run is one case: a load, a delay,
 * and the rest of a policy. One client sends requests to two servers that do work of one length, each thread on a CPU of its own.
 *
 * The same client (client.h) and policy run on simulated time, too: one tick is then a nanosecond, and no thread is started.
 *
 * A server's service time is from when it was last seen ready (it had found nothing to do, or was done with the one before) until it is
 * done: what stops the server meanwhile, waiting or working, is in it.
 */
#pragma once

#include "hedge/client.h"
#include "lib/pair.h"

enum {
    HEDGE_MOST = 6000000,       /* requests of a run: 72 bytes of memory each */
    HEDGE_STALL_US = 300,
    HEDGE_STALLED_PERCENT = 1,  /* of the time */
};

/* When a server stalls, in ticks from the start. */
struct stalls {
    uint64_t next;              /* UINT64_MAX: never */
    uint64_t seed;
    double ticks_per_ns;
};

/* Of two servers the same where both have the same seed. */
void stalls_init(struct stalls *stalls, bool has_any, uint64_t seed, double ticks_per_ns);

/* The one after `next`. Returns when `next`, which is over then, ends. */
uint64_t stalls_pass(struct stalls *stalls);

struct server {
    struct stalls stalls;
    uint32_t *service;          /* by request, in ticks; 0: not done here */
    _Atomic uint64_t *answers;  /* in their order: the work in ticks << 32 | the request + 1 */
    uint64_t turns;             /* of the chain, that make its work */
    uint64_t work_ticks;        /* how long they took when it was calibrated */
    uint64_t free_ticks;        /* of the measured time, in which it found nothing to do */
    struct usage used;
    _Alignas(128) size_t taken; /* answers that the client has; its own */
};

struct hedge_run {
    struct pair pair;
    struct policy_rules rules;
    struct client client;
    struct server servers[SERVERS];
    struct usage used;          /* by the client */
    uint64_t start_ticks;       /* the beginning of the run's own time, which the rest counts from */
    uint64_t end_ticks;         /* what has no answer by then has none */
    uint64_t counted_from;      /* when the first request that counts is due, */
    uint64_t counted_until;     /* and when the last is */
    _Atomic bool is_over;
    uint64_t measured_ticks;    /* from when the first request that counts was due until the last was, or until the run ended */
};

/* Whom --stall names, and --stall itself. */
enum hedge_stall { STALL_NONE, STALL_A, STALL_BOTH, STALL_COMMON };

extern const struct command hedge_command;
extern const struct pair_experiment hedge_experiment;

/* What follows from the options: "p95", "none" and their like as rules. EXIT_OK, or EXIT_USAGE with the reason. */
int hedge_read_rules(struct hedge_run *run);

/* Memory for a run of so many requests. EXIT_OK, or EXIT_USAGE or EXIT_FAILED with the reason on stderr. */
int hedge_get_memory(struct hedge_run *run);

/* So much of the time from `from` to `to` as is measured. */
uint64_t hedge_counted(const struct hedge_run *run, uint64_t from, uint64_t to);

/* When each request is due and where it goes, and when servers stall: by --seed. Once the counter's rate is known. */
void hedge_plan(struct hedge_run *run);

/* A seed of its own for each thing that is drawn, from --seed. Of streams that follow each other the servers have one each. */
enum { STREAM_ARRIVALS, STREAM_STALLS, STREAM_WORK = 3, STREAMS = 5 };

uint64_t hedge_seed(const struct hedge_run *run, unsigned stream);

/* The run is over. */
void hedge_end(struct hedge_run *run, uint64_t now);

/* A case on simulated time, from its plan to its end. */
void hedge_simulate(struct hedge_run *run);

enum { HEDGE_CLIENT, HEDGE_A, HEDGE_B, HEDGE_ENDS };

/*
 * Is one server slow when the other is? Slow: above the 99th percentile of its own service times. Of the requests that both servers
 * were done with, which may be chosen by the first being slow; so they are counted by which was the first.
 */
struct hedge_together {
    uint64_t served[SERVERS];
    uint64_t slow[SERVERS];
    uint64_t above_ticks[SERVERS];
    uint64_t pairs;
    uint64_t first_slow[SERVERS];   /* pairs whose first copy went there, and was slow */
    uint64_t both_slow;
};

struct hedge_together hedge_relate(const struct hedge_run *run);
