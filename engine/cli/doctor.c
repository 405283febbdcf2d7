/* The command doctor: its checks in order, and how their findings are printed. */

#include "cli/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>


void
vlm_doctor_say(vlm_doctor_t *d, vlm_finding_t f, const char *remedy, const char *fmt, ...)
{
    char                     *p, text[1400], line[2048];
    va_list                   args;
    static const char *const  word[] = { "ok", "warn", "stop" };

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (f == VLM_STOPS && strncmp(text, d->stop, sizeof(d->stop) - 1) == 0) {
        return;
    }

    if (f == VLM_STOPS) {
        (void) snprintf(d->stop, sizeof(d->stop), "%.*s", (int) sizeof(d->stop) - 1, text);
    }

    (void) snprintf(line, sizeof(line), "%s: %s%s%s", word[f], text, remedy == NULL ? "" : "; ",
                    remedy == NULL ? "" : remedy);

    for (p = line; *p != '\0'; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            *p = ' ';                  /* of a path: a finding is one line */
        }
    }

    fprintf(d->out, "%s\n", line);
    d->n[f]++;
}


int
vlm_doctor_text(const vlm_doctor_t *d, const char *path, char *text, size_t bytes)
{
    int     len;
    char    whole[4096];
    FILE   *f;
    size_t  n;

    text[0] = '\0';
    len = snprintf(whole, sizeof(whole), "%s%s", d->root, path);
    f = len < (int) sizeof(whole) ? fopen(whole, "re") : NULL;

    if (f == NULL) {
        return -1;
    }

    n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    (void) fclose(f);

    return 0;
}


int
vlm_cli_doctor(const vlm_args_t *a, vlm_err_t *err)
{
    vlm_doctor_t  d = { .args = a, .root = "", .out = stdout };

    d.config = malloc(sizeof(*d.config));
    if (d.config == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to read config.json");
    }

    vlm_doctor_config(&d);
    vlm_doctor_tokenizer(&d);
    vlm_doctor_weights(&d);
    vlm_doctor_processor(&d);
    vlm_doctor_memory(&d);
    vlm_doctor_pages(&d);
    vlm_doctor_nginx(&d);
    vlm_doctor_gpu(&d);
    vlm_doctor_user(&d);
    vlm_doctor_cache(&d);

    free(d.config);

    if (d.n[VLM_STOPS] == 0) {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%" PRIu32 " of %" PRIu32 " findings stop%s this checkpoint",
                    d.n[VLM_STOPS], d.n[VLM_FINE] + d.n[VLM_WARNS] + d.n[VLM_STOPS],
                    d.n[VLM_STOPS] == 1 ? "s" : "");
}
