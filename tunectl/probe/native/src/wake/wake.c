#include "wake/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/loopback.h"
#include "lib/options.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { IDLE_MOST_MS = 60000 };

const struct command wake_command = {
    .name = "wake",
    .experiment = OF_WAKE,
    .about =
        "wake: how long a message takes to a waiting thread, asleep or spinning. The result is a JSON document of what was counted\n"
        "(schema tunectl.probe.wake.raw/1); `tunectl probe wake` chooses CPUs and cases, and makes figures of it.\n",
    .holds = "what was counted, in ticks of the clock; each delay and how often it came, in turns. `tunectl probe wake` makes figures, "
             "speed-ups and warnings of it",
};

/* A timer has no case without idle time: it would never expire. */
static bool is_possible(const struct wake_case *c)
{
    bool is_timed = c->idle_ms >= 0.0 && c->idle_ms <= (double)IDLE_MOST_MS && (c->idle_ms > 0.0 || c->mechanism->send);
    return (c->method->needs & ~c->mechanism->traits) == 0 && is_timed;
}

bool wake_case_parse(struct wake_case *c, const char *text)
{
    char mechanism[24];
    char method[24];
    char more;
    *c = (struct wake_case){0};
    if (sscanf(text, "%23[^:]:%23[^:]:%lf%c", mechanism, method, &c->idle_ms, &more) != 3)
        return false;
    for (size_t i = 0; i < mechanisms_n; i++)
        if (strcmp(mechanisms[i].name, mechanism) == 0)
            c->mechanism = &mechanisms[i];
    for (size_t i = 0; i < wait_methods_n; i++)
        if (strcmp(wait_methods[i].name, method) == 0)
            c->method = &wait_methods[i];
    return c->mechanism && c->method && is_possible(c);
}

/* With the reason in the pair where it cannot be measured. */
static bool open_case(struct wake_run *run, struct transport *t)
{
    const struct options *o = run->pair.options;
    const struct mechanism *mechanism = run->what.mechanism;
    int rc = o->socket >= 0 ? transport_adopt(t, mechanism, o->bytes, o->socket) : transport_open(t, mechanism, o->bytes);
    if (!rc)
        rc = wait_method_prepare(run->what.method, t, o->fds, o->busy_poll_us);
    if (rc)
        pair_cannot(&run->pair, mechanism->connect == loopback_vsock ? "be set up (module vsock_loopback: is it there, and loaded?)"
                                                                     : "be set up", rc);
    return rc == 0;
}

static int conduct(struct wake_run *run)
{
    struct pair *pair = &run->pair;
    int status = pair_start(pair);
    if (status)
        return status;
    occupancy_take(&run->before, pair);
    bool is_over = exchange_run(&run->exchange, pair);
    occupancy_take(&run->after, pair);
    pair->duration_s = (double)(run->after.ticks - run->before.ticks) / pair->clock.initial.hz;
    pair->is_interrupted = stop_is_asked();
    pair_end(pair, is_over);
    return EXIT_OK;
}

/* What a receiver still waits for stays where it is: it ends with the process. */
static int measure(void *context)
{
    static struct transport transport;
    static struct transport own;
    struct wake_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    if (!open_case(run, &transport))
        return EXIT_OK;
    run->exchange = (struct exchange){
        .transport = &transport,
        .method = run->what.method,
        .messages = o->messages,
        .ticks_per_ns = pair->ticks_per_ns,
        .remote_ratio = o->peer_hz ? pair->clock.initial.hz / (double)o->peer_hz : 0.0,
        .working_set_bytes = (size_t)o->dirty_kib * 1024,
        .sending.period_ticks = (uint64_t)(run->what.idle_ms * 1e6 * pair->ticks_per_ns),
    };
    pair->context = &run->exchange;
    /* Without a transport of its own, for whatever reason, the sender is cold. */
    if (!o->has_cold_sender && run->what.mechanism->send && transport_open(&own, run->what.mechanism, o->bytes) == 0)
        run->exchange.own = &own;
    if (exchange_init(&run->exchange))
        return print_error(EXIT_FAILED, "out of memory (fewer --messages need less)");
    return conduct(run);
}

/* What the words themselves do not say. */
static int check(void *context)
{
    struct wake_run *run = context;
    struct pair *pair = &run->pair;
    const struct options *o = pair->options;
    if (!wake_case_parse(&run->what, o->wake_case))
        return print_error(EXIT_USAGE, "--case %.60s: there is no such case; write MECHANISM:WAY:IDLE_MS, like tcp:block:10, with 0 to %d ms "
                           "(of a timer, above 0)", o->wake_case, IDLE_MOST_MS);
    if (o->socket >= 0 && !(run->what.mechanism->socket_type && (o->is_reflector || o->peer_hz)))
        return print_error(EXIT_USAGE, "--socket is for a case of tcp or udp, with --peer-hz or --reflect");
    int status = pair_choose(pair);
    bool is_starving = o->fifo_priority && cpus_count(&pair->cpus) == 1 && run->what.method->waiting == WAITING_SPINNING;
    if (!status && is_starving && !o->is_reflector)
        return print_error(EXIT_USAGE, "a SCHED_FIFO spinner on CPU %u would starve the sender there", pair->ends[RECEIVER].cpu);
    return status;
}

/* A greeting has the highest bit, and may come more than once. */
static bool is_greeting(const struct message *m)
{
    return m->sequence >> 63 && m->sequence != SEQUENCE_WARM_UP;
}

static void reflect(struct transport *t, const struct wait_method *method)
{
    struct message m;
    while (method->receive(t, &m) == 0) {
        if (is_greeting(&m))
            continue;
        m.remote_received = ticks_after_loads();
        int rc;
        do {
            m.remote_sent = ticks_now();
            rc = t->mechanism->send(t, &m);
        } while (rc == -EAGAIN);
        if (rc)
            break;
    }
}

/*
 * The other host's end of a round trip. Says in a line of JSON how fast its counter is, then sends every message that comes over --socket
 * back with its own two stamps, until the connection or the process is ended; without a --socket, it is done.
 */
static int serve(void *context)
{
    const struct wake_run *run = context;
    const struct options *o = run->pair.options;
    struct transport t;
    int rc = o->socket < 0 ? 0 : transport_adopt(&t, run->what.mechanism, o->bytes, o->socket);
    if (!rc && o->socket >= 0)
        rc = wait_method_prepare(run->what.method, &t, o->fds, o->busy_poll_us);
    if (rc)
        return print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    int status = pair_reflector_say_ready(&run->pair);
    if (!status && o->socket >= 0)
        reflect(&t, run->what.method);
    return status;
}

const struct pair_experiment wake_experiment = {
    .command = &wake_command,
    .roles = &pair_sender_and_receiver,
    .prepare = {exchange_touch_sending, exchange_touch_receiving},
    .work = {exchange_send_all, exchange_receive_all},
    .check = check,
    .measure = measure,
    .reflect = serve,
    .write_run = wake_write_run,
    .write_asked = wake_write_asked,
    .write_measured = wake_write_measured,
};

int wake_main(int argc, char **argv)
{
    static struct wake_run run;
    return pair_main(&wake_experiment, &run.pair, &run, argc, argv);
}
