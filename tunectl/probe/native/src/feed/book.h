/* The best bid and ask of each symbol, as the last update says. */
#pragma once

#include <stdbool.h>

#include "feed/quote.h"

enum { BOOK_SYMBOLS = 64, BOOK_SLOTS = 256 };

/* Open addressing, a quarter full at most. A slot whose symbol is empty is free. */
struct book {
    struct quote slots[BOOK_SLOTS];
    unsigned symbols;
};

/* False where a later update of the symbol has come before, or where there are more symbols than the book holds: nothing changes. */
bool book_apply(struct book *book, const struct quote *quote);
