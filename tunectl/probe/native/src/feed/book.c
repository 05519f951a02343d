#include "feed/quote.h"

#include <string.h>

struct name {
    uint64_t words[2];
};

static struct name name_of(const char symbol[QUOTE_SYMBOL])
{
    struct name name;
    memcpy(&name, symbol, sizeof(name));
    return name;
}

/* Where it is, or where it would be. The first step of a Fibonacci hash. */
static size_t slot_of(const struct book *book, const char symbol[QUOTE_SYMBOL])
{
    struct name name = name_of(symbol);
    size_t at = (size_t)(((name.words[0] ^ name.words[1]) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
    for (;; at = (at + 1) % BOOK_SLOTS) {
        struct name found = name_of(book->slots[at].symbol);
        if (!found.words[0] || (found.words[0] == name.words[0] && found.words[1] == name.words[1]))
            return at;
    }
}

bool book_apply(struct book *book, const struct quote *quote)
{
    struct quote *best = &book->slots[slot_of(book, quote->symbol)];
    bool is_new = !best->symbol[0];
    if ((is_new && book->symbols == BOOK_SYMBOLS) || (!is_new && quote->update <= best->update))
        return false;
    book->symbols += is_new;
    *best = *quote;
    return true;
}
