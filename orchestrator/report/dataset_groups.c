/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a dataset's files: what must be in its tree. */
#include "base/base.h"

#include "report/dataset_decode.h"
#include "report/report_decode.h"

#define CHANNELS_MAX   4
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

static const char *const ROLES[] = {
    [ROLE_IMAGE] = "image", [ROLE_LABEL] = "label", [ROLE_RECORDS] = "records",
    [ROLE_LIST] = "list",   [ROLE_OTHER] = "other",
};
static const char *const FORMATS[] = {
    [FILE_ANY] = "any",   [FILE_JPEG] = "jpeg",         [FILE_PNG] = "png",
    [FILE_HDF5] = "hdf5", [FILE_TFRECORD] = "tfrecord", [FILE_TEXT] = "text",
};
/* The index of a word; at is for the message. */
int dataset_decode_word(const struct json *at, const char *key, struct str word,
                        const char *const *words, size_t n_words, struct err *err)
{
    for (size_t idx = 0; idx < n_words; idx++) {
        if (str_eq_z(word, words[idx])) {
            return (int)idx;
        }
    }
    return json_fail(at, err, "%s: \"%.100s\" is not one of the words for it (%s, %s, ...)", key,
                     word.ptr, words[0], words[1]);
}

bool dataset_has_split(const struct dataset *dataset, struct str name)
{
    for (size_t idx = 0; idx < dataset->n_splits; idx++) {
        if (str_eq(dataset->splits[idx].name, name)) {
            return true;
        }
    }
    return false;
}

static int decode_pair(const struct json *at, struct arena *arena, const struct dataset *dataset,
                       struct dataset_group *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"of", JSON_STR, JSON_REQUIRED, offsetof(struct dataset_group, pair_of), 0, 0},
        {"from", JSON_STR, JSON_REQUIRED, offsetof(struct dataset_group, pair_from), 0, 0},
        {"to", JSON_STR, JSON_REQUIRED, offsetof(struct dataset_group, pair_to), 0, 0},
        {"from_end", JSON_STR, JSON_REQUIRED, offsetof(struct dataset_group, pair_from_end), 0, 0},
        {"to_end", JSON_STR, JSON_REQUIRED, offsetof(struct dataset_group, pair_to_end), 0, 0},
    };
    struct json pair;
    if (json_member(at, "pair", &pair, err) < 0) {
        return -1;
    }
    if (json_is_null(&pair)) {
        return 0;
    }
    if (json_decode(&pair, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_line(&pair, "from", ret->pair_from, err) < 0 ||
        check_line(&pair, "to", ret->pair_to, err) < 0 ||
        check_line(&pair, "from_end", ret->pair_from_end, err) < 0 ||
        check_line(&pair, "to_end", ret->pair_to_end, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        if (str_eq(dataset->groups[idx].name, ret->pair_of)) {
            return 0;
        }
    }
    return json_fail(&pair, err, "of: no group before this one is named \"%.100s\"",
                     ret->pair_of.ptr);
}

/* [least, most] of files in a folder. */
static int decode_folder_files(const struct json *at, struct dataset_group *ret, struct err *err)
{
    struct json range;
    struct json item;
    size_t n = 0;
    if (json_member(at, "folder_files", &range, err) < 0) {
        return -1;
    }
    if (json_is_null(&range)) {
        return 0;
    }
    if (json_expect_array(&range, 2, &n, err) < 0) {
        return -1;
    }
    if (n != 2 || !json_first(&range, &item)) {
        return json_fail(&range, err, "expected [least, most], found %zu items", n);
    }
    if (json_i64(&item, 1, DATASET_BYTES_MAX, &ret->folder_min, err) < 0) {
        return -1;
    }
    bool has_second = json_next(&item);
    ASSERT(has_second); /* n is 2 */
    return json_i64(&item, ret->folder_min, DATASET_BYTES_MAX, &ret->folder_max, err);
}

static int decode_odd(const struct json *at, struct arena *arena, struct dataset_group *ret,
                      struct err *err)
{
    struct json list;
    if (!json_find(at, "odd", &list)) {
        return 0;
    }
    if (json_str_list(&list, arena, DATASET_ODD_MAX, &ret->odd_paths, &ret->n_odd, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ret->n_odd; idx++) {
        if (check_rel_path(&list, ret->odd_paths[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct group_text {
    struct dataset_group group;
    struct str role, format;
};

static int decode_group_fields(const struct json *at, struct arena *arena, struct group_text *ret,
                               struct err *err)
{
#define GROUP(member) offsetof(struct group_text, group.member)
    static const struct json_field FIELDS[] = {
        {"name", JSON_STR, JSON_REQUIRED, GROUP(name), 0, 0},
        {"split", JSON_STR, NULLABLE_FIELD, GROUP(split), 0, 0},
        {"role", JSON_STR, JSON_REQUIRED, offsetof(struct group_text, role), 0, 0},
        {"glob", JSON_STR, JSON_REQUIRED, GROUP(glob), 0, 0},
        {"files", JSON_I64, NULLABLE_FIELD, GROUP(n_files), 1, DATASET_IMAGES_MAX},
        {"folders", JSON_I64, NULLABLE_FIELD, GROUP(n_folders), 1, DATASET_FOLDERS_MAX},
        {"folder_files", JSON_ANY, NULLABLE_FIELD, 0, 0, 0},
        {"format", JSON_STR, JSON_REQUIRED, offsetof(struct group_text, format), 0, 0},
        {"odd", JSON_ANY, 0, 0, 0, 0},
        {"width", JSON_I64, NULLABLE_FIELD, GROUP(width), 1, DATASET_SIDE_MAX},
        {"height", JSON_I64, NULLABLE_FIELD, GROUP(height), 1, DATASET_SIDE_MAX},
        {"channels", JSON_I64, NULLABLE_FIELD, GROUP(channels), 1, CHANNELS_MAX},
        {"lines", JSON_I64, JSON_NULLABLE, GROUP(n_lines), 1, DATASET_BYTES_MAX},
        {"pair", JSON_ANY, NULLABLE_FIELD, 0, 0, 0},
    };
#undef GROUP
    return json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err);
}

static int check_group(const struct json *at, const struct dataset *dataset,
                       const struct dataset_group *group, struct err *err)
{
    bool is_image = group->format == FILE_JPEG || group->format == FILE_PNG;
    if (check_slug(at, "name", group->name, err) < 0 || check_rel_path(at, group->glob, err) < 0) {
        return -1;
    }
    if (group->split.ptr && !dataset_has_split(dataset, group->split)) {
        return json_fail(at, err, "split: no split is named \"%.100s\"", group->split.ptr);
    }
    if (!is_image && (group->width >= 0 || group->height >= 0 || group->channels >= 0)) {
        return json_fail(at, err, "width, height and channels are for jpeg and png, not for %s",
                         FORMATS[group->format]);
    }
    if (group->n_lines >= 0 && group->format != FILE_TEXT) {
        return json_fail(at, err, "lines are for text, not for %s", FORMATS[group->format]);
    }
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        if (str_eq(dataset->groups[idx].name, group->name)) {
            return json_fail(at, err, "two groups are named \"%s\"", group->name.ptr);
        }
    }
    return 0;
}

static int decode_group(const struct json *at, struct arena *arena, struct dataset *dataset,
                        struct err *err)
{
    struct group_text text = {.group = {.n_files = -1,
                                        .n_folders = -1,
                                        .folder_min = -1,
                                        .folder_max = -1,
                                        .width = -1,
                                        .height = -1,
                                        .channels = -1,
                                        .n_lines = -1}};
    int role;
    int format;
    if (decode_group_fields(at, arena, &text, err) < 0) {
        return -1;
    }
    role = dataset_decode_word(at, "role", text.role, ROLES, ARRAY_LEN(ROLES), err);
    if (role < 0) {
        return -1;
    }
    format = dataset_decode_word(at, "format", text.format, FORMATS, ARRAY_LEN(FORMATS), err);
    if (format < 0) {
        return -1;
    }
    text.group.role = (enum file_role)role;
    text.group.format = (enum file_format)format;
    if (decode_folder_files(at, &text.group, err) < 0 ||
        decode_odd(at, arena, &text.group, err) < 0 ||
        decode_pair(at, arena, dataset, &text.group, err) < 0 ||
        check_group(at, dataset, &text.group, err) < 0) {
        return -1;
    }
    dataset->groups[dataset->n_groups++] = text.group;
    return 0;
}

int dataset_decode_groups(const struct json *at, struct arena *arena, struct dataset *ret,
                          struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(at, "groups", &list, err) < 0 ||
        json_expect_array(&list, DATASET_GROUPS_MAX, &n, err) < 0) {
        return -1;
    }
    ret->groups = arena_array(arena, struct dataset_group, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_group(&item, arena, ret, err) < 0) {
            return -1;
        }
    }
    return 0;
}
