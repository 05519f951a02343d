/* Host files below a root ("" for the running host). */
#pragma once

#include <stddef.h>

#include "lib/cpus.h"

/* A file's bytes, with a NUL behind the last. */
struct text {
    char *bytes;
    size_t length;
};

/* The whole of `root` + printf(`path`). Returns 0 or -errno; on failure the text is empty and needs no deinit. */
int file_read(struct text *text, const char *root, const char *path, ...) __attribute__((format(printf, 3, 4)));
void text_deinit(struct text *text);

/* The first line of a short file into `line`, without its newline; an absent file is an empty line. Returns `line`. */
char *file_line(char *line, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* What stands in some files at one moment. One that cannot be read is empty. */
enum { SNAPSHOT_MOST = 8 };

struct snapshot {
    const char *const *paths;
    size_t n;
    struct text texts[SNAPSHOT_MOST];
};

/* `paths` are borrowed. */
void snapshot_take(struct snapshot *snapshot, const char *root, const char *const *paths, size_t n);
void snapshot_deinit(struct snapshot *snapshot);

/* The CPUs that a file lists; none where it is absent or odd. */
struct cpus file_cpus(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));
