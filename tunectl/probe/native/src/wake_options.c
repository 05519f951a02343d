/* The command line of the mode `wake`. */
#include "wake.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "options.h"

enum {
    OPTION_CPUS = 256,
    OPTION_AMONG,
    OPTION_MECHANISMS,
    OPTION_WAITING,
    OPTION_IDLE,
    OPTION_MESSAGES,
    OPTION_FIFO,
    OPTION_BUSY_POLL,
    OPTION_COLD_SENDER,
    OPTION_LISTEN,
    OPTION_CONNECT,
    OPTION_PROGRESS,
    OPTION_OUTPUT,
    OPTION_ROOT,
    OPTION_HELP,
};

enum { WORD_MOST = 32, BUSY_POLL_MOST_US = 1000000 };

static const char usage[] =
    "tunectl-probe wake measures how long a message takes to a waiting thread: asleep, or spinning.\n"
    "\n"
    "  tunectl-probe wake [--cpus S,R] [--mechanisms LIST] [--waiting LIST] [--idle-ms LIST] [--messages N] ...\n"
    "  tunectl-probe wake --listen ADDRESS:PORT [--cpus S,R]\n"
    "  tunectl-probe wake --connect ADDRESS:PORT ...\n"
    "\n"
    "One cell for each mechanism, way of waiting and idle time. The result is a JSON document (schema\n"
    "tunectl.probe.wake/1).\n"
    "  --cpus S,R         the sender's CPU and the receiver's (default: two of the isolated CPUs on different cores,\n"
    "                     else two of the allowed ones)\n"
    "  --among LIST       choose those two among these CPUs\n"
    "  --mechanisms LIST  of channel, eventfd, pipe, unix, tcp, udp (default: all)\n"
    "  --waiting LIST     sleeping: block, poll, epoll; spinning: poll0, epoll0, nonblock, minimal; busy-poll.\n"
    "                     Groups or single ways (default: all)\n"
    "  --idle-ms LIST     from message to message, in ms (default 0,1,10,100)\n"
    "  --messages N       in each cell (default 99)\n"
    "  --busy-poll-us N   time given to SO_BUSY_POLL, in us (default 50)\n"
    "  --cold-sender      let the sender grow cold between messages, as the receiver does\n"
    "  --fifo PRIO        both threads under SCHED_FIFO with this priority, 1 to 99\n"
    "  --listen A:P       be the other host of a --connect: send every message back; until SIGINT or SIGTERM.\n"
    "                     Whoever reaches that port can use it: do not offer it to a public network\n"
    "  --connect A:P      measure round trips to that host, over tcp and udp\n"
    "  --progress         a line on standard error for each cell (on a terminal: always)\n"
    "  --output FILE      write the document there (default: standard output)\n"
    "SIGINT and SIGTERM end the measuring and still give the result so far.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static const struct option long_options[] = {
    {"cpus", required_argument, NULL, OPTION_CPUS},
    {"among", required_argument, NULL, OPTION_AMONG},
    {"mechanisms", required_argument, NULL, OPTION_MECHANISMS},
    {"waiting", required_argument, NULL, OPTION_WAITING},
    {"idle-ms", required_argument, NULL, OPTION_IDLE},
    {"messages", required_argument, NULL, OPTION_MESSAGES},
    {"fifo", required_argument, NULL, OPTION_FIFO},
    {"busy-poll-us", required_argument, NULL, OPTION_BUSY_POLL},
    {"cold-sender", no_argument, NULL, OPTION_COLD_SENDER},
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"connect", required_argument, NULL, OPTION_CONNECT},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"root", required_argument, NULL, OPTION_ROOT}, /* for tests: the host's files below a directory */
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* The next item of a list separated by commas into `word`; false at the end. A word too long for any name is cut. */
static bool next_word(const char **at, char *word, size_t size)
{
    if (!*at)
        return false;
    size_t length = strcspn(*at, ",");
    (void)snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), *at);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return true;
}

static uint32_t mechanisms_named(const char *word)
{
    uint32_t found = 0;
    for (size_t i = 0; i < mechanisms_n; i++)
        if (strcmp(mechanisms[i].name, word) == 0)
            found |= UINT32_C(1) << i;
    return found;
}

/* A way by its own name, or all of a group. */
static uint32_t ways_named(const char *word)
{
    uint32_t found = 0;
    for (size_t i = 0; i < ways_n; i++)
        if (strcmp(ways[i].name, word) == 0 || strcmp(waiting_names[ways[i].waiting], word) == 0)
            found |= UINT32_C(1) << i;
    return found;
}

static int parse_names(const char *option, const char *text, uint32_t (*named)(const char *), uint32_t *rows)
{
    char word[WORD_MOST];
    *rows = 0;
    for (const char *at = text; next_word(&at, word, sizeof(word));) {
        uint32_t found = named(word);
        if (!found)
            return complain(EXIT_USAGE, "%s %s: there is no '%s' (see tunectl-probe wake --help)", option, text, word);
        *rows |= found;
    }
    return EXIT_OK;
}

static int parse_idles(struct wake_options *o, const char *text)
{
    char word[WORD_MOST];
    o->idles = 0;
    for (const char *at = text; next_word(&at, word, sizeof(word));) {
        char *end;
        double ms = strtod(word, &end);
        if (end == word || *end || !(ms >= 0.0 && ms <= WAKE_IDLE_MOST_MS))
            return complain(EXIT_USAGE, "--idle-ms %s: expected milliseconds from 0 to %d, like 0,1,10,100", text,
                            WAKE_IDLE_MOST_MS);
        if (o->idles == WAKE_IDLES_MOST)
            return complain(EXIT_USAGE, "--idle-ms %s: at most %d of them", text, WAKE_IDLES_MOST);
        o->idle_ms[o->idles++] = ms;
    }
    return EXIT_OK;
}

static int parse_number(const char *name, const char *text, uint64_t most, uint64_t *value)
{
    return parse_uint(name, text, 1, most, value);
}

static int apply(struct wake_options *o, int option, const char *text)
{
    uint64_t value = 0;
    int status = EXIT_OK;
    switch (option) {
    case OPTION_CPUS:
        o->cpus = text;
        return EXIT_OK;
    case OPTION_AMONG:
        o->among = text;
        return EXIT_OK;
    case OPTION_MECHANISMS:
        return parse_names("--mechanisms", text, mechanisms_named, &o->mechanisms);
    case OPTION_WAITING:
        return parse_names("--waiting", text, ways_named, &o->ways);
    case OPTION_IDLE:
        return parse_idles(o, text);
    case OPTION_MESSAGES:
        status = parse_number("--messages", text, WAKE_MESSAGES_MOST, &value);
        o->messages = (size_t)value;
        return status;
    case OPTION_FIFO:
        status = parse_number("--fifo", text, 99, &value);
        o->fifo_priority = (int)value;
        return status;
    case OPTION_BUSY_POLL:
        status = parse_number("--busy-poll-us", text, BUSY_POLL_MOST_US, &value);
        o->busy_poll_us = (unsigned)value;
        return status;
    case OPTION_COLD_SENDER:
        o->has_cold_sender = true;
        return EXIT_OK;
    case OPTION_LISTEN:
        o->listen = text;
        return EXIT_OK;
    case OPTION_CONNECT:
        o->connect = text;
        return EXIT_OK;
    case OPTION_PROGRESS:
        o->shows_progress = true;
        return EXIT_OK;
    case OPTION_OUTPUT:
        o->output = text;
        return EXIT_OK;
    case OPTION_ROOT:
        o->root = text;
        return EXIT_OK;
    default:
        return EXIT_USAGE;
    }
}

/* Only mechanisms that lead to another host. */
static uint32_t between_hosts(uint32_t rows)
{
    for (size_t i = 0; i < mechanisms_n; i++)
        if (!mechanisms[i].socket_type)
            rows &= ~(UINT32_C(1) << i);
    return rows;
}

static int check_together(struct wake_options *o, uint32_t all)
{
    if (o->listen && o->connect)
        return complain(EXIT_USAGE, "--listen and --connect: this host is one or the other");
    const char *address = o->listen ? o->listen : o->connect;
    if (address && !address_is_one(address))
        return complain(EXIT_USAGE, "%s %s: expected ADDRESS:PORT, like 10.0.0.2:7000 or [fe80::2]:7000",
                        o->listen ? "--listen" : "--connect", address);
    if (o->cpus && o->among)
        return complain(EXIT_USAGE, "--cpus and --among: name the two CPUs, or those to choose from");
    if (!o->connect)
        return EXIT_OK;
    uint32_t far = between_hosts(o->mechanisms);
    if (far != o->mechanisms && o->mechanisms != all)
        return complain(EXIT_USAGE, "--mechanisms: only tcp and udp lead to the host of --connect");
    o->mechanisms = far;
    return EXIT_OK;
}

int wake_options_parse(struct wake_options *options, int argc, char **argv, bool *is_done)
{
    uint32_t all = (UINT32_C(1) << mechanisms_n) - 1;
    *options = (struct wake_options){
        .mechanisms = all,
        .ways = (UINT32_C(1) << ways_n) - 1,
        .idle_ms = {0.0, 1.0, 10.0, 100.0},
        .idles = 4,
        .messages = 99,
        .busy_poll_us = 50,
        .root = "",
    };
    *is_done = false;
    optind = 2;
    opterr = 0;
    for (;;) {
        int before = optind;
        int option = getopt_long(argc, argv, "+:h", long_options, NULL);
        if (option == -1)
            break;
        if (option == OPTION_HELP || option == 'h') {
            *is_done = true;
            bool is_said = fputs(usage, stdout) >= 0 && fflush(stdout) == 0;
            return is_said ? EXIT_OK : complain(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
        }
        if (option == ':')
            return complain(EXIT_USAGE, "%s needs a value (see tunectl-probe wake --help)", argv[before]);
        if (option == '?')
            return complain(EXIT_USAGE, "%s is no option here (see tunectl-probe wake --help)", argv[before]);
        int status = apply(options, option, optarg);
        if (status)
            return status;
    }
    if (optind < argc)
        return complain(EXIT_USAGE, "%s is one argument too many (see tunectl-probe wake --help)", argv[optind]);
    return check_together(options, all);
}
