#include "lib/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/recorder.h"
#include "lib/clock.h"
#include "lib/options.h"

/* Each value by itself, or each bucket of both signs. */
enum { PAIRS_MOST = 2 * HISTOGRAM_BUCKETS + 2 };

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
    if (j->has_more)
        (void)fputs(",\n", j->stream);
    j->has_more = true;
    if (key) {
        put_escaped(j, key, strlen(key));
        (void)fputs(": ", j->stream);
    }
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin_value(j, key);
    (void)fputc(bracket, j->stream);
    j->has_more = false;
}

void json_close(struct json *j, char bracket)
{
    (void)fputc(bracket, j->stream);
    j->has_more = true;
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

void json_known(struct json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    (void)fprintf(j->stream, value < 0 ? "null" : "%" PRId64, value);
}

void json_put_counts(struct json *j, const struct json_count *counts)
{
    for (; counts->key; counts++)
        json_uint(j, counts->key, counts->value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    (void)fputs(value ? "true" : "false", j->stream);
}

void json_real(struct json *j, const char *key, double value, int decimals)
{
    begin_value(j, key);
    if (isfinite(value))
        (void)fprintf(j->stream, "%.*f", decimals, value);
    else
        (void)fputs("null", j->stream);
}

void json_uints(struct json *j, const char *key, const uint64_t *values, size_t n)
{
    json_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        (void)fprintf(j->stream, "%s%" PRIu64, i ? ", " : "", values[i]);
    json_close(j, ']');
}

void json_ints(struct json *j, const char *key, const int64_t *values, size_t n)
{
    json_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        (void)fprintf(j->stream, "%s%" PRId64, i ? ", " : "", values[i]);
    json_close(j, ']');
}

size_t values_collect(int64_t **values, size_t from, size_t end, value_of value, const void *context)
{
    size_t n = 0;
    *values = calloc(end > from ? end - from : 1, sizeof(**values));
    if (!*values)
        exit(print_error(EXIT_FAILED, "out of memory while writing the result"));
    for (size_t i = from; i < end; i++)
        n += value(context, i, &(*values)[n]);
    (void)ticks_sort(*values, n);
    return n;
}

static size_t count_different(const int64_t *sorted, size_t n)
{
    size_t different = n > 0;
    for (size_t i = 1; i < n; i++)
        different += sorted[i] != sorted[i - 1];
    return different;
}

static bool is_in_one_bucket(int64_t a, int64_t b)
{
    return (a < 0) == (b < 0) && histogram_index((uint64_t)llabs(a)) == histogram_index((uint64_t)llabs(b));
}

void values_write(struct json *j, const char *key, size_t from_item, size_t end, value_of value, const void *context)
{
    static int64_t pairs[2 * PAIRS_MOST];
    size_t filled = 0;
    int64_t *of;
    size_t n = values_collect(&of, from_item, end, value, context);
    bool is_exact = count_different(of, n) <= VALUES_MOST;
    for (size_t from = 0, to; from < n; from = to) {
        bool is_alone = is_exact || of[from] == of[0];
        int64_t beyond = 0;
        for (to = from + 1; to < n; to++) {
            if (of[to] != of[from] && (is_alone || of[to] == of[n - 1] || !is_in_one_bucket(of[from], of[to])))
                break;
            beyond += of[to] - of[from];
        }
        int64_t count = (int64_t)(to - from);
        pairs[filled++] = of[from] + beyond / count;
        pairs[filled++] = count;
    }
    json_ints(j, key, pairs, filled);
    free(of);
}
