#include "lib/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_init(struct json *j, FILE *stream)
{
    *j = (struct json){.stream = stream, .is_first = true};
}

static void put(struct json *j, const char *text)
{
    (void)fputs(text, j->stream);
}

/* A line of its own, unless nothing is around it. */
static void break_line(struct json *j)
{
    if (j->depth)
        (void)fprintf(j->stream, "\n%*s", (int)j->depth, "");
}

static void put_escaped(struct json *j, const char *text, size_t length)
{
    (void)fputc('"', j->stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\')
            (void)fprintf(j->stream, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            (void)fprintf(j->stream, "\\u%04x", byte);
        else
            (void)fputc(byte, j->stream);
    }
    (void)fputc('"', j->stream);
}

static void begin_value(struct json *j, const char *key)
{
    if (!j->is_first)
        put(j, ",");
    break_line(j);
    j->is_first = false;
    if (key) {
        put_escaped(j, key, strlen(key));
        put(j, ": ");
    }
}

static void open_container(struct json *j, const char *key, const char *bracket)
{
    begin_value(j, key);
    put(j, bracket);
    j->depth++;
    j->is_first = true;
}

static void close_container(struct json *j, const char *bracket)
{
    bool is_empty = j->is_first;
    j->depth--;
    if (!is_empty) {
        (void)fputc('\n', j->stream);
        if (j->depth)
            (void)fprintf(j->stream, "%*s", (int)j->depth, "");
    }
    put(j, bracket);
    j->is_first = false;
    if (j->depth == 0)
        (void)fputc('\n', j->stream);
}

void json_object_begin(struct json *j, const char *key)
{
    open_container(j, key, "{");
}

void json_object_end(struct json *j)
{
    close_container(j, "}");
}

void json_array_begin(struct json *j, const char *key)
{
    open_container(j, key, "[");
}

void json_array_end(struct json *j)
{
    close_container(j, "]");
}

void json_string_n(struct json *j, const char *key, const char *text, size_t length)
{
    begin_value(j, key);
    put_escaped(j, text, length);
}

void json_string(struct json *j, const char *key, const char *text)
{
    json_string_n(j, key, text, strlen(text));
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    (void)fprintf(j->stream, "%" PRIu64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    put(j, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    begin_value(j, key);
    put(j, "null");
}

void json_real(struct json *j, const char *key, double value, int decimals)
{
    begin_value(j, key);
    if (isfinite(value))
        (void)fprintf(j->stream, "%.*f", decimals, value);
    else
        put(j, "null");
}

void json_uints(struct json *j, const char *key, const uint64_t *values, size_t n)
{
    begin_value(j, key);
    put(j, "[");
    for (size_t i = 0; i < n; i++)
        (void)fprintf(j->stream, "%s%" PRIu64, i ? ", " : "", values[i]);
    put(j, "]");
}

void json_ints(struct json *j, const char *key, const int64_t *values, size_t n)
{
    begin_value(j, key);
    put(j, "[");
    for (size_t i = 0; i < n; i++)
        (void)fprintf(j->stream, "%s%" PRId64, i ? ", " : "", values[i]);
    put(j, "]");
}
