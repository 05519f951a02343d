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

int recorder_init(struct recorder *r, size_t gaps_capacity, bool *locked)
{
    int rc = recorder_map(r, gaps_capacity);
    if (!rc)
        *locked = recorder_touch(r);
    return rc;
}

void recorder_deinit(struct recorder *r)
{
    if (r->arena)
        (void)munmap(r->arena, r->arena_bytes);
    *r = (struct recorder){0};
}

void recorder_reset(struct recorder *r)
{
    struct recorder empty = {
        .histogram = r->histogram,
        .series = {.stretches = r->series.stretches},
        .gaps = r->gaps,
        .gaps_capacity = r->gaps_capacity,
        .latest = r->latest,
        .until_ticks = r->until_ticks,
        .arena = r->arena,
        .arena_bytes = r->arena_bytes,
    };
    memset(r->histogram, 0, sizeof(*r->histogram));
    memset(r->series.stretches, 0, SERIES_STRETCHES * sizeof(*r->series.stretches));
    *r = empty;
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
