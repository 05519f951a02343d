#include "counters.h"

#include <errno.h>
#include <string.h>

static void read_texts(struct counter_texts *texts, const char *root)
{
    (void)text_read(&texts->interrupts, root, "/proc/interrupts");
    (void)text_read(&texts->softirqs, root, "/proc/softirqs");
    (void)text_read(&texts->stat, root, "/proc/stat");
}

static void texts_deinit(struct counter_texts *texts)
{
    text_deinit(&texts->interrupts);
    text_deinit(&texts->softirqs);
    text_deinit(&texts->stat);
}

void counters_read_before(struct counters *c, const char *root)
{
    read_texts(&c->texts_before, root);
}

void counters_read_after(struct counters *c, const char *root)
{
    read_texts(&c->texts_after, root);
}

static int parse_table(struct counter_table *table, const struct text *text, const struct cpu_list *cpus)
{
    int rc = counter_table_parse(table, text->bytes, text->length, cpus);
    return rc == -ENOMEM ? rc : 0;
}

int counters_parse(struct counters *c, const struct cpu_list *cpus)
{
    int rc = parse_table(&c->irq_before, &c->texts_before.interrupts, cpus);
    if (!rc)
        rc = parse_table(&c->irq_after, &c->texts_after.interrupts, cpus);
    if (!rc)
        rc = parse_table(&c->softirq_before, &c->texts_before.softirqs, cpus);
    if (!rc)
        rc = parse_table(&c->softirq_after, &c->texts_after.softirqs, cpus);
    return rc;
}

void counters_deinit(struct counters *c)
{
    counter_table_deinit(&c->irq_before);
    counter_table_deinit(&c->irq_after);
    counter_table_deinit(&c->softirq_before);
    counter_table_deinit(&c->softirq_after);
    texts_deinit(&c->texts_before);
    texts_deinit(&c->texts_after);
}

/* Times in /proc/stat may step back a little (idle is re-estimated); that is no time passed. */
static uint64_t moved_on(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

bool counters_cpu_times(const struct counters *c, unsigned cpu, struct cpu_times *moved)
{
    struct cpu_times before;
    struct cpu_times after;
    const struct text *then = &c->texts_before.stat;
    const struct text *now = &c->texts_after.stat;
    if (!cpu_times_parse(&before, then->bytes, then->length, cpu) || !cpu_times_parse(&after, now->bytes, now->length, cpu))
        return false;
    *moved = (struct cpu_times){
        .busy = moved_on(after.busy, before.busy),
        .idle = moved_on(after.idle, before.idle),
        .steal = moved_on(after.steal, before.steal),
    };
    return true;
}

static bool is_timer(const struct counter_row *row)
{
    if (row->key.length == 3 && memcmp(row->key.at, "LOC", 3) == 0)
        return true;
    return row->description.length && memmem(row->description.at, row->description.length, "arch_timer", 10) != NULL;
}

uint64_t counters_timer_interrupts(const struct counters *c, size_t cpu)
{
    uint64_t sum = 0;
    for (size_t row = 0; row < c->irq_after.n_rows; row++)
        if (is_timer(&c->irq_after.rows[row]))
            sum += counter_delta(&c->irq_before, &c->irq_after, row, cpu);
    return sum;
}
