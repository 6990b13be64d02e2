/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the images that need no registry: pins, and names in an engine. The rest is tests/integration/test_image_*.sh. */
#include "unit.h"

#include "scratch.h"
#include "store/image_impl.h"

/* 0: not pinned. */
static struct image_pins pins_of(int digest, int manifest, int config)
{
    struct image_pins pins = {digest != 0, manifest != 0, config != 0, {0}, {0}, {0}};
    memset(pins.digest, digest, SHA256_BYTES);
    memset(pins.manifest, manifest, SHA256_BYTES);
    memset(pins.config, config, SHA256_BYTES);
    return pins;
}

TEST(pins_decide)
{
    static const struct {
        int digest, manifest, config; /* pinned */
        int top, doc, found;
        int result;
    } ROWS[] = {
        {0, 0, 0, 1, 2, 3, 0},  /* nothing is known yet */
        {1, 0, 0, 1, 2, 3, 0},  /* the list */
        {9, 0, 0, 1, 2, 3, -1}, /* another list */
        {2, 0, 0, 1, 2, 3, 0},  /* the manifest by itself */
        {1, 0, 0, 2, 2, 3, -1}, /* which nothing says that it is the list's */
        {1, 2, 0, 2, 2, 3, 0},  /* the list is lost */
        {1, 9, 0, 1, 2, 3, -1}, /* the list with another manifest */
        {1, 2, 3, 1, 2, 3, 0},  /* all */
        {1, 2, 9, 1, 2, 3, -1}, /* another config */
        {1, 2, 3, 9, 9, 3, 0},  /* the same one, its layers packed anew */
    };
    for (EACH(row, ROWS)) {
        struct image_pins pins = pins_of(row->digest, row->manifest, row->config);
        struct image_pins found = pins_of(row->top, row->doc, row->found);
        struct err err = {0};
        assert_int_equal(image_check_pins(&pins, &found, "x", &err), row->result);
        assert_int_equal(err.code, row->result ? ERR_INTEGRITY : ERR_NONE);
    }
}

TEST(names_in_an_engine_are_names)
{
    static const struct {
        const char *name, *slug;
    } ROWS[] = {
        {"ngc-pytorch-20.06", "ngc-pytorch-20-06"},
        {"127.0.0.1:5000/team/Img_x:v1", "127-0-0-1-5000-team-mg-x-v1"},
        {"h.io/a@sha256:0123", "h-io-a"},
        {"[::1]:5000/a:x", "1-5000-a-x"},
    };
    for (EACH(row, ROWS)) {
        struct image_info info = {.name = row->name};
        const char *wanted = fs_join(&scratch_arena, "localhost/reperf",
                                     arena_printf(&scratch_arena, "%s:000000000000", row->slug));
        struct oci_ref ref;
        char *name = image_engine_name(&scratch_arena, &info);
        assert_string_equal(name, wanted);
        PASSES(oci_ref_parse(&scratch_arena, str_of(name), &ref, ERR));
        assert_true(str_eq_z(ref.host, "localhost"));
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
