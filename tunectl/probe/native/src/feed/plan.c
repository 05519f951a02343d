#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "feed/run.h"
#include "lib/output.h"

enum { WARM_UPS_LEAST = 100, WARM_UPS_MOST = 20000, NS = 1000000000 };

/* Warm-ups by `rate`, a fifth of a second of them, or as many as make code and connection warm; then `wanted` messages. */
static int begin(struct feed_run *run, size_t wanted, double rate, unsigned burst)
{
    size_t fifth = (size_t)(rate / 5.0);
    size_t warm_ups = fifth < WARM_UPS_LEAST ? WARM_UPS_LEAST : fifth > WARM_UPS_MOST ? WARM_UPS_MOST : fifth;
    double period = run->clock.initial.hz / rate;
    run->warm_ups = (warm_ups + burst - 1) / burst * burst;
    run->messages = run->warm_ups + wanted;
    run->plan = memory_map(run->messages * sizeof(*run->plan));
    if (!run->plan)
        return print_error(EXIT_FAILED, "out of memory (fewer messages need less)");
    for (size_t i = 0; i < run->messages; i++)
        run->plan[i].due_ticks = (uint64_t)((double)(i - i % burst) * period);
    run->after_ticks = (uint64_t)((double)burst * period);
    return EXIT_OK;
}

/* One line of the file; the next in `*at`. False where it is none. */
static bool read_line(char **at, uint64_t *ns, uint64_t *bytes)
{
    char *end;
    *ns = strtoull(*at, &end, 10);
    if (end == *at || *end != ' ')
        return false;
    *at = end + 1;
    *bytes = strtoull(*at, &end, 10);
    if (end == *at || *end != '\n' || *bytes > FEED_PAYLOAD_MOST || *ns > UINT64_C(86400) * NS)
        return false;
    *at = end + 1;
    return true;
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* The lines of the file behind the warm-ups, each at its time from the first one's. */
static int replay(struct feed_run *run, char *text)
{
    const char *path = run->options->plan;
    double ticks_per_ns = run->clock.initial.hz / (double)NS;
    size_t lines = lines_of(text);
    uint64_t before = 0;
    if (lines == 0 || lines > FEED_MOST)
        return print_error(EXIT_USAGE, "--plan %.200s: expected 1 to %d lines of NS BYTES", path, FEED_MOST);
    int status = begin(run, lines, run->options->rate, 1);
    if (status)
        return status;
    uint64_t start = run->plan[run->warm_ups].due_ticks;
    unsigned char message[FEED_MESSAGE_MOST];
    size_t shortest = feed_write_message(run, message, 0);
    for (size_t line = 0; line < lines; line++) {
        struct planned *planned = &run->plan[run->warm_ups + line];
        uint64_t ns;
        if (!read_line(&text, &ns, &planned->bytes) || ns < before)
            return print_error(EXIT_USAGE, "--plan %.200s: line %zu: expected NS BYTES, ascending, at most a day and %d bytes", path,
                               line + 1, FEED_PAYLOAD_MOST);
        planned->due_ticks = start + (uint64_t)((double)ns * ticks_per_ns);
        run->grown += planned->bytes < shortest;
        before = ns;
    }
    return EXIT_OK;
}

int feed_plan(struct feed_run *run)
{
    const struct options *o = run->options;
    size_t wanted = (size_t)(o->duration_s * (double)o->rate + 0.5);
    if (!o->plan)
        return begin(run, wanted ? wanted : 1, o->rate, o->burst);
    struct text text = file_read("", "%s", o->plan);
    int status = text.bytes ? replay(run, text.bytes) : print_error(EXIT_USAGE, "--plan %.200s: cannot be read", o->plan);
    text_deinit(&text);
    return status;
}
