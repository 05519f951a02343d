#include "wake/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/output.h"
#include "lib/stop.h"
#include "lib/ticks.h"

enum { IDLE_MOST_MS = 60000 };

const struct command wake_command = {
    .name = "wake",
    .experiment = OF_WAKE,
    .about =
        "wake: how long a message takes to a waiting thread, asleep or spinning. The result is a JSON document of what was counted\n"
        "(schema tunectl.probe.wake.raw/1); `tunectl probe wake` chooses CPUs and cases, and makes figures of it.\n",
    .end = "SIGINT and SIGTERM end the measuring and still give the result so far.\n",
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

/* With the reason in the run where it cannot be measured. */
static bool open_case(struct wake_run *run, struct transport *t)
{
    const struct options *o = run->options;
    const struct mechanism *mechanism = run->what.mechanism;
    int rc = o->socket >= 0 ? transport_adopt(t, mechanism, o->bytes, o->socket) : transport_open(t, mechanism, o->bytes);
    if (!rc)
        rc = wait_method_prepare(run->what.method, t, o->fds, o->busy_poll_us);
    if (rc)
        (void)snprintf(run->reason, sizeof(run->reason), "cannot be set up: %s%s", strerror(-rc),
                       rc == -EMFILE ? " (ulimit -n)" : "");
    return rc == 0;
}

static int measure(struct wake_run *run)
{
    struct pair *pair = &run->pair;
    int status = pair_start(pair, &run->facts, run->options->intrude);
    if (status)
        return status;
    occupancy_take(&run->before, pair);
    bool is_over = exchange_run(&run->exchange, pair);
    occupancy_take(&run->after, pair);
    run->duration_s = (double)(run->after.ticks - run->before.ticks) / run->clock.initial.hz;
    run->is_interrupted = stop_is_asked();
    pair_end(pair, is_over);
    return EXIT_OK;
}

/* What a receiver still waits for stays where it is: it ends with the process. */
static int prepare_and_measure(struct wake_run *run)
{
    static struct transport transport;
    static struct transport own;
    const struct options *o = run->options;
    double ticks_per_ns = run->clock.initial.hz / 1e9;
    if (!open_case(run, &transport))
        return EXIT_OK;
    run->exchange = (struct exchange){
        .transport = &transport,
        .method = run->what.method,
        .messages = o->messages,
        .ticks_per_ns = ticks_per_ns,
        .remote_ratio = o->peer_hz ? run->clock.initial.hz / (double)o->peer_hz : 0.0,
        .working_set_bytes = (size_t)o->dirty_kib * 1024,
        .sending.period_ticks = (uint64_t)(run->what.idle_ms * 1e6 * ticks_per_ns),
    };
    /* Without a transport of its own, for whatever reason, the sender is cold. */
    if (!o->has_cold_sender && run->what.mechanism->send && transport_open(&own, run->what.mechanism, o->bytes) == 0)
        run->exchange.own = &own;
    if (exchange_init(&run->exchange))
        return print_error(EXIT_FAILED, "out of memory (fewer --messages need less)");
    exchange_give(&run->exchange, &run->pair, o->fifo_priority);
    return measure(run);
}

static int run_and_write(struct wake_run *run)
{
    stop_init();
    pair_leave_cpus(&run->pair, &run->facts);
    clock_span_begin(&run->clock);
    run->at_s = time(NULL);
    int status = prepare_and_measure(run);
    clock_span_end(&run->clock);
    return status ? status : output_write(wake_document_write, run);
}

/* What the words themselves do not say. */
static int check(struct wake_run *run)
{
    const struct options *o = run->options;
    if (!wake_case_parse(&run->what, o->wake_case))
        return print_error(EXIT_USAGE, "--case %.60s: there is no such case; write MECHANISM:WAY:IDLE_MS, like tcp:block:10, with 0 to %d ms "
                           "(of a timer, above 0)", o->wake_case, IDLE_MOST_MS);
    if (o->socket >= 0 && !(run->what.mechanism->socket_type && (o->is_reflector || o->peer_hz)))
        return print_error(EXIT_USAGE, "--socket is for a case of tcp or udp, with --peer-hz or --reflect");
    int status = pair_choose(&run->pair, o->cpus, &run->facts);
    bool is_starving = o->fifo_priority && cpus_count(&run->pair.cpus) == 1 && run->what.method->waiting == WAITING_SPINNING;
    if (!status && is_starving && !o->is_reflector)
        return print_error(EXIT_USAGE, "a SCHED_FIFO spinner on CPU %u would starve the sender there",
                           run->pair.ends[RECEIVER].cpu);
    return status;
}

int wake_main(int argc, char **argv)
{
    struct options options;
    static struct wake_run run;
    run.options = &options;
    int status = options_parse(&wake_command, &options, argc, argv);
    if (status)
        return status;
    host_facts_init(&run.facts, options.root);
    status = check(&run);
    if (!status)
        status = options.is_reflector ? reflector_serve(&run) : run_and_write(&run);
    host_facts_deinit(&run.facts);
    return status;
}
