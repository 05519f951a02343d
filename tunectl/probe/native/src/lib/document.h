/* What the documents of all experiments have in common. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/host.h"
#include "lib/json.h"
#include "lib/options.h"

/*
 * Begins the document of an experiment's run on standard output: an open object with schema, tunectl_version, host, at (`at_s`:
 * CLOCK_REALTIME, in seconds) and host_files. document_end returns the exit status, the reason being on stderr.
 */
struct json document_begin(const struct command *command, const struct host_facts *facts, int64_t at_s);
int document_end(struct json *j);

/* The text of each file that could be read, by its path. */
void document_write_files(struct json *j, const char *key, const struct snapshot *files);

/* A string: the text's first line. Frees the text. */
void document_write_line(struct json *j, const char *key, struct text text);

/* `governor` and `core_cpus` of a CPU, into the open object. */
void document_write_cpu(struct json *j, const char *root, unsigned cpu);

/* The members of a `clock` object, into the open object. */
void document_write_clock(struct json *j, const struct clock_span *clock, const struct host_facts *facts);
