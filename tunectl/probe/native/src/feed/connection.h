/* What messages go over: sockets within this host, one pair of ends, or two for a feed that comes twice (A and B). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FEED_LINES = 2 };

struct connection {
    size_t n;                       /* lines */
    int receives[FEED_LINES];       /* descriptors; -1 where none is open */
    int sends[FEED_LINES];
    const char *failed;             /* what could not be done, for a message */
};

/* To add one, add a row to feed_transports. */
struct feed_transport {
    const char *name;
    bool is_stream;
    size_t lines;
    int (*open)(int fds[2], unsigned line);     /* as in loopback.h */
};

extern const struct feed_transport feed_transports[];
extern const size_t feed_transports_n;

/* For as long as the process lives. Returns 0, or -errno and `failed`. */
int connection_open(struct connection *c, const struct feed_transport *transport);

/* The same of a connected socket whose other end, on another host, sends back what it receives. */
int connection_adopt(struct connection *c, int fd);

/* What its receiving sockets had no room for so far; negative where they do not say (SO_MEMINFO). */
int64_t connection_drops(const struct connection *c);

/*
 * Both ends of a stream encrypt and decrypt in the kernel (TLS 1.3, AES-128-GCM) with keys that were agreed on beforehand: there is
 * no handshake. Over another host the ciphertext comes back as it went. Returns 0, or -errno and `failed`.
 */
int connection_use_tls(struct connection *c);
