#include "jitter/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_COLUMN = -1 };

/* Which wanted CPU each column of the table belongs to. */
struct columns {
    int *cpu_index;
    size_t n;
};

static int index_of_cpu(const struct cpu_list *cpus, uint64_t cpu)
{
    for (size_t i = 0; i < cpus->n; i++)
        if (cpus->ids[i] == cpu)
            return (int)i;
    return NO_COLUMN;
}

static int columns_init(struct columns *columns, struct span header, const struct cpu_list *cpus)
{
    *columns = (struct columns){.cpu_index = calloc(header.length / 4 + 1, sizeof(int))};
    if (!columns->cpu_index)
        return -ENOMEM;
    for (struct span word = span_word(&header); word.length; word = span_word(&header)) {
        uint64_t cpu;
        if (word.length < 4 || memcmp(word.at, "CPU", 3) != 0 || !span_number((struct span){word.at + 3, word.length - 3}, &cpu))
            return -EINVAL;
        columns->cpu_index[columns->n++] = index_of_cpu(cpus, cpu);
    }
    return columns->n ? 0 : -EINVAL;
}

/* "key: n n n description" into row `table->n_rows`; a line of another shape, or with too few counts, adds nothing. */
static void parse_row(struct counter_table *table, struct span line, const struct columns *columns)
{
    const char *colon = memchr(line.at, ':', line.length);
    if (!colon)
        return;
    size_t key_length = (size_t)(colon - line.at);
    struct span key = span_trimmed((struct span){line.at, key_length});
    struct span rest = {colon + 1, line.length - key_length - 1};
    uint64_t *counts = &table->counts[table->n_rows * table->n_cpus];
    memset(counts, 0, table->n_cpus * sizeof(*counts));
    for (size_t i = 0; i < columns->n; i++) {
        uint64_t count;
        if (!span_number(span_word(&rest), &count))
            return;
        if (columns->cpu_index[i] != NO_COLUMN)
            counts[columns->cpu_index[i]] = count;
    }
    if (key.length)
        table->rows[table->n_rows++] = (struct counter_row){key, span_trimmed(rest)};
}

static size_t count_lines(struct span text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.length; i++)
        lines += text.at[i] == '\n';
    return lines;
}

int counter_table_parse(struct counter_table *table, const char *text, size_t length, const struct cpu_list *cpus)
{
    struct span rest = {text, length};
    struct span line;
    struct columns columns = {0};
    *table = (struct counter_table){.n_cpus = cpus->n};
    if (!span_line(&rest, &line))
        return -EINVAL;
    int rc = columns_init(&columns, line, cpus);
    size_t lines = count_lines(rest);
    if (!rc) {
        table->rows = calloc(lines, sizeof(*table->rows));
        table->counts = calloc(lines * cpus->n + 1, sizeof(*table->counts));
        rc = table->rows && table->counts ? 0 : -ENOMEM;
    }
    while (!rc && span_line(&rest, &line))
        parse_row(table, line, &columns);
    free(columns.cpu_index);
    if (rc)
        counter_table_deinit(table);
    return rc;
}

void counter_table_deinit(struct counter_table *table)
{
    free(table->rows);
    free(table->counts);
    *table = (struct counter_table){0};
}

/* Rows keep their order, so the search begins where the row should be and wraps around. */
static uint64_t earlier_count(const struct counter_table *before, struct span key, size_t hint, size_t cpu)
{
    for (size_t i = 0; i < before->n_rows; i++) {
        size_t row = (hint + i) % before->n_rows;
        if (span_equal(before->rows[row].key, key))
            return before->counts[row * before->n_cpus + cpu];
    }
    return 0;
}

uint64_t counter_delta(const struct counter_table *before, const struct counter_table *after, size_t row, size_t cpu)
{
    uint64_t now = after->counts[row * after->n_cpus + cpu];
    uint64_t then = earlier_count(before, after->rows[row].key, row, cpu);
    if (now >= then)
        return now - then;
    uint64_t wrapped = now + (UINT64_C(1) << 32) - then;
    return then <= UINT32_MAX && wrapped < (UINT64_C(1) << 31) ? wrapped : now;
}

/* user nice system idle iowait irq softirq steal; old kernels end sooner, and guest time is already within user. */
bool cpu_times_parse(struct cpu_times *times, const char *text, size_t length, unsigned cpu)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    struct span rest = {text, length};
    struct span line;
    while (span_line(&rest, &line)) {
        struct span name = span_word(&line);
        uint64_t number;
        if (name.length < 4 || memcmp(name.at, "cpu", 3) != 0 ||
            !span_number((struct span){name.at + 3, name.length - 3}, &number) || number != cpu)
            continue;
        uint64_t field[FIELDS] = {0};
        for (int i = 0; i < FIELDS && span_number(span_word(&line), &field[i]); i++)
            continue;
        *times = (struct cpu_times){
            .busy = field[USER] + field[NICE] + field[SYSTEM] + field[IRQ] + field[SOFTIRQ] + field[STEAL],
            .idle = field[IDLE] + field[IOWAIT],
            .steal = field[STEAL],
        };
        return true;
    }
    return false;
}

static void read_texts(struct counter_texts *texts, const char *root)
{
    (void)file_read(&texts->interrupts, root, "/proc/interrupts");
    (void)file_read(&texts->softirqs, root, "/proc/softirqs");
    (void)file_read(&texts->stat, root, "/proc/stat");
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
