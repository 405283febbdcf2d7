/* Opening a model of one or two GGUF files: see gguf_model.h. */

#include "load/gguf_model.h"

#include <string.h>


/* A part of a split file has some of the tensors. */
static int
check_whole(const vlm_gguf_t *g, vlm_err_t *err)
{
    double  count, part = 0;

    if (vlm_gguf_number(vlm_gguf_find(g, "split.count"), 0, &count) != 0 || count <= 1) {
        return 0;
    }

    (void) vlm_gguf_number(vlm_gguf_find(g, "split.no"), 0, &part);

    return vlm_fail(err, VLM_EMODEL, "%s: part %g of %g of a GGUF file that was split (split.no, "
                    "split.count): put the parts together with \"llama-gguf-split --merge "
                    "FIRST-PART.gguf WHOLE.gguf\"", g->path, part + 1, count);
}


static int
find_family(vlm_gguf_model_t *m, vlm_err_t *err)
{
    char             known[256];
    vlm_gguf_text_t  architecture, projector;

    if (check_whole(&m->text, err) != 0 || check_whole(&m->vision, err) != 0) {
        return -1;
    }

    architecture = vlm_gguf_text(vlm_gguf_find(&m->text, "general.architecture"));
    projector = vlm_gguf_text(vlm_gguf_find(&m->vision, "clip.projector_type"));

    if (projector.n == 0) {
        projector = vlm_gguf_text(vlm_gguf_find(&m->vision, VLM_GGUF_VISION "projector_type"));
    }

    m->family = vlm_family_gguf(architecture.p, architecture.n, projector.p, projector.n, known,
                                sizeof(known));
    if (m->family != NULL) {
        return 0;
    }

    if (m->vision.path == NULL && vlm_family_has_projector(architecture.p, architecture.n)) {
        return vlm_fail(err, VLM_EMODEL, "%s: a model of \"%s\" has its vision encoder in a second "
                        "file: give it as mmproj=FILE.gguf", m->text.path,
                        vlm_printable_part(architecture.p, architecture.n));
    }

    return vlm_fail(err, VLM_EMODEL, "%s: architecture \"%s\"%s%s%s is not served, only %s",
                    m->text.path, vlm_printable_part(architecture.p, architecture.n),
                    m->vision.path == NULL ? "" : " with the projector \"",
                    m->vision.path == NULL ? "" : vlm_printable_part(projector.p, projector.n),
                    m->vision.path == NULL ? "" : "\" of mmproj", known);
}


int
vlm_gguf_model_open(vlm_gguf_model_t *m, const char *model, const char *mmproj, vlm_err_t *err)
{
    memset(m, 0, sizeof(*m));

    return vlm_gguf_open(&m->text, model, err) != 0
           || (mmproj != NULL && vlm_gguf_open(&m->vision, mmproj, err) != 0)
           ? -1 : find_family(m, err);
}


int
vlm_gguf_model_parse(vlm_gguf_model_t *m, const uint8_t *text, uint64_t text_bytes,
                     const uint8_t *vision, uint64_t vision_bytes, vlm_err_t *err)
{
    memset(m, 0, sizeof(*m));

    return vlm_gguf_parse(&m->text, text, text_bytes, "text", err) != 0
           || (vision_bytes != 0
               && vlm_gguf_parse(&m->vision, vision, vision_bytes, "mmproj", err) != 0)
           ? -1 : find_family(m, err);
}


void
vlm_gguf_model_close(vlm_gguf_model_t *m)
{
    vlm_gguf_close(&m->text);
    vlm_gguf_close(&m->vision);
}
