#include "proctext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_COLUMN = -1 };

/* Which wanted CPU each column of the table belongs to. */
struct columns {
    int *cpu_index;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next line of `rest`, which moves behind it. */
static bool next_line(struct span *rest, struct span *line)
{
    if (rest->length == 0)
        return false;
    const char *newline = memchr(rest->at, '\n', rest->length);
    size_t length = newline ? (size_t)(newline - rest->at) : rest->length;
    *line = (struct span){rest->at, length};
    size_t step = newline ? length + 1 : length;
    *rest = (struct span){rest->at + step, rest->length - step};
    return true;
}

static struct span trimmed(struct span s)
{
    while (s.length && is_blank(s.at[0]))
        s = (struct span){s.at + 1, s.length - 1};
    while (s.length && is_blank(s.at[s.length - 1]))
        s.length--;
    return s;
}

/* The next word up to a blank; empty at the end. */
static struct span next_word(struct span *rest)
{
    struct span s = trimmed(*rest);
    size_t length = 0;
    while (length < s.length && !is_blank(s.at[length]))
        length++;
    *rest = (struct span){s.at + length, s.length - length};
    return (struct span){s.at, length};
}

/* Saturates rather than wraps: a number too long for uint64 is no counter. */
static bool number_of(struct span word, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (!is_digit(word.at[i]))
            return false;
        uint64_t digit = (uint64_t)(word.at[i] - '0');
        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
    }
    *value = v;
    return word.length > 0;
}

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
    for (struct span word = next_word(&header); word.length; word = next_word(&header)) {
        uint64_t cpu;
        if (word.length < 4 || memcmp(word.at, "CPU", 3) != 0 || !number_of((struct span){word.at + 3, word.length - 3}, &cpu))
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
    struct span key = trimmed((struct span){line.at, key_length});
    struct span rest = {colon + 1, line.length - key_length - 1};
    uint64_t *cells = &table->cells[table->n_rows * table->n_cpus];
    memset(cells, 0, table->n_cpus * sizeof(*cells));
    for (size_t i = 0; i < columns->n; i++) {
        uint64_t count;
        if (!number_of(next_word(&rest), &count))
            return;
        if (columns->cpu_index[i] != NO_COLUMN)
            cells[columns->cpu_index[i]] = count;
    }
    if (key.length)
        table->rows[table->n_rows++] = (struct counter_row){key, trimmed(rest)};
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
    if (!next_line(&rest, &line))
        return -EINVAL;
    int rc = columns_init(&columns, line, cpus);
    size_t lines = count_lines(rest);
    if (!rc) {
        table->rows = calloc(lines, sizeof(*table->rows));
        table->cells = calloc(lines * cpus->n + 1, sizeof(*table->cells));
        rc = table->rows && table->cells ? 0 : -ENOMEM;
    }
    while (!rc && next_line(&rest, &line))
        parse_row(table, line, &columns);
    free(columns.cpu_index);
    if (rc)
        counter_table_deinit(table);
    return rc;
}

void counter_table_deinit(struct counter_table *table)
{
    free(table->rows);
    free(table->cells);
    *table = (struct counter_table){0};
}

static bool is_same(struct span a, struct span b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Rows keep their order, so the search begins where the row should be and wraps around. */
static uint64_t earlier_count(const struct counter_table *before, struct span key, size_t hint, size_t cpu)
{
    for (size_t i = 0; i < before->n_rows; i++) {
        size_t row = (hint + i) % before->n_rows;
        if (is_same(before->rows[row].key, key))
            return before->cells[row * before->n_cpus + cpu];
    }
    return 0;
}

uint64_t counter_delta(const struct counter_table *before, const struct counter_table *after, size_t row, size_t cpu)
{
    uint64_t now = after->cells[row * after->n_cpus + cpu];
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
    while (next_line(&rest, &line)) {
        struct span name = next_word(&line);
        uint64_t number;
        if (name.length < 4 || memcmp(name.at, "cpu", 3) != 0 ||
            !number_of((struct span){name.at + 3, name.length - 3}, &number) || number != cpu)
            continue;
        uint64_t field[FIELDS] = {0};
        for (int i = 0; i < FIELDS && number_of(next_word(&line), &field[i]); i++)
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
