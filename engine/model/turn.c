/* The table of turned weights: see the header. */

#include "model/turn.h"

#include <stddef.h>
#include <stdlib.h>

#include "format/format.h"
#include "format/turn.h"

#define MODEL(m)   VLM_IN_MODEL, offsetof(vlm_model_t, m)
#define LAYER(m)   VLM_IN_LAYER, offsetof(vlm_layer_t, m)
#define MERGER(m)  VLM_IN_MERGER, offsetof(vlm_merger_t, m)
#define AFTER(t, m)  offsetof(t, m)

#define FEEDS(m)  offsetof(vlm_layer_t, m), 0
#define FED       0, 1
#define ALONE     0, 0

#define NONE    VLM_TURN_NONE
#define STREAM  VLM_TURN_STREAM
#define TEXT    VLM_TURN_TEXT
#define BLOCKS  VLM_TURN_BLOCKS

/*
 * The stream of each stack is turned.  So W becomes W diag(gain) R^T if it reads the stream after a
 * norm, whose own gain is then 1, and R W if it writes to it; a shift of the norm becomes W shift
 * in the bias.  Rows of the embedding and of learned positions are parts of the stream.  Rows that
 * come from attention or from the function of an MLP are turned in blocks by the operation, and the
 * matrix W that reads them becomes W B^T.
 *
 * Before that the rows of `up` and the columns of `down` that read them get powers of two, and so
 * do the rows of v and the columns of `o`.
 *
 * A low-rank addition to W, s B A x, has the same sides: A is turned as W's columns, B as its rows.
 *
 * The norms of an encoder of texts are in its stream: they keep their gain, and a turn is around
 * them.
 *
 * A merger's first matrix reads several rows of the stream side by side: each is turned.
 */
static const vlm_turn_rule_t  rules[] = {
    { LAYER(qkv), STREAM, NONE, AFTER(vlm_layer_t, norm1), FEEDS(o) },
    { LAYER(o), BLOCKS, STREAM, VLM_NO_NORM, FED },
    { LAYER(up), STREAM, NONE, AFTER(vlm_layer_t, norm2), FEEDS(down) },
    { LAYER(down), BLOCKS, STREAM, VLM_NO_NORM, FED },
    { MODEL(embed), STREAM, NONE, VLM_NO_NORM, ALONE },
    { MODEL(head), STREAM, NONE, AFTER(vlm_model_t, norm), ALONE },
    { MODEL(patch), NONE, STREAM, VLM_NO_NORM, ALONE },
    { MODEL(places), STREAM, NONE, VLM_NO_NORM, ALONE },
    { MODEL(positions), STREAM, NONE, VLM_NO_NORM, ALONE },
    { MODEL(kinds), STREAM, NONE, VLM_NO_NORM, ALONE },
    { MODEL(merger.first), STREAM, NONE, AFTER(vlm_model_t, merger.norm), ALONE },
    { MODEL(merger.second), BLOCKS, TEXT, VLM_NO_NORM, ALONE },
    { MERGER(first), STREAM, NONE, AFTER(vlm_merger_t, norm), ALONE },
    { MERGER(second), BLOCKS, TEXT, VLM_NO_NORM, ALONE }
};

#define N_RULES  (sizeof(rules) / sizeof(rules[0]))


const vlm_turn_rule_t *
vlm_turn_rule(vlm_scope_t scope, size_t at)
{
    size_t  i;

    for (i = 0; i < N_RULES; i++) {
        if (rules[i].scope == scope && rules[i].at == at) {
            return &rules[i];
        }
    }

    return NULL;
}


int
vlm_turn_folds(vlm_scope_t scope, size_t norm)
{
    size_t  i;

    for (i = 0; i < N_RULES; i++) {
        if (rules[i].scope == scope && rules[i].norm == norm) {
            return 1;
        }
    }

    return 0;
}


int
vlm_turn_has_means(const vlm_stack_t *s)
{
    uint32_t             i;
    const vlm_weight_t  *w, *lists[] = { s->before, s->layer, s->after };

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (w = lists[i]; w != NULL && w->kind != VLM_WEIGHT_END; w++) {
            if (w->kind == VLM_WEIGHT_LAYER) {
                return 1;
            }
        }
    }

    return 0;
}


int
vlm_turn_open(vlm_turn_t *t, uint32_t n, int means, vlm_err_t *err)
{
    size_t  small;

    if (!vlm_turn_of(t, n)) {
        return vlm_fail(err, VLM_EMODEL, "a width of %u is not turned", n);
    }

    small = (size_t) t->odd * t->odd;
    t->sign = malloc(((means ? 2 : 1) * (size_t) n + small) * sizeof(float));

    if (t->sign == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u floats", n);
    }

    t->small = t->sign + n;
    t->mirror = means ? t->small + small : NULL;
    vlm_turn_fill(t);

    return 0;
}


void
vlm_turn_close(vlm_turn_t *t)
{
    free(t->sign);
    t->sign = NULL;
}


/* Widths with a large odd part would need a large matrix of their own. */
int
vlm_turn_fits(const vlm_config_t *config, vlm_type_t type)
{
    vlm_turn_t  t;

    return vlm_format_of(type)->quantise != NULL && vlm_turn_of(&t, config->text.hidden)
           && (config->vision.depth == 0 || vlm_turn_of(&t, config->vision.hidden));
}


/* Weights that the files have in few bits keep them: a turn would round them a second time. */
int
vlm_turn_pays(const vlm_config_t *config, vlm_type_t type, const vlm_checkpoint_t *c)
{
    uint32_t  own;

    return vlm_turn_fits(config, type)
           && vlm_checkpoint_lossy(c, vlm_format_of(type), &own) == 0;
}
