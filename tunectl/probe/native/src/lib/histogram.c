#include "lib/histogram.h"

static unsigned shift_of(size_t index)
{
    return index < HISTOGRAM_SUB_COUNT ? 0U : (unsigned)(index >> HISTOGRAM_SUB_BITS) - 1U;
}

uint64_t histogram_first(size_t index)
{
    if (index < HISTOGRAM_SUB_COUNT)
        return index;
    uint64_t mantissa = HISTOGRAM_SUB_COUNT + (index & (HISTOGRAM_SUB_COUNT - 1));
    return mantissa << shift_of(index);
}

uint64_t histogram_last(size_t index)
{
    return histogram_first(index) + ((UINT64_C(1) << shift_of(index)) - 1);
}
