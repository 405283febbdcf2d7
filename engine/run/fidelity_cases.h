/*
 * The cases of t/fidelity: prompts from cases*.txt, and transformers' results from .ref files.
 * fidelity_run.h has
 * what tests do with them.
 */

#ifndef VLM_FIDELITY_CASES_H
#define VLM_FIDELITY_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "vlm.h"

#define EXPECTED     "t/fidelity/expected"
#define MAX_CASES    96
#define MAX_PARTS    16
#define MAX_WORDS    512
#define MAX_FRAMES   8
#define STEPS        64
#define SHORT        16                /* of a short case */

typedef struct {
    double      fps;                   /* not 0: words has the files of a video's frames */
    int         picture;               /* 1: words has a picture's file */
    vlm_role_t  role;                  /* of its message */
    int         first;                 /* a message begins */
    char        words[MAX_WORDS];
} part_t;

typedef struct {
    char      checkpoint[64], shape[128], flags[192], name[64];
    uint32_t  family;
    uint32_t  steps;                   /* tokens of the answer */
    uint32_t  n_parts;
    part_t    part[MAX_PARTS];
} case_t;

typedef struct {                       /* a section of a .ref file */
    uint32_t        n_dims, dims[4];
    const uint32_t  *u;                /* NULL: not there */
    const float     *f;
    const int32_t   *i;
} section_t;

typedef struct {
    vlm_file_t  file;
    section_t   ids, pos, patches, features, deepstack, top_ids, top, logits, answer, step_ids,
                step;
} ref_t;

static case_t    cases[MAX_CASES];
static uint32_t  n_cases;


static inline void
unescape(char *text)
{
    char  *to;

    for (to = text; *text != '\0'; text++, to++) {
        if (text[0] == '\\' && text[1] == 'n') {
            *to = '\n';
            text++;
        } else {
            *to = *text;
        }
    }

    *to = '\0';
}


static inline void
add_part(case_t *c, int picture, vlm_role_t role, int first, const char *words)
{
    part_t  *p;

    assert_true(c->n_parts < MAX_PARTS);

    p = &c->part[c->n_parts++];
    p->picture = picture;
    p->role = role;
    p->first = first;
    (void) snprintf(p->words, sizeof(p->words), "%s", words);
    unescape(p->words);
}


static inline void
read_family(const char *path, uint32_t family)
{
    int          first;
    char         line[1024], *rest;
    FILE        *f;
    double       fps;
    case_t       at, *c;
    vlm_role_t   role;

    f = fopen(path, "r");
    assert_non_null(f);

    memset(&at, 0, sizeof(at));
    at.family = family;
    c = NULL;
    role = VLM_USER;
    first = 0;

    while (fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        rest = strchr(line, ' ');

        if (line[0] == '#' || rest == NULL) {
            continue;
        }

        *rest++ = '\0';

        if (strcmp(line, "checkpoint") == 0) {
            assert_int_equal(sscanf(rest, "%63s %127s %191[^\n]", at.checkpoint, at.shape,
                                    at.flags), 3);

        } else if (strcmp(line, "lora") == 0) {
            continue;                  /* options given to peft: see lora.py */

        } else if (strcmp(line, "case") == 0) {
            assert_true(n_cases < MAX_CASES);
            c = &cases[n_cases++];
            *c = at;
            assert_int_equal(sscanf(rest, "%63s", c->name), 1);
            c->steps = strstr(rest, " short") != NULL ? SHORT : STEPS;

        } else if (strcmp(line, "message") == 0) {
            role = rest[0] == 's' ? VLM_SYSTEM : rest[0] == 'u' ? VLM_USER : VLM_ASSISTANT;
            first = 1;

        } else {
            fps = 0;

            if (strcmp(line, "video") == 0) {
                fps = strtod(rest, &rest);
                assert_true(fps > 0);
                rest++;
            }

            add_part(c, strcmp(line, "picture") == 0, role, first, rest);
            c->part[c->n_parts - 1].fps = fps;
            first = 0;
        }
    }

    fclose(f);
}


static inline void
open_ref(ref_t *r, const char *name)
{
    char            path[512];
    section_t      *to;
    uint32_t        i, j, k, n;
    uint64_t        size;
    vlm_err_t       err = { VLM_OK, "" };
    const uint8_t  *p;
    const struct {
        const char  *name;
        section_t   *to;
    } known[] = {
        { "ids", &r->ids }, { "pos", &r->pos }, { "patches", &r->patches },
        { "features", &r->features },
        { "deepstack", &r->deepstack },
        { "top_ids", &r->top_ids }, { "top", &r->top }, { "logits", &r->logits },
        { "answer", &r->answer }, { "step_ids", &r->step_ids }, { "step", &r->step }
    };

    memset(r, 0, sizeof(*r));
    (void) snprintf(path, sizeof(path), EXPECTED "/%s.ref", name);

    if (vlm_file_open(&r->file, path, 0, &err) != 0) {
        fail_msg("%s", err.text);
    }

    p = r->file.data;
    assert_memory_equal(p, "VLMREF1\n", 8);
    memcpy(&n, p + 8, 4);
    p += 12;

    for (i = 0; i < n; i++) {
        section_t  s;

        memset(&s, 0, sizeof(s));
        memcpy(&s.n_dims, p + 20, 4);
        memcpy(s.dims, p + 24, 16);
        s.u = (const uint32_t *) (p + 40);
        s.f = (const float *) (p + 40);
        s.i = (const int32_t *) (p + 40);

        for (size = 4, k = 0; k < 4; k++) {
            size *= s.dims[k];
        }

        for (j = 0; j < sizeof(known) / sizeof(known[0]); j++) {
            to = strcmp((const char *) p, known[j].name) == 0 ? known[j].to : NULL;

            if (to != NULL) {
                *to = s;
            }
        }

        p += 40 + size;
    }
}

#endif
