/* Opening a model of two GGUF files: see gguf_model.h. */

#include "load/gguf_model.h"

#include <string.h>


int
vlm_gguf_is(const char *path)
{
    int         is;
    vlm_file_t  f;

    if (vlm_file_map(&f, path, 0, 0) != 0) {
        return 0;
    }

    is = f.bytes >= 4 && memcmp(f.data, VLM_GGUF_MAGIC, 4) == 0;
    vlm_file_close(&f);

    return is;
}


static int
find_family(vlm_gguf_model_t *m, vlm_err_t *err)
{
    char             known[256];
    vlm_gguf_text_t  architecture, projector;

    architecture = vlm_gguf_text(vlm_gguf_find(&m->text, "general.architecture"));
    projector = vlm_gguf_text(vlm_gguf_find(&m->vision, "clip.projector_type"));

    if (projector.n == 0) {
        projector = vlm_gguf_text(vlm_gguf_find(&m->vision, VLM_GGUF_VISION "projector_type"));
    }

    m->family = vlm_family_gguf(architecture.p, architecture.n, projector.p, projector.n, known,
                                sizeof(known));
    if (m->family == NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: architecture \"%s\" with the projector \"%s\" of "
                        "mmproj, only %s is understood", m->text.path,
                        vlm_printable_part(architecture.p, architecture.n),
                        vlm_printable_part(projector.p, projector.n), known);
    }

    return 0;
}


int
vlm_gguf_model_open(vlm_gguf_model_t *m, const char *model, const char *mmproj, vlm_err_t *err)
{
    memset(m, 0, sizeof(*m));

    if (mmproj == NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: a GGUF model has its vision encoder in a second "
                        "file: give it as mmproj=FILE.gguf", model);
    }

    return vlm_gguf_open(&m->text, model, err) != 0 || vlm_gguf_open(&m->vision, mmproj, err) != 0
           ? -1 : find_family(m, err);
}


int
vlm_gguf_model_parse(vlm_gguf_model_t *m, const uint8_t *text, uint64_t text_bytes,
                     const uint8_t *vision, uint64_t vision_bytes, vlm_err_t *err)
{
    memset(m, 0, sizeof(*m));

    return vlm_gguf_parse(&m->text, text, text_bytes, "text", err) != 0
           || vlm_gguf_parse(&m->vision, vision, vision_bytes, "mmproj", err) != 0
           ? -1 : find_family(m, err);
}


void
vlm_gguf_model_close(vlm_gguf_model_t *m)
{
    vlm_gguf_close(&m->text);
    vlm_gguf_close(&m->vision);
}
