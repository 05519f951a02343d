#include "lib/series.h"

unsigned series_stretch_s(double duration_s)
{
    /* one to spare: a run ends where its last gap ends, a little late */
    double seconds = duration_s / (double)(SERIES_STRETCHES - 1);
    return seconds <= 1.0 ? 1U : (unsigned)seconds + 1U;
}

void series_begin(struct series *s, uint64_t start, uint64_t length)
{
    s->start = start;
    s->length = length;
    s->at = 0;
}

void series_rewind(struct series *s)
{
    s->at = 0;
}

/* Where stretch `at` ends; the last one never does. */
static uint64_t end_of(const struct series *s, size_t at)
{
    return at + 1 < SERIES_STRETCHES ? s->start + (uint64_t)(at + 1) * s->length : UINT64_MAX;
}

void series_add(struct series *s, uint64_t start, uint64_t end)
{
    if (!s->length)
        return;
    while (end_of(s, s->at) <= start)
        s->at++;
    struct series_stretch *first = &s->stretches[s->at];
    first->gaps++;
    if (end - start > first->max)
        first->max = end - start;
    for (size_t at = s->at; start < end; at++) {
        uint64_t part_end = end_of(s, at) < end ? end_of(s, at) : end;
        s->stretches[at].stolen += part_end - start;
        start = part_end;
    }
}
