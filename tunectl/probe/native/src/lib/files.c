#include "lib/files.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 64 * 1024 };

/* Files of /proc tell no size, and hold no NUL: all up to one is all. */
static struct text read_all(FILE *file)
{
    struct text text = {0};
    size_t capacity = 0;
    (void)setvbuf(file, NULL, _IOFBF, BUFFER);
    ssize_t got = getdelim(&text.bytes, &capacity, '\0', file);
    text.length = got < 0 ? 0 : (size_t)got;
    if (got < 0 && ferror(file))
        text_deinit(&text);
    else if (text.bytes)
        text.bytes[text.length] = '\0';
    return text;
}

struct text file_read(const char *root, const char *path, ...)
{
    va_list args;
    char full[PATH_MAX];
    int prefix = snprintf(full, sizeof(full), "%s", root);
    if (prefix >= PATH_MAX)
        return (struct text){0};
    va_start(args, path);
    int rest = vsnprintf(full + prefix, sizeof(full) - (size_t)prefix, path, args);
    va_end(args);
    FILE *file = prefix + rest < PATH_MAX ? fopen(full, "re") : NULL;
    if (!file)
        return (struct text){0};
    struct text text = read_all(file);
    (void)fclose(file);
    return text;
}

void text_deinit(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

char *line_of(struct text text, char *line, size_t size)
{
    (void)snprintf(line, size, "%.*s", text.bytes ? (int)strcspn(text.bytes, "\n") : 0, text.bytes ? text.bytes : "");
    text_deinit(&text);
    return line;
}

struct cpus cpus_of(struct text text)
{
    struct cpus cpus = {0};
    if (text.bytes && cpus_parse(&cpus, text.bytes))
        cpus = (struct cpus){0};
    text_deinit(&text);
    return cpus;
}

void snapshot_take(struct snapshot *snapshot, const char *root, const char *const *paths, size_t n)
{
    *snapshot = (struct snapshot){.paths = paths, .n = n};
    for (size_t i = 0; i < n; i++)
        snapshot->texts[i] = file_read(root, "%s", paths[i]);
}

void snapshot_deinit(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++)
        text_deinit(&snapshot->texts[i]);
}
