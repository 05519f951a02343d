/* Writes one JSON document to a stream, piece by piece; commas and indentation are kept here. */
#ifndef TUNECTL_LIB_JSON_H
#define TUNECTL_LIB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    unsigned depth;
    bool is_first;      /* nothing stands yet in the innermost container */
};

void json_init(struct json *j, FILE *stream);

/* `key` is NULL inside arrays. */
void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);

/*
 * A NUL-terminated string, or `length` bytes. A byte that is not ASCII is written as U+0080 to U+00FF: names in the kernel's files
 * may hold any, and whoever reads them decodes.
 */
void json_string(struct json *j, const char *key, const char *text);
void json_string_n(struct json *j, const char *key, const char *text, size_t length);

void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* `decimals` digits behind the point; a value that is not finite is null, as JSON has no other word for it. */
void json_real(struct json *j, const char *key, double value, int decimals);

/* `[a, b, c]` on one line. */
void json_uints(struct json *j, const char *key, const uint64_t *values, size_t n);
void json_ints(struct json *j, const char *key, const int64_t *values, size_t n);

#endif
