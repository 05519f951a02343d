/* Runs of bytes inside a text of the kernel's, and the few ways to take them apart. Pure; any bytes are survived. */
#ifndef TUNECTL_LIB_SPAN_H
#define TUNECTL_LIB_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not NUL-terminated; points into the text it was taken from. */
struct span {
    const char *at;
    size_t length;
};

/* The next line of `rest`, without its newline; `rest` moves behind it. False at the end. */
bool span_line(struct span *rest, struct span *line);

/* Without blanks at either end. */
struct span span_trimmed(struct span s);

/* The next word up to a blank; empty at the end. */
struct span span_word(struct span *rest);

/* A whole number and nothing else. Saturates rather than wraps: a number too long for uint64 is no counter. */
bool span_number(struct span word, uint64_t *value);

bool span_equal(struct span a, struct span b);
bool span_is(struct span s, const char *text);
bool span_starts(struct span s, const char *text);

/* What stands behind the last `mark` in `s`; false where there is none. */
bool span_behind_last(struct span s, const char *mark, struct span *behind);

/* `s` up to the first `mark`, or all of it. */
struct span span_until(struct span s, const char *mark);

#endif
