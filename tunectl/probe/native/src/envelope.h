/* What every document of the probe begins with. */
#ifndef TUNECTL_ENVELOPE_H
#define TUNECTL_ENVELOPE_H

#include <stdint.h>

#include "clock.h"
#include "facts.h"
#include "json.h"

/* schema, tunectl_version, host and at (`at_s`: CLOCK_REALTIME, in seconds), into the open object. */
void envelope_write_header(struct json *j, const char *schema, const struct host_facts *facts, int64_t at_s);

/* The members of a `clock` object, into the open object. */
void envelope_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts);

#endif
