#include "lib/values.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/histogram.h"

/* Each value by itself, or each bucket of both signs. */
enum { PAIRS_MOST = 2 * HISTOGRAM_BUCKETS + 2 };

static int compare_signed(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t *values_sorted(int64_t *of, size_t n)
{
    qsort(of, n, sizeof(*of), compare_signed);
    return of;
}

static size_t count_different(const int64_t *sorted, size_t n)
{
    size_t different = n > 0;
    for (size_t i = 1; i < n; i++)
        different += sorted[i] != sorted[i - 1];
    return different;
}

static bool is_in_one_bucket(int64_t a, int64_t b)
{
    return (a < 0) == (b < 0) && histogram_index((uint64_t)llabs(a)) == histogram_index((uint64_t)llabs(b));
}

void values_write(struct json *j, const char *key, int64_t *of, size_t n)
{
    static int64_t pairs[2 * PAIRS_MOST];
    size_t filled = 0;
    (void)values_sorted(of, n);
    bool is_exact = count_different(of, n) <= VALUES_MOST;
    for (size_t from = 0, to; from < n; from = to) {
        bool is_alone = is_exact || of[from] == of[0];
        int64_t beyond = 0;
        for (to = from + 1; to < n; to++) {
            if (of[to] != of[from] && (is_alone || of[to] == of[n - 1] || !is_in_one_bucket(of[from], of[to])))
                break;
            beyond += of[to] - of[from];
        }
        int64_t count = (int64_t)(to - from);
        pairs[filled++] = of[from] + beyond / count;
        pairs[filled++] = count;
    }
    json_ints(j, key, pairs, filled);
}
