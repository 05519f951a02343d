#include <stdio.h>
#include <time.h>

#include "hedge/run.h"
#include "lib/output.h"
#include "lib/stop.h"
#include "lib/ticks.h"

enum {
    LEAD_MS = 20,               /* from the start of the threads to the first request's time */
    GRACE_MS = 2000,            /* for servers that share a CPU; alone they end at once */
};

const struct command hedge_command = {
    .name = "hedge",
    .experiment = OF_HEDGE,
    .about =
        "hedge: does a second copy of a late request help, and at which load does it break down? The result is a JSON document of what\n"
        "was counted (schema tunectl.probe.hedge.raw/1); `tunectl probe hedge` chooses CPUs and cases, and makes figures of it.\n",
    .end = "SIGINT and SIGTERM end the measuring and still give the result so far.\n",
};

static const struct pair_roles roles = {
    HEDGE_ENDS, {"client", "a", "b"}, "the client's CPU and those of both servers, like 2,3,4"
};

static int patience_ms(const void *run)
{
    (void)run;
    return GRACE_MS;
}

static int conduct(struct hedge_run *run)
{
    struct pair *pair = &run->pair;
    run->start_ticks = ticks_now() + (uint64_t)((double)LEAD_MS * run->clock.initial.hz / 1e3);
    bool is_over = pair_work(pair, patience_ms);
    run->is_interrupted = stop_is_asked();
    pair_end(pair, is_over);
    return is_over ? EXIT_OK : print_error(EXIT_FAILED, "a server did not end within %d ms: nothing was measured", GRACE_MS);
}

static int measure(struct hedge_run *run)
{
    struct pair *pair = &run->pair;
    stop_init();
    pair_leave_cpus(pair, &run->facts);
    clock_span_begin(&run->clock);
    pair->name = "hedge";
    pair->fifo_priority = run->options->fifo_priority;
    pair->ticks_per_ns = run->clock.initial.hz / 1e9;
    pair->context = run;
    int status = hedge_read_rules(run);
    if (!status)
        status = hedge_get_memory(run);
    for (size_t i = 0; i < HEDGE_ENDS; i++) {
        pair->prepare[i] = hedge_prepare[i];
        pair->work[i] = hedge_work[i];
    }
    if (!status)
        status = pair_start(pair, &run->facts, run->options->intrude);
    if (!status)
        status = conduct(run);
    clock_span_end(&run->clock);
    return status;
}

/* A tick is a nanosecond. */
static int simulate(struct hedge_run *run)
{
    run->clock.initial.hz = 1e9;
    int status = hedge_read_rules(run);
    if (!status)
        status = hedge_get_memory(run);
    if (!status)
        hedge_simulate(run);
    return status;
}

static int check(struct hedge_run *run)
{
    const struct options *o = run->options;
    if (o->is_simulated)
        return o->cpus ? print_error(EXIT_USAGE, "--cpus: a simulation has none") : EXIT_OK;
    run->pair.roles = &roles;
    int status = pair_choose(&run->pair, o->cpus, &run->facts);
    bool is_shared = cpus_count(&run->pair.cpus) < HEDGE_ENDS;
    if (!status && is_shared && (!o->may_share || o->fifo_priority))
        return print_error(EXIT_USAGE, "--cpus: all three threads spin, so each needs a CPU of its own");
    return status;
}

int hedge_main(int argc, char **argv)
{
    struct options options;
    static struct hedge_run run;
    run.options = &options;
    int status = options_parse(&hedge_command, &options, argc, argv);
    if (status)
        return status;
    host_facts_init(&run.facts, options.root);
    status = check(&run);
    run.at_s = time(NULL);
    if (!status)
        status = options.is_simulated ? simulate(&run) : measure(&run);
    if (!status)
        status = output_write(hedge_document_write, &run);
    host_facts_deinit(&run.facts);
    return status;
}
