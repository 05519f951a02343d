/*
 * What the receiver of `feed` costs by itself: framing, parsing and the book, each in one timed loop over 100,000 messages, without
 * a stamp between them: bench-feed CPU. JSON: ns a message (of framing and book), ns a byte (of parsing); the least of some rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/quote.h"
#include "feed/websocket.h"
#include "lib/clock.h"
#include "lib/json.h"
#include "lib/options.h"
#include "lib/thread.h"

enum { MESSAGES = 100000, ROUNDS = 15, STEPS = 4 };

static struct websocket_reader reader;
static struct book book;

/* Messages of four symbols, one behind the other, as they come over the wire. */
static size_t render(uint8_t *bytes, size_t *message_bytes)
{
    size_t at = 0;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct quote q = {"SYM00", 1000000000 + i, INT64_C(2500000000000) + (int64_t)i, 150000000, INT64_C(2500000000001) + (int64_t)i, 250000000};
        char text[QUOTE_JSON_MOST];
        q.symbol[4] = (char)('0' + i % 4);
        *message_bytes = quote_write_json(text, &q, UINT64_C(1700000000000000000) + i);
        at += websocket_head(bytes + at, WEBSOCKET_TEXT, *message_bytes);
        memcpy(bytes + at, text, *message_bytes);
        at += *message_bytes;
    }
    return at;
}

/* All steps up to `step` (0: none but the loop, 1: frames, 2: and parses, 3: and the book). Returns ns. */
static uint64_t run(const uint8_t *bytes, size_t n, unsigned step)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    uint64_t seen = 0;
    memset(&book, 0, sizeof(book));
    websocket_init(&reader, QUOTE_JSON_MOST);
    for (size_t at = 0, used = n / MESSAGES; at < n; at += used) {
        struct quote q;
        if (step > 0 && websocket_next(&reader, bytes + at, n - at, &used) != WEBSOCKET_MESSAGE)
            abort();
        if (step > 1 && !quote_read_json(&q, (const char *)reader.data, reader.length))
            abort();
        if (step > 2 && !book_apply(&book, &q))
            abort();
        seen += bytes[at];
        __asm__ volatile("" : "+r"(seen));
    }
    return clock_ns(CLOCK_MONOTONIC) - start;
}

int main(int argc, char **argv)
{
    struct json j = {.stream = stdout};
    uint8_t *bytes = malloc((size_t)MESSAGES * (QUOTE_JSON_MOST + 4));
    uint64_t least[STEPS];
    size_t message_bytes;
    if (argc != 2 || !bytes || thread_pin((unsigned)strtoul(argv[1], NULL, 10)))
        return print_error(EXIT_USAGE, "usage: bench-feed CPU");
    size_t n = render(bytes, &message_bytes);
    memset(least, 0xff, sizeof(least));
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned step = 0; step < STEPS; step++) {
            uint64_t ns = run(bytes, n, step);
            least[step] = ns < least[step] ? ns : least[step];
        }
    json_open(&j, NULL, '{');
    json_uint(&j, "message_bytes", message_bytes);
    json_real(&j, "frame_ns", ((double)least[1] - (double)least[0]) / MESSAGES, 2);
    json_real(&j, "parse_ns_per_byte", ((double)least[2] - (double)least[1]) / MESSAGES / (double)message_bytes, 3);
    json_real(&j, "book_ns", ((double)least[3] - (double)least[2]) / MESSAGES, 2);
    json_close(&j, '}');
    (void)putchar('\n');
    free(bytes);
    return EXIT_OK;
}
