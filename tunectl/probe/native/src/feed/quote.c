#include "feed/quote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS = 8, UNIT = 100000000 };

size_t quote_write_json(char text[QUOTE_JSON_MOST], const struct quote *q, uint64_t time_ns)
{
    int length = snprintf(text, QUOTE_JSON_MOST,
                          "{\"s\":\"%.15s\",\"u\":%" PRIu64 ",\"b\":\"%" PRId64 ".%08" PRId64 "\",\"B\":\"%" PRId64 ".%08" PRId64
                          "\",\"a\":\"%" PRId64 ".%08" PRId64 "\",\"A\":\"%" PRId64 ".%08" PRId64 "\",\"T\":%" PRIu64 "}",
                          q->symbol, q->update, q->bid_price / UNIT, q->bid_price % UNIT, q->bid_size / UNIT, q->bid_size % UNIT,
                          q->ask_price / UNIT, q->ask_price % UNIT, q->ask_size / UNIT, q->ask_size % UNIT, time_ns);
    return (size_t)length;
}

/* Bytes in the order of the wire, whatever this machine's is. */
static void put_number(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t number_at(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

size_t quote_write_binary(uint8_t *record, const struct quote *q, size_t length)
{
    length = length > QUOTE_BINARY ? length : QUOTE_BINARY;
    const int64_t numbers[] = {q->bid_price, q->bid_size, q->ask_price, q->ask_size};
    memcpy(record, "TOB1", 4);
    put_number(record + 4, length, 4);
    put_number(record + 8, q->update, 8);
    memcpy(record + 16, q->symbol, QUOTE_SYMBOL);
    for (size_t i = 0; i < 4; i++)
        put_number(record + 32 + 8 * i, (uint64_t)numbers[i], 8);
    memset(record + QUOTE_BINARY, 0, length - QUOTE_BINARY);
    return length;
}

size_t quote_binary_length(const uint8_t *record, size_t length)
{
    uint64_t stated = length < QUOTE_BINARY || memcmp(record, "TOB1", 4) != 0 ? 0 : number_at(record + 4, 4);
    return stated < QUOTE_BINARY ? 0 : (size_t)stated;
}

bool quote_read_binary(struct quote *q, const uint8_t *record, size_t length)
{
    if (quote_binary_length(record, length) != length || !length || !record[16] || record[16 + QUOTE_SYMBOL - 1])
        return false;
    q->update = number_at(record + 8, 8);
    memcpy(q->symbol, record + 16, QUOTE_SYMBOL);
    q->bid_price = (int64_t)number_at(record + 32, 8);
    q->bid_size = (int64_t)number_at(record + 40, 8);
    q->ask_price = (int64_t)number_at(record + 48, 8);
    q->ask_size = (int64_t)number_at(record + 56, 8);
    return true;
}

/* ---- JSON */

struct cursor {
    const char *at;
    const char *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* What stands between quotes. An escape is passed over, and makes it no symbol and no number. */
static bool take_string(struct cursor *c, struct cursor *inner)
{
    if (!take(c, '"'))
        return false;
    inner->at = c->at;
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\')
            c->at++;
        if (c->at < c->end)
            c->at++;
    }
    inner->end = c->at;
    return take(c, '"');
}

/* A number, true, false or null, as far as it goes. */
static bool take_word(struct cursor *c, struct cursor *inner)
{
    skip_blanks(c);
    inner->at = c->at;
    while (c->at < c->end && *c->at != ',' && *c->at != '}' && *c->at != ' ' && *c->at != '"' && *c->at != '{' && *c->at != '[')
        c->at++;
    inner->end = c->at;
    return inner->at < inner->end;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits up to the first that is none, at least one and at most `most`. */
static bool take_digits(struct cursor *c, uint64_t *value, unsigned most, unsigned *found)
{
    *found = 0;
    for (; c->at < c->end && is_digit(*c->at); c->at++, (*found)++) {
        if (*found == most)
            return false;
        *value = *value * 10 + (uint64_t)(*c->at - '0');
    }
    return *found > 0;
}

static bool read_whole(struct cursor c, uint64_t *value)
{
    unsigned found;
    *value = 0;
    return take_digits(&c, value, 18, &found) && c.at == c.end;
}

/* "25000.12", in units of 1e-8. */
static bool read_decimal(struct cursor c, int64_t *value)
{
    uint64_t units = 0;
    unsigned found;
    unsigned decimals = 0;
    if (!take_digits(&c, &units, 10, &found))
        return false;
    if (c.at < c.end && *c.at++ == '.' && !take_digits(&c, &units, DECIMALS, &decimals))
        return false;
    for (; decimals < DECIMALS; decimals++)
        units *= 10;
    *value = (int64_t)units;
    return c.at == c.end;
}

static bool read_symbol(struct cursor c, char symbol[QUOTE_SYMBOL])
{
    size_t length = (size_t)(c.end - c.at);
    if (length == 0 || length >= QUOTE_SYMBOL || memchr(c.at, '\\', length) || memchr(c.at, '\0', length))
        return false;
    memset(symbol, 0, QUOTE_SYMBOL);
    memcpy(symbol, c.at, length);
    return true;
}

enum { HAS_SYMBOL = 1, HAS_UPDATE = 2, HAS_BID = 4, HAS_BID_SIZE = 8, HAS_ASK = 16, HAS_ASK_SIZE = 32, HAS_ALL = 63 };

/* The member's bit where it is one of ours and its value is right; 0 where it is another's; -1 where it is wrong. */
static int read_member(struct quote *q, char key, struct cursor value, bool is_string)
{
    switch (key) {
    case 's':
        return is_string && read_symbol(value, q->symbol) ? HAS_SYMBOL : -1;
    case 'u':
        return !is_string && read_whole(value, &q->update) ? HAS_UPDATE : -1;
    case 'b':
        return is_string && read_decimal(value, &q->bid_price) ? HAS_BID : -1;
    case 'B':
        return is_string && read_decimal(value, &q->bid_size) ? HAS_BID_SIZE : -1;
    case 'a':
        return is_string && read_decimal(value, &q->ask_price) ? HAS_ASK : -1;
    case 'A':
        return is_string && read_decimal(value, &q->ask_size) ? HAS_ASK_SIZE : -1;
    default:
        return 0;
    }
}

bool quote_read_json(struct quote *q, const char *text, size_t length)
{
    struct cursor c = {text, text + length};
    int has = 0;
    if (!take(&c, '{'))
        return false;
    do {
        struct cursor key;
        struct cursor value;
        if (!take_string(&c, &key) || !take(&c, ':'))
            return false;
        skip_blanks(&c);
        bool is_string = c.at < c.end && *c.at == '"';
        if (!(is_string ? take_string(&c, &value) : take_word(&c, &value)))
            return false;
        int bit = key.end - key.at == 1 ? read_member(q, *key.at, value, is_string) : 0;
        if (bit < 0 || has & bit)
            return false;
        has |= bit;
    } while (take(&c, ','));
    if (!take(&c, '}'))
        return false;
    skip_blanks(&c);
    return c.at == c.end && has == HAS_ALL;
}
