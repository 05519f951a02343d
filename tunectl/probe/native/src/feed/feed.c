#include "feed/run.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/loopback.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first message */
};

const struct command feed_command = {
    .name = "feed",
    .experiment = OF_FEED,
    .about =
        "feed: how long from a message's due time until the book has it, stage by stage. The result is a JSON document of what was\n"
        "counted (schema tunectl.probe.feed.raw/1); `tunectl probe feed` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe feed` makes figures, "
             "bars and warnings of it",
};

const struct feed_format feed_formats[] = {
    {"ws-json", true, true},
    {"json", false, true},
    {"binary", false, false},
};

size_t feed_due_n(const struct feed_run *run)
{
    size_t n = 0;
    while (run->warm_ups + n < run->messages && feed_due(run, run->warm_ups + n) < run->end_ticks)
        n++;
    return n;
}

/* The stamps before anything is measured: the first on a host interrupt every CPU. */
static void set_stamps(struct feed_run *run)
{
    const struct options *o = run->pair.options;
    run->stamps.were_on = -1;
    run->stamps_reason = o->has_no_stamps ? "not asked for" : o->has_tls ? "the kernel's TLS gives none" : "";
    if (run->stamps_reason[0])
        return;
    if (stamps_choose(&run->stamps, o->phc))
        run->stamps_reason = "not comparable: the network card's clock cannot be read";
    else if (!run->stamps.is_hardware)
        run->stamps.were_on = stamps_were_on();
    for (size_t i = 0; i < run->connection.n && !run->stamps_reason[0]; i++)
        if (stamps_set(&run->stamps, run->connection.receives[i]))
            run->stamps_reason = "the kernel refuses them (SO_TIMESTAMPING)";
    run->stamps.is_on = !run->stamps_reason[0];
}

/* With the reason in the pair where it cannot be measured. */
static bool open_case(struct feed_run *run)
{
    const struct options *o = run->pair.options;
    struct connection *c = &run->connection;
    int rc = o->socket >= 0 ? connection_adopt(c, o->socket) : connection_open(c, run->transport);
    if (!rc)
        c->rcvbuf = connection_use_rcvbuf(c, run->transport, o->rcvbuf);
    if (!rc && o->has_tls)
        rc = connection_use_tls(c);
    for (size_t i = 0; i < c->n && !rc && run->waiting->is_busy_poll; i++) {
        c->failed = "use SO_BUSY_POLL";
        rc = socket_busy_poll(c->receives[i], o->busy_poll_us);
    }
    if (rc)
        pair_cannot(&run->pair, c->failed, rc);
    else
        set_stamps(run);
    return rc == 0;
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
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * run->pair.clock.initial.hz / 1e3);
    run->end_ticks = feed_due(run, run->messages - 1) + run->after_ticks;
    run->sender.next_ping = run->start_ticks;
    bool is_over = pair_work(pair, NULL);
    pair->is_interrupted = stop_is_asked();
    if (pair->is_interrupted || run->sender.error || (is_over && run->receiver.error))
        end_early(run, ticks_now());
    if (has_stamps)
        stamps_end(&run->stamps, run->pair.clock.initial.hz);
    pair->duration_s = (double)(run->end_ticks - feed_due(run, run->warm_ups)) / run->pair.clock.initial.hz;
    pair_end(pair, is_over);
    if (!is_over)
        run->receiver.error = -ETIMEDOUT;
    if (run->waiting->is_busy_poll && is_over && !run->receiver.napi_id)
        (void)snprintf(pair->reason, sizeof(pair->reason), "the socket's NAPI id is 0: no device queue that the kernel could poll feeds "
                       "it (loopback has none), so SO_BUSY_POLL would change nothing");
}

static int measure(void *context)
{
    struct feed_run *run = context;
    int status = feed_plan(run);
    if (status || !open_case(run))
        return status;
    if (!get_memory(run))
        return print_error(EXIT_FAILED, "out of memory (a lower --rate or a shorter --duration needs less)");
    status = pair_start(&run->pair);
    if (!status)
        conduct(run);
    return status;
}

/* What the words themselves do not say. */
static int check(void *context)
{
    struct feed_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    run->transport = &feed_transports[o->transport];
    run->format = &feed_formats[o->format];
    run->waiting = &feed_waitings[o->waiting];
    if (!run->transport->is_stream && (run->format->is_websocket || o->has_tls))
        return print_error(EXIT_USAGE, "--transport %s: ws-json and ktls are of tcp alone", run->transport->name);
    if (o->socket >= 0 && run->transport->open == loopback_multicast)
        return print_error(EXIT_USAGE, "--socket: multicast stays within one host");
    if (run->waiting->is_busy_poll && run->transport->lines > 1)
        return print_error(EXIT_USAGE, "--waiting busy-poll: a receive that blocks cannot wait for two lines");
    if (!o->plan && o->duration_s * (double)o->rate > (double)FEED_MOST)
        return print_error(EXIT_USAGE, "--rate %u for --duration %g s: at most %d messages", o->rate, o->duration_s, FEED_MOST);
    int status = pair_choose(pair);
    if (!status && cpus_count(&pair->cpus) == 1 && !o->is_reflector)
        return print_error(EXIT_USAGE, "--cpus: the sender spins, so the receiver needs another CPU than %u", pair->ends[RECEIVER].cpu);
    return status;
}

const struct pair_experiment feed_experiment = {
    .command = &feed_command,
    .roles = &pair_sender_and_receiver,
    .prepare = {feed_prepare_sender, feed_prepare_receiver},
    .work = {feed_send_all, feed_receive_all},
    .check = check,
    .measure = measure,
    .reflect = feed_reflect,
    .write_asked = feed_write_asked,
    .write_measured = feed_write_measured,
};

int feed_main(int argc, char **argv)
{
    static struct feed_run run;
    return pair_main(&feed_experiment, &run.pair, &run, argc, argv);
}
