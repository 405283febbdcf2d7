/*
 * Runs a fuzz target as an ordinary test, without libFuzzer, once for each file of its corpus,
 * t/fixtures/fuzz/NAME/.  The corpus has the inputs of earlier defects.
 */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE  (16 << 20)

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


/* The copy ends at the end of its allocation, so that a sanitizer detects a read past it. */
static int
replay(const char *path)
{
    long      n;
    FILE     *f;
    uint8_t  *data;

    f = fopen(path, "rb");
    if (f == NULL) {
        return -1;
    }

    data = NULL;

    if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && n <= MAX_FILE) {
        rewind(f);
        data = malloc(n > 0 ? (size_t) n : 1);
    }

    if (data == NULL || fread(data, 1, (size_t) n, f) != (size_t) n) {
        free(data);
        (void) fclose(f);
        return -1;
    }

    (void) fclose(f);
    (void) LLVMFuzzerTestOneInput(data, (size_t) n);
    free(data);

    return 0;
}


int
main(int argc, char **argv)
{
    int              n;
    char             dir[512], path[1024];
    DIR             *d;
    const char      *name;
    struct dirent   *e;

    name = argc > 0 ? strrchr(argv[0], '/') : NULL;

    if (name == NULL) {
        return 2;
    }

    (void) snprintf(dir, sizeof(dir), "t/fixtures/fuzz%s", name);

    d = opendir(dir);
    n = 0;

    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') {
            continue;
        }

        (void) snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        printf("%s %d - %s\n", replay(path) == 0 ? "ok" : "not ok", ++n, e->d_name);
        (void) fflush(stdout);
    }

    printf("1..%d\n", n);

    if (d != NULL) {
        (void) closedir(d);
    }

    return n == 0;
}
