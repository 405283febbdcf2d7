/*
 * Control of the emulated device from outside its process, for tests of a whole server.  Settings
 * are words in the environment variable VLM_EMULATOR, which is read when the library is loaded, and
 * the same words in a file that a test creates later.
 *
 *   driver= built_by= devices= arch= bytes= used= takes= keeps=    numbers, as in control.h
 *   fail=CODE@N    the N-th call from now returns CODE; with CODE "hang" it does not return
 *   note=PATH      appends a line with the process ID to this file at once
 *   file=PATH      reads this file at the first call after it was created, and removes it
 */

#include "outside.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"

#define MAX_WORDS  4096                /* bytes */

static char             file[MAX_WORDS];
static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;


static void
note(const char *path)
{
    FILE  *out;

    out = fopen(path, "a");

    if (out != nullptr) {
        (void) fprintf(out, "%ld\n", static_cast<long>(getpid()));
        (void) fclose(out);
    }
}


static void
fail(const char *value)
{
    const char  *at;

    at = strchr(value, '@');

    vlm_emu_set(VLM_EMU_FAIL_CODE, strncmp(value, "hang", 4) == 0 ? VLM_EMU_HANG
                                                                : strtoull(value, nullptr, 10));
    vlm_emu_set(VLM_EMU_FAIL_AT, at == nullptr ? 1 : strtoull(at + 1, nullptr, 10));
}


static void
apply_word(const char *word)
{
    size_t       i, n;
    const char  *value;

    static const struct {
        const char         *name;
        vlm_emu_setting_t   setting;
    } numbers[] = {
        { "driver", VLM_EMU_DRIVER },
        { "built_by", VLM_EMU_BUILT_BY },
        { "devices", VLM_EMU_DEVICES },
        { "arch", VLM_EMU_ARCH },
        { "bytes", VLM_EMU_BYTES },
        { "used", VLM_EMU_USED },
        { "takes", VLM_EMU_TAKES },
        { "keeps", VLM_EMU_KEEPS }
    };

    value = strchr(word, '=');

    if (value == nullptr) {
        return;
    }

    n = static_cast<size_t>(value++ - word);

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strlen(numbers[i].name) == n && strncmp(word, numbers[i].name, n) == 0) {
            vlm_emu_set(numbers[i].setting, strtoull(value, nullptr, 10));
            return;
        }
    }

    if (n == 4 && strncmp(word, "fail", n) == 0) {
        fail(value);

    } else if (n == 4 && strncmp(word, "note", n) == 0) {
        note(value);

    } else if (n == 4 && strncmp(word, "file", n) == 0) {
        (void) snprintf(file, sizeof(file), "%s", value);
    }
}


static void
apply_words(const char *text)
{
    char  words[MAX_WORDS], *word, *rest;

    (void) snprintf(words, sizeof(words), "%s", text);

    for (word = strtok_r(words, " \n", &rest); word != nullptr;
         word = strtok_r(nullptr, " \n", &rest))
    {
        apply_word(word);
    }
}


__attribute__((constructor)) static void
read_environment(void)
{
    const char  *text;

    text = getenv("VLM_EMULATOR");

    if (text != nullptr) {
        apply_words(text);
    }
}


void
vlm_emu_listen(void)
{
    int      fd;
    char     text[MAX_WORDS];
    ssize_t  n;

    if (file[0] == '\0' || access(file, R_OK) != 0) {
        return;
    }

    (void) pthread_mutex_lock(&mutex);

    fd = open(file, O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        (void) close(fd);
        (void) unlink(file);
        apply_words(text);
    }

    (void) pthread_mutex_unlock(&mutex);
}
