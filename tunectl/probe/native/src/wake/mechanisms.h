/* The rows of `mechanisms`: how each opens, sends and takes. To add one, add a row. */
#ifndef TUNECTL_WAKE_MECHANISMS_H
#define TUNECTL_WAKE_MECHANISMS_H

#include "wake/transport.h"

extern const struct mechanism mechanisms[];
extern const size_t mechanisms_n;

#endif
