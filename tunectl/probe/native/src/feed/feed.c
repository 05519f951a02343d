#include "feed/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/loopback.h"
#include "lib/output.h"
#include "lib/stop.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first message */
    GRACE_MS = 2000,            /* for what is under way when the last was sent */
};

const struct command feed_command = {
    .name = "feed",
    .experiment = OF_FEED,
    .about =
        "feed: how long from a message's due time until the book has it, stage by stage. The result is a JSON document of what was\n"
        "counted (schema tunectl.probe.feed.raw/1); `tunectl probe feed` chooses CPUs and cases, and makes figures of it.\n",
    .end = "SIGINT and SIGTERM end the measuring and still give the result so far.\n",
};

const struct feed_format feed_formats[] = {
    {"ws-json", true, true},
    {"json", false, true},
    {"binary", false, false},
};
const size_t feed_formats_n = sizeof(feed_formats) / sizeof(*feed_formats);

size_t feed_due_n(const struct feed_run *run)
{
    size_t n = 0;
    while (run->warm_ups + n < run->messages && feed_due(run, run->warm_ups + n) < run->end_ticks)
        n++;
    return n;
}

static void cannot(struct feed_run *run, const char *what, int rc)
{
    (void)snprintf(run->reason, sizeof(run->reason), "cannot %s: %s", what, strerror(-rc));
}

/* The stamps before anything is measured: the first on a host interrupt every CPU. */
static void set_stamps(struct feed_run *run)
{
    bool is_asked = strcmp(run->options->stamps, "off") != 0;
    run->stamps.were_on = -1;
    run->stamps_reason = !is_asked ? "not asked for" : strcmp(run->options->tls, "off") != 0 ? "the kernel's TLS gives none" : "";
    if (run->stamps_reason[0])
        return;
    if (stamps_choose(&run->stamps, run->options->phc))
        run->stamps_reason = "not comparable: the network card's clock cannot be read";
    else if (!run->stamps.is_hardware)
        run->stamps.were_on = stamps_were_on();
    for (size_t i = 0; i < run->connection.n && !run->stamps_reason[0]; i++)
        if (stamps_set(&run->stamps, run->connection.receives[i]))
            run->stamps_reason = "the kernel refuses them (SO_TIMESTAMPING)";
    run->stamps.is_on = !run->stamps_reason[0];
}

/* With the reason in the run where it cannot be measured. */
static bool open_case(struct feed_run *run)
{
    int us = (int)run->options->busy_poll_us;
    struct connection *c = &run->connection;
    int rc = run->options->socket >= 0 ? connection_adopt(c, run->options->socket) : connection_open(c, run->transport);
    if (!rc && strcmp(run->options->tls, "off") != 0)
        rc = connection_use_tls(c);
    for (size_t i = 0; i < c->n && !rc && run->waiting->is_busy_poll; i++) {
        c->failed = "use SO_BUSY_POLL";
        rc = setsockopt(c->receives[i], SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) ? -errno : 0;
    }
    if (rc)
        cannot(run, c->failed, rc);
    else
        set_stamps(run);
    return rc == 0;
}

static int patience_ms(const void *run)
{
    (void)run;
    return GRACE_MS;
}

static bool get_memory(struct feed_run *run)
{
    run->sender.sent = memory_map(run->messages * sizeof(*run->sender.sent));
    run->sender.outgoing = memory_map(FEED_OUTGOING);
    run->receiver.arrivals = memory_map(run->messages * sizeof(*run->receiver.arrivals));
    run->receiver.incoming = memory_map(FEED_INCOMING);
    return run->sender.sent && run->sender.outgoing && run->receiver.arrivals && run->receiver.incoming;
}

/* Nothing was due any more from now on; where the measured time had not begun, nothing ever was. */
static void end_early(struct feed_run *run, uint64_t now)
{
    uint64_t begun = feed_due(run, run->warm_ups);
    if (now < run->end_ticks)
        run->end_ticks = now > begun ? now : begun;
}

static void conduct(struct feed_run *run)
{
    struct pair *pair = &run->pair;
    bool has_stamps = run->stamps.is_on;
    if (has_stamps)
        stamps_begin(&run->stamps);
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * run->clock.initial.hz / 1e3);
    run->end_ticks = feed_due(run, run->messages - 1) + run->after_ticks;
    run->sender.next_ping = run->start_ticks;
    bool is_over = pair_work(pair, patience_ms);
    run->is_interrupted = stop_is_asked();
    if (run->is_interrupted || run->sender.error || (is_over && run->receiver.error))
        end_early(run, ticks_now());
    if (has_stamps)
        stamps_end(&run->stamps, run->clock.initial.hz);
    run->duration_s = (double)(run->end_ticks - feed_due(run, run->warm_ups)) / run->clock.initial.hz;
    pair_end(pair, is_over);
    if (!is_over)
        run->receiver.error = -ETIMEDOUT;
    if (run->waiting->is_busy_poll && is_over && !run->receiver.napi_id)
        (void)snprintf(run->reason, sizeof(run->reason), "the socket's NAPI id is 0: no device queue that the kernel could poll feeds "
                       "it (loopback has none), so SO_BUSY_POLL would change nothing");
}

static int prepare_and_measure(struct feed_run *run)
{
    int status = feed_plan(run);
    if (status || !open_case(run))
        return status;
    if (!get_memory(run))
        return print_error(EXIT_FAILED, "out of memory (a lower --rate or a shorter --duration needs less)");
    run->pair.name = "feed";
    run->pair.fifo_priority = run->options->fifo_priority;
    run->pair.ticks_per_ns = run->clock.initial.hz / 1e9;
    run->pair.context = run;
    run->pair.prepare[SENDER] = feed_prepare_sender;
    run->pair.prepare[RECEIVER] = feed_prepare_receiver;
    run->pair.work[SENDER] = feed_send_all;
    run->pair.work[RECEIVER] = feed_receive_all;
    status = pair_start(&run->pair, &run->facts, run->options->intrude);
    if (!status)
        conduct(run);
    return status;
}

static int run_and_write(struct feed_run *run)
{
    stop_init();
    pair_leave_cpus(&run->pair, &run->facts);
    clock_span_begin(&run->clock);
    run->at_s = time(NULL);
    int status = prepare_and_measure(run);
    clock_span_end(&run->clock);
    return status ? status : output_write(feed_document_write, run);
}

/* Finds the row of that name; NULL, and says which there are, where there is none. */
static const void *row_of(const char *option, const char *name, const void *rows, size_t n, size_t size)
{
    char known[128] = "";
    for (size_t i = 0; i < n; i++) {
        const char *const *row = (const void *)((const char *)rows + i * size);
        if (strcmp(*row, name) == 0)
            return row;
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", *row);
    }
    (void)print_error(EXIT_USAGE, "--%s %.40s: expected one of %s", option, name, known);
    return NULL;
}

static bool is_one_of(const char *option, const char *text, const char *one, const char *other)
{
    if (strcmp(text, one) == 0 || strcmp(text, other) == 0)
        return true;
    (void)print_error(EXIT_USAGE, "--%s %.40s: expected one of %s, %s", option, text, one, other);
    return false;
}

/* What the words themselves do not say. */
static int check(struct feed_run *run)
{
    const struct options *o = run->options;
    run->transport = row_of("transport", o->transport, feed_transports, feed_transports_n, sizeof(*feed_transports));
    run->format = run->transport ? row_of("format", o->format, feed_formats, feed_formats_n, sizeof(*feed_formats)) : NULL;
    run->waiting = run->format ? row_of("waiting", o->waiting, feed_waitings, feed_waitings_n, sizeof(*feed_waitings)) : NULL;
    if (!run->waiting || !is_one_of("tls", o->tls, "off", "ktls") || !is_one_of("stamps", o->stamps, "sw", "off"))
        return EXIT_USAGE;
    if (!run->transport->is_stream && (run->format->is_websocket || strcmp(o->tls, "off") != 0))
        return print_error(EXIT_USAGE, "--transport %s: ws-json and ktls are of tcp alone", o->transport);
    if (o->socket >= 0 && run->transport->open == loopback_multicast)
        return print_error(EXIT_USAGE, "--socket: multicast stays within one host");
    if (run->waiting->is_busy_poll && run->transport->lines > 1)
        return print_error(EXIT_USAGE, "--waiting busy-poll: a receive that blocks cannot wait for two lines");
    if (!o->plan && o->duration_s * (double)o->rate > (double)FEED_MOST)
        return print_error(EXIT_USAGE, "--rate %u for --duration %g s: at most %d messages", o->rate, o->duration_s, FEED_MOST);
    int status = pair_choose(&run->pair, o->cpus, &run->facts);
    if (!status && cpus_count(&run->pair.cpus) == 1 && !o->is_reflector)
        return print_error(EXIT_USAGE, "--cpus: the sender spins, so the receiver needs another CPU than %u",
                           run->pair.ends[RECEIVER].cpu);
    return status;
}

int feed_main(int argc, char **argv)
{
    struct options options;
    static struct feed_run run;
    run.options = &options;
    int status = options_parse(&feed_command, &options, argc, argv);
    if (status)
        return status;
    host_facts_init(&run.facts, options.root);
    status = check(&run);
    if (!status)
        status = options.is_reflector ? feed_reflect(&run) : run_and_write(&run);
    host_facts_deinit(&run.facts);
    return status;
}
