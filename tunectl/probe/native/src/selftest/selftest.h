/* The experiment `selftest`: does the probe see, on this host, interruptions that are known? */
#ifndef TUNECTL_SELFTEST_SELFTEST_H
#define TUNECTL_SELFTEST_SELFTEST_H

#include "selftest/options.h"

/*
 * Runs all phases, some twelve seconds, and writes the document. Returns the exit status, EXIT_FAILED unless all pass; or
 * OPTIONS_ARE_OVER.
 */
int selftest_main(int argc, char **argv);

#endif
