#include <inttypes.h>
#include <stdio.h>

#include "feed/run.h"

enum { WARM_UPS_LEAST = 100, WARM_UPS_MOST = 20000, NS = 1000000000 };

/* Warm-ups by `rate`, a fifth of a second of them, or as many as make code and connection warm; then `wanted` messages. */
static int begin(struct feed_run *run, size_t wanted, double rate, unsigned burst)
{
    size_t fifth = (size_t)(rate / 5.0);
    size_t warm_ups = fifth < WARM_UPS_LEAST ? WARM_UPS_LEAST : fifth > WARM_UPS_MOST ? WARM_UPS_MOST : fifth;
    double period = run->pair.clock.initial.hz / rate;
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

/* The lines of the file behind the warm-ups, each at its time from the first one's. */
static int replay(struct feed_run *run, FILE *file)
{
    const char *path = run->pair.options->plan;
    size_t lines = 0;
    uint64_t before = 0;
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    if (lines == 0 || lines > FEED_MOST)
        return print_error(EXIT_USAGE, "--plan %.200s: expected 1 to %d lines of NS BYTES", path, FEED_MOST);
    int status = begin(run, lines, run->pair.options->rate, 1);
    if (status)
        return status;
    uint64_t start = run->plan[run->warm_ups].due_ticks;
    unsigned char message[FEED_MESSAGE_MOST];
    size_t shortest = feed_write_message(run, message, 0);
    rewind(file);
    for (size_t line = 0; line < lines; line++) {
        struct planned *planned = &run->plan[run->warm_ups + line];
        uint64_t ns;
        char end;
        if (fscanf(file, "%" SCNu64 " %" SCNu64 "%c", &ns, &planned->bytes, &end) != 3 || end != '\n' || ns < before ||
            planned->bytes > FEED_PAYLOAD_MOST || ns > UINT64_C(86400) * NS)
            return print_error(EXIT_USAGE, "--plan %.200s: line %zu: expected NS BYTES, ascending, at most a day and %d bytes", path,
                               line + 1, FEED_PAYLOAD_MOST);
        planned->due_ticks = start + (uint64_t)((double)ns * run->pair.ticks_per_ns);
        run->grown += planned->bytes < shortest;
        before = ns;
    }
    return EXIT_OK;
}

int feed_plan(struct feed_run *run)
{
    const struct options *o = run->pair.options;
    size_t wanted = (size_t)(o->duration_s * (double)o->rate + 0.5);
    if (!o->plan)
        return begin(run, wanted ? wanted : 1, o->rate, o->burst);
    FILE *file = fopen(o->plan, "re");
    if (!file)
        return print_error(EXIT_USAGE, "--plan %.200s: cannot be read", o->plan);
    int status = replay(run, file);
    (void)fclose(file);
    return status;
}
