#include "check.h"
#include "recorders.h"
#include "lib/recorder.h"

static void stretches_grow_with_the_run(void)
{
    CHECK(series_stretch_s(0.1) == 1 && series_stretch_s(5.0) == 1 && series_stretch_s(1000.0) == 1);
    CHECK(series_stretch_s(1500.0) == 2);
    CHECK(86400.0 * 30 / series_stretch_s(86400.0 * 30) < SERIES_STRETCHES);
}

/* Whether a gap is listed or not, it is in the series: `capacity` decides. */
static void every_gap_is_in_one_stretch(size_t capacity)
{
    struct recorder r;
    uint64_t gaps = 0;
    uint64_t stolen = 0;
    CHECK(recorder_init(&r, capacity) == 0);
    recorder_add(&r, 10, 20);
    CHECK(r.series.stretches[0].gaps == 0);
    recorder_reset(&r);
    series_begin(&r.series, 1000, 100);
    recorder_add(&r, 1010, 1015);
    recorder_add(&r, 1090, 1320);   /* over three stretches' ends */
    recorder_add(&r, 1399, 1400);
    recorder_add(&r, 1400, 1401);   /* touches: one gap of 2 */
    recorder_add(&r, 1000 + 100 * SERIES_STRETCHES + 500, 1000 + 100 * SERIES_STRETCHES + 750);
    recorder_finish(&r);
    const struct series_stretch *s = r.series.stretches;
    CHECK(s[0].gaps == 2 && s[0].stolen == 15 && s[0].max == 230);
    CHECK(s[1].gaps == 0 && s[1].stolen == 100 && s[1].max == 230 && s[2].max == 230);
    CHECK(s[3].gaps == 1 && s[3].stolen == 21 && s[3].max == 230 && s[4].max == 2 && s[4].stolen == 1);
    CHECK(s[SERIES_STRETCHES - 1].gaps == 1 && s[SERIES_STRETCHES - 1].stolen == 250);
    for (size_t i = 0; i < SERIES_STRETCHES; i++) {
        gaps += s[i].gaps;
        stolen += s[i].stolen;
    }
    CHECK(gaps == r.gaps_total && stolen == r.stolen_ticks);
    CHECK(r.gaps_lost == (capacity < 4 ? 4 - capacity : 0));
    CHECK(capacity || (r.lost_ticks == r.stolen_ticks && r.lost_max_ticks == 250));
    recorder_deinit(&r);
}

void test_series(void)
{
    stretches_grow_with_the_run();
    every_gap_is_in_one_stretch(100);
    every_gap_is_in_one_stretch(2);
    every_gap_is_in_one_stretch(0);
}
