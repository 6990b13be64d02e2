/* SPDX-License-Identifier: Apache-2.0 */
/* From a dataset's groups and the synthetic dataset's numbers to the list of files to make. */
#include "base/base.h"

#include "base/map.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "prep/meta_mat.h"
#include "prep/pixels.h"
#include "prep/synth.h"

#define WNID_FIRST 1440764 /* the first of the original's, then in steps */
#define WNID_STEP  10303
#define GREY_EVERY 40
#define CMYK_EVERY 60
#define PATH_MAX_  4096
#define TEXT_MAX   (64u << 20)
#define FRAME      19 /* Cityscapes labels the 20th frame of each snippet */

/* Source: cityscapes-dataset.com, dataset overview: the cities of the training and of the validation part. */
static const char *const CITIES[] = {
    "aachen",     "bochum",    "bremen",   "cologne", "darmstadt", "dusseldorf",
    "erfurt",     "hamburg",   "hanover",  "jena",    "krefeld",   "monchengladbach",
    "strasbourg", "stuttgart", "tubingen", "ulm",     "weimar",    "zurich"};
static const char *const VAL_CITIES[] = {"frankfurt", "lindau", "munster"};

struct synth_planner {
    const struct synth_opts *opts;
    struct arena *arena;
    struct {
        struct synth_member *items;
        size_t n, n_max;
    } members;
    uint32_t n_classes; /* of the synthetic dataset */
};

static uint64_t sample_seed(const struct synth_planner *p, struct str split, uint64_t idx)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)p->opts->seed ^ hash_bytes(split.ptr, split.len));
    rng_init(&rng, rng_u64(&rng) + idx);
    return rng_u64(&rng);
}

static struct str wnid(struct arena *arena, uint32_t class)
{
    return str_of(arena_printf(arena, "n%08u", WNID_FIRST + class * WNID_STEP));
}

/* The devkit numbers the classes in another order than that of their names. */
static int64_t devkit_number(uint32_t class, uint32_t n_classes)
{
    return (int64_t)n_classes - class;
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
static int expand(const struct synth_planner *p, const struct dataset_group *group,
                  struct str folder, struct str stem, struct str *ret_path, struct err *err)
{
    CLEANUP(strbuf) struct strbuf path = {0};
    struct str rest = group->glob, part;
    strbuf_init(&path, PATH_MAX_);
    while (str_next(&rest, '/', &part)) {
        if (path.len) {
            strbuf_add_char(&path, '/');
        }
        if (!rest.ptr) {
            add_component(&path, part, stem, group->format == FILE_HDF5 ? ".hdf5" : "");
        } else if (str_eq_z(part, "**")) {
            strbuf_add_str(&path, p->opts->dataset->id);
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

static int plan_objects(struct synth_planner *p, const struct dataset_synthetic_split *split,
                        uint64_t n, const struct dataset_group *group, struct err *err)
{
    bool is_flat = !has_folder(group);
    uint32_t n_classes = is_flat ? p->n_classes : (uint32_t)split->n_folders;
    for (uint64_t idx = 0; idx < n; idx++) {
        struct synth_member member = {.kind = SYNTH_OBJECT, .format = group->format};
        struct str folder = STR_EMPTY, stem;
        member.seed = sample_seed(p, split->name, idx);
        member.label = (uint32_t)(is_flat ? idx % n_classes : idx * n_classes / n);
        member.traits = pick_traits(idx);
        pick_size(&p->opts->dataset->synthetic, &member);
        if (is_flat) {
            stem = str_of(arena_printf(p->arena, "ILSVRC2012_%.*s_%08" PRIu64, STR_ARG(split->name),
                                       idx + 1));
        } else {
            folder = wnid(p->arena, member.label);
            stem = str_of(arena_printf(p->arena, "%.*s_%" PRIu64, STR_ARG(folder), idx + 10));
        }
        if (expand(p, group, folder, stem, &member.path, err) < 0) {
            return -1;
        }
        VEC_PUSH(&p->members, member);
    }
    return 0;
}

/* The classes of a flat folder: a number a line in the order of the file names, and what the numbers mean. */
static int plan_ground_truth(struct synth_planner *p, uint64_t n, const struct dataset_group *group,
                             struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    CLEANUP(free) uint8_t *bytes = NULL;
    struct synth_member lines = {.kind = SYNTH_TEXT, .format = FILE_TEXT};
    struct synth_member meta_file = {.kind = SYNTH_TEXT, .format = FILE_ANY};
    struct meta_mat meta = {arena_array(p->arena, struct meta_synset, p->n_classes), p->n_classes};
    size_t len = 0;
    size_t folder_len;
    strbuf_init(&text, TEXT_MAX);
    for (uint64_t idx = 0; idx < n; idx++) {
        strbuf_printf(&text, "%" PRId64 "\n",
                      devkit_number((uint32_t)(idx % p->n_classes), p->n_classes));
    }
    for (uint32_t class = 0; class < p->n_classes; class ++) {
        meta.synsets[p->n_classes - 1 - class] =
            (struct meta_synset){devkit_number(class, p->n_classes), wnid(p->arena, class)};
    }
    if (expand(p, group, STR_EMPTY, STR_LIT("labels"), &lines.path, err) < 0 ||
        meta_mat_make(&meta, &bytes, &len, err) < 0) {
        return -1;
    }
    lines.text = str_dup(p->arena, strbuf_str(&text));
    for (folder_len = lines.path.len; folder_len && lines.path.ptr[folder_len - 1] != '/';) {
        folder_len--;
    }
    meta_file.path =
        str_of(arena_printf(p->arena, "%.*smeta.mat", (int)folder_len, lines.path.ptr));
    meta_file.text = str_dup(p->arena, (struct str){(const char *)bytes, len});
    VEC_PUSH(&p->members, lines);
    VEC_PUSH(&p->members, meta_file);
    return 0;
}

static int plan_classes(struct synth_planner *p, const struct dataset_synthetic_split *split,
                        uint64_t n, struct err *err)
{
    const struct dataset *dataset = p->opts->dataset;
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

static struct str city(struct arena *arena, struct str split, uint64_t idx)
{
    bool is_val = str_eq_z(split, "val");
    size_t n = is_val ? ARRAY_LEN(VAL_CITIES) : ARRAY_LEN(CITIES);
    return idx < n ? str_of((is_val ? VAL_CITIES : CITIES)[idx])
                   : str_of(arena_printf(arena, "city%" PRIu64, idx));
}

static int plan_segments(struct synth_planner *p, const struct dataset_synthetic_split *split,
                         uint64_t n, struct err *err)
{
    const struct dataset *dataset = p->opts->dataset;
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
        struct str folder = city(p->arena, split->name, idx * (uint64_t)split->n_folders / n);
        struct str stem =
            str_of(arena_printf(p->arena, "%.*s_%06" PRIu64 "_%06d", STR_ARG(folder), idx, FRAME));
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

static int plan_records(struct synth_planner *p, const struct dataset_synthetic_split *split,
                        uint64_t n, struct err *err)
{
    const struct dataset_group *records =
        dataset_group_find(p->opts->dataset, split->name, ROLE_RECORDS);
    uint64_t n_files = (uint64_t)split->n_folders;
    if (!records || (records->format != FILE_HDF5 && records->format != FILE_TFRECORD)) {
        return err_set(err, ERR_MANIFEST, "split %.*s: no group of HDF5 or TFRecord files",
                       STR_ARG(split->name));
    }
    for (uint64_t idx = 0; idx < n_files; idx++) {
        struct synth_member member = {.kind = SYNTH_RECORDS, .format = records->format};
        struct str stem = str_of(arena_printf(p->arena, "part-%05" PRIu64, idx));
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

static int plan_split(struct synth_planner *p, size_t idx, struct err *err)
{
    const struct dataset_synthetic_split *split = &p->opts->dataset->synthetic.splits[idx];
    uint64_t n = (uint64_t)p->opts->n_samples[idx];
    if (n < (uint64_t)split->n_folders) {
        return err_set(err, ERR_USAGE,
                       "split %.*s: %" PRIu64
                       " samples, expected at least one for each of its %" PRId64 " folders",
                       STR_ARG(split->name), n, split->n_folders);
    }
    switch (p->opts->dataset->pack.kind) {
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

static int check_order(const struct synth_planner *p, struct err *err)
{
    for (size_t idx = 1; idx < p->members.n; idx++) {
        if (str_eq(p->members.items[idx - 1].path, p->members.items[idx].path)) {
            return err_set(err, ERR_MANIFEST, "two files of the synthetic dataset would be %.*s",
                           STR_ARG(p->members.items[idx].path));
        }
    }
    return 0;
}

int synth_plan_make(struct arena *arena, const struct synth_opts *opts, struct synth_plan *ret_plan,
                    struct err *err)
{
    const struct dataset_synthetic *synthetic = &opts->dataset->synthetic;
    struct synth_planner p = {.opts = opts, .arena = arena, .n_classes = 1};
    int result = 0;
    for (size_t idx = 0; idx < synthetic->n_splits; idx++) {
        uint32_t n_folders = (uint32_t)synthetic->splits[idx].n_folders;
        p.n_classes = n_folders > p.n_classes ? n_folders : p.n_classes;
    }
    for (size_t idx = 0; result == 0 && idx < synthetic->n_splits; idx++) {
        result = plan_split(&p, idx, err);
    }
    if (result == 0) {
        qsort(p.members.items, p.members.n, sizeof(p.members.items[0]), by_path);
        result = check_order(&p, err);
    }
    if (result == 0) {
        ret_plan->n = p.members.n;
        ret_plan->members = arena_array(arena, struct synth_member, p.members.n);
        memcpy(ret_plan->members, p.members.items, p.members.n * sizeof(p.members.items[0]));
    }
    VEC_RELEASE(&p.members);
    return result;
}
