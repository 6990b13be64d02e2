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
#define URL_MAX        512
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)
#define NUMBER         NULLABLE_FIELD | JSON_MINUS, .min = 1, .max

static const char *const UNPACKS[] = {"tar", "tar.gz", "tar.zst", "zip"};
static const char *const PACKS[] = {
    [PACK_CLASSES] = "classes",
    [PACK_SEGMENTS] = "segments",
    [PACK_TOKENS] = "tokens",
};
static const char *const RECIPES[] = {
    [RECIPE_TFRECORD] = "tfrecord", [RECIPE_RECORDIO] = "recordio"};
static const char *const ROLES[] = {
    [ROLE_IMAGE] = "image", [ROLE_LABEL] = "label", [ROLE_RECORDS] = "records",
    [ROLE_LIST] = "list",   [ROLE_OTHER] = "other",
};
static const char *const FORMATS[] = {
    [FILE_ANY] = "any",   [FILE_JPEG] = "jpeg",         [FILE_PNG] = "png",
    [FILE_HDF5] = "hdf5", [FILE_TFRECORD] = "tfrecord", [FILE_TEXT] = "text",
};

/* ---- files ---- */

/* http://USER:PASSWORD@HOST/: refused, because descriptions are shown, printed and bundled. */
static bool has_login(struct str url)
{
    struct str rest = str_sub(url, (size_t)str_find(url, STR_LIT("//")) + 2, url.len);
    size_t n = str_cspan(rest, 0, "/?#");
    return memchr(rest.ptr, '@', n) != NULL;
}

static int check_mirror(const struct json *at, const char *key UNUSED, struct str url,
                        struct err *err)
{
    return str_find(url, STR_LIT("//")) > 0 && has_login(url)
               ? json_fail(at, err, "a URL must not contain a login: use --netrc or --cookies")
               : 0;
}

static const struct json_form FILE_NAME = {.pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$",
                                           .max = FILE_NAME_MAX,
                                           .what = "a file name of letters, digits, . _ and -"};
static const struct json_form MIRROR = {.pattern = "^https?://[^\\x00-\\x20\\x7f]+$",
                                        .max = URL_MAX,
                                        .what = "https://...",
                                        .check = check_mirror};

#define FILE_OF struct dataset_file
static const struct json_field FILE_ROWS[] = {
    ROW("name", FILE_OF, name, JSON_REQUIRED, .form = &FILE_NAME),
    ROW_STRS("urls", FILE_OF, urls, n_urls, JSON_REQUIRED, .max = DATASET_URLS_MAX,
             .form = &MIRROR),
    ROW("bytes", FILE_OF, size_bytes, NUMBER = BYTES_MAX),
    ROW_HEX("md5", FILE_OF, md5, has_md5, NULLABLE_FIELD),
    ROW_HEX("sha256", FILE_OF, sha256, has_sha256, NULLABLE_FIELD),
    ROW("piece_bytes", FILE_OF, piece_bytes, JSON_NULLABLE, .min = DATASET_PIECE_MIN,
        .max = PIECE_MAX),
    ROW("pieces", FILE_OF, pieces_path, JSON_NULLABLE, .form = &FORM_PATH),
    ROW("unpack", FILE_OF, unpack, NULLABLE_FIELD, .names = UNPACKS, .n_names = ARRAY_LEN(UNPACKS)),
    ROW("nested", FILE_OF, is_nested, JSON_REQUIRED),
    ROW("into", FILE_OF, into, NULLABLE_FIELD, .form = &FORM_PATH),
    ROW_OBJECT("source", FILE_OF, source, SOURCE_ROWS, NULLABLE_FIELD),
};
#define FILE_RULES                                                                                 \
    "\"dependentRequired\": {\"pieces\": [\"piece_bytes\"], \"piece_bytes\": [\"pieces\"]}"

static int check_file(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct dataset_file *file = out;
    if (!file->pieces_path.ptr != !file->piece_bytes) {
        return json_fail(at, err, "expected both pieces and piece_bytes or neither, found one");
    }
    if (file->is_nested && !file->unpack.ptr) {
        return json_fail(at, err, "nested: expected a kind of archive in unpack, found null");
    }
    return 0;
}

/* ---- splits, and groups of a tree's files ---- */

static const struct json_field SPLIT_ROWS[] = {
    ROW("name", struct dataset_split, name, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("samples", struct dataset_split, n_samples, NUMBER = BYTES_MAX),
    ROW("classes", struct dataset_split, n_classes, NUMBER = CLASSES_MAX),
};

/* [least, most] of files in a folder. */
static int get_folder_files(const struct json *at, struct arena *arena UNUSED, void *out,
                            struct err *err)
{
    struct dataset_group *group = out;
    struct json item;
    size_t n = 0;
    if (json_expect_array(at, 2, &n, err) < 0) {
        return -1;
    }
    if (n != 2 || !json_first(at, &item)) {
        return json_fail(at, err, "expected [least, most], found %zu items", n);
    }
    if (json_i64(&item, 1, BYTES_MAX, &group->folder_min, err) < 0) {
        return -1;
    }
    bool has_second = json_next(&item);
    ASSERT(has_second); /* n is 2 */
    return json_i64(&item, group->folder_min, BYTES_MAX, &group->folder_max, err);
}

static void put_folder_files(struct json_out *out, const char *key, const void *of)
{
    const struct dataset_group *group = of;
    if (group->folder_min < 0) {
        jw_null(out, key);
        return;
    }
    jw_array(out, key);
    jw_i64(out, NULL, group->folder_min);
    jw_i64(out, NULL, group->folder_max);
    jw_end_array(out);
}

#define GROUP struct dataset_group
static const struct json_field PAIR_ROWS[] = {
    ROW("of", GROUP, pair_of, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("from", GROUP, pair_from, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("to", GROUP, pair_to, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("from_end", GROUP, pair_from_end, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("to_end", GROUP, pair_to_end, JSON_REQUIRED, .form = &FORM_LINE),
};
static const struct json_field GROUP_ROWS[] = {
    ROW("name", GROUP, name, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("split", GROUP, split, NULLABLE_FIELD, .form = &FORM_SLUG),
    ROW_WORD("role", GROUP, role, ROLES, JSON_REQUIRED),
    ROW("glob", GROUP, glob, JSON_REQUIRED, .form = &FORM_PATH),
    ROW("files", GROUP, n_files, NUMBER = DATASET_IMAGES_MAX),
    ROW("folders", GROUP, n_folders, NUMBER = DATASET_FOLDERS_MAX),
    ROW_ANY("folder_files", NULLABLE_FIELD, .get = get_folder_files, .put = put_folder_files,
            .schema =
                "\"type\": [\"array\", \"null\"], \"minItems\": 2, \"maxItems\": 2, \"items\": "
                "{\"type\": \"integer\", \"minimum\": 1}"),
    ROW_WORD("format", GROUP, format, FORMATS, JSON_REQUIRED),
    ROW_STRS("odd", GROUP, odd_paths, n_odd, 0, .max = DATASET_ODD_MAX, .form = &FORM_PATH),
    ROW("width", GROUP, width, NUMBER = SIDE_MAX),
    ROW("height", GROUP, height, NUMBER = SIDE_MAX),
    ROW("channels", GROUP, channels, NUMBER = CHANNELS_MAX),
    ROW("lines", GROUP, n_lines, JSON_NULLABLE | JSON_MINUS, .min = 1, .max = BYTES_MAX),
    ROW_INSIDE("pair", PAIR_ROWS, NULLABLE_FIELD),
};

static int check_group(const struct json *at, const struct dataset *dataset, size_t idx,
                       struct err *err)
{
    const struct dataset_group *group = &dataset->groups[idx];
    bool is_image = group->format == FILE_JPEG || group->format == FILE_PNG;
    if (group->split.ptr && !STR_NAMED(dataset->splits, dataset->n_splits, name, group->split)) {
        return json_fail(at, err, "split: no split is named \"%.100s\"", group->split.ptr);
    }
    if (!is_image && (group->width >= 0 || group->height >= 0 || group->channels >= 0)) {
        return json_fail(at, err, "width, height and channels are for jpeg and png, not for %s",
                         FORMATS[group->format]);
    }
    if (group->n_lines >= 0 && group->format != FILE_TEXT) {
        return json_fail(at, err, "lines are for text, not for %s", FORMATS[group->format]);
    }
    return !group->pair_of.ptr || STR_NAMED(dataset->groups, idx, name, group->pair_of)
               ? 0
               : json_fail(at, err, "pair.of: no group before this one is named \"%.100s\"",
                           group->pair_of.ptr);
}

/* The splits are decoded already: their row comes before. */
static int check_groups(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    struct dataset *dataset = out;
    struct json item;
    size_t idx = 0;
    for (bool more = json_first(at, &item); more; more = json_next(&item), idx++) {
        struct dataset_group *group = &dataset->groups[idx];
        if (!group->folder_min) {
            group->folder_min = group->folder_max = -1;
        }
        if (check_group(&item, dataset, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- list, recipe, pack ---- */

static const struct json_field LIST_ROWS[] = {
    ROW("path", struct dataset, list_path, JSON_REQUIRED, .form = &FORM_PATH),
    ROW_HEX("sha256", struct dataset, list_sha256, has_list_sha256, JSON_REQUIRED),
};
static const struct json_field MADE_FROM_ROWS[] = {
    ROW("dataset", struct dataset_made_from, dataset, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW_WORD("recipe", struct dataset_made_from, recipe, RECIPES, JSON_REQUIRED),
};
static const struct json_field PACK_ROWS[] = {
    ROW_WORD("kind", struct dataset_pack, kind, PACKS, JSON_REQUIRED),
    ROW("short_side", struct dataset_pack, short_side, NUMBER = SIDE_MAX),
    ROW("classes", struct dataset_pack, n_classes, NUMBER = CLASSES_MAX),
    ROW("sequence", struct dataset_pack, sequence, NUMBER = SEQUENCE_MAX),
    ROW("predictions", struct dataset_pack, predictions, NUMBER = SEQUENCE_MAX),
};

static int check_pack(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct dataset_pack *pack = out;
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

/* ---- synthetic dataset ---- */

#define MADE struct dataset_synthetic
static const struct json_field MADE_SPLIT_ROWS[] = {
    ROW("name", struct dataset_synthetic_split, name, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("samples", struct dataset_synthetic_split, n_samples, JSON_REQUIRED, .min = 1,
        .max = DATASET_IMAGES_MAX),
    ROW("folders", struct dataset_synthetic_split, n_folders, JSON_REQUIRED, .min = 1,
        .max = DATASET_FOLDERS_MAX),
};
static const struct json_field MADE_ROWS[] = {
    ROW("seed", MADE, seed, JSON_REQUIRED),
    ROW("width", MADE, width, NUMBER = SIDE_MAX),
    ROW("height", MADE, height, NUMBER = SIDE_MAX),
    ROW_LIST("splits", MADE, splits, n_splits, MADE_SPLIT_ROWS, JSON_REQUIRED,
             .max = DATASET_SPLITS_MAX),
    ROW_LIST("files", MADE, files, n_files, FILE_ROWS, NULLABLE_FIELD | JSON_UNIQUE, .min = 1,
             .max = DATASET_FILES_MAX, .check = check_file, .rules = FILE_RULES),
};

static int check_made(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct dataset_synthetic *made = out;
    made->is_there = true;
    return (made->width < 0) == (made->height < 0)
               ? 0
               : json_fail(at, err, "expected both width and height or neither, found one");
}

static int check_made_splits(const struct json *at, const struct dataset *dataset, struct err *err)
{
    for (size_t idx = 0; idx < dataset->synthetic.n_splits; idx++) {
        const struct dataset_synthetic_split *split = &dataset->synthetic.splits[idx];
        if (!STR_NAMED(dataset->splits, dataset->n_splits, name, split->name)) {
            return json_fail(at, err, "splits[%zu].name: no split is named \"%.100s\"", idx,
                             split->name.ptr);
        }
        if (split->n_folders > split->n_samples) {
            return json_fail(at, err,
                             "splits[%zu].folders: expected at most the %lld samples, found %lld",
                             idx, (long long)split->n_samples, (long long)split->n_folders);
        }
    }
    return 0;
}

/* Of the archives, its own or else the original's, only the packing is known. */
static int take_made_files(const struct json *at, struct arena *arena, struct dataset *dataset,
                           struct err *err)
{
    struct dataset_synthetic *made = &dataset->synthetic;
    const struct dataset_file *files = made->n_files ? made->files : dataset->files;
    size_t n = made->n_files ? made->n_files : dataset->n_files;
    made->files = arena_array(arena, struct dataset_file, n + 1);
    made->n_files = n;
    for (size_t idx = 0; idx < n; idx++) {
        made->files[idx] = (struct dataset_file){.name = files[idx].name,
                                                 .size_bytes = -1,
                                                 .unpack = files[idx].unpack,
                                                 .is_nested = files[idx].is_nested,
                                                 .into = files[idx].into};
    }
    return n ? 0 : json_fail(at, err, "expected the synthetic dataset's archives, found none");
}

/* ---- the whole ---- */

static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("id", struct dataset, id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("title", struct dataset, title, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("synthetic", struct dataset, is_synthetic, JSON_REQUIRED),
    ROW("licence", struct dataset, licence, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW("login", struct dataset, needs_login, JSON_REQUIRED),
    ROW("derived_from", struct dataset, derived_from, NULLABLE_FIELD, .form = &FORM_SLUG),
    ROW_LIST("files", struct dataset, files, n_files, FILE_ROWS, JSON_REQUIRED | JSON_UNIQUE,
             .max = DATASET_FILES_MAX, .check = check_file, .rules = FILE_RULES),
    ROW_LIST("splits", struct dataset, splits, n_splits, SPLIT_ROWS, JSON_REQUIRED | JSON_UNIQUE,
             .max = DATASET_SPLITS_MAX),
    ROW_LIST("groups", struct dataset, groups, n_groups, GROUP_ROWS, JSON_REQUIRED | JSON_UNIQUE,
             .max = DATASET_GROUPS_MAX, .get = check_groups),
    ROW("others", struct dataset, allows_others, JSON_REQUIRED),
    ROW_INSIDE("list", LIST_ROWS, NULLABLE_FIELD),
    ROW_OBJECT("made_from", struct dataset, made_from, MADE_FROM_ROWS, JSON_OMIT),
    ROW_OBJECT("pack", struct dataset, pack, PACK_ROWS, NULLABLE_FIELD, .check = check_pack),
    ROW_OBJECT("twin", struct dataset, synthetic, MADE_ROWS, NULLABLE_FIELD, .check = check_made),
    ROW("note", struct dataset, note, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW("layout_source", struct dataset, layout_source, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW_OBJECT("source", struct dataset, source, SOURCE_ROWS, NULLABLE_FIELD),
};
const struct json_document DATASET_DOCUMENT = {
    JSON_DOCUMENT("dataset.json", "a dataset", ROWS),
    .about = "datasets/NAME/dataset.json; the meaning of each key is in datasets/README.md"};

int dataset_decode(const struct json *root, struct arena *arena, struct dataset *ret_dataset,
                   struct err *err)
{
    struct dataset dataset = {
        .pack = {.short_side = -1, .n_classes = -1, .sequence = -1, .predictions = -1},
        .synthetic = {.width = -1, .height = -1}};
    struct json made;
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &dataset, err) < 0 ||
        (dataset.synthetic.is_there && (json_member(root, "twin", &made, err) < 0 ||
                                        check_made_splits(&made, &dataset, err) < 0 ||
                                        take_made_files(&made, arena, &dataset, err) < 0))) {
        return -1;
    }
    *ret_dataset = dataset;
    return 0;
}

/* ---- a tree's paths ---- */

/* Where the rest does not fit, the last `*` takes one byte more of its part, else the last `**` + `/` one part more. */
bool dataset_glob_matches(struct str glob, struct str path)
{
    struct str star = STR_EMPTY, star_path = STR_EMPTY, deep = STR_EMPTY, deep_path = STR_EMPTY;
    const char *start = glob.ptr;
    struct str part;
    while (glob.len || path.len) {
        char want = glob.len ? glob.ptr[0] : '\0';
        if (str_starts(glob, STR_LIT("**/")) && (glob.ptr == start || glob.ptr[-1] == '/')) {
            deep = glob = str_sub(glob, 3, SIZE_MAX);
            deep_path = path;
            star = STR_EMPTY;
        } else if (want == '*') {
            star = glob = str_sub(glob, 1, SIZE_MAX);
            star_path = path;
        } else if (glob.len && path.len &&
                   (want == path.ptr[0] || (want == '?' && path.ptr[0] != '/'))) {
            glob = str_sub(glob, 1, SIZE_MAX);
            path = str_sub(path, 1, SIZE_MAX);
        } else if (star.ptr && star_path.len && star_path.ptr[0] != '/') {
            glob = star;
            path = star_path = str_sub(star_path, 1, SIZE_MAX);
        } else if (deep.ptr && str_next(&deep_path, '/', &part) && deep_path.ptr) {
            glob = deep;
            path = deep_path;
            star = STR_EMPTY;
        } else {
            return false;
        }
    }
    return true;
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
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 16);
    struct str rest = path;
    for (int64_t at = 0; rest.len && (at = str_find(rest, group->pair_from)) >= 0;) {
        strbuf_add(&text, rest.ptr, (size_t)at);
        strbuf_add_str(&text, group->pair_to);
        rest = str_sub(rest, (size_t)at + group->pair_from.len, SIZE_MAX);
    }
    strbuf_add_str(&text, rest);
    if (text.is_full || !str_ends(strbuf_str(&text), group->pair_from_end)) {
        return STR_EMPTY;
    }
    return str_printf(arena, "%.*s%s", (int)(text.len - group->pair_from_end.len), text.ptr,
                      group->pair_to_end.ptr);
}

int dataset_synthetic_splits(struct arena *arena, const struct dataset *dataset,
                             const char *const *samples, size_t n_samples,
                             struct dataset_synthetic_split **ret_splits, struct err *err)
{
    const struct dataset_synthetic *synthetic = &dataset->synthetic;
    const size_t n = synthetic->n_splits;
    struct dataset_synthetic_split *splits =
        arena_array(arena, struct dataset_synthetic_split, n + 1);
    memcpy(splits, synthetic->splits, n * sizeof(splits[0]));
    for (size_t idx = 0; idx < n_samples; idx++) {
        struct str rest = str_of(samples[idx]), name = STR_EMPTY;
        const bool has_count = str_next(&rest, '=', &name) && rest.ptr;
        struct dataset_synthetic_split *split = STR_NAMED(splits, n, name, name);
        if (!split || !has_count ||
            str_to_i64(rest, 1, DATASET_SAMPLES_MAX, &split->n_samples, ERR_IGNORED) < 0) {
            return err_set(
                err, ERR_USAGE,
                "--samples %.100s: expected SPLIT=N with a split of synthetic %s and N from 1",
                samples[idx], dataset->id.ptr);
        }
        if (split->n_folders > split->n_samples) {
            return err_set(err, ERR_USAGE,
                           "--samples %.100s: expected at least one for each of its %lld folders",
                           samples[idx], (long long)split->n_folders);
        }
    }
    *ret_splits = splits;
    return 0;
}

char *dataset_tree_name(struct arena *arena, const struct dataset *dataset, bool is_synthetic)
{
    return arena_printf(arena, "%s%s", dataset->id.ptr,
                        is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
}
