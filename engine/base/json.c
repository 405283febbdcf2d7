/* JSON files of a checkpoint, over cJSON.  The only file of the engine that includes it. */

#include "base/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"


vlm_json_t *
vlm_json_parse(const void *data, size_t bytes, const char *name, vlm_err_t *err)
{
    cJSON       *j;
    size_t       at;
    const char  *end;

    end = NULL;

    j = cJSON_ParseWithLengthOpts(data, bytes, &end, 0);

    at = end == NULL ? 0 : (size_t) (end - (const char *) data);

    if (j != NULL) {                           /* cJSON does not look behind the value */
        while (at < bytes && strchr(" \t\r\n", ((const char *) data)[at]) != NULL
               && ((const char *) data)[at] != '\0')
        {
            at++;
        }

        if (at == bytes) {
            return j;
        }

        cJSON_Delete(j);
    }

    (void) vlm_fail(err, VLM_EMODEL, "%s: not JSON at byte %zu of %zu", name, at, bytes);

    return NULL;
}


vlm_json_t *
vlm_json_read(const char *dir, const char *name, uint64_t limit, vlm_err_t *err)
{
    char         path[4096];
    vlm_file_t   f;
    vlm_json_t  *j;

    if (vlm_file_path(path, sizeof(path), dir, name, err) != 0
        || vlm_file_open(&f, path, limit, err) != 0)
    {
        return NULL;
    }

    j = vlm_json_parse(f.data, f.bytes, path, err);

    vlm_file_close(&f);

    return j;
}


void
vlm_json_free(vlm_json_t *j)
{
    cJSON_Delete(j);
}


const vlm_json_t *
vlm_json_get(const vlm_json_t *j, const char *key)
{
    return cJSON_IsObject(j) ? cJSON_GetObjectItemCaseSensitive(j, key) : NULL;
}


const vlm_json_t *
vlm_json_first(const vlm_json_t *j)
{
    return (cJSON_IsObject(j) || cJSON_IsArray(j)) ? j->child : NULL;
}


const vlm_json_t *
vlm_json_next(const vlm_json_t *j)
{
    return j == NULL ? NULL : j->next;
}


const char *
vlm_json_key(const vlm_json_t *j)
{
    return (j == NULL || j->string == NULL) ? "" : j->string;
}


uint32_t
vlm_json_count(const vlm_json_t *j)
{
    return (uint32_t) cJSON_GetArraySize(j);
}


int
vlm_json_is_object(const vlm_json_t *j)
{
    return cJSON_IsObject(j);
}


int
vlm_json_is_array(const vlm_json_t *j)
{
    return cJSON_IsArray(j);
}


int
vlm_json_is_null(const vlm_json_t *j)
{
    return j == NULL || cJSON_IsNull(j);
}


const char *
vlm_json_text(const vlm_json_t *j)
{
    return cJSON_IsString(j) ? j->valuestring : NULL;
}


double
vlm_json_number(const vlm_json_t *j, double otherwise)
{
    return cJSON_IsNumber(j) ? j->valuedouble : otherwise;
}


int
vlm_json_bool(const vlm_json_t *j, int otherwise)
{
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}


int
vlm_json_u64(const vlm_json_t *j, const char *file, const char *path, uint64_t low, uint64_t high,
             uint64_t *out, vlm_err_t *err)
{
    double  d;

    if (!cJSON_IsNumber(j)) {
        return vlm_fail(err, VLM_EMODEL,
                        "%s: %s is %s, expected a whole number from %" PRIu64 " to %" PRIu64,
                        file, path, j == NULL ? "missing" : "not a number", low, high);
    }

    d = j->valuedouble;

    if (!(d >= (double) low && d <= (double) high) || d != (double) (uint64_t) d) {
        return vlm_fail(err, VLM_EMODEL,
                        "%s: %s is %.17g, expected a whole number from %" PRIu64 " to %" PRIu64,
                        file, path, d, low, high);
    }

    *out = (uint64_t) d;

    return 0;
}
