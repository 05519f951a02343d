#include "wake/wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/output.h"
#include "lib/stop.h"
#include "lib/ticks.h"
#include "wake/document.h"
#include "wake/guard.h"
#include "wake/mechanisms.h"
#include "wake/reflector.h"
#include "wake/warnings.h"

static const double case_overhead_s = 0.02;

bool wake_would_starve(const struct wake_run *run, const struct wait_method *method)
{
    return run->options->fifo_priority && run->placement.is_same_cpu && method->waiting == WAITING_SPINNING;
}

static bool is_possible(const struct wake_case *c)
{
    return (c->method->needs & ~c->mechanism->traits) == 0;
}

double wake_estimate_s(const struct wake_options *options, const struct wake_case *cases, size_t n)
{
    double s = 0.0;
    for (size_t i = 0; i < n; i++)
        if (is_possible(&cases[i]) && (cases[i].method->waiting != WAITING_BUSY_POLL || options->connect))
            s += case_overhead_s + (double)options->messages * cases[i].idle_ms / 1e3;
    return s;
}

static int plan(struct wake_run *run)
{
    const struct wake_options *o = run->options;
    run->cases = calloc(mechanisms_n * wait_methods_n * o->idles, sizeof(*run->cases));
    if (!run->cases)
        return print_error(EXIT_FAILED, "out of memory");
    for (size_t m = 0; m < mechanisms_n; m++)
        for (size_t w = 0; w < wait_methods_n; w++)
            for (size_t i = 0; i < o->idles; i++)
                if (o->mechanisms >> m & 1 && o->wait_methods >> w & 1)
                    run->cases[run->cases_n++] =
                        (struct wake_case){.mechanism = &mechanisms[m], .method = &wait_methods[w], .idle_ms = o->idle_ms[i]};
    return EXIT_OK;
}

/* Returns false, with the reason in the case, where it must not or cannot be measured. */
static bool open_case(struct wake_run *run, struct wake_case *c, struct transport *transport)
{
    unsigned us = run->options->busy_poll_us;
    *transport = (struct transport){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
    if (!is_possible(c)) {
        (void)snprintf(c->reason, sizeof(c->reason), "%s", c->method->lack);
        return false;
    }
    if (wake_would_starve(run, c->method)) {
        (void)snprintf(c->reason, sizeof(c->reason), "a SCHED_FIFO spinner on CPU %u would starve the sender, which "
                       "feeds it from the same CPU", run->placement.receiver);
        return false;
    }
    if (run->remote)
        return remote_open(run->remote, transport, c->mechanism, c->method, us, c->reason, sizeof(c->reason)) == 0;
    int rc = transport_open(transport, c->mechanism);
    if (!rc)
        rc = c->method->prepare(transport, us);
    if (rc)
        (void)snprintf(c->reason, sizeof(c->reason), "cannot be set up: %s", strerror(-rc));
    return rc == 0;
}

/* A transport of the sender's own; without one, for whatever reason, it is cold. */
static void open_own(const struct wake_run *run, struct exchange *x, struct transport *own, const struct mechanism *mechanism)
{
    *own = (struct transport){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
    if (!run->options->has_cold_sender && transport_open(own, mechanism) == 0)
        x->own = own;
}

static int measure_case(struct wake_run *run, struct wake_threads *threads, struct wake_case *c, int64_t *scratch)
{
    struct transport transport;
    struct transport own;
    struct exchange *x = threads->exchange;
    int rc = 0;
    if (open_case(run, c, &transport)) {
        uint64_t period = (uint64_t)(c->idle_ms * 1e6 * x->ticks_per_ns);
        exchange_reset(x, &transport, c->method, run->options->messages, period);
        open_own(run, x, &own, c->mechanism);
        wake_threads_exchange(threads);
        transport_close(&own);
        rc = wake_case_conclude(c, x, scratch);
        wake_warn_case(c, run, x);
        if (run->remote)
            remote_close(run->remote);
    }
    transport_close(&transport);
    return rc ? print_error(EXIT_FAILED, "out of memory") : EXIT_OK;
}

/* Drawn between the cases only. */
static void show_progress(const struct wake_run *run, size_t done)
{
    bool is_terminal = isatty(STDERR_FILENO);
    if (!is_terminal && !run->options->shows_progress)
        return;
    if (done == run->cases_n) {
        if (is_terminal)
            (void)fputs("\r\033[K", stderr);
        return;
    }
    const struct wake_case *c = &run->cases[done];
    (void)fprintf(stderr, "%s%s, %s, %g ms: case %zu of %zu, %.0f s left%s", is_terminal ? "\r\033[K" : "",
                  c->mechanism->name, c->method->name, c->idle_ms, done + 1, run->cases_n,
                  wake_estimate_s(run->options, c, run->cases_n - done), is_terminal ? "" : "\n");
    (void)fflush(stderr);
}

static int measure_cases(struct wake_run *run, struct wake_threads *threads, int64_t *scratch)
{
    int status = EXIT_OK;
    for (size_t i = 0; i < run->cases_n && !status; i++) {
        struct wake_case *c = &run->cases[i];
        if (stop_is_asked()) {
            (void)snprintf(c->reason, sizeof(c->reason), "interrupted before it was measured");
            continue;
        }
        show_progress(run, i);
        status = measure_case(run, threads, c, scratch);
    }
    show_progress(run, run->cases_n);
    return status;
}

static int measure(struct wake_run *run, struct exchange *x, int64_t *scratch)
{
    struct wake_threads threads;
    struct timespec now;
    int status = wake_threads_start(&threads, x, run->placement.sender, run->placement.receiver, run->options->fifo_priority);
    if (status)
        return status;
    /* The threads keep the signals blocked: this one, off the measured CPUs, takes them. */
    stop_listen();
    struct wake_guard *guard = wake_guard_start(run, &threads);
    run->is_locked = mlockall(MCL_CURRENT) == 0;
    if (!run->placement.is_same_cpu)
        run->offset = wake_threads_compare_clocks(&threads);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    run->at_s = now.tv_sec;
    uint64_t start = ticks_now();
    status = measure_cases(run, &threads, scratch);
    run->duration_s = (double)(ticks_now() - start) / run->clock.initial.hz;
    run->is_interrupted = stop_is_asked();
    wake_guard_stop(guard);
    wake_threads_stop(&threads);
    return status;
}

static int prepare_and_measure(struct wake_run *run)
{
    struct exchange x;
    int64_t *scratch = calloc(run->options->messages, sizeof(*scratch));
    clock_span_begin(&run->clock);
    if (!scratch || exchange_init(&x, run->options->messages, run->clock.initial.hz / 1e9)) {
        free(scratch);
        return print_error(EXIT_FAILED, "out of memory (fewer --messages need less)");
    }
    if (run->remote)
        x.remote_ratio = run->clock.initial.hz / run->remote->hz;
    int status = measure(run, &x, scratch);
    clock_span_end(&run->clock);
    exchange_deinit(&x);
    free(scratch);
    return status;
}

static int run_and_write(struct wake_run *run)
{
    const struct wake_options *o = run->options;
    struct remote remote;
    FILE *stream = output_open(o->output);
    if (!stream)
        return print_error(EXIT_FAILED, "cannot open %s: %s", o->output, strerror(errno));
    stop_init();
    int status = placement_leave(&run->placement, &run->facts, &run->housekeeping);
    if (!status && o->connect) {
        status = remote_connect(&remote, o->connect);
        run->remote = status ? NULL : &remote;
    }
    if (!status)
        status = prepare_and_measure(run);
    if (status) {
        output_abandon(stream);
    } else {
        wake_warn(run);
        status = output_write(stream, o->output, wake_document_write, run);
    }
    if (run->remote)
        remote_deinit(run->remote);
    return status;
}

static void run_deinit(struct wake_run *run)
{
    for (size_t i = 0; i < run->cases_n; i++)
        wake_case_deinit(&run->cases[i]);
    free(run->cases);
    cpu_list_deinit(&run->housekeeping);
    warnings_deinit(&run->warnings);
    host_facts_deinit(&run->facts);
}

int wake_main(int argc, char **argv)
{
    struct wake_options options;
    struct wake_run run = {.options = &options};
    int status = wake_options_parse(&options, argc, argv);
    if (status)
        return status;
    if (options.listen)
        return reflector_serve(&options);
    if (host_facts_init(&run.facts, options.root))
        return print_error(EXIT_FAILED, "out of memory");
    status = placement_choose(&run.placement, &run.facts, options.cpus, options.among);
    if (!status)
        status = plan(&run);
    if (!status)
        status = run_and_write(&run);
    run_deinit(&run);
    return status;
}
