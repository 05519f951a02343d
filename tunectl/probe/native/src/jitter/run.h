/* The experiment `jitter`: how long do the probed CPUs go away, how often, and what did the host count meanwhile? */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/account.h"
#include "lib/tasks.h"
#include "lib/clock.h"
#include "lib/host.h"
#include "lib/loop.h"
#include "lib/options.h"
#include "lib/recorder.h"
#include "lib/thread.h"

/*
 * What all workers and the main thread share. The barrier is passed four times: ready (everything allocated), go (start is
 * set), done (measured), leave (the main thread has read the host's counters; only now may threads exit, because
 * an exit is work on the CPU it happens on).
 */
struct run_control {
    pthread_barrier_t barrier;
    bool cancelled;             /* set between ready and go: a worker could not prepare */
    uint64_t start_ticks;       /* the moment all begin at */
    uint64_t threshold_ticks;
    uint64_t microsecond_ticks;
    uint64_t stretch_ticks;     /* of the series */
    size_t gaps_capacity;
    uint64_t long_ticks;        /* a gap so long is listed also where the list is full of shorter ones */
    uint64_t until_ticks;       /* a gap so long ends the run of all; UINT64_MAX: none does */
    bool is_guarded;            /* somebody watches over the workers, and tells each when to stop */
    int fifo_priority;          /* 0: leave the scheduling class alone */
};

enum worker_stage {
    WORKER_STARTS,              /* its CPU was not given to it yet */
    WORKER_IS_READY,
    WORKER_MEASURES,            /* it spins */
    WORKER_IS_DONE,
};

enum { WORKER_WHY_SIZE = 256 };

/* In memory that a worker in a process of its own shares with the main thread. */
struct worker {
    struct run_control *control;
    pthread_t thread;
    unsigned cpu;
    _Atomic pid_t tid;          /* its thread id, as the kernel's trace knows it; 0 before it has one */

    /* Between worker and guard. On a cache line of their own: the loop reads the deadline in each turn. */
    _Alignas(128) _Atomic uint64_t deadline;    /* in ticks; 0: leave at once */
    _Alignas(128) atomic_int stage;
    atomic_bool left;           /* the CPU was left to somebody else: nothing of this worker is a result */
    char why_left[WORKER_WHY_SIZE];

    int error;                  /* -errno of `failed_step`, 0 when prepared */
    const char *failed_step;
    bool locked;

    struct recorder recorder;
    struct gap reached;         /* the gap that ended its loop; end 0: none did */
    struct loop_totals totals;
    struct clock_pair before;   /* around the measured phase, taken on this CPU */
    struct clock_pair after;
    struct account account_before;
    struct account account_after;
    double first_step_ticks;    /* a turn on this CPU, before a threshold was known */
    double step_ticks;          /* an undisturbed turn, before the measured phase */
    double recording_ticks;     /* what recording one gap adds to a turn, from a warm cache */
    double cycles_per_tick_before;
    double cycles_per_tick_after;
    struct usage used;          /* while it measured */

    /* The guard's, for lines of progress: how many of the listed gaps were looked at, and the longest of them. */
    size_t looked_at;
    struct gap longest;
};

static inline bool worker_has_left(const struct worker *w)
{
    return atomic_load(&w->left);
}

/* One thread on one CPU, the calling one: prepares, measures, leaves its figures behind, and returns when all is over. */
void worker_run(struct worker *w);

/* Interruptions of known length at known times, on purpose: `tunectl probe selftest` looks for them in what was recorded. */
struct injection {
    unsigned cpu;
    int (*inject)(struct injection *i);     /* NULL: none was asked for */
    size_t n;
    uint64_t length_ticks;      /* each is at least so long; 0: as short as a thread can be there */
    uint64_t pause_ns;          /* from the end of one to the next */
    struct gap *truths;         /* room for n */
    size_t done;                /* of them; fewer where a signal ended the run */
    int error;                  /* -errno; -EPERM without CAP_SYS_NICE; -ENOSYS or -EINVAL where the kernel lacks membarrier */
};

/*
 * From "KIND,N,LENGTH_NS,PAUSE_NS"; NULL asks for none. The kinds:
 *
 * preemption: a thread of the next higher kind, SCHED_FIFO, takes the CPU away from whatever ordinary thread runs there. Between
 * its two stamps this CPU ran that thread, or what interrupted it, and not the victim.
 *
 * ipi: interrupts from another CPU, by membarrier(2): the kernel sends one to every CPU that runs a thread of this process and
 * waits until each has answered. The truth brackets the interruption: it is within, not as long.
 *
 * Returns EXIT_OK, or EXIT_USAGE or EXIT_FAILED with the reason on stderr.
 */
int injection_init(struct injection *i, const char *text, unsigned cpu, double hz);

/*
 * The workers' process, where the probed CPUs belong to an isolated partition of control group v2: nothing outside the partition
 * may run on them, and nothing inside it anywhere else. So the workers, and they alone, live in a process of their own in there.
 */
struct partition {
    int procs;          /* the open cgroup.procs of a group inside it; -1: the workers are threads of this process */
    int home;           /* that of this process's own group, for the way out; -1 where it cannot be opened */
    pid_t child;
};

/* Opens `home`. Before partition_fork. */
void partition_open_home(struct partition *p);

/*
 * In the child: enters the partition, on no other CPU than these. Returns the child's process id, 0 in the child, or -errno. Where
 * the partition would not take it, the workers cannot run on their CPUs. What both share must be mapped as shared before.
 */
pid_t partition_fork(struct partition *p, const struct cpus *cpus);

/* Takes the child out of the partition, to this process's CPUs. */
void partition_leave(const struct partition *p);

/* The thread that watches over a run. */
struct guard {
    struct watch watch;
    struct claims *claims;              /* NULL where nobody makes a worker leave */
    pid_t *tids;                        /* of the workers that may be kept from their CPU; else 0 */
    uint64_t shown_ticks;               /* when a line of progress was written last */
    uint64_t looked_ticks;              /* last */
    uint64_t watching_ticks;            /* since when no look came much too late */
};

struct jitter_run {
    const struct options *options;
    struct host_facts facts;
    struct cpus cpus;
    struct cpus housekeeping;           /* where the main thread is; empty when no CPU is left for it */
    struct clock_span clock;
    struct run_control control;
    size_t n;
    struct worker *workers;             /* one for each of `cpus` */
    struct snapshot before;             /* the kernel's counters around the run */
    struct snapshot after;
    unsigned stretch_s;                 /* of the series */
    struct partition partition;
    struct injection injection;
    struct guard guard;
    _Atomic uint64_t workers_started;   /* in ticks */
    _Atomic uint64_t deadline_ticks;    /* 0 before the measuring is begun */
    uint64_t threshold_ns;
    uint64_t default_threshold_ns;      /* by the loops of this run */
    int64_t throttled_us;               /* by a limit of control groups, of the run; or ACCOUNT_UNKNOWN */
    const struct worker *reached;       /* whose gap ended the run, the first of those that were so long; NULL: none was */
    bool is_interrupted;
    int64_t at_s;                       /* CLOCK_REALTIME when the measuring began */
};

extern const struct command jitter_command;

/* Runs and writes the document. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER. */
int jitter_main(int argc, char **argv);

/*
 * The thread that watches over a run, on a housekeeping CPU, so that the run disturbs nobody and ends whatever happens.
 *
 * - Somebody else's thread that wakes on a probed CPU, or on another hardware thread of its core, gets it: the worker leaves
 *   at once, and what it measured is void. A runnable thread is moved away without its CPU having to do anything
 *   (sched_setaffinity), so a worker leaves even a CPU that a SCHED_FIFO thread never gives up.
 * - A worker that never gets its CPU ends the run with the reason; one that is kept from it at the end is moved away.
 * - A parent that has ended ends the process, its workers moved away first: a thread that waits for a CPU cannot die.
 *
 * The measured loop knows nothing of it: the guard reads the kernel's account of threads, once a millisecond.
 *
 * It starts once its first look has marked the workers whose CPU is taken; before the workers are started. Where there is no CPU for it
 * nobody watches. With --intrude nobody makes a worker leave but the deadline.
 */
void guard_start(struct jitter_run *run);

/* The workers are gone. */
void guard_stop(struct jitter_run *run);

/*
 * With --wait-for-go: whoever started the program may prepare something between the start of its threads and the measuring,
 * such as a trace of the kernel. Lines on standard error, and answers on standard input:
 *
 *     ready 700 2:701 3:702    the main thread, and of each CPU the thread that will measure there
 *     fault                    (asked) measure a page fault
 *     fault 1234               the median of 501, in ticks of the counter, on the CPU of the main thread, caches warm
 *     go                       (asked) measure
 *     until 3 123 456 tsc      a gap of that length (--until) ended the run: on CPU 3, with its first and last stamp of that counter
 *     done                     measured
 *
 * dialogue_await_go is called once the workers stand ready. Returns the exit status, not 0 where standard input ended before "go";
 * the reason is on stderr.
 */
int dialogue_await_go(const struct jitter_run *run);

/* Its document, on standard output. Returns the exit status, the reason being on stderr. */
int jitter_write(const struct jitter_run *run);
