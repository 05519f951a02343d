#include "lib/files.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 64 * 1024 };

/* Files of /proc tell no size, and hold no NUL: all up to one is all. */
__attribute__((format(printf, 3, 0)))
static int file_vread(struct text *text, const char *root, const char *path, va_list args)
{
    char full[PATH_MAX];
    size_t capacity = 0;
    *text = (struct text){0};
    size_t prefix = strlen(root);
    if (prefix >= sizeof(full))
        return -ENAMETOOLONG;
    memcpy(full, root, prefix);
    int rest = vsnprintf(full + prefix, sizeof(full) - prefix, path, args);
    if (rest < 0 || prefix + (size_t)rest >= sizeof(full))
        return -ENAMETOOLONG;
    FILE *file = fopen(full, "re");
    if (!file)
        return -errno;
    (void)setvbuf(file, NULL, _IOFBF, BUFFER);
    ssize_t got = getdelim(&text->bytes, &capacity, '\0', file);
    int rc = got < 0 && ferror(file) ? -errno : 0;
    (void)fclose(file);
    if (rc || !text->bytes) {
        text_deinit(text);
        return rc ? rc : -ENOMEM;
    }
    text->length = got < 0 ? 0 : (size_t)got;
    text->bytes[text->length] = '\0';
    return 0;
}

int file_read(struct text *text, const char *root, const char *path, ...)
{
    va_list args;
    va_start(args, path);
    int rc = file_vread(text, root, path, args);
    va_end(args);
    return rc;
}

void text_deinit(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

char *file_line(char *line, size_t size, const char *root, const char *path, ...)
{
    va_list args;
    struct text text;
    line[0] = '\0';
    va_start(args, path);
    int rc = file_vread(&text, root, path, args);
    va_end(args);
    if (rc)
        return line;
    size_t length = strcspn(text.bytes, "\n");
    if (length >= size)
        length = size - 1;
    memcpy(line, text.bytes, length);
    line[length] = '\0';
    text_deinit(&text);
    return line;
}

struct cpus file_cpus(const char *root, const char *path, ...)
{
    va_list args;
    struct text text;
    struct cpus cpus;
    va_start(args, path);
    int rc = file_vread(&text, root, path, args);
    va_end(args);
    if (rc)
        return (struct cpus){0};
    rc = cpus_parse(&cpus, text.bytes);
    text_deinit(&text);
    return rc ? (struct cpus){0} : cpus;
}

void snapshot_take(struct snapshot *snapshot, const char *root, const char *const *paths, size_t n)
{
    *snapshot = (struct snapshot){.paths = paths, .n = n};
    for (size_t i = 0; i < n; i++)
        (void)file_read(&snapshot->texts[i], root, "%s", paths[i]);
}

void snapshot_deinit(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++)
        text_deinit(&snapshot->texts[i]);
}
