/* Writes one JSON document to a stream, piece by piece, a value a line; commas are kept here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    bool has_more;      /* something stands in the innermost container already */
};

/* An object or an array: '{' and '}', or '[' and ']'. `key` is NULL inside arrays, here and below. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);

/*
 * A NUL-terminated string, or `length` bytes. A byte that is not ASCII is written as U+0080 to U+00FF: names in the kernel's files
 * may hold any, and whoever reads them decodes.
 */
void json_string(struct json *j, const char *key, const char *text);
void json_string_n(struct json *j, const char *key, const char *text, size_t length);

void json_uint(struct json *j, const char *key, uint64_t value);
/* One that is not known (below 0) is null. */
void json_known(struct json *j, const char *key, int64_t value);
/* Several of them: json_counts(j, {"sent", sent}, {"arrived", arrived}). */
struct json_count {
    const char *key;
    uint64_t value;
};

#define json_counts(j, ...) json_put_counts(j, (const struct json_count[]){__VA_ARGS__, {0}})
void json_put_counts(struct json *j, const struct json_count *counts);

void json_bool(struct json *j, const char *key, bool value);

/* `decimals` digits behind the point; a value that is not finite is null, as JSON has no other word for it. */
void json_real(struct json *j, const char *key, double value, int decimals);

/* [a, b, c] */
void json_uints(struct json *j, const char *key, const uint64_t *values, size_t n);
void json_ints(struct json *j, const char *key, const int64_t *values, size_t n);

/*
 * Many signed values as an array: each value and how often it came, in turns, ascending. With more different values than so many,
 * those between the first and the last share the buckets of histogram.h.
 */
enum { VALUES_MOST = 2048 };

/* The value of item `i`. False where it has none. */
typedef bool (*value_of)(const void *context, size_t i, int64_t *value);

/* Of the items from `from` to before `end`. Without memory the program ends, the reason being on stderr. */
void values_write(struct json *j, const char *key, size_t from, size_t end, value_of value, const void *context);

/* Collects them, ascending, into new memory; returns how many they are. */
size_t values_collect(int64_t **values, size_t from, size_t end, value_of value, const void *context);
