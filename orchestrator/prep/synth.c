/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic dataset, written as exactly the archives that are fetched for the original: same names, same layout, real JPEG,
   PNG, HDF5 and TFRecord files, labels that fit the pictures; generated from a seed. The same bytes for the same versions of
   the libraries, whatever the number of threads. */
#include "base/base.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/temp.h"
#include "base/vec.h"
#include "codec/tar_make.h"
#include "prep/draw.h"
#include "prep/hdf5.h"
#include "prep/jpeg.h"
#include "prep/ordered.h"
#include "prep/pixels.h"
#include "prep/png.h"
#include "prep/samples.h"
#include "prep/tfrecord.h"
#include "prep/verb.h"
#include "sys/pool.h"

/* What is to be made: the files of the tree, in the order of their archives. */
enum synth_kind { SYNTH_OBJECT, SYNTH_STREET, SYNTH_STREET_LABELS, SYNTH_TEXT, SYNTH_RECORDS };

struct synth_member {
    struct str path; /* in the tree */
    enum synth_kind kind;
    enum file_format format;
    uint64_t seed;
    uint32_t label;
    uint32_t width, height;
    unsigned traits;        /* enum image_trait, as bits */
    struct str text;        /* SYNTH_TEXT */
    uint32_t first, n_rows; /* SYNTH_RECORDS */
};

/* One member of an archive: a file, or an archive of a folder's files inside it. */
struct synth_entry {
    struct str name;
    size_t first, n; /* among the members */
    bool is_inner;
};

struct synth {
    const struct dataset *dataset;
    const char *dataset_path;
    struct class_list classes; /* none: its images lie in folders */
    const char *folder;
    int64_t seed;
    size_t n_threads;
    struct arena *arena;
    VEC(struct synth_member) members; /* sorted by path */
    uint32_t n_classes;               /* the synthetic dataset's */
    /* The archive that is being written. */
    struct str prefix; /* begins the tree's paths of its members, whose own names lack it */
    struct synth_entry *entries;
    size_t n_entries;
    struct tar_maker tar;
    struct progress progress;
    size_t n_done;
};

static void synth_cleanup(struct synth *p)
{
    VEC_RELEASE(&p->members);
    tar_maker_cleanup(&p->tar);
}

/* From a dataset's groups and the synthetic dataset's numbers to the list of files to make. */

#define WNID_FIRST 1440764 /* the first of the original's, then in steps */
#define WNID_STEP  10303
#define GREY_EVERY 40
#define CMYK_EVERY 60
#define PATH_MAX_  4096
#define TEXT_MAX   (64u << 20)
#define FRAME      19 /* Cityscapes labels the 20th frame of each snippet */

static uint64_t sample_seed(const struct synth *p, struct str split, uint64_t idx)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)p->seed ^ hash_bytes(split.ptr, split.len));
    rng_init(&rng, rng_u64(&rng) + idx);
    return rng_u64(&rng);
}

/* The folders' names in order are those of the classes. */
static struct str wnid(const struct synth *p, uint32_t class)
{
    return class < p->classes.n ? p->classes.sorted[class]
                                : str_printf(p->arena, "n%08u", WNID_FIRST + class * WNID_STEP);
}

/* One component of a glob: the first `*` becomes stem, what further ones there are become the usual ending of the format. */
static void add_component(struct strbuf *path, struct str glob, struct str stem, const char *ending)
{
    bool is_first = true;
    for (size_t idx = 0; idx < glob.len; idx++) {
        if (glob.ptr[idx] != '*') {
            strbuf_add_char(path, glob.ptr[idx] == '?' ? '0' : glob.ptr[idx]);
            continue;
        }
        strbuf_add_str(path, is_first ? stem : str_of(ending));
        if (is_first && idx + 1 < glob.len && glob.ptr[idx + 1] != '.' &&
            glob.ptr[idx + 1] != '_') {
            strbuf_add_char(path, '-');
        }
        is_first = false;
    }
}

/* A path that the glob matches. `**` is the dataset's id, `*` alone is the folder. */
static int expand(const struct synth *p, const struct dataset_group *group, struct str folder,
                  struct str stem, struct str *ret_path, struct err *err)
{
    CLEANUP(strbuf) struct strbuf path = STRBUF(PATH_MAX_);
    struct str rest = group->glob, part;
    while (str_next(&rest, '/', &part)) {
        if (path.len) {
            strbuf_add_char(&path, '/');
        }
        if (!rest.ptr) {
            add_component(&path, part, stem, group->format == FILE_HDF5 ? ".hdf5" : "");
        } else if (str_eq_z(part, "**")) {
            strbuf_add_str(&path, p->dataset->id);
        } else {
            add_component(&path, part, folder, "");
        }
    }
    if (path.is_full || !dataset_glob_matches(group->glob, strbuf_str(&path))) {
        return err_set(err, ERR_MANIFEST, "group %.*s: no path could be made for the glob %.*s",
                       STR_ARG(group->name), STR_ARG(group->glob));
    }
    *ret_path = str_dup(p->arena, strbuf_str(&path));
    return 0;
}

static bool has_folder(const struct dataset_group *group)
{
    return str_find(group->glob, STR_LIT("/*/")) >= 0;
}

/* ---- images with a class each ---- */

/* Sizes as photographs of the web have them: most 500 x 375, some upright, some of any size. */
static void pick_size(const struct dataset_synthetic *synthetic, struct synth_member *member)
{
    static const uint16_t sizes[][2] = {{500, 375}, {500, 375}, {500, 375}, {375, 500}, {500, 333}};
    struct rng rng;
    rng_init(&rng, member->seed ^ UINT64_C(0x512e));
    if (synthetic->width > 0) {
        member->width = (uint32_t)synthetic->width;
        member->height = (uint32_t)synthetic->height;
        return;
    }
    uint64_t pick = rng_below(&rng, ARRAY_LEN(sizes) + 2);
    member->width = pick < ARRAY_LEN(sizes) ? sizes[pick][0] : 150 + (uint32_t)rng_below(&rng, 600);
    member->height =
        pick < ARRAY_LEN(sizes) ? sizes[pick][1] : 120 + (uint32_t)rng_below(&rng, 480);
}

/* The original has some of these too. */
static unsigned pick_traits(uint64_t idx)
{
    return idx % GREY_EVERY == 17 ? TRAIT_GREY : idx % CMYK_EVERY == 31 ? TRAIT_CMYK : 0;
}

static int plan_objects(struct synth *p, const struct dataset_synthetic_split *split, uint64_t n,
                        const struct dataset_group *group, struct err *err)
{
    bool is_flat = !has_folder(group);
    uint32_t n_classes = is_flat ? p->n_classes : (uint32_t)split->n_folders;
    for (uint64_t idx = 0; idx < n; idx++) {
        struct synth_member member = {.kind = SYNTH_OBJECT, .format = group->format};
        struct str folder = STR_EMPTY, stem;
        member.seed = sample_seed(p, split->name, idx);
        member.label = (uint32_t)(is_flat ? idx % n_classes : idx * n_classes / n);
        member.traits = pick_traits(idx);
        pick_size(&p->dataset->synthetic, &member);
        if (is_flat) {
            stem =
                str_printf(p->arena, "ILSVRC2012_%.*s_%08" PRIu64, STR_ARG(split->name), idx + 1);
        } else {
            folder = wnid(p, member.label);
            stem = str_printf(p->arena, "%.*s_%" PRIu64, STR_ARG(folder), idx + 10);
        }
        if (expand(p, group, folder, stem, &member.path, err) < 0) {
            return -1;
        }
        VEC_PUSH(&p->members, member);
    }
    return 0;
}

/* The number that the labels give a class. */
static size_t number_of(const struct class_list *classes, struct str id)
{
    size_t idx = 0;
    while (!str_eq(classes->ids[idx], id)) {
        idx++;
    }
    return idx + 1;
}

/* The classes of a flat folder: a number a line in the order of the file names. */
static int plan_ground_truth(struct synth *p, uint64_t n, const struct dataset_group *group,
                             struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct synth_member lines = {.kind = SYNTH_TEXT, .format = FILE_TEXT};
    if (p->classes.n < p->n_classes) {
        return err_set(err, ERR_MANIFEST, "%s: %zu classes, expected %u",
                       class_list_path(p->arena, p->dataset_path), p->classes.n, p->n_classes);
    }
    for (uint64_t idx = 0; idx < n; idx++) {
        strbuf_printf(&text, "%zu\n",
                      number_of(&p->classes, wnid(p, (uint32_t)(idx % p->n_classes))));
    }
    if (expand(p, group, STR_EMPTY, STR_LIT("labels"), &lines.path, err) < 0) {
        return -1;
    }
    lines.text = str_dup(p->arena, strbuf_str(&text));
    VEC_PUSH(&p->members, lines);
    return 0;
}

static int plan_classes(struct synth *p, const struct dataset_synthetic_split *split, uint64_t n,
                        struct err *err)
{
    const struct dataset *dataset = p->dataset;
    const struct dataset_group *images = dataset_group_find(dataset, split->name, ROLE_IMAGE);
    const struct dataset_group *labels = dataset_group_find(dataset, split->name, ROLE_LABEL);
    if (!images || (!has_folder(images) && !labels)) {
        return err_set(err, ERR_MANIFEST, "split %.*s: no group says where images and classes lie",
                       STR_ARG(split->name));
    }
    if (plan_objects(p, split, n, images, err) < 0) {
        return -1;
    }
    return labels ? plan_ground_truth(p, n, labels, err) : 0;
}

/* ---- images with a label map each ---- */

static int plan_segments(struct synth *p, const struct dataset_synthetic_split *split, uint64_t n,
                         struct err *err)
{
    const struct dataset *dataset = p->dataset;
    const struct dataset_group *images = dataset_group_find(dataset, split->name, ROLE_IMAGE);
    const struct dataset_group *labels = dataset_group_find(dataset, split->name, ROLE_LABEL);
    if (!images || !labels || !labels->pair_of.ptr || dataset->synthetic.width < 1) {
        return err_set(err, ERR_MANIFEST,
                       "split %.*s: no pair of groups says where images and label maps lie, or the "
                       "synthetic dataset has no size",
                       STR_ARG(split->name));
    }
    for (uint64_t idx = 0; idx < n; idx++) {
        struct synth_member member = {.kind = SYNTH_STREET, .format = images->format};
        struct str folder = str_printf(p->arena, "%.*s-city%" PRIu64, STR_ARG(split->name),
                                       idx * (uint64_t)split->n_folders / n);
        struct str stem =
            str_printf(p->arena, "%.*s_%06" PRIu64 "_%06d", STR_ARG(folder), idx, FRAME);
        member.seed = sample_seed(p, split->name, idx);
        member.width = (uint32_t)dataset->synthetic.width;
        member.height = (uint32_t)dataset->synthetic.height;
        if (expand(p, images, folder, stem, &member.path, err) < 0) {
            return -1;
        }
        VEC_PUSH(&p->members, member);
        member.kind = SYNTH_STREET_LABELS;
        member.path = dataset_partner(p->arena, labels, member.path);
        if (!member.path.ptr || !dataset_glob_matches(labels->glob, member.path)) {
            return err_set(err, ERR_MANIFEST, "group %.*s: its pair does not lead into its glob",
                           STR_ARG(labels->name));
        }
        VEC_PUSH(&p->members, member);
    }
    return 0;
}

/* ---- records ---- */

static int plan_records(struct synth *p, const struct dataset_synthetic_split *split, uint64_t n,
                        struct err *err)
{
    const struct dataset_group *records = dataset_group_find(p->dataset, split->name, ROLE_RECORDS);
    uint64_t n_files = (uint64_t)split->n_folders;
    if (!records || (records->format != FILE_HDF5 && records->format != FILE_TFRECORD)) {
        return err_set(err, ERR_MANIFEST, "split %.*s: no group of HDF5 or TFRecord files",
                       STR_ARG(split->name));
    }
    for (uint64_t idx = 0; idx < n_files; idx++) {
        struct synth_member member = {.kind = SYNTH_RECORDS, .format = records->format};
        struct str stem = str_printf(p->arena, "part-%05" PRIu64, idx);
        member.seed = sample_seed(p, split->name, idx);
        member.first = (uint32_t)(idx * n / n_files);
        member.n_rows = (uint32_t)((idx + 1) * n / n_files) - member.first;
        if (expand(p, records, split->name, stem, &member.path, err) < 0) {
            return -1;
        }
        VEC_PUSH(&p->members, member);
    }
    return 0;
}

/* ---- all ---- */

static int by_path(const void *a, const void *b)
{
    const struct synth_member *left = a, *right = b;
    return str_cmp(left->path, right->path);
}

static int plan_split(struct synth *p, size_t idx, struct err *err)
{
    const struct dataset_synthetic_split *split = &p->dataset->synthetic.splits[idx];
    const uint64_t n = (uint64_t)split->n_samples;
    switch (p->dataset->pack.kind) {
    case PACK_CLASSES:
        return plan_classes(p, split, n, err);
    case PACK_SEGMENTS:
        return plan_segments(p, split, n, err);
    case PACK_TOKENS:
        return plan_records(p, split, n, err);
    case PACK_NONE:
        break;
    }
    return err_set(err, ERR_MANIFEST,
                   "the dataset is not packed, so no synthetic version can be made");
}

static int check_order(const struct synth *p, struct err *err)
{
    for (size_t idx = 1; idx < p->members.n; idx++) {
        if (str_eq(p->members.items[idx - 1].path, p->members.items[idx].path)) {
            return err_set(err, ERR_MANIFEST, "two files of the synthetic dataset would be %.*s",
                           STR_ARG(p->members.items[idx].path));
        }
    }
    return 0;
}

static int plan(struct synth *p, struct err *err)
{
    const struct dataset_synthetic *synthetic = &p->dataset->synthetic;
    if (fs_exists(class_list_path(p->arena, p->dataset_path)) &&
        class_list_read(p->arena, p->dataset_path, &p->classes, err) < 0) {
        return -1;
    }
    p->n_classes = 1;
    for (size_t idx = 0; idx < synthetic->n_splits; idx++) {
        uint32_t n_folders = (uint32_t)synthetic->splits[idx].n_folders;
        p->n_classes = n_folders > p->n_classes ? n_folders : p->n_classes;
    }
    for (size_t idx = 0; idx < synthetic->n_splits; idx++) {
        if (plan_split(p, idx, err) < 0) {
            return -1;
        }
    }
    qsort(p->members.items, p->members.n, sizeof(p->members.items[0]), by_path);
    return check_order(p, err);
}

/* The bytes of each file of a synthetic dataset. */

#define QUALITY 95 /* 0.6 bytes a pixel, as the photographs of ImageNet have */
/* Luma of BT.601, in 1/256. */
#define GREY_BYTE(p) (((p)[0] * 77 + (p)[1] * 150 + (p)[2] * 29) >> 8)

/* In place: from three bytes a pixel to one. */
static void to_grey(uint8_t *pixels, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        pixels[idx] = (uint8_t)GREY_BYTE(pixels + idx * 3);
    }
}

/* Inverted, without black: (R, G, B, 255). Needs four bytes a pixel. */
static void to_cmyk(uint8_t *pixels, size_t n)
{
    for (size_t idx = n; idx-- > 0;) {
        memmove(pixels + idx * 4, pixels + idx * 3, 3);
        pixels[idx * 4 + 3] = UINT8_MAX;
    }
}

static int encode(const struct synth_member *member, const uint8_t *pixels, int n_channels,
                  uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    const struct jpeg_picture jpeg = {pixels, member->width, member->height, n_channels, QUALITY};
    const struct png_picture png = {.pixels = pixels,
                                    .width = member->width,
                                    .height = member->height,
                                    .n_channels = n_channels,
                                    .bits = 8};
    return member->format == FILE_JPEG ? jpeg_encode(&jpeg, ret_bytes, ret_len, err)
                                       : png_encode(&png, ret_bytes, ret_len, err);
}

static int make_object(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    const unsigned traits = member->format == FILE_JPEG ? member->traits : 0;
    CLEANUP(free) uint8_t *pixels = xmalloc(n * 4);
    draw_object(member->seed, member->label, member->width, member->height, pixels);
    if (traits & TRAIT_GREY) {
        to_grey(pixels, n);
    } else if (traits & TRAIT_CMYK) {
        to_cmyk(pixels, n);
    }
    return encode(member, pixels,
                  traits & TRAIT_GREY   ? 1
                  : traits & TRAIT_CMYK ? 4
                                        : 3,
                  ret_bytes, ret_len, err);
}

static int make_street(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    CLEANUP(free) uint8_t *labels = xmalloc(n);
    CLEANUP(free) uint8_t *pixels = xmalloc(n * IMAGE_RGB);
    draw_street_labels(member->seed, member->width, member->height, labels);
    if (member->kind == SYNTH_STREET_LABELS) {
        return encode(member, labels, 1, ret_bytes, ret_len, err);
    }
    draw_street(member->seed, member->width, member->height, labels, pixels);
    return encode(member, pixels, IMAGE_RGB, ret_bytes, ret_len, err);
}

static int make_records(const struct synth_member *member, const struct dataset_pack *pack,
                        uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    struct tokens_shape shape = {(uint32_t)pack->sequence, (uint32_t)pack->predictions};
    size_t row_len = tokens_len(&shape);
    CLEANUP(free)
    int32_t *rows = xcalloc(member->n_rows ? member->n_rows : 1, row_len * sizeof(*rows));
    CLEANUP(strbuf) struct strbuf text = STRBUF((size_t)1 << 32);
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tokens_draw(member->seed + idx, &shape, rows + idx * row_len);
    }
    if (member->format == FILE_HDF5) {
        return hdf5_make(rows, member->n_rows, &shape, ret_bytes, ret_len, err);
    }
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tfrecord_append(&text, &shape, rows + idx * row_len);
    }
    *ret_len = text.len;
    *ret_bytes = xmalloc(text.len ? text.len : 1);
    memcpy(*ret_bytes, text.ptr, text.len);
    return 0;
}

/* One member's bytes, from malloc. On any thread. */
static int synth_make(const struct synth_member *member, const struct dataset_pack *pack,
                      uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    switch (member->kind) {
    case SYNTH_OBJECT:
        return make_object(member, ret_bytes, ret_len, err);
    case SYNTH_STREET:
    case SYNTH_STREET_LABELS:
        return make_street(member, ret_bytes, ret_len, err);
    case SYNTH_RECORDS:
        return make_records(member, pack, ret_bytes, ret_len, err);
    case SYNTH_TEXT:
        break;
    }
    *ret_len = member->text.len;
    *ret_bytes = xmalloc(member->text.len + 1);
    memcpy(*ret_bytes, member->text.ptr, member->text.len);
    return 0;
}

#define INNER_BYTES_MAX ((size_t)1 << 33)

struct synth_slot {
    uint8_t *bytes; /* owned */
    size_t len;
};

static void slot_release(void *ptr)
{
    free(((struct synth_slot *)ptr)->bytes);
}

static struct str name_inside(const struct synth *p, struct str path)
{
    return str_sub(path, p->prefix.len, SIZE_MAX);
}

static int make_inner(const struct synth *p, const struct synth_entry *entry,
                      struct synth_slot *slot, const atomic_bool *is_cancelled, struct err *err)
{
    CLEANUP(tar_maker) struct tar_maker tar = TAR_MAKER_EMPTY;
    CLEANUP(strbuf) struct strbuf inner = STRBUF(INNER_BYTES_MAX);
    struct digest_value ignored;
    if (tar_make_open_inner(&tar, &inner, err) < 0) {
        return -1;
    }
    for (size_t idx = entry->first; idx < entry->first + entry->n; idx++) {
        const struct synth_member *member = &p->members.items[idx];
        struct str name = name_inside(p, member->path);
        int64_t slash = str_find(name, STR_LIT("/"));
        CLEANUP(free) uint8_t *bytes = NULL;
        size_t len = 0;
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (synth_make(member, &p->dataset->pack, &bytes, &len, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(member->path));
        }
        if (tar_make_bytes(&tar, str_sub(name, (size_t)slash + 1, SIZE_MAX), bytes, len, err) < 0) {
            return -1;
        }
    }
    if (tar_make_close(&tar, &ignored, err) < 0) {
        return -1;
    }
    slot->bytes = (uint8_t *)inner.ptr;
    slot->len = inner.len;
    inner = (struct strbuf){0};
    return 0;
}

static int make_entry(const struct synth *p, const struct synth_entry *entry,
                      struct synth_slot *slot, const atomic_bool *is_cancelled, struct err *err)
{
    const struct synth_member *member = &p->members.items[entry->first];
    if (entry->is_inner) {
        return make_inner(p, entry, slot, is_cancelled, err);
    }
    return synth_make(member, &p->dataset->pack, &slot->bytes, &slot->len, err) < 0
               ? err_wrap(err, "%.*s", STR_ARG(member->path))
               : 0;
}

static int work(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled, struct err *err)
{
    const struct synth *p = ctx;
    return make_entry(p, &p->entries[job], slot, is_cancelled, err);
}

static int done(void *ctx, size_t job, void *ptr, struct err *err)
{
    struct synth *p = ctx;
    struct synth_slot *slot = ptr;
    const struct synth_entry *entry = &p->entries[job];
    int result = tar_make_bytes(&p->tar, entry->name, slot->bytes, slot->len, err);
    free(slot->bytes);
    slot->bytes = NULL;
    p->n_done += entry->n;
    progress_set(&p->progress, p->n_done);
    return result;
}

/* The archive of the tree's path: the one whose folder it is in; else the one for the top. NULL: none. */
static const struct dataset_file *file_of(const struct dataset_file *files, size_t n_files,
                                          struct str path)
{
    const struct dataset_file *best = NULL;
    for (size_t idx = 0; idx < n_files; idx++) {
        const struct dataset_file *file = &files[idx];
        bool is_in =
            !file->into.ptr || (str_starts(path, file->into) && path.len > file->into.len &&
                                path.ptr[file->into.len] == '/');
        if (is_in && (!best || file->into.len > best->into.len)) {
            best = file;
        }
    }
    return best;
}

static int add_entry(struct synth *p, const struct dataset_file *file, size_t member,
                     struct err *err)
{
    struct str name = name_inside(p, p->members.items[member].path);
    int64_t slash = str_find(name, STR_LIT("/"));
    struct synth_entry *last = p->n_entries ? &p->entries[p->n_entries - 1] : NULL;
    if (!file->is_nested) {
        p->entries[p->n_entries++] = (struct synth_entry){name, member, 1, false};
        return 0;
    }
    if (slash <= 0) {
        return err_set(err, ERR_MANIFEST,
                       "%.*s holds archives of folders, and %.*s lies in no folder",
                       STR_ARG(file->name), STR_ARG(name));
    }
    struct str inner = str_printf(p->arena, "%.*s.tar", (int)slash, name.ptr);
    if (last && str_eq(last->name, inner) && last->first + last->n == member) {
        last->n++;
        return 0;
    }
    p->entries[p->n_entries++] = (struct synth_entry){inner, member, 1, true};
    return 0;
}

static int write_file(struct synth *p, const struct dataset_file *file, struct err *err)
{
    struct digest_value ignored;
    const char *path = fs_join(p->arena, p->folder, file->name.ptr);
    bool is_gzip = str_eq_z(file->unpack, "tar.gz");
    const struct ordered spec = {.ctx = p,
                                 .n_jobs = p->n_entries,
                                 .n_threads = p->n_threads,
                                 .n_ahead = file->is_nested ? p->n_threads + 1
                                                            : 0, /* whole folders in memory */
                                 .slot_bytes = sizeof(struct synth_slot),
                                 .slot_release = slot_release,
                                 .work = work,
                                 .done = done};
    CLEANUP(temp) struct temp *temp = NULL;
    if (!is_gzip && !str_eq_z(file->unpack, "tar")) {
        return err_set(err, ERR_MANIFEST, "only tar and tar.gz can be made, not %.*s",
                       STR_ARG(file->unpack));
    }
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    if (temp_file(path, 0644, &temp) < 0) {
        return err_errno(err, "create", path);
    }
    if (tar_make_open(&p->tar, temp->fd, is_gzip, err) < 0 || ordered_run(&spec, err) < 0 ||
        tar_make_close(&p->tar, &ignored, err) < 0) {
        return -1;
    }
    tar_maker_cleanup(&p->tar);
    return publish_file(temp->fd, temp->path, path, err);
}

static int write_all(struct synth *p, struct err *err)
{
    const struct dataset_synthetic *synthetic = &p->dataset->synthetic;
    const bool has_own = synthetic->n_files > 0;
    const struct dataset_file *files = has_own ? synthetic->files : p->dataset->files;
    const size_t n_files = has_own ? synthetic->n_files : p->dataset->n_files;
    size_t n_placed = 0;
    if (!synthetic->is_there || !n_files) {
        return err_set(err, ERR_MANIFEST, "%.*s has no synthetic version", STR_ARG(p->dataset->id));
    }
    if (plan(p, err) < 0 || fs_mkdir_p(p->folder, err) < 0) {
        return -1;
    }
    progress_start(&p->progress, clock_system(), "synthesise", "files", p->members.n);
    for (size_t idx = 0; idx < n_files; idx++) {
        const struct dataset_file *file = &files[idx];
        p->entries = arena_array(p->arena, struct synth_entry, p->members.n + 1);
        p->n_entries = 0;
        p->prefix = file->into.ptr ? str_printf(p->arena, "%.*s/", STR_ARG(file->into)) : STR_EMPTY;
        for (size_t at = 0; at < p->members.n; at++) {
            bool is_in = file_of(files, n_files, p->members.items[at].path) == file;
            n_placed += is_in;
            if (is_in && add_entry(p, file, at, err) < 0) {
                return -1;
            }
        }
        if (write_file(p, file, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(file->name));
        }
    }
    progress_end(&p->progress);
    return n_placed == p->members.n
               ? 0
               : err_set(err, ERR_MANIFEST, "%zu of %zu files belong to no archive",
                         p->members.n - n_placed, p->members.n);
}

/* ---- the verb ---- */

struct synth_args {
    const char *dataset, *out;
    struct opt_list samples;
    int64_t seed, n_threads;
};

static const struct opt OPTS[] = {
    OPT(struct synth_args, dataset, "dataset", "the dataset.json that describes it",
        .value = "FILE"),
    OPT(struct synth_args, out, "out", "where the archives are written", .value = "FOLDER"),
    OPT(struct synth_args, samples, "samples",
        "how many samples of a split; default: what dataset.json says", .value = "SPLIT=N"),
    OPT(struct synth_args, seed, "seed", "default: what dataset.json says", .value = "N", .min = 0,
        .max = INT64_MAX),
    OPT(struct synth_args, n_threads, "threads",
        "default: one a core; the result does not depend on it", .value = "N",
        .min = POOL_THREADS_MIN, .max = POOL_THREADS_MAX),
    OPT_END,
};

static int synth(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const struct synth_args *args = call->args;
    struct dataset dataset = {0};
    if (!args->out) {
        return err_set(err, ERR_USAGE, "--out is needed: a folder");
    }
    if (verb_dataset(call->arena, args->dataset, &dataset, err) < 0 ||
        dataset_synthetic_splits(call->arena, &dataset, args->samples.items, args->samples.n,
                                 &dataset.synthetic.splits, err) < 0) {
        return -1;
    }
    CLEANUP(synth)
    struct synth p = {.dataset = &dataset,
                      .dataset_path = args->dataset,
                      .folder = args->out,
                      .seed = args->seed >= 0 ? args->seed : dataset.synthetic.seed,
                      .n_threads = args->n_threads ? (size_t)args->n_threads : ordered_cores(),
                      .arena = call->arena,
                      .tar = TAR_MAKER_EMPTY};
    return write_all(&p, err);
}

const struct cmd VERB_SYNTH =
    CMD("synth", "--dataset FILE --out FOLDER",
        "write a synthetic dataset, as the archives that the original comes in", OPTS, synth,
        CMD_ARGS(struct synth_args), .defaults = &(const struct synth_args){.seed = -1},
        CMD_OPERANDS(0, 0, "expected no operand"));
