#include "check.h"
#include "feed/websocket.h"

#include <stdlib.h>
#include <string.h>

static struct websocket_reader reader;

/* The first event of these bytes, and the code where it failed. */
static enum websocket_event read_all(const void *bytes, size_t n, size_t *used)
{
    websocket_init(&reader, 200);
    return websocket_next(&reader, bytes, n, used);
}

#define FIRST_OF(text) first_of(text, sizeof(text) - 1)
#define FAILS_WITH(wanted, text) CHECK(FIRST_OF(text) == WEBSOCKET_FAILED && reader.code == (wanted))

static enum websocket_event first_of(const char *bytes, size_t n)
{
    size_t used;
    return read_all(bytes, n, &used);
}

static void a_frame_is_taken_once_it_is_whole(void)
{
    static const char frame[] = "\x81\x05hello";
    size_t used;
    for (size_t n = 0; n < sizeof(frame) - 1; n++)
        CHECK(read_all(frame, n, &used) == WEBSOCKET_MORE && used == 0);
    CHECK(read_all(frame, sizeof(frame) - 1, &used) == WEBSOCKET_MESSAGE && used == 7);
    CHECK(reader.length == 5 && memcmp(reader.data, "hello", 5) == 0);
    /* What follows is left alone. */
    CHECK(read_all("\x82\x01\x00\x81\x00", 5, &used) == WEBSOCKET_MESSAGE && used == 3);
    CHECK(FIRST_OF("\x81\x00") == WEBSOCKET_MESSAGE && reader.length == 0);
}

static void lengths_have_one_form(void)
{
    char frame[300] = "\x82\x7e";
    frame[3] = 126;
    CHECK(first_of(frame, 4 + 126) == WEBSOCKET_MESSAGE && reader.length == 126);
    frame[3] = 125;
    CHECK(first_of(frame, 4 + 125) == WEBSOCKET_FAILED && reader.code == 1002);
    FAILS_WITH(1002, "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff");
    FAILS_WITH(1002, "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00");
    /* A message may have 200 bytes here; what is longer is refused before it has come. */
    frame[3] = (char)200;
    CHECK(first_of(frame, 4 + 200) == WEBSOCKET_MESSAGE);
    frame[3] = (char)201;
    CHECK(first_of(frame, 4) == WEBSOCKET_FAILED && reader.code == 1009);
    FAILS_WITH(1009, "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00");
}

static void what_the_protocol_forbids_fails(void)
{
    FAILS_WITH(1002, "\x81\x81\x00\x00\x00\x00x");     /* masked by a server */
    FAILS_WITH(1002, "\xc1\x00");
    FAILS_WITH(1002, "\xa1\x00");
    FAILS_WITH(1002, "\x91\x00");
    FAILS_WITH(1002, "\x83\x00");
    FAILS_WITH(1002, "\x87\x00");
    FAILS_WITH(1002, "\x8b\x00");
    FAILS_WITH(1002, "\x8f\x00");
    FAILS_WITH(1002, "\x09\x00");                      /* a ping in parts */
    FAILS_WITH(1002, "\x89\x7e\x00\x7e");              /* a ping of 126 bytes */
    FAILS_WITH(1002, "\x80\x00");                      /* goes on with nothing */
    FAILS_WITH(1002, "\x88\x01x");
    FAILS_WITH(1002, "\x88\x02\x03\xed");              /* 1005 may not be sent */
    FAILS_WITH(1007, "\x88\x03\x03\xe8\xff");
    FAILS_WITH(1007, "\x81\x02\xc3\x28");
    CHECK(FIRST_OF("\x88\x00") == WEBSOCKET_CLOSE);
    CHECK(FIRST_OF("\x88\x05\x03\xe8" "bye") == WEBSOCKET_CLOSE);
    CHECK(FIRST_OF("\x8a\x02hi") == WEBSOCKET_PART);
    CHECK(FIRST_OF("\x82\x02\xc3\x28") == WEBSOCKET_MESSAGE);  /* binary need not be text */
}

static void text_is_utf_8(void)
{
    static const char *const right[] = {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf", "12345678\xc3\xa4" "12345678"};
    static const char *const wrong[] = {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "12345678\xc3", "\xe2\x28\xa1"};
    char frame[64] = "\x81";
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
        frame[1] = (char)strlen(right[i]);
        memcpy(frame + 2, right[i], strlen(right[i]));
        CHECK(first_of(frame, 2 + strlen(right[i])) == WEBSOCKET_MESSAGE);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        frame[1] = (char)strlen(wrong[i]);
        memcpy(frame + 2, wrong[i], strlen(wrong[i]));
        CHECK(first_of(frame, 2 + strlen(wrong[i])) == WEBSOCKET_FAILED && reader.code == 1007);
    }
}

/* "ab", a ping between, "c", and a letter of two bytes that is cut by a fragment's end. */
static void fragments_are_joined(void)
{
    static const char frames[] = "\x01\x02" "ab" "\x89\x01?" "\x00\x02" "c\xc3" "\x80\x01\xa4";
    size_t at = 0;
    size_t used;
    websocket_init(&reader, 200);
    const enum websocket_event events[] = {WEBSOCKET_PART, WEBSOCKET_PING, WEBSOCKET_PART, WEBSOCKET_MESSAGE};
    for (size_t i = 0; i < 4; i++, at += used)
        CHECK(websocket_next(&reader, (const uint8_t *)frames + at, sizeof(frames) - 1 - at, &used) == events[i]);
    CHECK(reader.length == 5 && memcmp(reader.data, "abc\xc3\xa4", 5) == 0);
    /* A new message while one is in parts; one that grows too long by its parts. */
    websocket_init(&reader, 3);
    CHECK(websocket_next(&reader, (const uint8_t *)"\x01\x02xy", 4, &used) == WEBSOCKET_PART);
    CHECK(websocket_next(&reader, (const uint8_t *)"\x81\x01z", 3, &used) == WEBSOCKET_FAILED && reader.code == 1002);
    websocket_init(&reader, 3);
    CHECK(websocket_next(&reader, (const uint8_t *)"\x01\x02xy", 4, &used) == WEBSOCKET_PART);
    CHECK(websocket_next(&reader, (const uint8_t *)"\x80\x02zz", 4, &used) == WEBSOCKET_FAILED && reader.code == 1009);
}

static void a_pong_is_masked(void)
{
    uint8_t pong[WEBSOCKET_PONG_MOST];
    uint32_t key;
    memcpy(&key, "\x01\x02\x04\x08", 4);
    CHECK(websocket_pong(pong, (const uint8_t *)"hello", 5, key) == 11);
    CHECK(memcmp(pong, "\x8a\x85\x01\x02\x04\x08", 6) == 0);
    for (size_t i = 0; i < 5; i++)
        CHECK((pong[6 + i] ^ pong[2 + i % 4]) == (uint8_t)"hello"[i]);
}

static void a_servers_head_is_read_back(void)
{
    char frame[400];
    size_t used;
    for (size_t n = 0; n <= 200; n += 25) {
        size_t head = websocket_head((uint8_t *)frame, WEBSOCKET_TEXT, n);
        memset(frame + head, 'x', n);
        CHECK(read_all(frame, head + n, &used) == WEBSOCKET_MESSAGE && used == head + n && reader.length == n);
    }
}

void test_websocket(void)
{
    a_frame_is_taken_once_it_is_whole();
    lengths_have_one_form();
    what_the_protocol_forbids_fails();
    text_is_utf_8();
    fragments_are_joined();
    a_pong_is_masked();
    a_servers_head_is_read_back();
}
