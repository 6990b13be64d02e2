/* SPDX-License-Identifier: Apache-2.0 */
/* The archives of a dataset into the store: from the store itself, from its folder for files provided by the user, or over the
   network; each checked against what is known of it. */
#include "base/base.h"

#include "store/dataset_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/progress.h"

#define PIECES_TEXT_MAX (FETCH_PIECES_MAX * (size_t)SHA256_HEX_SIZE)
/* A compressed archive of data that is compressed already (JPEG, PNG, HDF5 with deflate) grows little; label maps and text
   grow more. */
#define UNPACK_GROWTH 3

struct getting {
    const struct dataset_job *job;
    struct dataset_record earlier; /* what the store remembers */
    struct dataset_fetched *fetched;
};

int64_t dataset_unpacked_bytes(const struct dataset_file *file)
{
    if (file->size_bytes < 0) {
        return -1;
    }
    return !file->unpack.ptr || str_eq_z(file->unpack, "tar") ? file->size_bytes
                                                              : UNPACK_GROWTH * file->size_bytes;
}

const char *const DATASET_ORIGINS[DATASET_N_ORIGINS] = {
    [FROM_STORE] = "store",     [FROM_INCOMING] = "incoming", [FROM_NET] = "network",
    [FROM_SYNTH] = "synthetic", [FROM_PERSON] = "person",
};

struct str dataset_now(const struct dataset_job *job)
{
    return clock_text(job->arena, job->net->opts->clock);
}

struct dataset_record dataset_record_new(const struct dataset_job *job, size_t n_files)
{
    return (struct dataset_record){
        .is_synthetic = job->here->is_synthetic,
        .date = dataset_now(job),
        .seen = {.kind = LOCK_DATASET,
                 .id = job->here->dataset.id,
                 .items = arena_array(job->arena, struct lock_item, n_files + 1),
                 .n_files = -1,
                 .file_bytes = -1}};
}

static struct lock_item item_of(struct str name, int64_t size_bytes, const uint8_t *md5,
                                const uint8_t *sha256)
{
    struct lock_item item = {
        .name = name, .size_bytes = size_bytes, .has_md5 = md5, .has_sha256 = sha256};
    if (md5) {
        memcpy(item.md5, md5, MD5_BYTES);
    }
    if (sha256) {
        memcpy(item.sha256, sha256, SHA256_BYTES);
    }
    return item;
}

struct lock_item dataset_file_known(const struct dataset_file *file)
{
    struct lock_item item = item_of(file->name, file->size_bytes, file->has_md5 ? file->md5 : NULL,
                                    file->has_sha256 ? file->sha256 : NULL);
    item.date = STR_LIT("its publication");
    return item;
}

struct lock_item dataset_file_found(struct str name, const struct digest_value *value,
                                    const char *url, struct str date)
{
    struct lock_item item = item_of(name, (int64_t)value->size_bytes, value->md5, value->sha256);
    item.url = str_of(url);
    item.date = date;
    return item;
}

/* Records what was fetched so far and by an earlier fetch: if the process dies now, gc must not drop what has not been
   checked yet. */
static int remember(struct getting *g, struct err *err)
{
    const struct dataset_job *job = g->job;
    struct dataset_record both = g->fetched->record;
    size_t n = both.seen.n_items;
    both.seen.items = arena_array(job->arena, struct lock_item, n + g->earlier.seen.n_items + 1);
    memcpy(both.seen.items, g->fetched->record.seen.items, n * sizeof(both.seen.items[0]));
    for (size_t idx = 0; idx < g->earlier.seen.n_items; idx++) {
        const struct lock_item *item = &g->earlier.seen.items[idx];
        if (!lock_find(&g->fetched->record.seen, item->name) &&
            store_has(job->store, item->sha256, NULL)) {
            both.seen.items[both.seen.n_items++] = *item;
        }
    }
    return dataset_ref_write(job->store, job->here->name, &both, err);
}

static int keep(struct getting *g, const struct dataset_file *file, const struct dataset_got *got,
                struct err *err)
{
    struct dataset_record *record = &g->fetched->record;
    struct dataset_got *kept = &g->fetched->files[g->fetched->n_files++];
    *kept = *got;
    kept->is_checked = file->has_md5 || file->has_sha256;
    record->seen.items[record->seen.n_items++] = got->item;
    record->date = dataset_now(g->job);
    return remember(g, err);
}

/* ---- from the store ---- */

static int read_earlier(struct getting *g, struct err *err)
{
    const struct dataset_job *job = g->job;
    struct err none = {0};
    return dataset_ref_read(job->arena, job->store, job->here->name, &g->earlier, &none) < 0 &&
                   none.code != ERR_NOT_FOUND
               ? err_pass(err, &none)
               : 0;
}

/* A blob of an earlier fetch that does not match what is known now, or is gone, is not used. */
static bool find_in_store(const struct getting *g, const struct dataset_file *file,
                          struct lock_item *ret_item)
{
    const struct store *store = g->job->store;
    const struct lock_item known = dataset_file_known(file);
    const struct lock_item *item = lock_find(&g->earlier.seen, file->name);
    struct digest_value value = {0};
    if (item && store_has(store, item->sha256, NULL) &&
        lock_check_item(&known, item, file->name.ptr, ERR_IGNORED) == 0) {
        *ret_item = *item;
        return true;
    }
    memcpy(value.md5, file->md5, MD5_BYTES);
    memcpy(value.sha256, file->sha256, SHA256_BYTES);
    if ((!file->has_sha256 &&
         (!file->has_md5 || store_find_md5(store, file->md5, value.sha256, ERR_IGNORED) < 0)) ||
        !store_has(store, value.sha256, &value.size_bytes)) {
        return false;
    }
    *ret_item = dataset_file_found(file->name, &value, NULL, dataset_now(g->job));
    ret_item->has_md5 = file->has_md5;
    return true;
}

/* ---- brought by a person ---- */

static const char *incoming_path(const struct getting *g, const struct dataset_file *file)
{
    return store_path(g->job->store, arena_printf(g->job->arena, "incoming/%s", file->name.ptr));
}

static void show_bytes(void *ctx, uint64_t bytes_done)
{
    progress_set(ctx, bytes_done);
}

int dataset_digest_file(const char *path, const char *what, struct clock_src clock,
                        struct digest_value *ret_value, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    struct progress progress;
    struct stat info;
    if (fs_open(path, &fd, &info, err) < 0) {
        return -1;
    }
    const struct digest_copy copy = {.from_fd = fd,
                                     .to_fd = -1,
                                     .name = path,
                                     .kinds = DIGEST_MD5 | DIGEST_SHA256,
                                     .on_bytes = show_bytes,
                                     .ctx = &progress};
    progress_start(&progress, clock, what, "bytes", (uint64_t)info.st_size);
    int result = digest_copy(&copy, ret_value, err);
    progress_end(&progress);
    return result;
}

/* "147897477120 bytes, MD5 1d67..., SHA-256 not known" */
static const char *expected_text(struct arena *arena, const struct dataset_file *file)
{
    const struct hex md5 = md5_hex_of(file->md5), sha256 = sha256_hex_of(file->sha256);
    const char *size = file->size_bytes < 0
                           ? "size not known"
                           : arena_printf(arena, "%lld bytes", (long long)file->size_bytes);
    return arena_printf(arena, "%s, MD5 %s, SHA-256 %s", size,
                        file->has_md5 ? md5.text : "not known",
                        file->has_sha256 ? sha256.text : "not known");
}

static int from_incoming(struct getting *g, const struct dataset_file *file, bool *ret_has,
                         struct err *err)
{
    const char *path = incoming_path(g, file);
    struct lock_item known = dataset_file_known(file);
    struct dataset_got got = {.origin = FROM_INCOMING};
    struct digest_value value;
    struct stat info;
    *ret_has = false;
    if (lstat(path, &info) < 0) {
        return 0;
    }
    log_line(LOG_INFO, "%s: reading %s", g->job->here->name, path);
    if (dataset_digest_file(path, "incoming", g->job->net->opts->clock, &value, err) < 0) {
        return -1;
    }
    got.item = dataset_file_found(file->name, &value, NULL, dataset_now(g->job));
    if (lock_check_item(&known, &got.item, file->name.ptr, ERR_IGNORED) < 0) {
        log_line(LOG_WARN,
                 "%s: not the file that is expected (%s): it has %llu bytes, MD5 %s; left there",
                 path, expected_text(g->job->arena, file), (unsigned long long)value.size_bytes,
                 md5_hex_of(value.md5).text);
        return 0;
    }
    if (S_ISREG(info.st_mode) && info.st_nlink == 1) {
        if (store_adopt(g->job->store, path, &value, err) < 0) {
            return -1;
        }
    } else if (store_add_file(g->job->store, path, NULL, &value, err) < 0) {
        return -1;
    }
    *ret_has = true;
    return keep(g, file, &got, err);
}

/* ---- over the network ---- */

static int read_pieces(struct getting *g, const struct dataset_file *file,
                       struct fetch_pieces *ret_pieces, struct err *err)
{
    const char *folder = file->pieces_are_locks
                             ? fs_join(g->job->arena, g->job->here->locks, "dataset")
                             : g->job->here->folder;
    const char *path = fs_join(g->job->arena, folder, file->pieces_path.ptr);
    struct str rest;
    struct str line;
    uint8_t(*sha256)[SHA256_BYTES];
    size_t n = 0;
    if (fs_read(g->job->arena, path, PIECES_TEXT_MAX, &rest, err) < 0) {
        return -1;
    }
    size_t room = rest.len / (SHA256_HEX_SIZE) + 1;
    sha256 = arena_alloc_array(g->job->arena, SHA256_BYTES, room, 1);
    while (str_next(&rest, '\n', &line)) {
        if (line.len == 0 && !rest.ptr) {
            break;
        }
        if (n == room || hex_decode(line, SHA256_BYTES, sha256[n], ERR_IGNORED) < 0) {
            return err_set(err, ERR_MANIFEST, "%s:%zu: expected a SHA-256 in hex", path, n + 1);
        }
        n++;
    }
    *ret_pieces = (struct fetch_pieces){(uint64_t)file->piece_bytes,
                                        (const uint8_t(*)[SHA256_BYTES])sha256, n};
    return 0;
}

/* It cannot or must not be downloaded: the user has to provide it. */
static int want_it(struct getting *g, const struct dataset_file *file, struct err *err)
{
    const struct net_opts *net = g->job->net->opts;
    const char *why = g->job->here->dataset.needs_login && !net_has_login(net) && !net->is_offline
                          ? "its owner gives it to registered users only (--netrc, --cookies)"
                      : net->is_offline ? "offline, and it is not in the store"
                                        : "no known source offers it";
    g->fetched->wanted[g->fetched->n_wanted++] =
        (struct dataset_wanted){file, incoming_path(g, file)};
    return err_set(err, ERR_FETCH, "%s: %s. Expected: %s. From: %s. Put it at %s", file->name.ptr,
                   why, expected_text(g->job->arena, file), file->n_urls ? file->urls[0].ptr : "-",
                   incoming_path(g, file));
}

/* The mirrors that may be asked, the named one first. */
static int urls_of(struct getting *g, const struct dataset_file *file, const char **urls,
                   size_t *ret_n, struct err *err)
{
    const struct net_opts *net = g->job->net->opts;
    bool is_gated = g->job->here->dataset.needs_login && !net_has_login(net);
    char *mirror = NULL;
    size_t n = 0;
    if (net_mirror_url(g->job->arena, net, file->name.ptr, &mirror, err) < 0) {
        return -1;
    }
    if (mirror && net_allows_url(net, mirror)) {
        urls[n++] = mirror;
    }
    for (size_t idx = 0; idx < file->n_urls && !is_gated; idx++) {
        if (!net_allows_url(net, file->urls[idx].ptr)) {
            continue;
        }
        if (n == FETCH_MIRRORS_MAX) {
            return err_set(err, ERR_USAGE, "%s: more than %d addresses, the mirror's among them",
                           file->name.ptr, FETCH_MIRRORS_MAX);
        }
        urls[n++] = file->urls[idx].ptr;
    }
    *ret_n = n;
    return 0;
}

/* What must stay free for the archives that are still to come and for all trees. */
static uint64_t spare_bytes(const struct getting *g, size_t from)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(g->job->here, &n);
    uint64_t spare = 0;
    for (size_t idx = 0; idx < n; idx++) {
        int64_t tree = g->job->wants_tree ? dataset_unpacked_bytes(&files[idx]) : 0;
        spare += tree > 0 ? (uint64_t)tree : 0;
        spare += idx > from && files[idx].size_bytes > 0 ? (uint64_t)files[idx].size_bytes : 0;
    }
    return spare;
}

/* The URL by its digest: a mirror's may hold a password, and this is a name on the disk and in messages. */
static const char *partial_key(struct arena *arena, const struct dataset_file *file,
                               const char *url)
{
    uint8_t of_url[SHA256_BYTES];
    if (file->has_sha256) {
        return arena_printf(arena, "sha256:%s", sha256_hex_of(file->sha256).text);
    }
    if (file->has_md5) {
        return arena_printf(arena, "md5:%s", md5_hex_of(file->md5).text);
    }
    sha256_of(str_of(url), of_url);
    return arena_printf(arena, "%s-%.16s", file->name.ptr, sha256_hex_of(of_url).text);
}

static int adopt(struct getting *g, const struct dataset_file *file,
                 const struct fetch_result *result, struct err *err)
{
    struct dataset_got got = {.origin = FROM_NET,
                              .received_bytes = result->received_bytes,
                              .again_bytes = result->again_bytes,
                              .kept_bytes = result->kept_bytes,
                              .n_bad_pieces = result->n_bad_pieces};
    got.item = dataset_file_found(file->name, &result->value,
                                  http_url_shown(g->job->arena, result->url), dataset_now(g->job));
    return store_adopt(g->job->store, result->data_path, &result->value, err) < 0
               ? -1
               : keep(g, file, &got, err);
}

static int from_net(struct getting *g, size_t idx, const struct dataset_file *file, struct err *err)
{
    CLEANUP(fetch) struct fetch *fetch = NULL;
    const struct net_opts *net = g->job->net->opts;
    const char *urls[FETCH_MIRRORS_MAX];
    struct fetch_pieces pieces;
    struct fetch_spec spec = {.name = file->name.ptr,
                              .urls = urls,
                              .size_bytes = file->size_bytes,
                              .kinds = DIGEST_MD5 | DIGEST_SHA256,
                              .md5 = file->has_md5 ? file->md5 : NULL,
                              .sha256 = file->has_sha256 ? file->sha256 : NULL,
                              .n_connections = net->n_connections,
                              .n_retries = net->n_retries,
                              .rate_bytes_per_s = net->rate_bytes_per_s,
                              .spare_bytes = spare_bytes(g, idx)};
    if (urls_of(g, file, urls, &spec.n_urls, err) < 0) {
        return -1;
    }
    if (spec.n_urls == 0) {
        return want_it(g, file, err);
    }
    if (file->pieces_path.ptr) {
        if (read_pieces(g, file, &pieces, err) < 0) {
            return -1;
        }
        spec.pieces = &pieces;
    }
    spec.folder =
        store_partial(g->job->store, partial_key(g->job->arena, file, urls[spec.n_urls - 1]));
    if (net_open(g->job->net, err) < 0) {
        return -1;
    }
    struct fetch_run run = net_fetch_run(g->job->net);
    if (fetch_new(&run, &spec, &fetch, err) < 0 || fetch_all(fetch, err) < 0 ||
        adopt(g, file, fetch_result(fetch), err) < 0) {
        return -1;
    }
    fetch_free(fetch);
    fetch = NULL;
    return fs_remove_tree(spec.folder, err);
}

/* ---- what would be done ---- */

static int foresee_one(struct getting *g, const struct dataset_file *file, struct dataset_got *ret,
                       struct err *err)
{
    const char *urls[FETCH_MIRRORS_MAX];
    size_t n_urls = 0;
    *ret = (struct dataset_got){.item = dataset_file_known(file), .origin = FROM_STORE};
    if (find_in_store(g, file, &ret->item)) {
        ret->item.url = STR_EMPTY;
    } else if (fs_exists(incoming_path(g, file))) {
        ret->origin = FROM_INCOMING;
    } else if (g->job->here->is_synthetic) {
        ret->origin = FROM_SYNTH;
    } else {
        if (urls_of(g, file, urls, &n_urls, err) < 0) {
            return -1;
        }
        ret->origin = n_urls ? FROM_NET : FROM_PERSON;
        ret->item.url = str_of(n_urls ? http_url_shown(g->job->arena, urls[0]) : NULL);
    }
    return 0;
}

int dataset_foresee(const struct dataset_job *job, struct dataset_fetched *ret_fetched,
                    struct err *err)
{
    struct getting g = {.job = job};
    struct dataset_job other = *job;
    size_t n = 0;
    if (job->here->from && dataset_state(job->arena, job->store, job->here) != DATASET_TREE) {
        other.here = job->here->from;
        return dataset_foresee(&other, ret_fetched, err);
    }
    const struct dataset_file *files = dataset_files_of(job->here, &n);
    *ret_fetched =
        (struct dataset_fetched){.files = arena_array(job->arena, struct dataset_got, n + 1)};
    if (read_earlier(&g, err) < 0) {
        return -1;
    }
    while (ret_fetched->n_files < n) {
        const size_t idx = ret_fetched->n_files++;
        if (foresee_one(&g, &files[idx], &ret_fetched->files[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- all of them ---- */

static int get_one(struct getting *g, size_t idx, const struct dataset_file *file, struct err *err)
{
    struct dataset_got got = {.origin = FROM_STORE};
    bool has = false;
    if (find_in_store(g, file, &got.item)) {
        return keep(g, file, &got, err);
    }
    return from_incoming(g, file, &has, err) < 0 ? -1 : has ? 0 : from_net(g, idx, file, err);
}

int dataset_get_files(const struct dataset_job *job, struct dataset_fetched *fetched,
                      struct err *err)
{
    struct getting g = {.job = job, .fetched = fetched};
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(job->here, &n);
    if (read_earlier(&g, err) < 0) {
        return -1;
    }
    fetched->record = dataset_record_new(job, n);
    fetched->files = arena_array(job->arena, struct dataset_got, n + 1);
    fetched->wanted = arena_array(job->arena, struct dataset_wanted, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        struct err one = {0};
        /* A file that the user must provide does not stop the others from being fetched: all are named at once. */
        if (get_one(&g, idx, &files[idx], &one) < 0) {
            *err = err->code ? *err : one;
            if (one.code != ERR_FETCH) {
                break;
            }
        }
    }
    return err->code ? err_wrap(err, "%s", job->here->name) : 0;
}
