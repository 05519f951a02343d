/* Lines of text over a socket, never waited for without end. */
#ifndef TUNECTL_WAKE_LINES_H
#define TUNECTL_WAKE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LINE_MOST = 256 };

struct lines {
    int fd;
    char pending[2 * LINE_MOST];    /* received, and not yet a whole line */
    size_t bytes;
};

/*
 * The next line without its newline. Returns 0, or -errno: -ETIMEDOUT, -EINTR at a signal that ends the run, -ECONNRESET at
 * the end, -EMSGSIZE when a line is longer than LINE_MOST.
 */
int lines_read(struct lines *lines, char line[LINE_MOST], int timeout_ms);

/* Returns 0 or -errno. */
int lines_write(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits until there is something to read. Returns 0, -ETIMEDOUT or -EINTR. `timeout_ms` -1: without end, but for a signal. */
int wait_readable(int fd, int timeout_ms);

/* "ADDRESS:PORT" or "[ADDRESS]:PORT"? Whether there is such a host is another question. */
bool address_is_one(const char *address);

/*
 * A socket for "ADDRESS:PORT" ("[::1]:7000"), listening or connected. Returns it, or -1 with a sentence in `reason`.
 */
int address_socket(const char *address, int is_listening, char *reason, size_t size);

/* The port of a socket's own end. */
unsigned socket_port(int fd);

#endif
