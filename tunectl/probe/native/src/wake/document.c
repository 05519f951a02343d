
#include <unistd.h>

#include "lib/document.h"
#include "lib/files.h"
#include "wake/run.h"

static int write_cells(const struct wake_run *run, struct json *j)
{
    const struct wake_case *c = &run->what;
    json_open(j, "cells", '[');
    json_open(j, NULL, '{');
    json_string(j, "mechanism", c->mechanism->name);
    json_string(j, "waiting", waiting_names[c->method->waiting]);
    json_string(j, "way", c->method->name);
    json_real(j, "idle_ms", c->idle_ms, 6);
    json_string(j, "reason", run->reason);
    int rc = run->reason[0] ? 0 : cell_write(j, &run->exchange, &run->before, &run->after);
    json_close(j, '}');
    json_close(j, ']');
    return rc;
}

static void write_clock(const struct wake_run *run, struct json *j)
{
    json_open(j, "clock", '{');
    document_write_clock(j, &run->clock, &run->facts);
    if (run->offset.is_known)
        json_ints(j, "offset_ticks", (int64_t[]){run->offset.least_ticks, run->offset.most_ticks}, 2);
    json_close(j, '}');
}

static void write_cpu(const struct wake_run *run, struct json *j, unsigned cpu)
{
    json_open(j, NULL, '{');
    json_bool(j, "is_isolated", cpus_have(&run->facts.isolated, cpu));
    document_write_cpu(j, run->facts.root, cpu);
    json_close(j, '}');
}

/* What decides how much the figures mean. */
static void write_facts(const struct wake_run *run, struct json *j)
{
    json_open(j, "facts", '{');
    json_bool(j, "shares_main", cpus_count(&run->housekeeping) == 0);
    json_bool(j, "is_locked", run->is_locked);
    json_uint(j, "user_hz", (uint64_t)sysconf(_SC_CLK_TCK));
    json_uint(j, "timer_slack_ns", run->timer_slack_ns);
    json_open(j, "cpus", '[');
    for (size_t i = 0; i < ENDS; i++)
        write_cpu(run, j, run->ids[i]);
    json_close(j, ']');
    json_close(j, '}');
}

int wake_document_write(FILE *stream, const void *context)
{
    const struct wake_run *run = context;
    const struct options *o = run->options;
    struct json j = {.stream = stream};
    json_open(&j, NULL, '{');
    document_write_header(&j, "tunectl.probe.wake.raw/1", &run->facts, run->at_s);
    json_string(&j, "holds", "what was counted, in ticks of the clock; each delay and how often it came, in turns. `tunectl probe "
                "wake` makes figures, speed-ups and warnings of it");
    json_real(&j, "duration_s", run->duration_s, 3);
    json_bool(&j, "interrupted", run->is_interrupted);
    json_uint(&j, "messages", o->messages);
    json_uint(&j, "bytes", o->bytes);
    json_uint(&j, "fds", o->fds);
    json_uint(&j, "dirty_kib", o->dirty_kib);
    json_uint(&j, "fifo_priority", (uint64_t)o->fifo_priority);
    json_uint(&j, "busy_poll_us", o->busy_poll_us);
    json_bool(&j, "has_warm_sender", !o->has_cold_sender);
    json_uints(&j, "cpus", (uint64_t[]){run->ids[SENDER], run->ids[RECEIVER]}, ENDS);
    write_clock(run, &j);
    write_facts(run, &j);
    int rc = write_cells(run, &j);
    json_close(&j, '}');
    return rc;
}
