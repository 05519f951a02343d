#include "feed/websocket.h"

#include <string.h>

enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, FIN = 0x80, RSV = 0x70, MASK = 0x80 };

void websocket_init(struct websocket_reader *reader, size_t most)
{
    reader->most = most < WEBSOCKET_MOST ? most : WEBSOCKET_MOST;
    reader->is_fragmented = false;
    reader->joined = 0;
}

static enum websocket_event fail(struct websocket_reader *reader, enum websocket_code code)
{
    reader->code = code;
    return WEBSOCKET_FAILED;
}

/* The table of well-formed sequences in the Unicode standard (3-7): what may follow a first byte, and how many do. */
static size_t sequence_length(const uint8_t *at, size_t left)
{
    uint8_t first = at[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length > left || (length > 1 && (at[1] < least || at[1] > most)))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static bool is_utf8(const uint8_t *at, size_t left)
{
    while (left > 0) {
        uint64_t word;
        /* Eight bytes of ASCII at once. */
        if (left >= sizeof(word) && (memcpy(&word, at, sizeof(word)), (word & UINT64_C(0x8080808080808080)) == 0)) {
            at += sizeof(word);
            left -= sizeof(word);
            continue;
        }
        size_t length = sequence_length(at, left);
        if (length == 0)
            return false;
        at += length;
        left -= length;
    }
    return true;
}

/* A code that may be sent (RFC 6455, 7.4), and a reason that is text; or nothing. */
static enum websocket_event take_close(struct websocket_reader *reader)
{
    const uint8_t *data = reader->data;
    unsigned code = reader->length >= 2 ? (unsigned)data[0] << 8 | data[1] : 1000;
    bool is_known = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
    if (reader->length == 1 || !is_known)
        return fail(reader, WEBSOCKET_PROTOCOL_ERROR);
    if (reader->length > 2 && !is_utf8(data + 2, reader->length - 2))
        return fail(reader, WEBSOCKET_BAD_TEXT);
    return WEBSOCKET_CLOSE;
}

/* A whole frame of a message; its payload is reader->data. */
static enum websocket_event take_data(struct websocket_reader *reader, unsigned opcode, bool is_last)
{
    bool is_first = opcode != CONTINUATION;
    if (is_first)
        reader->is_text = opcode == TEXT;
    if (!is_first || !is_last) {
        memcpy(reader->message + reader->joined, reader->data, reader->length);
        reader->joined += reader->length;
        reader->data = reader->message;
        reader->length = reader->joined;
    }
    reader->is_fragmented = !is_last;
    if (!is_last)
        return WEBSOCKET_PART;
    reader->joined = 0;
    return reader->is_text && !is_utf8(reader->data, reader->length) ? fail(reader, WEBSOCKET_BAD_TEXT) : WEBSOCKET_MESSAGE;
}

/* Of a head, whole: what it says that it must not. 0: nothing. */
static unsigned head_fault(const struct websocket_reader *reader, uint8_t first, uint8_t second, uint64_t length)
{
    unsigned opcode = first & 0x0f;
    bool is_control = opcode & 0x08;
    unsigned stated = second & 0x7f;
    if (first & RSV || second & MASK || (opcode > BINARY && opcode < CLOSE) || opcode > PONG)
        return WEBSOCKET_PROTOCOL_ERROR;
    if ((stated == 126 && length < 126) || (stated == 127 && (length < 65536 || length >> 63)))
        return WEBSOCKET_PROTOCOL_ERROR;
    if (is_control)
        return !(first & FIN) || length > WEBSOCKET_CONTROL_MOST ? WEBSOCKET_PROTOCOL_ERROR : 0;
    if ((opcode == CONTINUATION) != reader->is_fragmented)
        return WEBSOCKET_PROTOCOL_ERROR;
    return length > reader->most - reader->joined ? WEBSOCKET_TOO_LARGE : 0;
}

enum websocket_event websocket_next(struct websocket_reader *reader, const uint8_t *bytes, size_t n, size_t *used)
{
    *used = 0;
    if (n < 2)
        return WEBSOCKET_MORE;
    unsigned stated = bytes[1] & 0x7f;
    size_t head = stated < 126 ? 2 : stated == 126 ? 4 : 10;
    uint64_t length = stated;
    if (n < head)
        return WEBSOCKET_MORE;
    if (head > 2)
        length = 0;
    for (size_t i = 2; i < head; i++)
        length = length << 8 | bytes[i];
    unsigned fault = head_fault(reader, bytes[0], bytes[1], length);
    if (fault)
        return fail(reader, fault);
    if (n - head < length)
        return WEBSOCKET_MORE;
    *used = head + (size_t)length;
    reader->data = bytes + head;
    reader->length = (size_t)length;
    unsigned opcode = bytes[0] & 0x0f;
    if (opcode == CLOSE)
        return take_close(reader);
    if (opcode == PING || opcode == PONG)
        return opcode == PING ? WEBSOCKET_PING : WEBSOCKET_PART;
    return take_data(reader, opcode, bytes[0] & FIN);
}

size_t websocket_pong(uint8_t pong[WEBSOCKET_PONG_MOST], const uint8_t *payload, size_t n, uint32_t key)
{
    pong[0] = FIN | PONG;
    pong[1] = (uint8_t)(MASK | n);
    memcpy(pong + 2, &key, sizeof(key));
    for (size_t i = 0; i < n; i++)
        pong[6 + i] = payload[i] ^ pong[2 + i % 4];
    return 6 + n;
}

size_t websocket_head(uint8_t head[4], unsigned opcode, size_t n)
{
    head[0] = (uint8_t)(FIN | opcode);
    head[1] = (uint8_t)(n < 126 ? n : 126);
    head[2] = (uint8_t)(n >> 8);
    head[3] = (uint8_t)n;
    return n < 126 ? 2 : 4;
}
