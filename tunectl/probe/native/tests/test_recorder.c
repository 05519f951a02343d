#include "check.h"
#include "recorders.h"
#include "lib/recorder.h"

static void keeps_what_fits_and_counts_the_rest(void)
{
    struct recorder r;
    CHECK(recorder_init(&r, 3) == 0);
    for (uint64_t i = 1; i <= 10; i++)
        recorder_add(&r, 1000 * i, 1000 * i + i);
    recorder_finish(&r);
    CHECK(r.gaps_listed == 3);
    CHECK(r.gaps_lost == 7);
    CHECK(r.gaps_total == 10);
    CHECK(r.stolen_ticks == 55);
    CHECK(r.max_ticks == 10);
    CHECK(r.gaps[2].start == 3000 && r.gaps[2].end == 3003);
    CHECK(r.latest[0].start == 4000 && r.latest[6].start == 10000);
    CHECK(!recorder_has_reached(&r));
    for (size_t i = 1; i <= 10; i++)
        CHECK(r.histogram->buckets[i].count == 1);
    recorder_deinit(&r);
}

static void lists_nothing_with_no_room(void)
{
    struct recorder r;
    CHECK(recorder_init(&r, 0) == 0);
    recorder_add(&r, 5, 9);
    recorder_finish(&r);
    CHECK(r.gaps_listed == 0 && r.gaps_lost == 1 && r.gaps_total == 1 && r.stolen_ticks == 4);
    recorder_deinit(&r);
}

static void gaps_that_touch_are_one(void)
{
    struct recorder r;
    CHECK(recorder_init(&r, 8) == 0);
    recorder_add(&r, 100, 200);
    recorder_add(&r, 200, 230);
    recorder_add(&r, 230, 231);
    recorder_add(&r, 240, 250);
    recorder_finish(&r);
    CHECK(r.gaps_total == 2 && r.turns_merged == 2 && r.stolen_ticks == 141 && r.max_ticks == 131);
    CHECK(r.gaps[0].start == 100 && r.gaps[0].end == 231);
    recorder_reset(&r);
    recorder_finish(&r);
    CHECK(r.gaps_total == 0 && r.gaps_listed == 0 && r.turns_merged == 0 && r.stolen_ticks == 0 && r.max_ticks == 0);
    CHECK(r.histogram->buckets[histogram_index(131)].count == 0);
    recorder_deinit(&r);
}

void test_recorder(void)
{
    keeps_what_fits_and_counts_the_rest();
    lists_nothing_with_no_room();
    gaps_that_touch_are_one();
}
