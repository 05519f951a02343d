/* The best bid and ask of each symbol, as the last update says. */
#pragma once

#include <stdbool.h>

#include "feed/quote.h"

enum { BOOK_SYMBOLS = 64, BOOK_SLOTS = 256 };

struct book_entry {
    struct quote best;          /* update 0: none yet */
    uint64_t changes;           /* how often a price moved */
};

/* Open addressing, a quarter full at most. */
struct book {
    struct book_entry slots[BOOK_SLOTS];
    unsigned symbols;
};

/* False where a later update of the symbol has come before, or where there are more symbols than the book holds: nothing changes. */
bool book_apply(struct book *book, const struct quote *quote);

/* NULL where nothing is known of it. */
const struct book_entry *book_find(const struct book *book, const char symbol[QUOTE_SYMBOL]);
