#include "lib/span.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool span_line(struct span *rest, struct span *line)
{
    if (rest->length == 0)
        return false;
    const char *newline = memchr(rest->at, '\n', rest->length);
    size_t length = newline ? (size_t)(newline - rest->at) : rest->length;
    *line = (struct span){rest->at, length};
    size_t step = newline ? length + 1 : length;
    *rest = (struct span){rest->at + step, rest->length - step};
    return true;
}

struct span span_trimmed(struct span s)
{
    while (s.length && is_blank(s.at[0]))
        s = (struct span){s.at + 1, s.length - 1};
    while (s.length && is_blank(s.at[s.length - 1]))
        s.length--;
    return s;
}

struct span span_word(struct span *rest)
{
    struct span s = span_trimmed(*rest);
    size_t length = 0;
    while (length < s.length && !is_blank(s.at[length]))
        length++;
    *rest = (struct span){s.at + length, s.length - length};
    return (struct span){s.at, length};
}

bool span_number(struct span word, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (!is_digit(word.at[i]))
            return false;
        uint64_t digit = (uint64_t)(word.at[i] - '0');
        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
    }
    *value = v;
    return word.length > 0;
}

bool span_equal(struct span a, struct span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

bool span_is(struct span s, const char *text)
{
    return span_equal(s, (struct span){text, strlen(text)});
}

bool span_starts(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.length >= length && span_equal((struct span){s.at, length}, (struct span){text, length});
}

bool span_behind_last(struct span s, const char *mark, struct span *behind)
{
    size_t length = strlen(mark);
    for (size_t at = s.length + 1; at-- > 0;) {
        struct span tail = {s.at + at, s.length - at};
        if (!span_starts(tail, mark))
            continue;
        *behind = (struct span){tail.at + length, tail.length - length};
        return true;
    }
    return false;
}

struct span span_until(struct span s, const char *mark)
{
    const char *found = s.length ? memmem(s.at, s.length, mark, strlen(mark)) : NULL;
    return found ? (struct span){s.at, (size_t)(found - s.at)} : s;
}
