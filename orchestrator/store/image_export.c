/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/image_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/publish.h"
#include "base/str.h"
#include "base/temp.h"
#include "store/copy_file.h"
#include "store/skopeo.h"
#include "sys/proc.h"

#define ASK_NS     (60 * NS_PER_S)
#define OUTPUT_MAX (64u << 10)
#define NAME_SHORT 12

const char *const IMAGE_ENGINE_PROGRAMS[] = {[IMAGE_DOCKER] = "docker", [IMAGE_PODMAN] = "podman"};

char *image_engine_name(struct arena *arena, const struct image_info *info)
{
    CLEANUP(strbuf) struct strbuf slug = STRBUF(128);
    bool was_joint = true;
    for (const char *c = info->name; *c && *c != '@' && slug.len < 100; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        if (is_plain || !was_joint) {
            strbuf_add_char(&slug, is_plain ? *c : '-');
        }
        was_joint = !is_plain;
    }
    while (slug.len && slug.ptr[slug.len - 1] == '-') {
        slug.len--;
    }
    return arena_printf(arena, "localhost/reperf/%.*s:%.*s", (int)slug.len, slug.ptr, NAME_SHORT,
                        sha256_hex_of(info->pins.config).text);
}

/* ---- to a file or folder ---- */

/* The index.json of an OCI layout with one image. */
struct layout_text {
    struct str type, digest, name;
    int64_t size_bytes;
    const struct layout_text *items;
    size_t n;
};
static const struct json_field NAME_ROWS[] = {ROW(OCI_REF_NAME, struct layout_text, name, 0)};
static const struct json_field ENTRY_ROWS[] = {
    ROW("mediaType", struct layout_text, type, 0),
    ROW("digest", struct layout_text, digest, 0),
    ROW("size", struct layout_text, size_bytes, 0),
    ROW_INSIDE("annotations", NAME_ROWS, 0),
};
static const struct json_field INDEX_ROWS[] = {
    ROW_NUMBER("schemaVersion", 2),
    ROW_LIST("manifests", struct layout_text, items, n, ENTRY_ROWS, 0),
};

/* All of a layout but its blobs. */
static int write_layout(struct arena *arena, const struct image_info *info, const char *folder,
                        struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(4096);
    const struct layout_text entry = {.type = info->manifest.media_type,
                                      .digest = info->manifest_digest,
                                      .name = str_of(info->name),
                                      .size_bytes = (int64_t)info->text.len};
    const struct layout_text index = {.items = &entry, .n = 1};
    json_encode_document(&buf, INDEX_ROWS, ARRAY_LEN(INDEX_ROWS), &index);
    return fs_replace(fs_join(arena, folder, "oci-layout"),
                      STR_LIT("{\"imageLayoutVersion\": \"1.0.0\"}\n"), err) < 0
               ? -1
               : fs_replace(fs_join(arena, folder, "index.json"), strbuf_str(&buf), err);
}

static int copy_blob(struct arena *arena, const struct store *store, const uint8_t *sha256,
                     const char *folder, struct err *err)
{
    const struct hex hex = sha256_hex_of(sha256);
    const char *to = arena_printf(arena, "%s/blobs/sha256/%s", folder, hex.text);
    struct digest_value value;
    if (fs_exists(to)) { /* one layer may stand twice in an image */
        return 0;
    }
    if (copy_file(store_blob_path(store, sha256), to, &value, err) < 0) {
        return -1;
    }
    return memcmp(value.sha256, sha256, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "the store's sha256:%s is corrupt", hex.text);
}

static int copy_image(struct arena *arena, const struct store *store, const struct image_info *info,
                      const char *folder, struct err *err)
{
    int result = copy_blob(arena, store, info->pins.manifest, folder, err);
    result = result < 0 ? -1 : copy_blob(arena, store, info->pins.config, folder, err);
    for (size_t idx = 0; result == 0 && idx < info->manifest.n_layers; idx++) {
        result = copy_blob(arena, store, info->manifest.layers[idx].sha256, folder, err);
    }
    return result < 0 ? err_wrap(err, "image %s", info->name)
                      : write_layout(arena, info, folder, err);
}

/* docker has no archive of layers that zstd has packed; podman takes them as an OCI layout in a tar. */
static const char *archive_kind(const struct image_info *info)
{
    for (size_t idx = 0; idx < info->manifest.n_layers; idx++) {
        if (info->manifest.layers[idx].packing == OCI_TAR_ZSTD) {
            return "oci-archive";
        }
    }
    return "docker-archive";
}

/* skopeo stumbles over a corrupt layer in words of many kinds: our own check names what is wrong with the store, if it is
   that. */
static int blame_store(struct arena *arena, const struct store *store,
                       const struct image_info *info, struct err *err)
{
    struct image_check check = {.info = *info};
    struct err why = {0};
    if (err->code != ERR_INTERRUPTED && image_verify(arena, store, &info->pins, &check, &why) < 0 &&
        why.code == ERR_INTEGRITY) {
        return err_pass(err, &why);
    }
    return err_wrap(err, "image %s", info->name);
}

/* skopeo packs it from a layout whose blobs are the store's. */
static int pack_image(struct arena *arena, const struct store *store, const struct image_info *info,
                      const char *file, struct err *err)
{
    const struct registry here = {.clock = clock_system(), .tmp_folder = store_path(store, "tmp")};
    CLEANUP(temp) struct temp *layout = NULL;
    if (strchr(store->folder, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", store->folder);
    }
    if (temp_folder(store_path(store, "tmp/"), &layout, err) < 0 ||
        write_layout(arena, info, layout->path, err) < 0) {
        return -1;
    }
    const char *blobs = fs_join(arena, layout->path, "blobs");
    if (symlink(store_path(store, "blobs"), blobs) < 0) {
        return err_errno(err, "link", blobs);
    }
    const struct skopeo_call call = {
        .args = SKOPEO_ARGS("copy", "--quiet", "--dest-oci-accept-uncompressed-layers",
                            arena_printf(arena, "oci:%s", layout->path),
                            arena_printf(arena, "%s:%s:%s", archive_kind(info), file,
                                         image_engine_name(arena, info)))};
    return skopeo_run(arena, &here, &call, err) < 0 ? blame_store(arena, store, info, err) : 0;
}

int image_export(struct arena *arena, const struct store *store, const struct image_info *info,
                 const char *path, struct err *err)
{
    struct str text = str_rtrim(str_of(path), 1, "/");
    CLEANUP(temp) struct temp *made = NULL;
    path = str_z(arena, text);
    bool is_tar = str_ends(text, STR_LIT(".tar"));
    if (is_tar && strchr(path, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo writes no path with a colon", path);
    }
    if (!is_tar && fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s exists already", path);
    }
    if ((is_tar && fs_check_target(path, err) < 0) || temp_folder(path, &made, err) < 0) {
        return -1;
    }
    if (!is_tar) {
        return copy_image(arena, store, info, made->path, err) < 0
                   ? -1
                   : publish_tree(made->path, path, err);
    }
    const char *file = fs_join(arena, made->path, "image");
    if (pack_image(arena, store, info, file, err) < 0) {
        return -1;
    }
    CLEANUP(fd) int fd = open(file, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_errno(err, "open", file) : publish_file(fd, file, path, err);
}

/* ---- into an engine ---- */

struct load {
    struct arena *arena;
    const struct store *store;
    const struct image_info *info;
    const char *program;
    struct strbuf output;
};

static int run_client(struct load *load, const char *const *argv, int64_t deadline_ns,
                      struct child_result *ret_result, struct err *err)
{
    size_t n_env;
    const struct child_call call = {.argv = argv,
                                    .env = proc_env_allowed(load->arena, &n_env),
                                    .tmp_folder = store_path(load->store, "tmp"),
                                    .out = &load->output,
                                    .deadline_ns = deadline_ns};
    strbuf_clear(&load->output);
    if (child_run(load->arena, clock_system(), &call, ret_result, err) < 0) {
        if (err->code == ERR_NOT_FOUND || err->code == ERR_NODE) {
            err->code = ERR_CONTAINER;
        }
        return -1;
    }
    return ret_result->is_timed_out
               ? err_set(err, ERR_CONTAINER, "%s does not answer", load->program)
               : 0;
}

static int must(struct load *load, const char *const *argv, int64_t deadline_ns, const char *what,
                struct err *err)
{
    struct child_result result;
    if (run_client(load, argv, deadline_ns, &result, err) < 0) {
        return -1;
    }
    struct str line = quote_last_line(result.error);
    return result.exit_status == 0
               ? 0
               : err_set(err, ERR_CONTAINER, "%s %s: %s", load->program, what,
                         line.len ? quote_shown(load->arena, line) : "no output");
}

/* An engine's id is the config's digest; docker's containerd store has the manifest's instead. Both are of what was sent. */
static int ask_id(struct load *load, bool *ret_is_ours, struct str *ret_id, struct err *err)
{
    const struct str digests[] = {load->info->config, load->info->manifest_digest};
    *ret_is_ours = false;
    *ret_id = STR_LIT("none");
    for (size_t idx = 0; !*ret_is_ours && idx < ARRAY_LEN(digests); idx++) {
        const char *const argv[] = {load->program, "image",          "inspect", "--format",
                                    "{{.Id}}",     digests[idx].ptr, NULL};
        struct child_result result;
        if (run_client(load, argv, ASK_NS, &result, err) < 0) {
            return -1;
        }
        if (result.exit_status == 0) {
            struct str id = str_trim(strbuf_str(&load->output));
            /* podman leaves the kind of digest out. */
            bool has_kind = str_starts(id, STR_LIT("sha256:"));
            *ret_id = str_printf(load->arena, "%s%.*s", has_kind ? "" : "sha256:", STR_ARG(id));
            *ret_is_ours = str_eq(*ret_id, digests[0]) || str_eq(*ret_id, digests[1]);
        }
    }
    return 0;
}

static int send_archive(struct load *load, struct err *err)
{
    const char *tar = arena_printf(load->arena, "%s/load-%ld.tar", store_path(load->store, "tmp"),
                                   (long)getpid());
    const char *const argv[] = {load->program, "load", "--input", tar, NULL};
    int result = image_export(load->arena, load->store, load->info, tar, err);
    result = result < 0 ? -1 : must(load, argv, 0, "does not load it", err);
    unlink(tar);
    return result;
}

static int load_it(struct load *load, struct image_loaded *out, struct err *err)
{
    const char *const version[] = {load->program, "version", NULL};
    bool is_ours;
    if (must(load, version, ASK_NS, "does not answer", err) < 0 ||
        ask_id(load, &out->was_there, &out->id, err) < 0) {
        return -1;
    }
    if (out->was_there) {
        return 0;
    }
    if (send_archive(load, err) < 0 || ask_id(load, &is_ours, &out->id, err) < 0) {
        return -1;
    }
    return is_ours
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s accepted image %s, but does not have it afterwards: expected the "
                         "id %s, found %.*s",
                         load->program, load->info->name, load->info->config.ptr, STR_ARG(out->id));
}

int image_load(struct arena *arena, const struct store *store, const struct image_info *info,
               const struct image_load_opts *opts, struct image_loaded *ret_loaded, struct err *err)
{
    struct load load = {.arena = arena,
                        .store = store,
                        .info = info,
                        .program = IMAGE_ENGINE_PROGRAMS[opts->engine]};
    struct image_loaded loaded = {.name = str_of(image_engine_name(arena, info))};
    strbuf_init(&load.output, OUTPUT_MAX);
    int result = load_it(&load, &loaded, err);
    strbuf_release(&load.output);
    if (result == 0) {
        *ret_loaded = loaded;
    }
    return result;
}
