#include "lib/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/thread.h"

int recorder_map(struct recorder *r, size_t gaps_capacity)
{
    *r = (struct recorder){.gaps_capacity = gaps_capacity, .until_ticks = UINT64_MAX};
    size_t series_bytes = SERIES_STRETCHES * sizeof(struct series_stretch);
    r->arena_bytes = sizeof(struct histogram) + series_bytes + (GAPS_LATEST + gaps_capacity) * sizeof(struct gap);
    void *arena = memory_map(r->arena_bytes);
    if (!arena)
        return -ENOMEM;
    r->arena = arena;
    r->histogram = arena;
    r->series.stretches = (struct series_stretch *)(void *)((char *)arena + sizeof(struct histogram));
    r->latest = (struct gap *)(void *)((char *)r->series.stretches + series_bytes);
    r->gaps = r->latest + GAPS_LATEST;
    return 0;
}

bool recorder_touch(struct recorder *r)
{
    memset(r->arena, 0, r->arena_bytes);
    return mlock(r->arena, r->arena_bytes) == 0;
}

/* All from `open` on was counted; what comes before is memory, and what was asked for. */
void recorder_reset(struct recorder *r)
{
    memset(r->histogram, 0, sizeof(*r->histogram));
    memset(r->series.stretches, 0, SERIES_STRETCHES * sizeof(*r->series.stretches));
    memset((char *)r + offsetof(struct recorder, open), 0, sizeof(*r) - offsetof(struct recorder, open));
    r->series = (struct series){.stretches = r->series.stretches};
}

void recorder_finish(struct recorder *r)
{
    if (r->open.end)
        recorder_commit(r);
    r->open = (struct gap){0};
    /* So far only those without a place in the list were added up. */
    r->lost_ticks = r->stolen_ticks;
    r->lost_max_ticks = r->max_ticks;
    series_rewind(&r->series);
    for (size_t i = 0; i < r->gaps_listed; i++)
        recorder_account(r, &r->gaps[i]);
}

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
