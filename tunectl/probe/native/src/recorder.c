#include "recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int recorder_init(struct recorder *r, size_t gaps_capacity, bool *locked)
{
    *r = (struct recorder){.gaps_capacity = gaps_capacity};
    r->arena_bytes = sizeof(struct histogram) + gaps_capacity * sizeof(struct gap);
    void *arena = mmap(NULL, r->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return -errno;
    /* khugepaged would merge these pages during the run: a TLB shootdown and a fault of our own making. */
    (void)madvise(arena, r->arena_bytes, MADV_NOHUGEPAGE);
    memset(arena, 0, r->arena_bytes);
    *locked = mlock(arena, r->arena_bytes) == 0;
    r->arena = arena;
    r->histogram = arena;
    r->gaps = (struct gap *)(void *)((char *)arena + sizeof(struct histogram));
    return 0;
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
        .gaps = r->gaps,
        .gaps_capacity = r->gaps_capacity,
        .arena = r->arena,
        .arena_bytes = r->arena_bytes,
    };
    memset(r->histogram, 0, sizeof(*r->histogram));
    *r = empty;
}

void recorder_finish(struct recorder *r)
{
    if (r->open.end)
        recorder_commit(r);
    r->open = (struct gap){0};
    for (size_t i = 0; i < r->gaps_listed; i++)
        recorder_account(r, r->gaps[i].end - r->gaps[i].start);
}
