/*
 * WebSocket as a client reads it (RFC 6455). The connection is open already: no handshake. Whatever the protocol forbids ends it with
 * the code that it prescribes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum websocket_code { WEBSOCKET_PROTOCOL_ERROR = 1002, WEBSOCKET_BAD_TEXT = 1007, WEBSOCKET_TOO_LARGE = 1009 };

enum websocket_event {
    WEBSOCKET_MORE,             /* the bytes end before the frame does */
    WEBSOCKET_PART,             /* a frame that is no message by itself: a pong, or a fragment */
    WEBSOCKET_MESSAGE,
    WEBSOCKET_PING,             /* to be answered with its payload */
    WEBSOCKET_CLOSE,
    WEBSOCKET_FAILED,           /* reader->code says why; nothing can be read any more */
};

enum { WEBSOCKET_MOST = 64 * 1024, WEBSOCKET_CONTROL_MOST = 125, WEBSOCKET_PONG_MOST = 6 + WEBSOCKET_CONTROL_MOST };

struct websocket_reader {
    size_t most;                /* bytes that a message may have; at most WEBSOCKET_MOST */
    enum websocket_code code;
    bool is_fragmented;         /* a message has begun, and not ended */
    bool is_text;
    size_t joined;              /* bytes of its fragments so far, in `message` */
    const uint8_t *data;        /* of the event: the message, or the ping's payload */
    size_t length;
    uint8_t message[WEBSOCKET_MOST];
};

void websocket_init(struct websocket_reader *reader, size_t most);

/*
 * Takes the next frame out of `bytes`. `*used` is its length; 0 with WEBSOCKET_MORE. The event's data lie in `bytes` or in the reader,
 * and stand until the next call.
 */
enum websocket_event websocket_next(struct websocket_reader *reader, const uint8_t *bytes, size_t n, size_t *used);

/* The answer to a ping, as a client masks it, with this key. Returns its length. */
size_t websocket_pong(uint8_t pong[WEBSOCKET_PONG_MOST], const uint8_t *payload, size_t n, uint32_t key);

/* A server's frame of one message, or of one ping, with `n` bytes. Returns the length of its head, 2 or 4 bytes. `n` is below 65536. */
enum { WEBSOCKET_TEXT = 1, WEBSOCKET_IS_PING = 9 };
size_t websocket_head(uint8_t head[4], unsigned opcode, size_t n);
