/* What the program leaves to its end, and a test gives back: it opens many transports. */
#pragma once

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "wake/transport.h"

static inline void transport_close(struct transport *t)
{
    const int fds[] = {t->send_fd, t->receive_fd, t->epoll_fd};
    for (size_t i = 0; i < t->polled_n; i++)
        if (t->polled[i].fd != t->receive_fd)
            (void)close(t->polled[i].fd);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    free(t->ring);
    free(t->outgoing);
    free(t->incoming);
    free(t->payloads);
    free(t->polled);
}
