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

static void line_break(struct json *j)
{
    if (j->depth)
        (void)fprintf(j->stream, "\n%*s", (int)j->depth, "");
}

static void separate(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->is_first)
        put(j, ",");
    line_break(j);
    j->is_first = false;
}

/*
 * The length of the UTF-8 character that begins at `at`, or 0 when none does: overlong forms, surrogates and values above
 * U+10FFFF are none.
 */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    if (at[0] < 0x80)
        return 1;
    size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool is_bad = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
                  (at[0] == 0xf4 && at[1] > 0x8f);
    return is_bad ? 0 : length;
}

static void put_escaped(struct json *j, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    (void)fputc('"', j->stream);
    while (length) {
        size_t step = utf8_length(at, length);
        if (step == 0)
            put(j, "\\ufffd");
        else if (at[0] == '"' || at[0] == '\\')
            (void)fprintf(j->stream, "\\%c", at[0]);
        else if (at[0] < 0x20 || at[0] == 0x7f)
            (void)fprintf(j->stream, "\\u%04x", at[0]);
        else
            (void)fwrite(at, 1, step, j->stream);
        at += step ? step : 1;
        length -= step ? step : 1;
    }
    (void)fputc('"', j->stream);
}

void json_key_n(struct json *j, const char *key, size_t length)
{
    separate(j);
    put_escaped(j, key, length);
    put(j, ": ");
    j->after_key = true;
}

static void begin_value(struct json *j, const char *key)
{
    if (key)
        json_key_n(j, key, strlen(key));
    separate(j);
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

void json_event(struct json *j, uint64_t start, uint64_t end, const char *cause)
{
    begin_value(j, NULL);
    (void)fprintf(j->stream, "[%" PRIu64 ", %" PRIu64 ", ", start, end);
    put_escaped(j, cause, strlen(cause));
    put(j, "]");
}
