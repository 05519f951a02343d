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
    uint64_t length = end - start;
    s->stretches[s->at].gaps++;
    for (size_t at = s->at; start < end; at++) {
        struct series_stretch *stretch = &s->stretches[at];
        uint64_t part_end = end_of(s, at) < end ? end_of(s, at) : end;
        stretch->stolen += part_end - start;
        if (length > stretch->max)
            stretch->max = length;
        start = part_end;
    }
}
