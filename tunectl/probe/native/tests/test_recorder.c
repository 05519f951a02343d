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
    CHECK(r.first_lost_ticks == 4000);
    CHECK(!recorder_has_reached(&r));
    for (size_t i = 1; i <= 10; i++)
        CHECK(r.histogram->buckets[i].count == 1);
    recorder_deinit(&r);
}

/* Of 16 places, 2 are for gaps of 50 and more: the third and later ones are lost. */
static void keeps_an_eighth_for_long_gaps(void)
{
    struct recorder r;
    CHECK(recorder_init(&r, 16) == 0);
    r.long_ticks = 50;
    for (uint64_t i = 1; i <= 40; i++)
        recorder_add(&r, 1000 * i, 1000 * i + (i % 10 ? 49 : 40 + i));
    recorder_finish(&r);
    CHECK(r.gaps_listed == 16 && r.gaps_lost == 24 && r.gaps_total == 40);
    CHECK(r.first_lost_ticks == 15000);
    CHECK(r.gaps[13].start == 14000 && r.gaps[14].start == 20000 && r.gaps[15].start == 30000);
    CHECK(r.lost_max_ticks == 80 && r.lost_ticks == 23 * 49 + 80);
    CHECK(r.latest[0].start == 15000 && r.latest[23].start == 40000);
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
    keeps_an_eighth_for_long_gaps();
    lists_nothing_with_no_room();
    gaps_that_touch_are_one();
}
