/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/publish.h"
#include "base/str.h"
#include "base/temp.h"
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

/* skopeo stumbles over a corrupt layer in words of many kinds: our own check names what is wrong with the store, if it is that. */
static int blame_store(struct arena *arena, const struct store *store,
                       const struct image_info *info, struct err *err)
{
    const struct image_verify_opts opts = {.name = info->name};
    struct image_check check;
    struct err why = {0};
    if (image_verify(arena, store, &opts, &check, &why) < 0 && why.code == ERR_INTEGRITY) {
        *err = why;
        return -1;
    }
    return err_wrap(err, "image %s", info->name);
}

/* Docker's types as OCI's: out of the former skopeo would make a config of its own for an OCI layout, which is another image. */
static void retype(struct str text, struct strbuf *out)
{
    static const char *const TYPES[][2] = {
        {"vnd.docker.distribution.manifest.v2+json", "vnd.oci.image.manifest.v1+json"},
        {"vnd.docker.container.image.v1+json", "vnd.oci.image.config.v1+json"},
        {"vnd.docker.image.rootfs.diff.tar.", "vnd.oci.image.layer.v1.tar+"},
        {"vnd.docker.image.rootfs.diff.tar", "vnd.oci.image.layer.v1.tar"},
    };
    while (text.len) {
        size_t idx = 0;
        while (idx < ARRAY_LEN(TYPES) && !str_starts(text, str_of(TYPES[idx][0]))) {
            idx++;
        }
        bool is_type = idx < ARRAY_LEN(TYPES);
        strbuf_add_str(out, is_type ? str_of(TYPES[idx][1]) : str_sub(text, 0, 1));
        text = str_sub(text, is_type ? strlen(TYPES[idx][0]) : 1, text.len);
    }
}

/* skopeo's own form of an image in a folder: its manifest, and each blob under its digest, which are links to the store's. */
static int link_image(struct arena *arena, const struct store *store, const struct image_info *info,
                      const char *folder, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(2 * OCI_MANIFEST_BYTES_MAX);
    struct str text;
    if (fs_read(arena, store_blob_path(store, info->pins.manifest), OCI_MANIFEST_BYTES_MAX, &text,
                err) < 0) {
        return -1;
    }
    retype(text, &out);
    for (size_t idx = 0; idx <= info->manifest.n_layers; idx++) {
        const struct oci_descriptor *blob =
            idx ? &info->manifest.layers[idx - 1] : &info->manifest.config;
        const char *path = fs_join(arena, folder, sha256_hex_of(blob->sha256).text);
        /* One layer may stand twice in an image. */
        if (symlink(store_blob_path(store, blob->sha256), path) < 0 && errno != EEXIST) {
            return err_errno(err, "link", path);
        }
    }
    return fs_replace(fs_join(arena, folder, "manifest.json"), strbuf_str(&out), err);
}

static int copy_to(struct arena *arena, const struct store *store, const struct image_info *info,
                   const char *target, struct err *err)
{
    const struct skopeo skopeo = {
        .arena = arena, .clock = clock_system(), .tmp_folder = store_path(store, "tmp")};
    CLEANUP(temp) struct temp *from = NULL;
    if (strchr(store->folder, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo reads no path with a colon", store->folder);
    }
    if (temp_folder(store_path(store, "tmp/"), &from, err) < 0 ||
        link_image(arena, store, info, from->path, err) < 0) {
        return -1;
    }
    const struct skopeo_call call = {
        .args = SKOPEO_ARGS("copy", "--quiet", "--dest-oci-accept-uncompressed-layers",
                            arena_printf(arena, "dir:%s", from->path), target)};
    if (skopeo_run(&skopeo, &call, NULL, err) < 0) {
        return err->code == ERR_INTERRUPTED ? -1 : blame_store(arena, store, info, err);
    }
    return 0;
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

static int place(const char *temp, const char *path, struct err *err)
{
    CLEANUP(fd) int fd = open(temp, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno))
                  : publish_file(fd, temp, path, err);
}

int image_export(struct arena *arena, const struct store *store, const struct image_info *info,
                 const char *path, struct err *err)
{
    struct str text = str_of(path);
    CLEANUP(temp) struct temp *made = NULL;
    while (text.len > 1 && text.ptr[text.len - 1] == '/') {
        text.len--;
    }
    path = str_z(arena, text);
    bool is_tar = str_ends(text, STR_LIT(".tar"));
    if (strchr(path, ':')) {
        return err_set(err, ERR_USAGE, "%s: skopeo writes no path with a colon", path);
    }
    if (!is_tar && fs_exists(path)) {
        return err_set(err, ERR_USAGE, "%s exists already", path);
    }
    if ((is_tar && fs_check_target(path, err) < 0) || temp_folder(path, &made, err) < 0) {
        return -1;
    }
    const char *temp = fs_join(arena, made->path, "image");
    const char *target = is_tar ? arena_printf(arena, "%s:%s:%s", archive_kind(info), temp,
                                               image_engine_name(arena, info))
                                : arena_printf(arena, "oci:%s:%s", temp, info->name);
    return copy_to(arena, store, info, target, err) < 0 ? -1 : place(temp, path, err);
}

/* ---- into an engine ---- */

struct load {
    struct arena *arena;
    const struct store *store;
    const struct image_info *info;
    const char *program;
    const char *host; /* DOCKER_HOST, or NULL */
    const char **env;
    struct strbuf output;
};

static const char *last_line(struct load *load, struct str text)
{
    struct str line = quote_last_line(text);
    return line.len ? quote_shown(load->arena, line) : "no output";
}

/* The client's own environment, and in it the host that was asked for. */
static const char **engine_env(struct load *load)
{
    static const char HOST[] = "DOCKER_HOST=";
    size_t n_allowed, n = 0;
    const char **allowed = proc_env_allowed(load->arena, &n_allowed);
    const char **env = arena_array(load->arena, const char *, n_allowed + 2);
    for (size_t idx = 0; idx < n_allowed; idx++) {
        if (!load->host || strncmp(allowed[idx], HOST, strlen(HOST)) != 0) {
            env[n++] = allowed[idx];
        }
    }
    if (load->host) {
        env[n] = arena_printf(load->arena, "%s%s", HOST, load->host);
    }
    return env;
}

static int run_client(struct load *load, const char *const *argv, int64_t deadline_ns,
                      struct child_result *ret_result, struct err *err)
{
    const struct child_call call = {.argv = argv,
                                    .env = load->env,
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

/* Asks the engine for the image with that digest. *ret_has false: it has none. */
static int ask_id(struct load *load, const char *digest, bool *ret_has, struct str *ret_id,
                  struct err *err)
{
    const char *const argv[] = {load->program, "image", "inspect", "--format",
                                "{{.Id}}",     digest,  NULL};
    struct child_result result;
    *ret_has = false;
    if (run_client(load, argv, ASK_NS, &result, err) < 0) {
        return -1;
    }
    if (result.exit_status != 0) {
        return 0;
    }
    struct str id = str_trim(strbuf_str(&load->output));
    /* podman leaves the kind of digest out. */
    *ret_id = str_starts(id, STR_LIT("sha256:"))
                  ? str_dup(load->arena, id)
                  : str_printf(load->arena, "sha256:%.*s", STR_ARG(id));
    *ret_has = true;
    return 0;
}

/* An engine's id is the config's digest; docker's containerd store has the manifest's instead. Both are of what was sent. */
static int ask_either(struct load *load, bool *ret_is_ours, struct str *ret_id, struct err *err)
{
    const struct oci_digest digests[] = {oci_digest_of(load->info->pins.config),
                                         oci_digest_of(load->info->pins.manifest)};
    *ret_is_ours = false;
    *ret_id = STR_LIT("none");
    for (size_t idx = 0; !*ret_is_ours && idx < ARRAY_LEN(digests); idx++) {
        bool has;
        if (ask_id(load, digests[idx].text, &has, ret_id, err) < 0) {
            return -1;
        }
        *ret_is_ours =
            has && (str_eq_z(*ret_id, digests[0].text) || str_eq_z(*ret_id, digests[1].text));
    }
    return 0;
}

static int check_engine(struct load *load, struct err *err)
{
    const char *const argv[] = {load->program, "version", NULL};
    struct child_result result;
    if (run_client(load, argv, ASK_NS, &result, err) < 0) {
        return -1;
    }
    return result.exit_status == 0 ? 0
                                   : err_set(err, ERR_CONTAINER, "%s does not answer: %s",
                                             load->program, last_line(load, result.error));
}

static int send_archive(struct load *load, struct err *err)
{
    const char *tar = arena_printf(load->arena, "%s/load-%ld.tar", store_path(load->store, "tmp"),
                                   (long)getpid());
    const char *const argv[] = {load->program, "load", "--input", tar, NULL};
    struct child_result result;
    int status = image_export(load->arena, load->store, load->info, tar, err);
    status = status < 0 ? status : run_client(load, argv, 0, &result, err);
    unlink(tar);
    if (status < 0) {
        return -1;
    }
    return result.exit_status == 0
               ? 0
               : err_set(err, ERR_CONTAINER, "%s load ended with status %d: %s", load->program,
                         result.exit_status, last_line(load, result.error));
}

static int load_it(struct load *load, struct image_loaded *out, struct err *err)
{
    bool is_ours;
    if (check_engine(load, err) < 0 || ask_either(load, &out->was_there, &out->id, err) < 0) {
        return -1;
    }
    if (out->was_there) {
        return 0;
    }
    if (send_archive(load, err) < 0 || ask_either(load, &is_ours, &out->id, err) < 0) {
        return -1;
    }
    return is_ours ? 0
                   : err_set(err, ERR_INTEGRITY,
                             "%s accepted image %s, but does not have it afterwards: expected the "
                             "id %s, found %.*s",
                             load->program, load->info->name,
                             oci_digest_of(load->info->pins.config).text, STR_ARG(out->id));
}

int image_load(struct arena *arena, const struct store *store, const struct image_info *info,
               const struct image_load_opts *opts, struct image_loaded *ret_loaded, struct err *err)
{
    struct load load = {.arena = arena,
                        .store = store,
                        .info = info,
                        .program = IMAGE_ENGINE_PROGRAMS[opts->engine],
                        .host = opts->engine == IMAGE_DOCKER ? opts->engine_host : NULL};
    struct image_loaded loaded = {.name = str_of(image_engine_name(arena, info))};
    load.env = engine_env(&load);
    strbuf_init(&load.output, OUTPUT_MAX);
    int result = load_it(&load, &loaded, err);
    strbuf_release(&load.output);
    if (result == 0) {
        *ret_loaded = loaded;
    }
    return result;
}
