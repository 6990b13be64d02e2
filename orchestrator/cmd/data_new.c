/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf data new NAME PLACE...`: a description of data of one's own. It is written from what the data is: its archives are
   put into the store (a folder becomes one), unpacked there as `data fetch` does, and the groups, counts and digests are read
   off the tree. */
#include "base/base.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/stop.h"
#include "cmd/net_args.h"
#include "codec/json_table.h"
#include "codec/unpack.h"
#include "load/places.h"
#include "store/dataset_describe.h"
#include "store/dataset_store.h"
#include "store/dataset_tar.h"
#include "store/dataset_verify.h"
#include "sys/tree.h"

#define DOCUMENT_MAX (16u << 20)
#define TREE_THREADS 8

struct args {
    struct net_args net; /* first: NET_ARGS_OPTS */
    const char *licence, *title;
    bool needs_login;
};

static const struct opt OPTS[] = {
    OPT(struct args, licence, "licence",
        "under what terms it may be used; \"unstated\" where nobody says", .value = "TEXT"),
    OPT(struct args, title, "title", "what it is, in words (default: its name)", .value = "TEXT"),
    OPT(struct args, needs_login, "login", "its addresses require a login (--netrc or --cookies)"),
    NET_ARGS_OPTS,
    OPT_END,
};

struct describing {
    struct strbuf *out;
    struct arena *arena;
    const struct cmd_ctx *ctx;
    const struct args *args;
    struct store *store;
    struct net *net;
    const char *folder; /* of the description */
    struct dataset dataset;
    struct tree_list list; /* of a folder that was given */
};

static bool is_url(const char *place)
{
    return str_starts(str_of(place), STR_LIT("https://")) ||
           str_starts(str_of(place), STR_LIT("http://"));
}

static struct dataset_file *add_file(struct describing *m, const char *name)
{
    struct dataset_file *file = &m->dataset.files[m->dataset.n_files++];
    *file = (struct dataset_file){
        .name = str_of(name), .size_bytes = -1, .unpack = str_of(unpack_kind(name))};
    return file;
}

static void set_known(struct dataset_file *file, const struct lock_item *item)
{
    file->size_bytes = item->size_bytes;
    file->has_md5 = item->has_md5;
    file->has_sha256 = item->has_sha256;
    memcpy(file->md5, item->md5, MD5_BYTES);
    memcpy(file->sha256, item->sha256, SHA256_BYTES);
}

static void add_found(struct describing *m, const char *name, const struct digest_value *value)
{
    const struct lock_item item = dataset_file_found(str_of(name), value, NULL, STR_EMPTY);
    set_known(add_file(m, name), &item);
}

static int add_folder(struct describing *m, const char *folder, struct err *err)
{
    const char *name = arena_printf(m->arena, "%s.tar", m->dataset.id.ptr);
    const struct tree_opts opts = {
        .folder = folder, .pool = m->net->pool, .n_threads = TREE_THREADS, .kinds = DIGEST_SHA256};
    struct digest_value value;
    if (tree_hash(m->arena, &opts, &m->list, err) < 0) {
        return -1;
    }
    if (m->list.n == 0) {
        return err_set(err, ERR_USAGE, "%s: no file is in it", folder);
    }
    const struct dataset_tar_opts tar = {.list = &m->list, .folder = folder, .name = name};
    if (dataset_tar(m->store, &tar, &value, err) < 0) {
        return -1;
    }
    add_found(m, name, &value);
    return 0;
}

static int add_archive(struct describing *m, const char *path, struct err *err)
{
    struct digest_value value;
    if (store_add_file(m->store, path, NULL, &value, err) < 0) {
        return -1;
    }
    add_found(m, basename(path), &value);
    return 0;
}

/* Several URLs of one file name are mirrors of one file. */
static void add_url(struct describing *m, const char *url)
{
    const char *name = basename(url);
    struct dataset_file *file = NULL;
    for (size_t idx = 0; idx < m->dataset.n_files && !file; idx++) {
        file = str_eq_z(m->dataset.files[idx].name, name) ? &m->dataset.files[idx] : NULL;
    }
    file = file ? file : add_file(m, name);
    if (!file->urls) {
        file->urls = arena_array(m->arena, struct str, DATASET_URLS_MAX);
    }
    if (file->n_urls < DATASET_URLS_MAX) {
        file->urls[file->n_urls++] = str_of(url);
    }
}

static int add_places(struct describing *m, const struct opt_list *operands, struct err *err)
{
    m->dataset.files = arena_array(m->arena, struct dataset_file, DATASET_FILES_MAX);
    for (size_t idx = 1; idx < operands->n; idx++) {
        const char *at = operands->items[idx];
        if (m->dataset.n_files == DATASET_FILES_MAX) {
            return err_set(err, ERR_USAGE, "at most %d files", DATASET_FILES_MAX);
        }
        if (is_url(at)) {
            add_url(m, at);
        } else if (fs_is_dir(at)) {
            if (operands->n > 2) {
                return err_set(err, ERR_USAGE, "%s: a folder is given alone", at);
            }
            if (add_folder(m, at, err) < 0) {
                return -1;
            }
        } else if (add_archive(m, at, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int write_description(struct describing *m, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(DOCUMENT_MAX);
    json_encode_document(&text, DATASET_DOCUMENT.rows, DATASET_DOCUMENT.n_rows, &m->dataset);
    return fs_write_atomic(fs_join(m->arena, m->folder, "dataset.json"), strbuf_str(&text), err);
}

/* What a fetch learned of files of which only an address was given. */
static void take_seen(struct describing *m, const struct dataset_fetched *fetched)
{
    for (size_t idx = 0; idx < m->dataset.n_files; idx++) {
        struct dataset_file *file = &m->dataset.files[idx];
        const struct lock_item *item = lock_find(&fetched->record.seen, file->name);
        if (item && !file->has_sha256) {
            set_known(file, item);
        }
    }
}

static int fetch(struct describing *m, struct dataset_fetched *fetched, struct err *err)
{
    const struct dataset_which which = {.root = m->ctx->root, .id = m->dataset.id.ptr};
    struct dataset_here here;
    const struct dataset_job job = {.arena = m->arena,
                                    .store = m->store,
                                    .here = &here,
                                    .net = m->net,
                                    .self = m->ctx->self,
                                    .wants_tree = true};
    return dataset_load(m->arena, &which, &here, err) < 0 ? -1 : dataset_fetch(&job, fetched, err);
}

static int describe_tree(struct describing *m, const struct dataset_fetched *fetched,
                         struct err *err)
{
    const char *list_path = fs_join(m->arena, fetched->tree_path, DATASET_TREE_LIST);
    struct tree_differences differences = {0};
    struct tree_list list;
    if (tree_list_read(m->arena, list_path, &list, err) < 0) {
        return -1;
    }
    if (m->list.n) {
        tree_compare(m->arena, &m->list, &list, &differences);
    }
    if (differences.n) {
        return err_set(err, ERR_INTEGRITY, "%s: %s in the archive: it changed while it was read",
                       differences.items[0].path, TREE_FAULT_NAMES[differences.items[0].fault]);
    }
    m->dataset.list_path = STR_LIT(DATASET_TREE_LIST);
    m->dataset.has_list_sha256 = true;
    dataset_describe(m->arena, &list, &m->dataset);
    return tree_list_write(&list, fs_join(m->arena, m->folder, DATASET_TREE_LIST),
                           m->dataset.list_sha256, err);
}

/* A group of which a file is not what its name says is described as plain files: the tree is as it is, and holds. */
static int check_kinds(struct describing *m, struct err *err)
{
    const struct dataset_which which = {.root = m->ctx->root, .id = m->dataset.id.ptr};
    const struct dataset_verify_opts opts = {.depth = DEPTH_NORMAL,
                                             .pool = m->net->pool,
                                             .n_threads = TREE_THREADS,
                                             .clock = m->ctx->clock};
    struct dataset_here here;
    struct dataset_verified verified;
    if (dataset_load(m->arena, &which, &here, err) < 0 ||
        dataset_verify(m->arena, m->store, &here, &opts, &verified, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < verified.n_faults; idx++) {
        const struct dataset_fault *fault = &verified.faults[idx];
        if (fault->kind != FAULT_HEADER) {
            continue;
        }
        struct dataset_group *group =
            m->dataset.groups +
            (dataset_group_of(&m->dataset, str_of(fault->path)) - m->dataset.groups);
        if (group->format != FILE_ANY) {
            log_line(LOG_WARN, "%s: %s; files of %s are taken for plain files", fault->path,
                     fault->why, group->name.ptr);
            group->format = FILE_ANY;
            m->dataset.pack.kind = PACK_NONE;
        }
    }
    return verified.n_of[FAULT_HEADER] ? write_description(m, err) : 0;
}

static void print_made(const struct describing *m, const struct dataset_fetched *fetched)
{
    const char *id = m->dataset.id.ptr;
    strbuf_printf(m->out, "%s: %lld files, %lld bytes\n", id, (long long)fetched->tree.seen.n_files,
                  (long long)fetched->tree.seen.file_bytes);
    for (size_t idx = 0; idx < m->dataset.n_groups; idx++) {
        const struct dataset_group *group = &m->dataset.groups[idx];
        strbuf_printf(m->out, "  %-20s %lld files  %s\n", group->name.ptr,
                      (long long)group->n_files, group->glob.ptr);
    }
    strbuf_printf(m->out,
                  "  %s/dataset.json\n  %s\n"
                  "reperf data verify %s checks it; data verify FOLDER --as %s checks a copy%s\n",
                  m->folder, fetched->tree_path, id, id,
                  m->dataset.pack.kind == PACK_NONE ? "" : "; data pack makes shards of it");
}

static int make(struct describing *m, const struct opt_list *operands, struct err *err)
{
    struct dataset_fetched fetched = {0};
    if (net_open(m->net, err) < 0 || add_places(m, operands, err) < 0 ||
        fs_mkdir_p(m->folder, err) < 0 || write_description(m, err) < 0 ||
        fetch(m, &fetched, err) < 0) {
        return -1;
    }
    take_seen(m, &fetched);
    if (describe_tree(m, &fetched, err) < 0 || write_description(m, err) < 0 ||
        check_kinds(m, err) < 0) {
        return -1;
    }
    print_made(m, &fetched);
    return 0;
}

static int find_folder(struct describing *m, struct err *err)
{
    const char *place;
    if (places_to_write(m->arena, m->ctx, &place, err) < 0) {
        return -1;
    }
    m->folder = fs_join(m->arena, fs_join(m->arena, place, "datasets"), m->dataset.id.ptr);
    return fs_exists(m->folder) ? err_set(err, ERR_USAGE, "%s is there already", m->folder) : 0;
}

static int check(const struct args *args, const struct opt_list *operands, struct err *err)
{
    if (operands->n < 2) {
        return err_set(err, ERR_USAGE,
                       "data new: expected a NAME, and a FOLDER, archives or addresses of them");
    }
    if (!is_slug(str_of(operands->items[0]))) {
        return err_set(
            err, ERR_USAGE,
            "data new: a NAME has at most 64 lower-case letters and digits, joined by - or ., "
            "not \"%.100s\"",
            operands->items[0]);
    }
    return args->licence
               ? 0
               : err_set(err, ERR_USAGE,
                         "data new: --licence TEXT says who may use it; --licence unstated where "
                         "nobody says");
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    const struct opt_list *operands = &call->operands;
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(net) struct net net;
    struct net_opts net_opts = {0};
    struct describing m = {.arena = call->arena,
                           .ctx = ctx,
                           .args = args,
                           .store = &store,
                           .net = &net,
                           .out = call->out};
    net_init(&net, &net_opts);
    if (check(args, operands, err) < 0 || net_args_opts(ctx, &args->net, &net_opts, err) < 0 ||
        store_open(call->arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    m.dataset = (struct dataset){
        .id = str_of(operands->items[0]),
        .title = str_of(args->title ? args->title : operands->items[0]),
        .licence = str_of(args->licence),
        .needs_login = args->needs_login,
        .pack = {.short_side = -1, .n_classes = -1, .sequence = -1, .predictions = -1},
        .synthetic = {.width = -1, .height = -1},
        .layout_source = STR_LIT("the tree itself, by reperf data new")};
    if (find_folder(&m, err) < 0) {
        return -1;
    }
    stop_hold();
    if (make(&m, operands, err) < 0) {
        (void)unlink(fs_join(call->arena, m.folder, "dataset.json"));
        (void)unlink(fs_join(call->arena, m.folder, DATASET_TREE_LIST));
        (void)rmdir(m.folder);
        return -1;
    }
    return 0;
}

const struct cmd DATA_NEW =
    CMD("new", "NAME FOLDER | ARCHIVE... | URL...",
        "describe data of one's own and put it into the store", OPTS, run, CMD_ARGS(struct args));
