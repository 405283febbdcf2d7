/*
 * Directories of shards: those that transformers writes, and every way in which files can disagree.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "family/qwen.h"
#include "load/checkpoint.h"
#include "load/fixture.h"


/* Writes a file of one or two f32 tensors [n], all zeros. */
static void
write_shard(const char *dir, const char *file, const char *a, const char *b, unsigned n)
{
    int   used;
    char  buf[1024];

    memset(buf, 0, sizeof(buf));
    used = snprintf(buf + 8, 512, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[%u],"
                    "\"data_offsets\":[0,%u]}", a, n, 4 * n);

    if (b != NULL) {
        used += snprintf(buf + 8 + used, 256, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%u],"
                         "\"data_offsets\":[%u,%u]}", b, n, 4 * n, 8 * n);
    }

    buf[8 + used++] = '}';
    buf[0] = (char) (used & 255);
    buf[1] = (char) (used >> 8);

    fixture_write(dir, file, buf, 8 + (size_t) used + (b == NULL ? 4 : 8) * n);
}


static void
write_index(const char *dir, const char *map)
{
    char  buf[1024];

    snprintf(buf, sizeof(buf), "{\"metadata\":{},\"weight_map\":%s}", map);
    fixture_text(dir, "model.safetensors.index.json", buf);
}


static void
opens(const char *dir)
{
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    if (c == NULL) {
        fail_msg("%s", err.text);
    }

    vlm_checkpoint_close(c);
}


static void
fails(const char *dir, const char *a, const char *b)
{
    vlm_err_t  err = { 0 };

    assert_null(vlm_checkpoint_open(dir, vlm_decoder_aliases, &err));

    if (err.code != VLM_EMODEL || strstr(err.text, a) == NULL || strstr(err.text, b) == NULL) {
        fail_msg("\"%s\" should say \"%s\" and \"%s\"", err.text, a, b);
    }
}


/* ---- written by transformers --------------------------------------------- */

static void
check_counted(vlm_checkpoint_t *c, const char *name, const uint64_t *dims, uint32_t n_dims)
{
    float                out[3];
    uint64_t             i, n;
    vlm_err_t            err = { 0 };
    const vlm_tensor_t  *t;

    t = vlm_checkpoint_find(c, name, dims, n_dims, &err);
    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    for (n = 1, i = 0; i < n_dims; i++) {
        n *= dims[i];
    }

    for (i = 0; i + 3 <= n; i += 3) {
        vlm_tensor_f32(t, i, 3, out);
        assert_true(out[0] == (float) ((int) (i % 251) - 125) / 64);
        assert_true(out[1] == (float) ((int) ((i + 1) % 251) - 125) / 64);
        assert_true(out[2] == (float) ((int) ((i + 2) % 251) - 125) / 64);
    }

    vlm_tensor_done(c, t);
    vlm_tensor_f32(t, 0, 3, out);              /* read again from the file */
    assert_true(out[0] == -125.0f / 64);
}


static void
a_checkpoint_saved_by_transformers_is_read_in_every_shard(void **state)
{
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    static const uint64_t  embed[] = { 570, 16 }, qkv[] = { 48, 16 }, norm[] = { 16 },
                           patch[] = { 16, 96 }, conv[] = { 16, 3, 2, 4, 4 };

    (void) state;

    c = vlm_checkpoint_open(FIXTURES "/saved", vlm_decoder_aliases, &err);
    if (c == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(vlm_checkpoint_has(c, "model.norm.weight"), 1);
    assert_int_equal(vlm_checkpoint_has(c, "model.language_model.norm.weight"), 0);
    assert_int_equal(vlm_checkpoint_has(c, "model.norm"), 0);

    check_counted(c, "model.embed_tokens.weight", embed, 2);
    check_counted(c, "lm_head.weight", embed, 2);
    check_counted(c, "visual.blocks.1.attn.qkv.weight", qkv, 2);
    check_counted(c, "model.norm.weight", norm, 1);
    check_counted(c, "visual.patch_embed.proj.weight", conv, 5);

    assert_null(vlm_checkpoint_find(c, "visual.patch_embed.proj.weight", patch, 2, &err));
    assert_non_null(strstr(err.text, "is [16, 3, 2, 4, 4], config.json says [16, 96]"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_checkpoint_unused(c, "lm_head.weight", &err), -1);
    assert_non_null(strstr(err.text, " tensors that config.json has no place for"));

    vlm_checkpoint_close(c);
    vlm_checkpoint_close(NULL);
}


static void
types_that_are_not_read_are_an_error_only_when_asked_for(void **state)
{
    char                 dir[64];
    float                out[6];
    vlm_err_t            err = { 0 };
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    static const uint64_t  f16[] = { 2, 3 }, bf16[] = { 7 }, three[] = { 3 }, one[] = { 1, 1 },
                           none[] = { 0, 4 };

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    fixture_copy(dir, "model.safetensors", FIXTURES "/types.safetensors");

    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    assert_non_null(c);

    check_counted(c, "b.f16", f16, 2);
    check_counted(c, "c.bf16", bf16, 1);

    t = vlm_checkpoint_find(c, "e.scalar", one, 2, &err);
    assert_non_null(t);
    vlm_tensor_f32(t, 0, 1, out);
    assert_true(out[0] == 1.5f);

    t = vlm_checkpoint_find(c, "f.empty", none, 2, &err);
    assert_non_null(t);
    vlm_tensor_f32(t, 0, 0, out);

    assert_null(vlm_checkpoint_find(c, "d.i64", three, 1, &err));
    assert_non_null(strstr(err.text, "I64"));

    vlm_checkpoint_close(c);
    fixture_remove(dir);
}


static void
halves_become_f32_exactly_and_from_any_address(void **state)
{
    float         out[3], want;
    uint8_t       bytes[8];
    uint32_t      i, e, m, bits;
    vlm_tensor_t  t = { 0 };

    (void) state;

    t.data = bytes + 1;

    for (i = 0; i < 65536; i++) {
        bytes[1] = bytes[5] = (uint8_t) i;
        bytes[2] = bytes[6] = (uint8_t) (i >> 8);
        e = i >> 10 & 31;
        m = i & 1023;
        want = e == 0 ? ldexpf((float) m, -24)
             : e == 31 ? (m == 0 ? INFINITY : NAN)
             : ldexpf((float) (1024 + m), (int) e - 25);
        want = (i & 0x8000) ? -want : want;

        t.format = vlm_format_of(VLM_F16);
        vlm_tensor_f32(&t, 2, 1, out);
        assert_true(isnan(want) ? isnan(out[0]) : out[0] == want);
        assert_true((signbit(out[0]) != 0) == (i >= 32768) || isnan(want));

        t.format = vlm_format_of(VLM_BF16);
        vlm_tensor_f32(&t, 0, 1, out);
        memcpy(&bits, out, sizeof(bits));
        assert_int_equal(bits, i << 16);
    }
}


/* ---- names --------------------------------------------------------------- */

static void
both_naming_schemes_fold_into_the_published_one(void **state)
{
    char               dir[64];
    uint64_t           dims[] = { 3 };
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_shard(dir, "model.safetensors", "model.language_model.layers.0.x", "model.visual.y", 3);

    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    assert_non_null(c);
    assert_non_null(vlm_checkpoint_find(c, "model.layers.0.x", dims, 1, &err));
    assert_int_equal(vlm_checkpoint_unused(c, "lm_head.weight", &err), -1);
    assert_non_null(strstr(err.text, "visual.y"));
    assert_non_null(vlm_checkpoint_find(c, "visual.y", dims, 1, &err));
    assert_int_equal(vlm_checkpoint_unused(c, "lm_head.weight", NULL), 0);
    vlm_checkpoint_close(c);

    write_shard(dir, "model.safetensors", "model.visual.y", "visual.y", 3);
    fails(dir, "visual.y", "is also in model.safetensors");

    fixture_remove(dir);
}


static void
a_left_over_head_is_not_an_unused_tensor(void **state)
{
    char               dir[64];
    uint64_t           dims[] = { 2 };
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_shard(dir, "model.safetensors", "lm_head.weight", "model.norm.weight", 2);

    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    assert_non_null(c);
    assert_int_equal(vlm_checkpoint_unused(c, "lm_head.weight", NULL), -1);
    assert_non_null(vlm_checkpoint_find(c, "model.norm.weight", dims, 1, &err));
    assert_int_equal(vlm_checkpoint_unused(c, "lm_head.weight", NULL), 0);

    vlm_checkpoint_close(c);
    fixture_remove(dir);
}


/* One element at a time is another: the first, the last, and those around the middle of a piece. */
static void
tensors_are_the_same_if_no_sample_of_them_differs(void **state)
{
    float         x[4096] = { 0 }, y[4096] = { 0 };
    uint32_t      i;
    vlm_tensor_t  a = { .format = vlm_format_of(VLM_F32), .n_dims = 2, .dims = { 64, 64 } }, b;

    static const uint32_t  at[] = { 0, 1, 511, 4095, 4094, 3584, 2000 };

    (void) state;

    b = a;
    a.data = (const uint8_t *) x;
    b.data = (const uint8_t *) y;
    assert_true(vlm_tensor_same(&a, &b));

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        y[at[i]] = 1e-30f;
        assert_false(vlm_tensor_same(&a, &b));
        y[at[i]] = 0;
    }

    a.dims[0] = b.dims[0] = a.dims[1] = b.dims[1] = 1;
    assert_true(vlm_tensor_same(&a, &b));
    y[0] = 1;
    assert_false(vlm_tensor_same(&a, &b));
}


/* Names come from the file: they must neither end an error's sentence nor add quotes to it. */
static void
names_of_a_file_are_escaped_and_cut_in_sentences(void **state)
{
    char  dir[64], name[200];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);

    write_shard(dir, "one.safetensors", "a", NULL, 1);
    write_index(dir, "{\"x\\ty\":\"one.safetensors\"}");
    fails(dir, "x\\x09y should be in one.safetensors", "");
    write_index(dir, "{\"a\":\"o\\nne.safetensors\"}");
    fails(dir, "\"o\\x0ane.safetensors\" is no plain file name", "");

    write_shard(dir, "model.safetensors", "a\\nb\\u001b[31m\\\"c", "a\\nb\\u001b[31m\\\"c", 1);
    fails(dir, "a\\x0ab\\x1b[31m\\\"c: twice", "");

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    write_shard(dir, "model.safetensors", name, name, 1);
    fails(dir, "nnn...: twice", "");

    fixture_remove(dir);
}


static void
a_shard_that_was_not_downloaded_is_a_git_lfs_pointer(void **state)
{
    char  dir[64];

    static const char  pointer[] = "version https://git-lfs.github.com/spec/v1\n"
                                   "oid sha256:4d7a\nsize 3982638064\n";

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_index(dir, "{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}");
    write_shard(dir, "one.safetensors", "a", NULL, 1);
    fixture_text(dir, "two.safetensors", pointer);
    fails(dir, "two.safetensors: a Git LFS pointer", "git lfs pull");

    fixture_text(dir, "model.safetensors", "GGUF\3\0\0");
    fails(dir, "model.safetensors: a GGUF file", "mmproj=FILE.gguf");

    fixture_remove(dir);
}


static void
five_thousand_tensors_are_found_again(void **state)
{
    char               dir[64], name[32], *buf;
    size_t             n;
    uint32_t           i;
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    (void) state;

    buf = calloc(1, 1 << 20);
    assert_non_null(buf);
    n = (size_t) sprintf(buf + 8, "{");

    for (i = 0; i < 5000; i++) {
        n += (size_t) sprintf(buf + 8 + n, "%s\"t%u\":{\"dtype\":\"U8\",\"shape\":[1],"
                              "\"data_offsets\":[%u,%u]}", i == 0 ? "" : ",", i, i, i + 1);
    }

    buf[8 + n++] = '}';
    for (i = 0; i < 8; i++) {
        buf[i] = (char) ((uint64_t) n >> (8 * i));
    }

    assert_int_equal(fixture_dir(dir), 0);
    fixture_write(dir, "model.safetensors", buf, 8 + n + 5000);
    free(buf);

    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    assert_non_null(c);

    for (i = 0; i < 5000; i++) {
        sprintf(name, "t%u", i);
        assert_int_equal(vlm_checkpoint_has(c, name), 1);
    }

    assert_int_equal(vlm_checkpoint_has(c, "t5000"), 0);
    assert_int_equal(vlm_checkpoint_has(c, ""), 0);

    vlm_checkpoint_close(c);
    fixture_remove(dir);
}


/* ---- directories that disagree ------------------------------------------- */

static void
a_directory_without_tensors_says_what_it_looked_for(void **state)
{
    char  dir[64];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    fails(dir, "neither model.safetensors nor model.safetensors.index.json: download the model's "
          "weights", dir);
    fails("/nowhere/at/all", "/nowhere/at/all", "neither");

    fixture_text(dir, "model.safetensors", "");
    fails(dir, "0 bytes", dir);
    fixture_remove(dir);
}


static void
weights_in_pytorchs_own_form_are_refused_and_named(void **state)
{
    char    dir[64];
    size_t  i;

    static const char *const  names[] = {
        "pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "weights.PTH", "x.ckpt"
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(fixture_dir(dir), 0);
        fixture_text(dir, "training_args.bin", "x");
        fixture_text(dir, names[i], "x");
        fails(dir, names[i], "is PyTorch's own form, which is not supported: take the model's "
              ".safetensors files");
        fixture_remove(dir);
    }

    assert_int_equal(fixture_dir(dir), 0);
    fixture_text(dir, "training_args.bin", "x");
    fixture_text(dir, "vlm-int8-0123456789abcdef.bin", "x");
    fails(dir, "neither model.safetensors nor model.safetensors.index.json", "");
    fixture_remove(dir);
}


static void
a_checkpoint_is_there_when_every_shard_of_its_index_is(void **state)
{
    char       dir[64];
    vlm_err_t  err = { 0 };

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), 0);
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s2\"}");
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), 0);
    write_shard(dir, "s1", "a", NULL, 2);
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), 0);
    write_shard(dir, "s2", "b", NULL, 2);
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), 1);

    write_index(dir, "{");
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    write_shard(dir, "model.safetensors", "a", NULL, 2);
    assert_int_equal(vlm_checkpoint_is_there(dir, &err), 1);
    fixture_remove(dir);
}


static void
index_and_shards_must_agree_both_ways(void **state)
{
    char  dir[64];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_shard(dir, "s1", "a", "b", 2);
    write_shard(dir, "s2", "c", NULL, 2);

    write_index(dir, "{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\"}");
    opens(dir);

    write_index(dir, "{\"a\":\"s1\",\"c\":\"s2\"}");
    fails(dir, "s1: b is not in", "index.json");
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\",\"d\":\"s2\"}");
    fails(dir, "d should be in s2", "index.json");
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s2\",\"c\":\"s2\"}");
    fails(dir, "b should be in s2", "index.json");
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\",\"c\":\"s2\"}");
    fails(dir, "c: twice", "index.json");
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s3\"}");
    fails(dir, "/s3: No such file or directory; model.safetensors.index.json names it",
          "download the rest of the model");

    write_shard(dir, "s2", "a", NULL, 2);
    write_index(dir, "{\"a\":\"s1\",\"b\":\"s1\",\"c\":\"s2\"}");
    fails(dir, "/s2: a", "also in s1");

    fixture_remove(dir);
}


static void
a_shards_name_never_leaves_the_directory(void **state)
{
    char  dir[64];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);

    write_index(dir, "{\"a\":\"../x\"}");
    fails(dir, "\"../x\"", "no plain file name");
    write_index(dir, "{\"a\":\"/etc/passwd\"}");
    fails(dir, "/etc/passwd", "no plain file name");
    write_index(dir, "{\"a\":\"..\"}");
    fails(dir, "\"..\"", "no plain file name");
    write_index(dir, "{\"a\":\"\"}");
    fails(dir, "\"\"", "no plain file name");
    write_index(dir, "{\"a\":7}");
    fails(dir, "a is in no file", "index.json");
    write_index(dir, "[]");
    fails(dir, "no weight_map", "index.json");
    write_index(dir, "{\"a\":");
    fails(dir, "not JSON", "index.json");

    fixture_remove(dir);
}


static void
the_single_file_is_taken_before_the_index(void **state)
{
    char  dir[64];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_index(dir, "{\"a\":\"nowhere\"}");
    fails(dir, "nowhere", "No such file");
    write_shard(dir, "model.safetensors", "a", NULL, 1);
    opens(dir);
    fixture_remove(dir);
}


/* Reading a tensor behind the new end would be SIGBUS; before it there are zeros up to a page. */
static void
a_shard_that_is_cut_while_it_is_read_is_noticed(void **state)
{
    char               dir[64], path[128];
    uint8_t            id[32];
    vlm_err_t          err = { 0 };
    vlm_checkpoint_t  *c;

    static const uint64_t  dims[] = { 8 };

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    write_shard(dir, "model.safetensors", "a", "b", 8);
    c = vlm_checkpoint_open(dir, vlm_decoder_aliases, &err);
    assert_non_null(c);
    assert_non_null(vlm_checkpoint_find(c, "a", dims, 1, &err));
    assert_int_equal(vlm_checkpoint_whole(c, &err), 0);

    snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    assert_int_equal(truncate(path, 100), 0);
    assert_null(vlm_checkpoint_find(c, "b", dims, 1, &err));
    assert_non_null(strstr(err.text, "/model.safetensors: cut from "));
    assert_non_null(strstr(err.text, " to 100 bytes while it was read: replace a file by renaming "
                                     "a new one"));
    assert_int_equal(vlm_checkpoint_whole(c, NULL), -1);
    assert_int_equal(vlm_checkpoint_id(c, id, NULL), -1);

    vlm_checkpoint_close(c);
    fixture_remove(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_checkpoint_saved_by_transformers_is_read_in_every_shard),
        cmocka_unit_test(types_that_are_not_read_are_an_error_only_when_asked_for),
        cmocka_unit_test(halves_become_f32_exactly_and_from_any_address),
        cmocka_unit_test(both_naming_schemes_fold_into_the_published_one),
        cmocka_unit_test(a_left_over_head_is_not_an_unused_tensor),
        cmocka_unit_test(tensors_are_the_same_if_no_sample_of_them_differs),
        cmocka_unit_test(names_of_a_file_are_escaped_and_cut_in_sentences),
        cmocka_unit_test(a_shard_that_was_not_downloaded_is_a_git_lfs_pointer),
        cmocka_unit_test(five_thousand_tensors_are_found_again),
        cmocka_unit_test(a_directory_without_tensors_says_what_it_looked_for),
        cmocka_unit_test(weights_in_pytorchs_own_form_are_refused_and_named),
        cmocka_unit_test(a_checkpoint_is_there_when_every_shard_of_its_index_is),
        cmocka_unit_test(index_and_shards_must_agree_both_ways),
        cmocka_unit_test(a_shards_name_never_leaves_the_directory),
        cmocka_unit_test(the_single_file_is_taken_before_the_index),
        cmocka_unit_test(a_shard_that_is_cut_while_it_is_read_is_noticed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
