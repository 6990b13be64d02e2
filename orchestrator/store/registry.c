/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a registry, and how what skopeo brings gets into the store.

   A pull has a folder of its own, partial/image-HEX (HEX: the manifest's digest), which is an OCI layout. skopeo gives a blob its
   name there only once it is whole, and takes what is there already for granted. So:

   1. Before skopeo starts, every blob in the folder has the digest that it is named by (it is hashed, or it is a link to the
      store's), and half-written files of an earlier skopeo are gone.
   2. After it has ended, however it ended, each new blob is hashed, and moved into the store only if its digest and size are
      those of the manifest that our caller has checked.
   3. One process at a time works in the folder: it holds the folder's lock, and so does its skopeo, which may outlive it.

   If this process is killed between the two, the next pull of that image starts with what the folder has. */
#include "base/base.h"

#include "store/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/temp.h"
#include "net/http.h"
#include "store/image_impl.h"
#include "store/skopeo.h"

#define IMAGE_NAME "it"           /* in the folder's index.json, which nobody reads */
#define SCRATCH    "oci-put-blob" /* how skopeo begins the name of a file that it writes */

/* ---- one call ---- */

struct registry_call {
    const struct registry *r;
    struct arena *arena;
    const struct oci_ref *ref;
    struct oci_login login;
    struct temp *auth; /* mode 0600, with the login for this one registry; NULL: there is none */
};

static void registry_call_cleanup(struct registry_call *ask)
{
    temp_free(ask->auth);
}

static const char *name_of(const struct registry_call *ask)
{
    return oci_ref_text(ask->arena, ask->ref);
}

static int write_login(struct registry_call *ask, struct err *err)
{
    const char *folder = fs_join(ask->arena, ask->r->tmp_folder, "");
    const char *text = arena_printf(ask->arena, "{\"auths\":{\"%.*s\":{\"auth\":\"%.*s\"}}}",
                                    STR_ARG(ask->ref->host), STR_ARG(ask->login.packed));
    if (temp_file(folder, 0600, &ask->auth) < 0) {
        return err_errno(err, "create a file in", folder);
    }
    return fs_write_all(ask->auth->fd, text, strlen(text), ask->auth->path, err);
}

static int ask_open(struct registry_call *ask, struct err *err)
{
    const char *path = ask->r->auth_path;
    struct str logins;
    if (http_check_secret(path, err) < 0) {
        err->code = err->code == ERR_NOT_FOUND ? ERR_USAGE : err->code; /* the image is not gone */
        return err_wrap(err, "login file");
    }
    if (path && (fs_read(ask->arena, path, OCI_AUTH_FILE_MAX, &logins, err) < 0 ||
                 oci_login_find(ask->arena, logins, path, ask->ref, &ask->login, err) < 0)) {
        return -1;
    }
    return ask->login.user.ptr ? write_login(ask, err) : 0;
}

static bool may_be_plain(const struct registry *r, struct str host)
{
    for (size_t idx = 0; idx < r->n_plain_hosts; idx++) {
        if (str_eq_z(host, r->plain_hosts[idx])) {
            return true;
        }
    }
    return oci_host_is_loopback(host);
}

/* The verb, the options about the registry, and the other words. */
static int call_once(struct registry_call *ask, const struct skopeo_call *how, bool is_plain,
                     int n_retries, struct err *err)
{
    const char *const *words = how->args;
    const char *prefix = strcmp(words[0], "copy") == 0 ? "src-" : "";
    const char *argv[SKOPEO_ARGS_MAX];
    struct skopeo_call one = *how;
    size_t n = 0;
    argv[n++] = words[0];
    argv[n++] = arena_printf(ask->arena, "--%stls-verify=%s", prefix, is_plain ? "false" : "true");
    argv[n++] = arena_printf(ask->arena, "--retry-times=%d", n_retries);
    argv[n++] = ask->auth ? arena_printf(ask->arena, "--%sauthfile=%s", prefix, ask->auth->path)
                          : arena_printf(ask->arena, "--%sno-creds", prefix);
    for (size_t idx = 1; words[idx]; idx++) {
        argv[n++] = words[idx];
    }
    argv[n] = NULL;
    one.args = argv;
    one.secret = ask->login.password;
    return skopeo_run(ask->arena, ask->r, &one, err);
}

/* TLS first, and once only where plain HTTP may be what the host speaks. */
static int call(struct registry_call *ask, struct skopeo_call how, struct err *err)
{
    int n_retries = ask->r->n_retries ? ask->r->n_retries : REGISTRY_RETRIES;
    struct err why = {.code = ERR_NET};
    bool is_plain = false;
    if (may_be_plain(ask->r, ask->ref->host)) {
        how.ret_is_plain = &is_plain;
        why = (struct err){0};
        if (call_once(ask, &how, false, 0, &why) == 0) {
            return 0;
        }
        how.ret_is_plain = NULL;
    }
    if (why.code != ERR_NET) {
        *err = why;
    }
    return why.code != ERR_NET || call_once(ask, &how, is_plain, n_retries, err) < 0
               ? err_wrap(err, "%s", name_of(ask))
               : 0;
}

static const char *address_of(const struct registry_call *ask)
{
    struct oci_ref ref = *ask->ref;
    if (ref.has_digest) {
        ref.tag = STR_EMPTY; /* skopeo takes one of them */
    }
    return arena_printf(ask->arena, "docker://%s", oci_ref_text(ask->arena, &ref));
}

/* What the registry has, as skopeo prints it. */
static int inspect(struct registry_call *ask, const char *const *args, size_t max,
                   struct str *ret_text, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(max);
    const struct skopeo_call how = {.args = args, .out = &out, .deadline_ns = REGISTRY_ANSWER_NS};
    if (call(ask, how, err) < 0) {
        return -1;
    }
    *ret_text = str_dup(ask->arena, strbuf_str(&out));
    return out.is_full ? err_set(err, ERR_FETCH, "%s: %s of more than %zu bytes", name_of(ask),
                                 args[1], max)
                       : 0;
}

int registry_manifest(const struct registry *r, struct arena *arena, const struct oci_ref *ref,
                      struct str *ret_text, struct err *err)
{
    CLEANUP(registry_call) struct registry_call ask = {.r = r, .arena = arena, .ref = ref};
    if (!ref->has_digest && !ref->tag.ptr) {
        return err_set(err, ERR_USAGE, "image %s: expected a tag or a digest", name_of(&ask));
    }
    return ask_open(&ask, err) < 0
               ? -1
               : inspect(&ask, SKOPEO_ARGS("inspect", "--raw", address_of(&ask)),
                         OCI_MANIFEST_BYTES_MAX, ret_text, err);
}

/* ---- blobs ---- */

struct pull {
    struct registry_call ask;
    struct store *store;
    const struct oci_descriptor *blobs; /* config, then layers */
    size_t n_blobs;
    const char *folder, *blob_folder;
    uint64_t total_bytes, kept_bytes;
    /* while skopeo runs */
    uint64_t at_bytes;
    int64_t moved_ns;
    struct progress progress;
};

static const char *path_of(const struct pull *pull, const struct oci_descriptor *blob)
{
    return fs_join(pull->ask.arena, pull->blob_folder, sha256_hex_of(blob->sha256).text);
}

/* Into the store if its bytes are what its name says, else away with it. A folder without it is no error. */
static int take(struct pull *pull, const struct oci_descriptor *blob, bool *ret_is_false,
                struct err *err)
{
    const char *path = path_of(pull, blob);
    struct digest_value value;
    if (image_has_blob(pull->store, blob) || !fs_exists(path)) {
        return 0;
    }
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    if (memcmp(value.sha256, blob->sha256, SHA256_BYTES) == 0 &&
        value.size_bytes == blob->size_bytes) {
        return store_adopt(pull->store, path, &value, err);
    }
    *ret_is_false = true;
    return unlink(path) < 0 ? err_errno(err, "remove", path) : 0;
}

static int take_all(struct pull *pull, struct err *err)
{
    const struct oci_descriptor *bad = NULL;
    for (size_t idx = 0; idx < pull->n_blobs; idx++) {
        bool is_false = false;
        if (take(pull, &pull->blobs[idx], &is_false, err) < 0) {
            return -1;
        }
        bad = is_false ? &pull->blobs[idx] : bad;
    }
    if (bad) {
        return err_set(err, ERR_INTEGRITY, "%s: what came for %s has other bytes",
                       name_of(&pull->ask), oci_digest_of(bad->sha256).text);
    }
    return 0;
}

/* The bytes of all files in a folder that begin with a prefix. */
static uint64_t folder_bytes(const char *folder, const char *prefix, bool removes)
{
    DIR *dir = opendir(folder);
    uint64_t bytes = 0;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        struct stat st;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            bytes += (uint64_t)st.st_size;
            if (removes) {
                (void)unlinkat(dirfd(dir), entry->d_name, 0);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
    return bytes;
}

/* Invariant 1. What the store has counts as kept, and skopeo sees it as a link. */
static int prepare(struct pull *pull, struct err *err)
{
    struct err ignored = {0};
    (void)folder_bytes(pull->folder, SCRATCH, true);
    if (take_all(pull, &ignored) < 0 && ignored.code != ERR_INTEGRITY) {
        return err_pass(err, &ignored);
    }
    for (size_t idx = 0; idx < pull->n_blobs; idx++) {
        const struct oci_descriptor *blob = &pull->blobs[idx];
        const char *path = path_of(pull, blob);
        if (!image_has_blob(pull->store, blob)) {
            continue;
        }
        pull->kept_bytes += blob->size_bytes;
        /* One layer may stand twice in an image. */
        if (link(store_blob_path(pull->store, blob->sha256), path) < 0 && errno != EEXIST) {
            return err_errno(err, "link", path);
        }
    }
    return 0;
}

static bool moves(void *ctx)
{
    struct pull *pull = ctx;
    int64_t now_ns = pull->ask.r->clock.mono_ns(pull->ask.r->clock.ctx);
    uint64_t bytes =
        folder_bytes(pull->folder, SCRATCH, false) + folder_bytes(pull->blob_folder, "", false);
    if (bytes != pull->at_bytes) {
        pull->at_bytes = bytes;
        pull->moved_ns = now_ns;
    }
    if (pull->ask.r->wants_progress) {
        progress_set(&pull->progress, bytes);
    }
    return now_ns - pull->moved_ns < REGISTRY_SILENCE_NS;
}

static int copy(struct pull *pull, struct err *err)
{
    struct clock_src clock = pull->ask.r->clock;
    const struct skopeo_call how = {
        .args = SKOPEO_ARGS("copy", "--quiet", "--dest-oci-accept-uncompressed-layers",
                            address_of(&pull->ask),
                            arena_printf(pull->ask.arena, "oci:%s:" IMAGE_NAME, pull->folder)),
        .is_alive = moves,
        .alive_ctx = pull};
    pull->moved_ns = clock.mono_ns(clock.ctx);
    progress_start(&pull->progress, clock, "fetch", "bytes", pull->total_bytes);
    int result = call(&pull->ask, how, err);
    if (pull->ask.r->wants_progress) {
        progress_end(&pull->progress);
    }
    return result;
}

/* skopeo makes a config of its own out of one in Docker's types; the registry's is asked for by itself. */
static int get_config(struct pull *pull, struct err *err)
{
    const struct oci_descriptor *config = &pull->blobs[0];
    uint8_t sha256[SHA256_BYTES];
    struct str text;
    if (image_has_blob(pull->store, config)) {
        return 0;
    }
    if (inspect(&pull->ask, SKOPEO_ARGS("inspect", "--config", "--raw", address_of(&pull->ask)),
                OCI_CONFIG_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    sha256_of(text, sha256);
    return memcmp(sha256, config->sha256, SHA256_BYTES) == 0
               ? store_add_text(pull->store, text, sha256, err)
               : err_set(err, ERR_INTEGRITY,
                         "%s: its config has other bytes than its manifest says",
                         name_of(&pull->ask));
}

static int check_whole(struct pull *pull, struct err *err)
{
    for (size_t idx = 0; idx < pull->n_blobs; idx++) {
        if (!image_has_blob(pull->store, &pull->blobs[idx])) {
            return err_set(err, ERR_INTEGRITY, "%s: skopeo reported success, but %s is missing",
                           name_of(&pull->ask), oci_digest_of(pull->blobs[idx].sha256).text);
        }
    }
    return 0;
}

/* Invariant 2. */
static int fetch(struct pull *pull, struct err *err)
{
    struct err why = {0};
    int result = prepare(pull, err);
    if (result < 0 || pull->kept_bytes == pull->total_bytes) {
        return result;
    }
    result = copy(pull, err);
    if (take_all(pull, &why) < 0 && result == 0) {
        return err_pass(err, &why);
    }
    return result < 0 || get_config(pull, err) < 0 ? -1 : check_whole(pull, err);
}

int registry_pull(const struct registry *r, const struct oci_ref *ref,
                  const struct oci_manifest *manifest, struct store *store,
                  uint64_t *ret_kept_bytes, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(fd) int lock_fd = -1;
    CLEANUP(registry_call) struct registry_call ask = {.r = r, .arena = &arena, .ref = ref};
    struct pull pull = {.store = store,
                        .n_blobs = manifest->n_layers + 1,
                        .total_bytes = oci_manifest_bytes(manifest)};
    struct oci_descriptor *blobs = arena_array(&arena, struct oci_descriptor, pull.n_blobs);
    ASSERT(ref->has_digest);
    blobs[0] = manifest->config;
    memcpy(blobs + 1, manifest->layers, manifest->n_layers * sizeof(blobs[0]));
    pull.blobs = blobs;
    pull.folder =
        store_partial(store, arena_printf(&arena, "image-%s", sha256_hex_of(ref->sha256).text));
    pull.blob_folder = fs_join(&arena, pull.folder, "blobs/sha256");
    if (strchr(pull.folder, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", store->folder);
    }
    if (fs_mkdir_p(pull.blob_folder, err) < 0 ||
        fs_lock(fs_join(&arena, pull.folder, "lock"), &lock_fd, err) < 0) {
        return -1;
    }
    (void)fcntl(lock_fd, F_SETFD, 0); /* not FD_CLOEXEC: invariant 3 */
    int result = ask_open(&ask, err);
    pull.ask = ask;
    result = result < 0 ? result : fetch(&pull, err);
    fs_drop_tree(pull.folder);
    *ret_kept_bytes = pull.kept_bytes;
    return result;
}
