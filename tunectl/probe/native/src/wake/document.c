
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
    json_uint(j, "throttled_us", run->pair.throttled_us);
    int rc = run->reason[0] ? 0 : cell_write(j, &run->exchange, &run->before, &run->after);
    json_close(j, '}');
    json_close(j, ']');
    return rc;
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
    pair_write(&j, &run->pair, &run->clock, &run->facts);
    int rc = write_cells(run, &j);
    json_close(&j, '}');
    return rc;
}
