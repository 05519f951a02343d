/*
 * One message: the best bid and the best ask of a symbol. It comes in two shapes, JSON and a binary record (docs/probe-feed.md),
 * which are written and read here and nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUOTE_SYMBOL = 16, QUOTE_BINARY = 64, QUOTE_JSON_MOST = 256 };

/* Prices and sizes in units of 1e-8. */
struct quote {
    char symbol[QUOTE_SYMBOL];  /* padded with NUL; 15 characters at most */
    uint64_t update;
    int64_t bid_price;
    int64_t bid_size;
    int64_t ask_price;
    int64_t ask_size;
};

/* Returns its length. All texts of quotes with as many digits have one length. */
size_t quote_write_json(char text[QUOTE_JSON_MOST], const struct quote *quote, uint64_t time_ns);

/* As long as asked for, or QUOTE_BINARY, whichever is more. */
size_t quote_write_binary(uint8_t *record, const struct quote *quote, size_t length);

/* False where it is no such message: a member is missing, or is twice, or is no number that fits. */
bool quote_read_json(struct quote *quote, const char *text, size_t length);
bool quote_read_binary(struct quote *quote, const uint8_t *record, size_t length);

/* How long the record is that begins there, by its head; 0 where less than QUOTE_BINARY bytes are there, or it is none. */
size_t quote_binary_length(const uint8_t *record, size_t length);

/* The best bid and ask of each symbol, as the last update says. */
enum { BOOK_SYMBOLS = 64, BOOK_SLOTS = 256 };

/* Open addressing, a quarter full at most. A slot whose symbol is empty is free. */
struct book {
    struct quote slots[BOOK_SLOTS];
    unsigned symbols;
};

/* False where a later update of the symbol has come before, or where there are more symbols than the book holds: nothing changes. */
bool book_apply(struct book *book, const struct quote *quote);
