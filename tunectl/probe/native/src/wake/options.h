/* What the experiment `wake` is asked for. */
#ifndef TUNECTL_WAKE_OPTIONS_H
#define TUNECTL_WAKE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/options.h"

enum { WAKE_IDLES_MOST = 16, WAKE_MESSAGES_MOST = 10000000, WAKE_IDLE_MOST_MS = 60000 };

struct wake_options {
    const char *cpus;           /* "S,R"; NULL: chosen */
    const char *among;          /* CPUs to choose from; NULL: the isolated ones, else the allowed ones */
    uint32_t mechanisms;        /* bit i: row i of `mechanisms` */
    uint32_t wait_methods;
    double idle_ms[WAKE_IDLES_MOST];
    size_t idles;
    size_t messages;            /* in each case */
    int fifo_priority;          /* 0: the scheduling class stays */
    unsigned busy_poll_us;
    bool has_cold_sender;
    bool intrude;               /* stay where somebody else's thread wants the CPU */
    const char *listen;         /* "ADDRESS:PORT": be the other host */
    const char *connect;        /* "ADDRESS:PORT": measure round trips to it */
    bool shows_progress;        /* a line on stderr for each case; on a terminal always */
    const char *output;         /* NULL: standard output */
    const char *root;
};

extern const struct command wake_command;

/* As options_parse, defaults included. */
int wake_options_parse(struct wake_options *options, int argc, char **argv);

#endif
