/* The result of `selftest`. */
#ifndef TUNECTL_SELFTEST_DOCUMENT_H
#define TUNECTL_SELFTEST_DOCUMENT_H

#include <stdio.h>

#include "selftest/phases.h"

/* The shortest interruption of which this run found every one, in ns; 0 when there is none. */
uint64_t selftest_vouched_ns(const struct selftest *t);
bool selftest_passed(const struct selftest *t);

/* As JSON, schema tunectl.probe.selftest/1; `selftest` is a struct selftest. Always 0: errors stay in the stream. */
int selftest_document_write(FILE *stream, const void *selftest);

#endif
