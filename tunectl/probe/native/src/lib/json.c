#include "lib/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    (void)fputs(value ? "true" : "false", j->stream);
}

void json_null(struct json *j, const char *key)
{
    json_real(j, key, NAN, 0);
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
