/* What the documents of all experiments have in common. */
#ifndef TUNECTL_LIB_DOCUMENT_H
#define TUNECTL_LIB_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/json.h"

/* schema, tunectl_version, host and at (`at_s`: CLOCK_REALTIME, in seconds), into the open object. */
void document_write_header(struct json *j, const char *schema, const struct host_facts *facts, int64_t at_s);

/* The members of a `clock` object, into the open object. */
void document_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts);

/* Sentences that say what makes a result mean less than it seems to. All 0 when there is none. */
struct warnings {
    char **texts;
    size_t n;
};

/* Adds a sentence. One that cannot be stored for want of memory ends the program: a missing warning is a false result. */
void warnings_add(struct warnings *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warnings_deinit(struct warnings *warnings);

/* The member `warnings`, into the open object. */
void document_write_warnings(struct json *j, const struct warnings *warnings);

#endif
