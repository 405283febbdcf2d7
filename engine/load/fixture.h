/* Helpers shared by the tests of this folder: temporary directories, and files in them. */

#ifndef VLM_LOAD_FIXTURE_H
#define VLM_LOAD_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define FIXTURES  "t/fixtures/load"


/* Makes a new empty directory, whose name is put into dir. */
static inline int
fixture_dir(char dir[64])
{
    strcpy(dir, "/tmp/vlm-load-XXXXXX");

    return mkdtemp(dir) == NULL ? -1 : 0;
}


static inline void
fixture_write(const char *dir, const char *name, const void *data, size_t bytes)
{
    FILE  *f;
    char   path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);

    f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        perror(path);
        _exit(1);
    }
}


static inline void
fixture_text(const char *dir, const char *name, const char *text)
{
    fixture_write(dir, name, text, strlen(text));
}


/* Copies a file of this machine under another name. */
static inline void
fixture_copy(const char *dir, const char *name, const char *path)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    if (vlm_file_open(&f, path, 0, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }

    fixture_write(dir, name, f.data, f.bytes);
    vlm_file_close(&f);
}


/* Removes the directory and its files. */
static inline void
fixture_remove(const char *dir)
{
    DIR            *d;
    char            path[512];
    struct dirent  *e;

    d = opendir(dir);

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            unlink(path);
        }
    }

    if (d != NULL) {
        closedir(d);
    }

    rmdir(dir);
}

#endif
