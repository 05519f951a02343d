/* Many signed values as a JSON array: each value and how often it came, in turns, ascending. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/json.h"

/* With more different values, those between the first and the last share the buckets of histogram.h. */
enum { VALUES_MOST = 2048 };

/* Ascending, in place; returns them. */
int64_t *values_sorted(int64_t *of, size_t n);

/* Sorts them. */
void values_write(struct json *j, const char *key, int64_t *of, size_t n);
