/* Host files below a root ("" for the running host). */
#pragma once

#include <stddef.h>

#include "lib/cpus.h"

/* A file's bytes, with a NUL behind the last; none, NULL, where it could not be read. */
struct text {
    char *bytes;
    size_t length;
};

/* The whole of `root` + printf(`path`). */
struct text file_read(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));
void text_deinit(struct text *text);

/* Both free the text. Its first line without the newline, cut at `size`, in `line`; the CPUs that it lists, none where it is odd. */
char *line_of(struct text text, char *line, size_t size);
struct cpus cpus_of(struct text text);

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
