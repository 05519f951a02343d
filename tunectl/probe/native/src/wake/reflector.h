/* The other host of a round trip, on the side that sends messages back: --listen. */
#ifndef TUNECTL_WAKE_REFLECTOR_H
#define TUNECTL_WAKE_REFLECTOR_H

#include "wake/options.h"

/* Serves until a signal. Returns the exit status. */
int reflector_serve(const struct wake_options *options);

#endif
