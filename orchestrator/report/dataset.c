/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/dataset.h"

#include "codec/json_table.h"
#include "report/report_decode.h"

#define BYTES_MAX      (1LL << 53)
#define SIDE_MAX       65536
#define CHANNELS_MAX   4
#define CLASSES_MAX    1048576
#define SEQUENCE_MAX   65536
#define PIECE_MAX      (1LL << 32)
#define FILE_NAME_MAX  255
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

static const char *const UNPACKS[] = {"tar", "tar.gz", "tar.zst", "zip", NULL};
static const char *const KINDS[] = {
    [PACK_NONE] = "none",
    [PACK_CLASSES] = "classes",
    [PACK_SEGMENTS] = "segments",
    [PACK_TOKENS] = "tokens",
};

/* ---- groups of a tree's files ---- */

static const char *const ROLES[] = {
    [ROLE_IMAGE] = "image", [ROLE_LABEL] = "label", [ROLE_RECORDS] = "records",
    [ROLE_LIST] = "list",   [ROLE_OTHER] = "other",
};
static const char *const FORMATS[] = {
    [FILE_ANY] = "any",   [FILE_JPEG] = "jpeg",         [FILE_PNG] = "png",
    [FILE_HDF5] = "hdf5", [FILE_TFRECORD] = "tfrecord", [FILE_TEXT] = "text",
};
/* The index of a word; at is for the message. */
/* The index of a word; key is for the message. -1 with *err filled. */
static int decode_word(const struct json *at, const char *key, struct str word,
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

static bool has_split(const struct dataset *dataset, struct str name)
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
        ROW("of", struct dataset_group, pair_of, JSON_REQUIRED),
        ROW("from", struct dataset_group, pair_from, JSON_REQUIRED),
        ROW("to", struct dataset_group, pair_to, JSON_REQUIRED),
        ROW("from_end", struct dataset_group, pair_from_end, JSON_REQUIRED),
        ROW("to_end", struct dataset_group, pair_to_end, JSON_REQUIRED),
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
    if (json_i64(&item, 1, BYTES_MAX, &ret->folder_min, err) < 0) {
        return -1;
    }
    bool has_second = json_next(&item);
    ASSERT(has_second); /* n is 2 */
    return json_i64(&item, ret->folder_min, BYTES_MAX, &ret->folder_max, err);
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
    static const struct json_field FIELDS[] = {
        ROW("name", struct group_text, group.name, JSON_REQUIRED),
        ROW("split", struct group_text, group.split, NULLABLE_FIELD),
        ROW("role", struct group_text, role, JSON_REQUIRED),
        ROW("glob", struct group_text, group.glob, JSON_REQUIRED),
        ROW("files", struct group_text, group.n_files, NULLABLE_FIELD, .min = 1,
            .max = DATASET_IMAGES_MAX),
        ROW("folders", struct group_text, group.n_folders, NULLABLE_FIELD, .min = 1,
            .max = DATASET_FOLDERS_MAX),
        ROW_ANY("folder_files", NULLABLE_FIELD),
        ROW("format", struct group_text, format, JSON_REQUIRED),
        ROW_ANY("odd", 0),
        ROW("width", struct group_text, group.width, NULLABLE_FIELD, .min = 1, .max = SIDE_MAX),
        ROW("height", struct group_text, group.height, NULLABLE_FIELD, .min = 1, .max = SIDE_MAX),
        ROW("channels", struct group_text, group.channels, NULLABLE_FIELD, .min = 1,
            .max = CHANNELS_MAX),
        ROW("lines", struct group_text, group.n_lines, JSON_NULLABLE, .min = 1, .max = BYTES_MAX),
        ROW_ANY("pair", NULLABLE_FIELD),
    };
    return json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err);
}

static int check_group(const struct json *at, const struct dataset *dataset,
                       const struct dataset_group *group, struct err *err)
{
    bool is_image = group->format == FILE_JPEG || group->format == FILE_PNG;
    if (check_slug(at, "name", group->name, err) < 0 || check_rel_path(at, group->glob, err) < 0) {
        return -1;
    }
    if (group->split.ptr && !has_split(dataset, group->split)) {
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
    role = decode_word(at, "role", text.role, ROLES, ARRAY_LEN(ROLES), err);
    if (role < 0) {
        return -1;
    }
    format = decode_word(at, "format", text.format, FORMATS, ARRAY_LEN(FORMATS), err);
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

/* The splits must be decoded already. */
static int decode_groups(const struct json *at, struct arena *arena, struct dataset *ret,
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

static int check_file_name(const struct json *at, struct str name, struct err *err)
{
    bool is_good = name.len > 0 && name.len <= FILE_NAME_MAX && name.ptr[0] != '.' &&
                   name.ptr[0] != '_' && name.ptr[0] != '-';
    for (size_t idx = 0; is_good && idx < name.len; idx++) {
        char c = name.ptr[idx];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
    }
    return is_good ? 0
                   : json_fail(at, err,
                               "name: expected a file name of letters, digits, . _ and -, found "
                               "\"%.100s\"",
                               name.ptr);
}

static int decode_source_of(const struct json *at, const char *key, struct arena *arena,
                            struct source_ref *ret, struct err *err)
{
    struct json member;
    if (json_member(at, key, &member, err) < 0) {
        return -1;
    }
    return json_is_null(&member) ? 0 : decode_source(&member, arena, ret, err);
}

/* ---- files ---- */

/* http://USER:PASSWORD@HOST/: refused, because descriptions are shown, printed and bundled. */
static bool has_login(struct str url)
{
    struct str rest = str_sub(url, (size_t)str_find(url, STR_LIT("//")) + 2, url.len);
    size_t n = 0;
    while (n < rest.len && !strchr("/?#", rest.ptr[n])) {
        n++;
    }
    return memchr(rest.ptr, '@', n) != NULL;
}

static int decode_urls(const struct json *at, struct arena *arena, struct dataset_file *ret,
                       struct err *err)
{
    struct json member;
    if (json_member(at, "urls", &member, err) < 0 ||
        json_str_list(&member, arena, DATASET_URLS_MAX, &ret->urls, &ret->n_urls, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ret->n_urls; idx++) {
        struct str url = ret->urls[idx];
        bool is_good = str_starts(url, STR_LIT("https://")) || str_starts(url, STR_LIT("http://"));
        for (size_t pos = 0; is_good && pos < url.len; pos++) {
            is_good = (unsigned char)url.ptr[pos] > ' ' && url.ptr[pos] != 0x7F;
        }
        if (!is_good || url.len > 512) {
            return json_fail(&member, err, "expected https://..., found \"%.160s\"", url.ptr);
        }
        if (has_login(url)) {
            return json_fail(&member, err,
                             "a URL must not contain a login: use --netrc or --cookies");
        }
    }
    return 0;
}

struct file_text { /* of a file: what is decoded further */
    struct dataset_file file;
    struct str md5, sha256;
};

static int decode_file(const struct json *at, struct arena *arena, struct dataset_file *ret,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct file_text, file.name, JSON_REQUIRED),
        ROW_ANY("urls", JSON_REQUIRED),
        ROW("bytes", struct file_text, file.size_bytes, NULLABLE_FIELD, .min = 1, .max = BYTES_MAX),
        ROW("md5", struct file_text, md5, NULLABLE_FIELD),
        ROW("sha256", struct file_text, sha256, NULLABLE_FIELD),
        ROW("piece_bytes", struct file_text, file.piece_bytes, JSON_NULLABLE,
            .min = DATASET_PIECE_MIN, .max = PIECE_MAX),
        ROW("pieces", struct file_text, file.pieces_path, JSON_NULLABLE),
        ROW("unpack", struct file_text, file.unpack, NULLABLE_FIELD),
        ROW("nested", struct file_text, file.is_nested, JSON_REQUIRED),
        ROW("into", struct file_text, file.into, NULLABLE_FIELD),
        ROW_ANY("source", NULLABLE_FIELD),
    };
    struct file_text text = {.file.size_bytes = -1};
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0 ||
        check_file_name(at, text.file.name, err) < 0 ||
        decode_urls(at, arena, &text.file, err) < 0 ||
        json_hex(at, "md5", text.md5,
                 (struct json_bytes){text.file.md5, MD5_BYTES, &text.file.has_md5}, err) < 0 ||
        json_hex(at, "sha256", text.sha256,
                 (struct json_bytes){text.file.sha256, SHA256_BYTES, &text.file.has_sha256},
                 err) < 0 ||
        check_word(at, "unpack", text.file.unpack, UNPACKS, err) < 0 ||
        (text.file.into.ptr && check_rel_path(at, text.file.into, err) < 0) ||
        (text.file.pieces_path.ptr && check_rel_path(at, text.file.pieces_path, err) < 0) ||
        decode_source_of(at, "source", arena, &text.file.source, err) < 0) {
        return -1;
    }
    if (!text.file.pieces_path.ptr != !text.file.piece_bytes) {
        return json_fail(at, err, "expected both pieces and piece_bytes or neither, found one");
    }
    if (text.file.is_nested && !text.file.unpack.ptr) {
        return json_fail(at, err, "nested: expected a kind of archive in unpack, found null");
    }
    *ret = text.file;
    return 0;
}

static int check_file_names(const struct json *at, const struct dataset_file *files, size_t n,
                            struct err *err)
{
    for (size_t idx = 1; idx < n; idx++) {
        for (size_t before = 0; before < idx; before++) {
            if (str_eq(files[idx].name, files[before].name)) {
                return json_fail(at, err, "two files are named \"%s\"", files[idx].name.ptr);
            }
        }
    }
    return 0;
}

static int decode_files(const struct json *at, struct arena *arena, struct dataset *ret,
                        struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "files", &list, err) < 0 ||
        json_expect_array(&list, DATASET_FILES_MAX, &ret->n_files, err) < 0) {
        return -1;
    }
    ret->files = arena_array(arena, struct dataset_file, ret->n_files + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_file(&item, arena, &ret->files[idx++], err) < 0) {
            return -1;
        }
    }
    return check_file_names(&list, ret->files, ret->n_files, err);
}

/* ---- splits ---- */

static int decode_splits(const struct json *at, struct arena *arena, struct dataset *ret,
                         struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct dataset_split, name, JSON_REQUIRED),
        ROW("samples", struct dataset_split, n_samples, NULLABLE_FIELD, .min = 1, .max = BYTES_MAX),
        ROW("classes", struct dataset_split, n_classes, NULLABLE_FIELD, .min = 1,
            .max = CLASSES_MAX),
    };
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "splits", &list, err) < 0 ||
        json_expect_array(&list, DATASET_SPLITS_MAX, &ret->n_splits, err) < 0) {
        return -1;
    }
    ret->splits = arena_array(arena, struct dataset_split, ret->n_splits + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item), idx++) {
        struct dataset_split *split = &ret->splits[idx];
        *split = (struct dataset_split){.n_samples = -1, .n_classes = -1};
        if (json_decode(&item, arena, FIELDS, ARRAY_LEN(FIELDS), split, err) < 0 ||
            check_slug(&item, "name", split->name, err) < 0) {
            return -1;
        }
        for (size_t before = 0; before < idx; before++) {
            if (str_eq(ret->splits[before].name, split->name)) {
                return json_fail(&item, err, "two splits are named \"%s\"", split->name.ptr);
            }
        }
    }
    return 0;
}

/* ---- list, pack ---- */

static int decode_list(const struct json *at, struct arena *arena, struct dataset *ret,
                       struct err *err)
{
    struct list_text {
        struct str path, sha256;
    } text = {0};
    static const struct json_field FIELDS[] = {
        ROW("path", struct list_text, path, JSON_REQUIRED),
        ROW("sha256", struct list_text, sha256, JSON_REQUIRED),
    };
    struct json list;
    if (json_member(at, "list", &list, err) < 0) {
        return -1;
    }
    if (json_is_null(&list)) {
        return 0;
    }
    if (json_decode(&list, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0 ||
        check_rel_path(&list, text.path, err) < 0) {
        return -1;
    }
    ret->list_path = text.path;
    return json_hex(&list, "sha256", text.sha256,
                    (struct json_bytes){ret->list_sha256, SHA256_BYTES, &ret->has_list_sha256},
                    err);
}

struct pack_text {
    struct dataset_pack pack;
    struct str kind;
};

static int check_pack(const struct json *at, const struct dataset_pack *pack, struct err *err)
{
    bool is_tokens = pack->kind == PACK_TOKENS;
    if (is_tokens != (pack->sequence > 0) || is_tokens != (pack->predictions > 0)) {
        return json_fail(at, err, "sequence and predictions are for tokens, which need them");
    }
    if (is_tokens == (pack->n_classes > 0) || (is_tokens && pack->short_side > 0)) {
        return json_fail(at, err, "classes and short_side are for images, which need classes");
    }
    return pack->predictions <= pack->sequence
               ? 0
               : json_fail(at, err, "predictions: expected at most the length of the sequence");
}

static int decode_pack(const struct json *at, struct arena *arena, struct dataset *ret,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("kind", struct pack_text, kind, JSON_REQUIRED),
        ROW("short_side", struct pack_text, pack.short_side, NULLABLE_FIELD, .min = 1,
            .max = SIDE_MAX),
        ROW("classes", struct pack_text, pack.n_classes, NULLABLE_FIELD, .min = 1,
            .max = CLASSES_MAX),
        ROW("sequence", struct pack_text, pack.sequence, NULLABLE_FIELD, .min = 1,
            .max = SEQUENCE_MAX),
        ROW("predictions", struct pack_text, pack.predictions, NULLABLE_FIELD, .min = 1,
            .max = SEQUENCE_MAX),
    };
    struct pack_text text = {
        .pack = {.short_side = -1, .n_classes = -1, .sequence = -1, .predictions = -1}};
    struct json pack;
    int kind;
    ret->pack = text.pack;
    if (json_member(at, "pack", &pack, err) < 0) {
        return -1;
    }
    if (json_is_null(&pack)) {
        return 0;
    }
    if (json_decode(&pack, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0) {
        return -1;
    }
    /* From index 1: "none" is written as null. */
    kind = decode_word(&pack, "kind", text.kind, KINDS + 1, ARRAY_LEN(KINDS) - 1, err);
    if (kind < 0) {
        return -1;
    }
    text.pack.kind = (enum pack_kind)(kind + 1);
    ret->pack = text.pack;
    return check_pack(&pack, &text.pack, err);
}

/* ---- synthetic dataset ---- */

static int decode_synthetic_splits(const struct json *at, struct arena *arena,
                                   struct dataset *dataset, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct dataset_synthetic_split, name, JSON_REQUIRED),
        ROW("samples", struct dataset_synthetic_split, n_samples, JSON_REQUIRED, .min = 1,
            .max = DATASET_IMAGES_MAX),
        ROW("folders", struct dataset_synthetic_split, n_folders, JSON_REQUIRED, .min = 1,
            .max = DATASET_FOLDERS_MAX),
    };
    struct dataset_synthetic *synthetic = &dataset->synthetic;
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "splits", &list, err) < 0 ||
        json_expect_array(&list, DATASET_SPLITS_MAX, &synthetic->n_splits, err) < 0) {
        return -1;
    }
    synthetic->splits = arena_array(arena, struct dataset_synthetic_split, synthetic->n_splits + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item), idx++) {
        struct dataset_synthetic_split *split = &synthetic->splits[idx];
        if (json_decode(&item, arena, FIELDS, ARRAY_LEN(FIELDS), split, err) < 0) {
            return -1;
        }
        if (!has_split(dataset, split->name)) {
            return json_fail(&item, err, "name: no split is named \"%.100s\"", split->name.ptr);
        }
        if (split->n_folders > split->n_samples) {
            return json_fail(&item, err, "folders: expected at most the %lld samples, found %lld",
                             (long long)split->n_samples, (long long)split->n_folders);
        }
    }
    return 0;
}

/* null: the original's archives, about which only the packing is known. */
static int decode_synthetic_files(const struct json *at, struct arena *arena,
                                  struct dataset *dataset, struct err *err)
{
    struct dataset whole = {0};
    struct dataset_synthetic *synthetic = &dataset->synthetic;
    struct json files;
    if (json_member(at, "files", &files, err) < 0) {
        return -1;
    }
    if (!json_is_null(&files)) {
        if (decode_files(at, arena, &whole, err) < 0) {
            return -1;
        }
    } else {
        whole = *dataset;
    }
    synthetic->files = arena_array(arena, struct dataset_file, whole.n_files + 1);
    for (; synthetic->n_files < whole.n_files; synthetic->n_files++) {
        const struct dataset_file *file = &whole.files[synthetic->n_files];
        synthetic->files[synthetic->n_files] = (struct dataset_file){.name = file->name,
                                                                     .size_bytes = -1,
                                                                     .unpack = file->unpack,
                                                                     .is_nested = file->is_nested,
                                                                     .into = file->into};
    }
    return synthetic->n_files > 0
               ? 0
               : json_fail(&files, err, "expected the synthetic dataset's archives, found none");
}

static int decode_synthetic(const struct json *at, struct arena *arena, struct dataset *ret,
                            struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("seed", struct dataset_synthetic, seed, JSON_REQUIRED, .max = BYTES_MAX),
        ROW("width", struct dataset_synthetic, width, NULLABLE_FIELD, .min = 1, .max = SIDE_MAX),
        ROW("height", struct dataset_synthetic, height, NULLABLE_FIELD, .min = 1, .max = SIDE_MAX),
        ROW_ANY("splits", JSON_REQUIRED),
        ROW_ANY("files", NULLABLE_FIELD),
    };
    struct json synthetic;
    ret->synthetic = (struct dataset_synthetic){.width = -1, .height = -1};
    if (json_member(at, "twin", &synthetic, err) < 0) {
        return -1;
    }
    if (json_is_null(&synthetic)) {
        return 0;
    }
    if (json_decode(&synthetic, arena, FIELDS, ARRAY_LEN(FIELDS), &ret->synthetic, err) < 0 ||
        decode_synthetic_splits(&synthetic, arena, ret, err) < 0 ||
        decode_synthetic_files(&synthetic, arena, ret, err) < 0) {
        return -1;
    }
    if ((ret->synthetic.width < 0) != (ret->synthetic.height < 0)) {
        return json_fail(&synthetic, err, "expected both width and height or neither, found one");
    }
    ret->synthetic.is_there = true;
    return 0;
}

/* ---- the whole ---- */

int dataset_decode(const struct json *root, struct arena *arena, struct dataset *ret_dataset,
                   struct err *err)
{
    struct dataset_head {
        int64_t version;
        struct dataset dataset;
    } head = {0};
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct dataset_head, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("id", struct dataset_head, dataset.id, JSON_REQUIRED),
        ROW("title", struct dataset_head, dataset.title, JSON_REQUIRED),
        ROW("synthetic", struct dataset_head, dataset.is_synthetic, JSON_REQUIRED),
        ROW("licence", struct dataset_head, dataset.licence, NULLABLE_FIELD),
        ROW("login", struct dataset_head, dataset.needs_login, JSON_REQUIRED),
        ROW("derived_from", struct dataset_head, dataset.derived_from, NULLABLE_FIELD),
        ROW_ANY("files", NULLABLE_FIELD),
        ROW_ANY("splits", JSON_REQUIRED),
        ROW_ANY("groups", JSON_REQUIRED),
        ROW("others", struct dataset_head, dataset.allows_others, JSON_REQUIRED),
        ROW_ANY("list", NULLABLE_FIELD),
        ROW_ANY("pack", NULLABLE_FIELD),
        ROW_ANY("twin", NULLABLE_FIELD),
        ROW("note", struct dataset_head, dataset.note, NULLABLE_FIELD),
        ROW("layout_source", struct dataset_head, dataset.layout_source, NULLABLE_FIELD),
        ROW_ANY("source", NULLABLE_FIELD),
    };
    struct dataset *dataset = &head.dataset;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &head, err) < 0 ||
        check_slug(root, "id", dataset->id, err) < 0 ||
        check_line(root, "title", dataset->title, err) < 0 ||
        check_line(root, "licence", dataset->licence, err) < 0 ||
        check_slug(root, "derived_from", dataset->derived_from, err) < 0 ||
        check_line(root, "note", dataset->note, err) < 0 ||
        check_line(root, "layout_source", dataset->layout_source, err) < 0 ||
        decode_files(root, arena, dataset, err) < 0 ||
        decode_splits(root, arena, dataset, err) < 0 ||
        decode_groups(root, arena, dataset, err) < 0 ||
        decode_list(root, arena, dataset, err) < 0 || decode_pack(root, arena, dataset, err) < 0 ||
        decode_synthetic(root, arena, dataset, err) < 0 ||
        decode_source_of(root, "source", arena, &dataset->source, err) < 0) {
        return -1;
    }
    *ret_dataset = *dataset;
    return 0;
}

/* ---- a tree's paths ---- */

/* Matches one `*`, `?` or byte after another within a path component; the last `*` is widened if the rest does not fit. */
static bool component_matches(struct str glob, struct str name)
{
    size_t g = 0;
    size_t n = 0;
    size_t star = SIZE_MAX;
    size_t star_name = 0;
    while (n < name.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            star_name = n;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == name.ptr[n])) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++star_name;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}

/* The same over components: `**` is their `*`. */
bool dataset_glob_matches(struct str glob, struct str path)
{
    struct str wild_glob = STR_EMPTY;
    struct str wild_path = STR_EMPTY;
    for (;;) {
        struct str glob_rest = glob;
        struct str path_rest = path;
        struct str glob_part;
        struct str path_part;
        bool has_glob = str_next(&glob_rest, '/', &glob_part);
        bool has_path = str_next(&path_rest, '/', &path_part);
        if (has_glob && str_eq_z(glob_part, "**")) {
            wild_glob = glob = glob_rest;
            wild_path = path;
            continue;
        }
        if (!has_glob && !has_path) {
            return true;
        }
        if (has_glob && has_path && component_matches(glob_part, path_part)) {
            glob = glob_rest;
            path = path_rest;
            continue;
        }
        if (!wild_glob.ptr || !str_next(&wild_path, '/', &path_part)) {
            return false;
        }
        glob = wild_glob;
        path = wild_path;
    }
}

const struct dataset_group *dataset_group_of(const struct dataset *dataset, struct str path)
{
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        if (dataset_glob_matches(dataset->groups[idx].glob, path)) {
            return &dataset->groups[idx];
        }
    }
    return NULL;
}

const struct dataset_group *dataset_group_find(const struct dataset *dataset, struct str split,
                                               enum file_role role)
{
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        const struct dataset_group *group = &dataset->groups[idx];
        if (group->role == role && (!split.ptr || str_eq(group->split, split))) {
            return group;
        }
    }
    return NULL;
}

struct str dataset_partner(struct arena *arena, const struct dataset_group *group, struct str path)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct str rest = path;
    strbuf_init(&text, 1u << 16);
    for (int64_t at = 0; rest.len && (at = str_find(rest, group->pair_from)) >= 0;) {
        strbuf_add(&text, rest.ptr, (size_t)at);
        strbuf_add_str(&text, group->pair_to);
        rest = str_sub(rest, (size_t)at + group->pair_from.len, SIZE_MAX);
    }
    strbuf_add_str(&text, rest);
    if (text.is_full || !str_ends(strbuf_str(&text), group->pair_from_end)) {
        return STR_EMPTY;
    }
    return str_of(arena_printf(arena, "%.*s%s", (int)(text.len - group->pair_from_end.len),
                               text.ptr, group->pair_to_end.ptr));
}

char *dataset_tree_name(struct arena *arena, const struct dataset *dataset, bool is_synthetic)
{
    return arena_printf(arena, "%s%s", dataset->id.ptr,
                        is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
}
