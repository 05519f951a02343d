#include "wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "complain.h"
#include "output.h"
#include "stop.h"
#include "ticks.h"

static const double cell_overhead_s = 0.02;

bool wake_would_starve(const struct wake_run *run, const struct way *way)
{
    return run->options->fifo_priority && run->place.is_same_cpu && way->waiting == WAITING_SPINNING;
}

static bool is_possible(const struct cell *cell)
{
    return (cell->way->needs & ~cell->mechanism->traits) == 0;
}

double wake_estimate_s(const struct wake_options *options, const struct cell *cells, size_t n)
{
    double s = 0.0;
    for (size_t i = 0; i < n; i++)
        if (is_possible(&cells[i]) && (cells[i].way->waiting != WAITING_BUSY_POLL || options->connect))
            s += cell_overhead_s + (double)options->messages * cells[i].idle_ms / 1e3;
    return s;
}

static bool is_stopped(void)
{
    return atomic_load_explicit(stop_deadline(), memory_order_relaxed) == 0;
}

static int plan(struct wake_run *run)
{
    const struct wake_options *o = run->options;
    run->cells = calloc(mechanisms_n * ways_n * o->idles, sizeof(*run->cells));
    if (!run->cells)
        return complain(EXIT_FAILED, "out of memory");
    for (size_t m = 0; m < mechanisms_n; m++)
        for (size_t w = 0; w < ways_n; w++)
            for (size_t i = 0; i < o->idles; i++)
                if (o->mechanisms >> m & 1 && o->ways >> w & 1)
                    run->cells[run->cells_n++] =
                        (struct cell){.mechanism = &mechanisms[m], .way = &ways[w], .idle_ms = o->idle_ms[i]};
    return EXIT_OK;
}

/* Returns false, with the reason in the cell, where it must not or cannot be measured. */
static bool open_cell(struct wake_run *run, struct cell *cell, struct link *link)
{
    unsigned us = run->options->busy_poll_us;
    *link = (struct link){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
    if (!is_possible(cell)) {
        (void)snprintf(cell->reason, sizeof(cell->reason), "%s", cell->way->lack);
        return false;
    }
    if (wake_would_starve(run, cell->way)) {
        (void)snprintf(cell->reason, sizeof(cell->reason), "a SCHED_FIFO spinner on CPU %u would starve the sender, which "
                       "feeds it from the same CPU", run->place.receiver);
        return false;
    }
    if (run->far)
        return far_open(run->far, link, cell->mechanism, cell->way, us, cell->reason, sizeof(cell->reason)) == 0;
    int rc = link_open(link, cell->mechanism);
    if (!rc)
        rc = cell->way->prepare(link, us);
    if (rc)
        (void)snprintf(cell->reason, sizeof(cell->reason), "cannot be set up: %s", strerror(-rc));
    return rc == 0;
}

/* A link of the sender's own; without one, for whatever reason, it is cold. */
static void open_own(const struct wake_run *run, struct exchange *x, struct link *own, const struct mechanism *mechanism)
{
    *own = (struct link){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
    if (!run->options->has_cold_sender && link_open(own, mechanism) == 0)
        x->own = own;
}

static int measure_cell(struct wake_run *run, struct crew *crew, struct cell *cell, int64_t *scratch)
{
    struct link link;
    struct link own;
    struct exchange *x = crew->exchange;
    int rc = 0;
    if (open_cell(run, cell, &link)) {
        uint64_t period = (uint64_t)(cell->idle_ms * 1e6 * x->ticks_per_ns);
        exchange_reset(x, &link, cell->way, run->options->messages, period);
        open_own(run, x, &own, cell->mechanism);
        crew_exchange(crew);
        link_close(&own);
        rc = cell_conclude(cell, x, scratch);
        wake_warn_cell(cell, run, x);
        if (run->far)
            far_close(run->far);
    }
    link_close(&link);
    return rc ? complain(EXIT_FAILED, "out of memory") : EXIT_OK;
}

/* Drawn between the cells only. */
static void show_progress(const struct wake_run *run, size_t done)
{
    bool is_terminal = isatty(STDERR_FILENO);
    if (!is_terminal && !run->options->shows_progress)
        return;
    if (done == run->cells_n) {
        if (is_terminal)
            (void)fputs("\r\033[K", stderr);
        return;
    }
    const struct cell *cell = &run->cells[done];
    (void)fprintf(stderr, "%s%s, %s, %g ms: cell %zu of %zu, %.0f s left%s", is_terminal ? "\r\033[K" : "",
                  cell->mechanism->name, cell->way->name, cell->idle_ms, done + 1, run->cells_n,
                  wake_estimate_s(run->options, cell, run->cells_n - done), is_terminal ? "" : "\n");
    (void)fflush(stderr);
}

static int measure_cells(struct wake_run *run, struct crew *crew, int64_t *scratch)
{
    int status = EXIT_OK;
    for (size_t i = 0; i < run->cells_n && !status; i++) {
        struct cell *cell = &run->cells[i];
        if (is_stopped()) {
            (void)snprintf(cell->reason, sizeof(cell->reason), "interrupted before it was measured");
            continue;
        }
        show_progress(run, i);
        status = measure_cell(run, crew, cell, scratch);
    }
    show_progress(run, run->cells_n);
    return status;
}

static int measure(struct wake_run *run, struct exchange *x, int64_t *scratch)
{
    struct crew crew;
    struct timespec now;
    int status = crew_start(&crew, x, run->place.sender, run->place.receiver, run->options->fifo_priority);
    if (status)
        return status;
    /* The threads keep the signals blocked: this one, off the measured CPUs, takes them. */
    stop_listen();
    run->is_locked = mlockall(MCL_CURRENT) == 0;
    if (!run->place.is_same_cpu)
        run->offset = crew_compare_clocks(&crew);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    run->at_s = now.tv_sec;
    uint64_t start = ticks_now();
    status = measure_cells(run, &crew, scratch);
    run->duration_s = (double)(ticks_now() - start) / run->clock.initial.hz;
    run->is_interrupted = is_stopped();
    crew_stop(&crew);
    return status;
}

static int prepare_and_measure(struct wake_run *run)
{
    struct exchange x;
    int64_t *scratch = calloc(run->options->messages, sizeof(*scratch));
    clock_span_begin(&run->clock);
    if (!scratch || exchange_init(&x, run->options->messages, run->clock.initial.hz / 1e9)) {
        free(scratch);
        return complain(EXIT_FAILED, "out of memory (fewer --messages need less)");
    }
    if (run->far)
        x.far_ratio = run->clock.initial.hz / run->far->hz;
    int status = measure(run, &x, scratch);
    clock_span_end(&run->clock);
    exchange_deinit(&x);
    free(scratch);
    return status;
}

static int run_and_write(struct wake_run *run)
{
    const struct wake_options *o = run->options;
    struct far far;
    FILE *stream = output_open(o->output);
    if (!stream)
        return complain(EXIT_FAILED, "cannot open %s: %s", o->output, strerror(errno));
    stop_init();
    int status = place_leave(&run->place, &run->facts);
    if (!status && o->connect) {
        status = far_connect(&far, o->connect);
        run->far = status ? NULL : &far;
    }
    if (!status)
        status = prepare_and_measure(run);
    if (status) {
        output_abandon(stream);
    } else {
        wake_warn(run);
        status = output_write(stream, o->output, wake_document_write, run);
    }
    if (run->far)
        far_deinit(run->far);
    return status;
}

static void run_deinit(struct wake_run *run)
{
    for (size_t i = 0; i < run->cells_n; i++)
        cell_deinit(&run->cells[i]);
    free(run->cells);
    warnings_deinit(&run->warnings);
    host_facts_deinit(&run->facts);
}

int wake_main(const struct wake_options *options)
{
    struct wake_run run = {.options = options};
    if (options->listen)
        return far_serve(options);
    if (host_facts_init(&run.facts, options->root))
        return complain(EXIT_FAILED, "out of memory");
    int status = place_choose(&run.place, &run.facts, options->cpus, options->among);
    if (!status)
        status = plan(&run);
    if (!status)
        status = run_and_write(&run);
    run_deinit(&run);
    return status;
}
