/* What the documents of all experiments have in common. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/json.h"

/* schema, tunectl_version, host, at (`at_s`: CLOCK_REALTIME, in seconds) and host_files, into the open object. */
void document_write_header(struct json *j, const char *schema, const struct host_facts *facts, int64_t at_s);

/* The text of each file that could be read, by its path. */
void document_write_files(struct json *j, const char *key, const struct snapshot *files);

/* A string: the text's first line. Frees the text. */
void document_write_line(struct json *j, const char *key, struct text text);

/* `governor` and `core_cpus` of a CPU, into the open object. */
void document_write_cpu(struct json *j, const char *root, unsigned cpu);

/* The members of a `clock` object, into the open object. */
void document_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts);
