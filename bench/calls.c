/*
 * bench/events.py preloads this library into nginx to record the functions that an event passes.
 *
 * The module is compiled with -finstrument-functions, so each of its functions calls these two at
 * its begin and its end.  A record is the thread, and the address of the function within the
 * module, negative at its end; the file CALLS takes it by one write.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static int  calls = -1;


__attribute__((constructor)) static void
open_calls(void)
{
    const char  *path;

    path = getenv("CALLS");
    calls = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}


static void
note(void *function, int64_t sign)
{
    int64_t  record[2];
    Dl_info  info;

    if (calls != -1 && dladdr(function, &info) != 0) {
        record[0] = gettid();
        record[1] = sign * ((char *) function - (char *) info.dli_fbase);

        if (write(calls, record, sizeof(record)) != sizeof(record)) {
            _exit(1);
        }
    }
}


void
__cyg_profile_func_enter(void *function, void *caller)
{
    (void) caller;
    note(function, 1);
}


void
__cyg_profile_func_exit(void *function, void *caller)
{
    (void) caller;
    note(function, -1);
}
