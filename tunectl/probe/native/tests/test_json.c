#include "check.h"
#include "lib/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void writes(const char *expected, void (*write)(struct json *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    CHECK(stream != NULL);
    struct json j = {.stream = stream};
    write(&j);
    CHECK(fclose(stream) == 0);
    if (strcmp(text, expected) != 0) {
        (void)fprintf(stderr, "got      %s\nexpected %s\n", text, expected);
        CHECK(false);
    }
    free(text);
}

static void everything(struct json *j)
{
    json_open(j, NULL, '{');
    json_uint(j, "n", UINT64_MAX);
    json_open(j, "empty", '[');
    json_close(j, ']');
    json_open(j, "o", '{');
    json_bool(j, "b", true);
    json_real(j, "z", NAN, 0);
    json_close(j, '}');
    json_real(j, "r", 1.0 / 3, 3);
    json_real(j, "inf", INFINITY, 3);
    json_open(j, "rows", '[');
    json_uints(j, NULL, (uint64_t[]){1, 2, 3}, 3);
    json_close(j, ']');
    json_close(j, '}');
}

static void hostile(struct json *j)
{
    json_open(j, NULL, '[');
    json_string(j, NULL, "quote \" slash \\ tab \t bell \a del \x7f");
    json_string(j, NULL, "gr\xc3\xbc\xc3\x9f \xff\x80.");
    json_string_n(j, NULL, "a\0b", 3);
    json_close(j, ']');
}

static void hostile_key(struct json *j)
{
    json_open(j, NULL, '{');
    json_uint(j, "k\"\n", 1);
    json_close(j, '}');
}

void test_json(void)
{
    writes("{\"n\": 18446744073709551615,\n\"empty\": [],\n\"o\": {\"b\": true,\n\"z\": null},\n\"r\": 0.333,\n"
           "\"inf\": null,\n\"rows\": [[1, 2, 3]]}", everything);
    writes("[\"quote \\\" slash \\\\ tab \\u0009 bell \\u0007 del \\u007f\",\n\"gr\\u00c3\\u00bc\\u00c3\\u009f \\u00ff\\u0080.\",\n"
           "\"a\\u0000b\"]", hostile);
    writes("{\"k\\\"\\u000a\": 1}", hostile_key);
}
