#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_READ = 64 * 1024 };

__attribute__((format(printf, 2, 0)))
static int open_below(const char *root, const char *path, va_list args)
{
    char full[PATH_MAX];
    int prefix = snprintf(full, sizeof(full), "%s", root);
    if (prefix < 0 || (size_t)prefix >= sizeof(full))
        return -ENAMETOOLONG;
    int rest = vsnprintf(full + prefix, sizeof(full) - (size_t)prefix, path, args);
    if (rest < 0 || (size_t)(prefix + rest) >= sizeof(full))
        return -ENAMETOOLONG;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Files of /proc tell no size: read until nothing comes, in ever larger pieces. */
static int read_all(struct text *text, int fd)
{
    size_t capacity = FIRST_READ;
    char *bytes = malloc(capacity + 1);
    size_t length = 0;
    while (bytes) {
        ssize_t got = read(fd, bytes + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int rc = -errno;
            free(bytes);
            return rc;
        }
        if (got == 0) {
            bytes[length] = '\0';
            *text = (struct text){bytes, length};
            return 0;
        }
        length += (size_t)got;
        if (length == capacity) {
            capacity *= 2;
            char *larger = realloc(bytes, capacity + 1);
            if (!larger)
                free(bytes);
            bytes = larger;
        }
    }
    return -ENOMEM;
}

__attribute__((format(printf, 3, 0)))
static int file_vread(struct text *text, const char *root, const char *path, va_list args)
{
    *text = (struct text){0};
    int fd = open_below(root, path, args);
    if (fd < 0)
        return fd;
    int rc = read_all(text, fd);
    (void)close(fd);
    return rc;
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

int file_cpus(struct cpu_list *list, const char *root, const char *path, ...)
{
    va_list args;
    struct text text;
    *list = (struct cpu_list){0};
    va_start(args, path);
    int rc = file_vread(&text, root, path, args);
    va_end(args);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    rc = cpu_list_parse(list, text.bytes);
    text_deinit(&text);
    return rc == -ENOMEM ? rc : 0;
}
