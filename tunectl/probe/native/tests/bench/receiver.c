/*
 * `tunectl-probe feed` with a plain receiver in the place of its own, as a program has it that only wants the book: it waits as poll0
 * does or, with SPINS in the environment, by its receive alone, parses JSON, applies it and notes when. Sender, schedule and document
 * are the probe's.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "feed/run.h"
#include "lib/ticks.h"

static void receive_plainly(void *context)
{
    static char message[FEED_MESSAGE_MOST];
    static struct book book;
    struct feed_run *run = context;
    int fd = run->connection.receives[0];
    const bool spins = getenv("SPINS") != NULL;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        struct quote q;
        if (!spins && poll(&polled, 1, 0) <= 0)
            continue;
        ssize_t got = recv(fd, message, sizeof(message), MSG_DONTWAIT);
        if (got < 0)
            continue;
        if (got == 0)
            break;
        if (quote_read_json(&q, message, (size_t)got) && book_apply(&book, &q))
            run->receiver.arrivals[q.update - FEED_FIRST_UPDATE].booked = ticks_now();
    }
    atomic_store(&run->is_received, true);
}

int main(int argc, char **argv)
{
    struct pair_experiment plain = feed_experiment;
    plain.work[RECEIVER] = receive_plainly;
    return pair_main(&plain, argc, argv);
}
