/* The other host's end of a round trip. */
#ifndef TUNECTL_WAKE_REFLECTOR_H
#define TUNECTL_WAKE_REFLECTOR_H

#include "wake/run.h"

/*
 * Says in a line of JSON how fast its counter is, then sends every message that comes over --socket back with its own two stamps,
 * until the connection or the process is ended; without a --socket, it is done. Returns the exit status.
 */
int reflector_serve(const struct wake_run *run);

#endif
