/* Reads the tools of a request: see tools.h. */

#include "api/tools.h"

#include <stdio.h>
#include <string.h>

#include "api/calls.h"


int
vlm_tools_choice(const vlm_json_t *field, const char **only, vlm_err_t *err)
{
    const char  *text;

    text = vlm_json_text(field);
    *only = vlm_json_text(vlm_json_get(vlm_json_get(field, "function"), "name"));

    if (*only == NULL) {
        *only = vlm_json_text(vlm_json_get(field, "name"));
    }

    if (vlm_json_is_null(field) || (text != NULL && strcmp(text, "auto") == 0)) {
        return 0;
    }

    if (*only == NULL && (text == NULL || strcmp(text, "required") != 0)) {
        return vlm_fail(err, VLM_EINPUT, "tool_choice is neither \"none\", \"auto\", \"required\" "
                        "nor a function with a name");
    }

    return 1;
}


int
vlm_tools_demanded(const vlm_json_t *field)
{
    const char  *text;

    text = vlm_json_text(field);

    return !vlm_json_is_null(field)
           && (text == NULL || (strcmp(text, "auto") != 0 && strcmp(text, "none") != 0));
}


/* The name of a function; NULL: the tool is none. */
static const char *
name_of(const vlm_json_t *tool)
{
    const char  *name, *type;

    type = vlm_json_text(vlm_json_get(tool, "type"));
    name = vlm_json_text(vlm_json_get(vlm_json_get(tool, "function"), "name"));

    return name == NULL || *name == '\0' || (type != NULL && strcmp(type, "function") != 0)
           ? NULL : name;
}


vlm_json_t *
vlm_tools_pick(const vlm_json_t *list, const char *only, char param[32], vlm_err_t *err)
{
    unsigned           i;
    const char        *name;
    vlm_json_t        *picked;
    const vlm_json_t  *tool;

    picked = vlm_json_make('[');

    for (i = 0, tool = vlm_json_first(list); tool != NULL; tool = vlm_json_next(tool), i++) {
        (void) snprintf(param, 32, "tools.%u", i);

        name = name_of(tool);

        if (name == NULL) {
            (void) vlm_fail(err, VLM_EINPUT, "%s is not of the type \"function\" with a name",
                            param);
            goto failed;
        }

        if (only != NULL && strcmp(name, only) != 0) {
            continue;
        }

        if (picked == NULL || vlm_json_take(picked, NULL, vlm_json_copy(tool)) != 0) {
            (void) vlm_fail(err, VLM_EMEMORY, "No memory for the tools");
            goto failed;
        }
    }

    if (vlm_json_count(picked) != 0) {
        return picked;
    }

    (void) snprintf(param, 32, "tool_choice");
    (void) vlm_fail(err, VLM_EINPUT, "tool_choice has a name that no tool has");

failed:

    vlm_json_free(picked);

    return NULL;
}


char *
vlm_tools_text(const vlm_json_t *list)
{
    vlm_json_out_t     w;
    const vlm_json_t  *tool;

    vlm_json_init(&w, VLM_TOOLS_TEXT);

    for (tool = vlm_json_first(list); tool != NULL; tool = vlm_json_next(tool)) {
        vlm_json_put_raw(&w, "\n", 1);
        vlm_calls_put(&w, tool);
    }

    vlm_json_put_raw(&w, "", 1);

    if (w.failed) {
        vlm_json_release(&w);
        return NULL;
    }

    return w.data;
}


vlm_json_t *
vlm_tools_between(const char *mark, const char *end)
{
    char         text[2][256];
    vlm_json_t  *list;

    (void) snprintf(text[0], sizeof(text[0]), "\n%s", end);
    (void) snprintf(text[1], sizeof(text[1]), "\n%s\n%s", end, mark);

    list = vlm_json_make('[');

    if (list == NULL || vlm_json_take(list, NULL, vlm_json_make_text(text[0])) != 0
        || vlm_json_take(list, NULL, vlm_json_make_text(text[1])) != 0)
    {
        vlm_json_free(list);
        return NULL;
    }

    return list;
}
