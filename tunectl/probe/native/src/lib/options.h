/* The command line: one table of options for all experiments. To add an option, add a field here and a row to options.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One line on standard error: "tunectl-probe: ", the message, a newline. Returns `status`, the exit status that goes with it. */
int print_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whose an option is: bits of a row. */
enum experiment {
    OF_JITTER = 1,
    OF_WAKE = 2,
    OF_SENTINEL = 4,
    OF_FEED = 8,
    OF_HEDGE = 16,
    OF_CONTENTION = 32,
};

/* What was asked for. Whatever an experiment has no option for keeps its default. */
struct options {
    /* Of several experiments. */
    const char *cpus;           /* NULL: the experiment chooses */
    uint64_t threshold_ns;      /* 0: loop_default_threshold_ns */
    int fifo_priority;          /* 0: the scheduling class stays */
    bool intrude;               /* measure also where somebody else wants to run */
    bool shows_progress;        /* lines on standard error while it measures */
    const char *root;           /* the host's files below a directory, for tests */

    /* jitter */
    double duration_s;
    size_t gaps_capacity;       /* listed gaps per CPU */
    uint64_t until_ns;          /* a gap so long ends the run; 0: none does */
    int group;                  /* an open cgroup.procs for the workers; -1: none */
    bool wait_for_go;           /* see jitter/run.h */
    const char *inject;         /* see jitter/injector.h; NULL: nothing */

    /* wake */
    const char *wake_case;      /* MECHANISM:WAY:IDLE_MS */
    size_t messages;
    unsigned busy_poll_us;
    bool has_cold_sender;
    unsigned bytes;             /* of a message */
    unsigned fds;               /* in a poll or epoll set */
    unsigned dirty_kib;         /* the receiver's working set, written to after each message */
    bool is_reflector;          /* be the other host */
    int socket;                 /* to the other host, connected; -1 within one host */
    uint64_t peer_hz;           /* of the other host's counter; 0 within one host */

    /* feed */
    unsigned transport;         /* rows of tables in feed/ */
    unsigned format;
    unsigned waiting;
    unsigned has_tls;
    unsigned has_no_stamps;
    const char *phc;            /* /dev/ptpN: stamps are the card's; NULL: the kernel's */
    unsigned symbols;
    unsigned rate;              /* messages a second */
    unsigned burst;             /* messages that are due together */
    int rcvbuf;                 /* bytes asked for, of each socket that receives datagrams */
    const char *plan;           /* a file of times and sizes to replay; NULL: by rate and burst */
    unsigned alloc;             /* memory that the receiver takes for each message, so often */

    /* hedge */
    double load;                /* of one server, without copies */
    unsigned service_ns;
    const char *delay;          /* none, p95, or ns */
    bool keeps_copies;          /* no copy is cancelled */
    double budget;              /* hedges for each request; 1: no limit */
    unsigned shed;              /* a queue that long refuses; 0: none does */
    unsigned stall;             /* enum hedge_stall: which servers do */
    uint64_t seed;
    bool is_simulated;
    bool may_share;             /* several threads on a CPU */

    /* contention; rate as of feed */
    unsigned buffers;           /* enum contention_buffers */
    unsigned hand_over;         /* enum contention_hand_over */
    unsigned threads;
    unsigned buffer_bytes;

    /* sentinel */
    int cpu;                    /* -1: none was named */
    double period_s;
    unsigned duty_percent;      /* how much of the time it spins */
    uint64_t lines;             /* 0: without end */
};

/* An experiment as the command line knows it. */
struct command {
    const char *name;           /* "jitter" */
    enum experiment experiment;
    const char *about;          /* what it does, above its options in the help; lines */
    const char *holds;          /* what its document says of itself, for who reads it without tunectl; NULL: it makes none */
};

enum { OPTIONS_ARE_OVER = -1 };

/*
 * What follows `tunectl-probe NAME` in `argv`, and the defaults of the rest. Returns EXIT_OK; EXIT_USAGE with the reason on
 * stderr; or OPTIONS_ARE_OVER when help or the version was printed and nothing is left to do.
 */
int options_parse(const struct command *command, struct options *options, int argc, char **argv);

/* How it is called, and what its options mean, on standard output. */
void options_put_help(const struct command *command);

/* The last line of what was asked for. Returns OPTIONS_ARE_OVER, or EXIT_FAILED with the reason on stderr where it cannot be written. */
#define OPTIONS_EXIT_STATUS "Exit status: 0 done, 1 failed, 2 wrong usage."
#define OPTIONS_VERSION "tunectl-probe " TUNECTL_VERSION
int options_end_output(const char *line);
