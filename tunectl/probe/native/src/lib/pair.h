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

#include "lib/account.h"
#include "lib/tasks.h"
#include "lib/clock.h"
#include "lib/host.h"
#include "lib/json.h"
#include "lib/options.h"
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

/* An experiment of such threads: what is its own of a run that is the same for all of them. Each is handed the pair's `run`. */
struct pair_experiment {
    struct pair *pair;              /* of the run, */
    void *run;                      /* of which it is a part */
    const struct command *command;  /* "wake": the threads are called wake-sender and wake-receiver */
    const struct pair_roles *roles;
    pair_step prepare[ENDS_MOST];   /* once on its CPU: memory is touched there */
    pair_step work[ENDS_MOST];
    int (*check)(void *run);        /* what the options do not say by themselves, and pair_choose where CPUs are needed */
    int (*measure)(void *run);      /* returns the exit status; a `reason` where it cannot be measured */
    int (*reflect)(void *run);      /* is the other host's end of a round trip; NULL: there is none */
    void (*write_run)(struct json *j, const void *run);     /* members of the document that no other experiment has */
    void (*write_asked)(struct json *j, const void *run);   /* of the case: what was asked for, */
    void (*write_measured)(struct json *j, void *run);      /* and, where there is no reason, what was measured */
};

struct pair {
    const struct pair_experiment *experiment;
    const struct options *options;
    void *run;                  /* of which this is a part */
    void *context;              /* of the steps */
    struct host_facts facts;
    struct clock_span clock;
    double ticks_per_ns;
    struct cpus cpus;           /* all of them; none where nothing runs but a simulation, of whose clock a tick is a nanosecond */
    struct cpus housekeeping;   /* where the main thread is; empty when no CPU is left for it */
    struct claims *claims;      /* NULL: nobody watches */
    struct watch watch;
    bool is_locked;             /* its memory */
    uint64_t timer_slack_ns;    /* of the receiver */
    int64_t throttled_us;       /* by a limit of control groups, while they worked; or ACCOUNT_UNKNOWN */
    struct clock_offset offset;
    pthread_barrier_t barrier;
    struct pair_thread ends[ENDS_MOST];
    char reason[192];           /* why it was not measured; empty where it was */
    bool is_interrupted;
    double duration_s;
    int64_t at_s;               /* CLOCK_REALTIME when the measuring began */
};

/*
 * A whole run: what follows `tunectl-probe NAME` in `argv` is read, the case measured and its document written, or the other host's end
 * served. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER.
 */
int pair_main(const struct pair_experiment *experiment, int argc, char **argv);

/*
 * Their CPUs: --cpus, one for each end, or else the last ones that are isolated, or that this process may use. Returns EXIT_OK, or
 * EXIT_USAGE with the reason on stderr; EXIT_FAILED where whose the CPUs are cannot be seen, without --intrude.
 */
int pair_choose(struct pair *pair);

/* Why the case cannot be measured, from an errno. */
void pair_cannot(struct pair *pair, const char *what, int rc);

/*
 * The other host's end of a round trip: the calling thread is "wake-reflector", at the receiver's CPU, its memory locked. A line of JSON
 * says how fast this host's counter is: it sends back what comes from now on. Returns EXIT_OK, or EXIT_FAILED with the reason on stderr.
 */
int pair_reflector_say_ready(const struct pair *pair);

/*
 * Starts the threads, waits until they are prepared, locks what memory there is, and has two find `offset`; of three it stays unknown.
 * Returns EXIT_OK, or EXIT_FAILED with the reason on stderr.
 *
 * From now on, but not with --intrude or where no CPU is left for it, a guard watches from a housekeeping CPU: a thread of somebody
 * else that wakes on one of their CPUs, or on another hardware thread of their cores, gets it. All are moved away, which needs no
 * time on the CPUs that they leave, and the program ends with the reason: what was measured is void.
 */
int pair_start(struct pair *pair);

/*
 * Lets them work. One that is not done so many ms after the first, `patience_ms(context)` or, NULL, two seconds, is left. Returns whether
 * all came to their end; otherwise one is still there.
 */
bool pair_work(struct pair *pair, int (*patience_ms)(const void *context));

/* Nobody watches any more. The threads end where the work `is_over`; else one still waits, and ends with the process. */
void pair_end(struct pair *pair, bool is_over);
