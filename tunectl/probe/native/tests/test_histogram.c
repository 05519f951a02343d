#include "check.h"
#include "lib/recorder.h"

static uint64_t last_of(size_t index)
{
    return index + 1 < HISTOGRAM_BUCKETS ? histogram_first(index + 1) - 1 : UINT64_MAX;
}

/* Buckets tile 0..UINT64_MAX without a hole, each at most 1/128 of its values wide. */
static void tiles_the_whole_range(void)
{
    CHECK(histogram_first(0) == 0);
    for (size_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        CHECK(last_of(i) >= histogram_first(i));
        CHECK(last_of(i) - histogram_first(i) <= histogram_first(i) / HISTOGRAM_SUB_COUNT);
    }
}

static void edges_fall_into_their_own_bucket(void)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        CHECK(histogram_index(histogram_first(i)) == i);
        CHECK(histogram_index(last_of(i)) == i);
    }
}

static void adds_to_one_bucket_only(void)
{
    static struct histogram h;
    uint64_t state = 7;
    uint64_t sum = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t value = random_next(&state) >> (20 + i % 44);
        histogram_add(&h, value);
        sum += value;
    }
    uint64_t count = 0;
    uint64_t bucket_sum = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const struct histogram_bucket *b = &h.buckets[i];
        count += b->count;
        bucket_sum += b->sum;
        if (b->count)
            CHECK(b->sum / b->count >= histogram_first(i) && b->sum / b->count <= last_of(i));
    }
    CHECK(count == 10000);
    CHECK(bucket_sum == sum);
}

void test_histogram(void)
{
    tiles_the_whole_range();
    edges_fall_into_their_own_bucket();
    adds_to_one_bucket_only();
}
