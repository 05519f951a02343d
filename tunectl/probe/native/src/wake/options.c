#include "wake/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/output.h"
#include "wake/lines.h"
#include "wake/mechanisms.h"
#include "wake/wait_method.h"

enum { WORD_MOST = 32, BUSY_POLL_MOST_US = 1000000 };

static const char usage[] =
    "tunectl-probe wake measures how long a message takes to a waiting thread: asleep, or spinning.\n"
    "\n"
    "  tunectl-probe wake [--cpus S,R] [--mechanisms LIST] [--waiting LIST] [--idle-ms LIST] [--messages N] ...\n"
    "  tunectl-probe wake --listen ADDRESS:PORT [--cpus S,R]\n"
    "  tunectl-probe wake --connect ADDRESS:PORT ...\n"
    "\n"
    "One case for each mechanism, wait method and idle time. The result is a JSON document (schema\n"
    "tunectl.probe.wake/1).\n"
    "  --cpus S,R         the sender's CPU and the receiver's (default: two of the isolated CPUs on different cores,\n"
    "                     else two of the allowed ones)\n"
    "  --among LIST       choose those two among these CPUs\n"
    "  --mechanisms LIST  of channel, eventfd, pipe, unix, tcp, udp (default: all)\n"
    "  --waiting LIST     sleeping: block, poll, epoll; spinning: poll0, epoll0, nonblock, minimal; busy-poll.\n"
    "                     Groups or single ways (default: all)\n"
    "  --idle-ms LIST     from message to message, in ms (default 0,1,10,100)\n"
    "  --messages N       in each case (default 99)\n"
    "  --busy-poll-us N   time given to SO_BUSY_POLL, in us (default 50)\n"
    "  --cold-sender      let the sender grow cold between messages, as the receiver does\n"
    "  --intrude          stay also where a thread that can run nowhere else wants a CPU of the two; without, it gets the CPU\n"
    "                     within 10 ms, and the run fails\n"
    "  --fifo PRIO        both threads under SCHED_FIFO with this priority, 1 to 99\n"
    "  --listen A:P       be the other host of a --connect: send every message back; until SIGINT or SIGTERM.\n"
    "                     Whoever reaches that port can use it: do not offer it to a public network\n"
    "  --connect A:P      measure round trips to that host, over tcp and udp\n"
    "  --progress         a line on standard error for each case (on a terminal: always)\n"
    "  --output FILE      write the document there (default: standard output)\n"
    "SIGINT and SIGTERM end the measuring and still give the result so far.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

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

/* A wait method by its own name, or all of a group. */
static uint32_t wait_methods_named(const char *word)
{
    uint32_t found = 0;
    for (size_t i = 0; i < wait_methods_n; i++)
        if (strcmp(wait_methods[i].name, word) == 0 || strcmp(waiting_names[wait_methods[i].waiting], word) == 0)
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
            return print_error(EXIT_USAGE, "%s %s: there is no '%s' (see tunectl-probe wake --help)", option, text, word);
        *rows |= found;
    }
    return EXIT_OK;
}

static int parse_idles(void *options, const char *name, const char *text)
{
    struct wake_options *o = options;
    char word[WORD_MOST];
    o->idles = 0;
    for (const char *at = text; next_word(&at, word, sizeof(word));) {
        char *end;
        double ms = strtod(word, &end);
        if (end == word || *end || !(ms >= 0.0 && ms <= WAKE_IDLE_MOST_MS))
            return print_error(EXIT_USAGE, "%s %s: expected milliseconds from 0 to %d, like 0,1,10,100", name, text,
                               WAKE_IDLE_MOST_MS);
        if (o->idles == WAKE_IDLES_MOST)
            return print_error(EXIT_USAGE, "%s %s: at most %d of them", name, text, WAKE_IDLES_MOST);
        o->idle_ms[o->idles++] = ms;
    }
    return EXIT_OK;
}

static int parse_mechanisms(void *options, const char *name, const char *text)
{
    return parse_names(name, text, mechanisms_named, &((struct wake_options *)options)->mechanisms);
}

static int parse_wait_methods(void *options, const char *name, const char *text)
{
    return parse_names(name, text, wait_methods_named, &((struct wake_options *)options)->wait_methods);
}

static const struct option_row option_rows[] = {
    OPTION_ROW_TEXT("cpus", struct wake_options, cpus),
    OPTION_ROW_TEXT("among", struct wake_options, among),
    OPTION_ROW_PARSED("mechanisms", parse_mechanisms),
    OPTION_ROW_PARSED("waiting", parse_wait_methods),
    OPTION_ROW_PARSED("idle-ms", parse_idles),
    OPTION_ROW_NUMBER("messages", struct wake_options, messages, 1, WAKE_MESSAGES_MOST),
    OPTION_ROW_NUMBER("fifo", struct wake_options, fifo_priority, 1, FIFO_PRIORITY_MOST),
    OPTION_ROW_NUMBER("busy-poll-us", struct wake_options, busy_poll_us, 1, BUSY_POLL_MOST_US),
    OPTION_ROW_FLAG("cold-sender", struct wake_options, has_cold_sender),
    OPTION_ROW_FLAG("intrude", struct wake_options, intrude),
    OPTION_ROW_TEXT("listen", struct wake_options, listen),
    OPTION_ROW_TEXT("connect", struct wake_options, connect),
    OPTION_ROW_FLAG("progress", struct wake_options, shows_progress),
    OPTION_ROW_TEXT("output", struct wake_options, output),
    OPTION_ROW_TEXT("root", struct wake_options, root),     /* for tests: the host's files below a directory */
};

const struct command wake_command = {
    .name = "wake",
    .synopsis = "  tunectl-probe wake [...]      (see tunectl-probe wake --help)\n",
    .help = "",
    .usage = usage,
    .hint = "tunectl-probe wake --help",
    .rows = option_rows,
    .rows_n = sizeof(option_rows) / sizeof(*option_rows),
};

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
        return print_error(EXIT_USAGE, "--listen and --connect: this host is one or the other");
    const char *address = o->listen ? o->listen : o->connect;
    if (address && !address_is_one(address))
        return print_error(EXIT_USAGE, "%s %s: expected ADDRESS:PORT, like 10.0.0.2:7000 or [fe80::2]:7000",
                           o->listen ? "--listen" : "--connect", address);
    if (o->cpus && o->among)
        return print_error(EXIT_USAGE, "--cpus and --among: name the two CPUs, or those to choose from");
    if (!o->connect)
        return EXIT_OK;
    uint32_t remote = between_hosts(o->mechanisms);
    if (remote != o->mechanisms && o->mechanisms != all)
        return print_error(EXIT_USAGE, "--mechanisms: only tcp and udp lead to the host of --connect");
    o->mechanisms = remote;
    return EXIT_OK;
}

int wake_options_parse(struct wake_options *options, int argc, char **argv)
{
    uint32_t all = (UINT32_C(1) << mechanisms_n) - 1;
    *options = (struct wake_options){
        .mechanisms = all,
        .wait_methods = (UINT32_C(1) << wait_methods_n) - 1,
        .idle_ms = {0.0, 1.0, 10.0, 100.0},
        .idles = 4,
        .messages = 99,
        .busy_poll_us = 50,
        .root = "",
    };
    int status = options_parse(&wake_command, options, argc, argv);
    return status ? status : check_together(options, all);
}
