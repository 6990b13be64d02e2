/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_address.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/temp.h"
#include "load/places.h"
#include "report/source.h"
#include "store/source_store.h"
#include "store/unpack_tree.h"

#define ARCHIVE_BYTES_MAX (64ULL << 30)

/* Swept first, of all names: of a commit, none may ever be made again. */
static int make_folder(struct arena *arena, const struct cmd_ctx *ctx, const char **ret,
                       struct err *err)
{
    *ret = fs_join(arena, ctx->state, "addresses/");
    temp_sweep(*ret, NULL);
    return fs_mkdir_p(*ret, err);
}

/* "URL@COMMIT:PATH"; a folder of this machine and "git@host:path" become URLs, as git takes them. NULL: it is no repository. */
static const char *repository_of(struct arena *arena, const char *name)
{
    const char *at = strrchr(name, '@');
    const char *colon = strchr(name, ':');
    const char *user = strchr(name, '@');
    const char *folder = at ? arena_strndup(arena, name, (size_t)(at - name)) : "";
    if (!at || strstr(name, "://")) {
        return at ? name : NULL;
    }
    if (user < colon && colon < at && !memchr(name, '/', (size_t)(colon - name))) {
        return arena_printf(arena, "ssh://%.*s/%s", (int)(colon - name), name, colon + 1);
    }
    char *whole = fs_is_dir(folder) ? realpath(folder, NULL) : NULL;
    const char *url = whole ? arena_printf(arena, "file://%s%s", whole, at) : NULL;
    free(whole);
    return url;
}

static int check_out(struct arena *arena, const struct cmd_ctx *ctx, bool is_offline,
                     const struct source_name *name, const char **ret_folder, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    const struct net_opts net = {.is_offline = is_offline, .clock = ctx->clock};
    struct sources sources;
    struct source_tree tree;
    const char *in;
    if (store_open(arena, ctx->store, &store, err) < 0 ||
        sources_init(&sources, arena, &store, &net, err) < 0 ||
        source_fetch(&sources, name->url, name->commit, &tree, err) < 0 ||
        make_folder(arena, ctx, &in, err) < 0) {
        return -1;
    }
    const char *folder = *ret_folder = arena_printf(arena, "%s%s", in, name->commit);
    return fs_is_dir(folder) ? source_check_folder(&sources, &tree, folder, err)
                             : source_checkout(&sources, &tree, folder, err);
}

/* What an archive holds, or the only folder at its top: hosts of repositories make such. */
static int unpack(struct arena *arena, const struct cmd_ctx *ctx, const char *archive,
                  struct address *address, const char **ret_folder, struct err *err)
{
    struct digest_value value;
    struct unpack_tree_result result;
    struct fs_names names = {0};
    const char *in;
    if (make_folder(arena, ctx, &in, err) < 0 ||
        digest_file(archive, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    CLEANUP(temp) struct temp *made = NULL;
    const struct hex hex = sha256_hex_of(value.sha256);
    if (temp_folder(in, &made, err) < 0) {
        return -1;
    }
    const char *folder = fs_join(arena, made->path, hex.text);
    const struct unpack_tree_opts of = {.archive = archive,
                                        .new_folder = folder,
                                        .unpack = {.limits = {.bytes = ARCHIVE_BYTES_MAX}},
                                        .sha256 = value.sha256,
                                        .size_bytes = -1};
    if (unpack_tree(arena, &of, &result, err) < 0 || fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    address->pin = arena_printf(arena, "%s", hex.text);
    *ret_folder = names.n == 1 ? fs_join(arena, folder, names.items[0]) : folder;
    temp_leave(&made); /* who asked reads on in it */
    return fs_exists(fs_join(arena, folder, "manifest/report.json"))
               ? err_set(err, ERR_USAGE,
                         "%s is a sealed run; reperf publish makes a folder of it that can be run",
                         archive)
               : 0;
}

/* The report that is named, or the only one. */
static int find_report(struct arena *arena, const char *folder, const char *named,
                       const char **ret_path, struct err *err)
{
    const char *reports = fs_join(arena, folder, "manifests/reports");
    struct fs_names names = {0};
    const char *found = named ? fs_join(arena, folder, named) : NULL;
    size_t n = 0;
    if (!named && fs_is_dir(reports) && fs_list(arena, reports, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (str_ends(str_of(names.items[idx]), STR_LIT(".json"))) {
            found = fs_join(arena, reports, names.items[idx]);
            n++;
        }
    }
    if (!found || n > 1 || !fs_exists(found)) {
        return err_set(err, ERR_USAGE,
                       n > 1 ? "%s has %zu reports: name one, as in URL@COMMIT:manifests/reports/"
                               "ID.json or by its file"
                             : "%s has no such report: expected manifests/reports/ID.json in it",
                       folder, n);
    }
    *ret_path = found;
    return 0;
}

int address_open(struct arena *arena, const struct cmd_ctx *ctx, bool is_offline, const char *name,
                 struct address *ret, struct err *err)
{
    struct address address = {.report = name};
    struct source_name parts = {0};
    const char *folder = name;
    const char *repository = repository_of(arena, name);
    if (repository) {
        if (source_parse_name(arena, str_of(repository), &parts, err) < 0) {
            return -1;
        }
        if (!parts.commit) {
            return err_set(err, ERR_USAGE,
                           "%s: a branch or tag moves: expected URL@COMMIT, 40 hex digits", name);
        }
        if (check_out(arena, ctx, is_offline, &parts, &folder, err) < 0) {
            return -1;
        }
        address.pin = parts.commit;
    } else if (unpack_kind(name) && fs_exists(name)) {
        if (unpack(arena, ctx, name, &address, &folder, err) < 0) {
            return -1;
        }
    } else if ((strchr(name, '/') || name[0] == '.' ||
                !fs_exists(places_path(arena, ctx->root, "reports",
                                       arena_printf(arena, "%s.json", name)))) &&
               /* a name never loses to a folder */
               fs_is_dir(fs_join(arena, name, "manifests/reports"))) {
        struct tree_list list;
        struct str version;
        if (tree_hash_folder(arena, fs_join(arena, name, "manifests"), &list, &version, err) < 0) {
            return -1;
        }
        address.pin = str_z(arena, version);
    } else {
        *ret = address;
        return 0;
    }
    if (find_report(arena, folder, parts.paths, &address.report, err) < 0) {
        return -1;
    }
    places_prefer(arena, fs_join(arena, folder, "manifests"));
    *ret = address;
    return 0;
}

int address_open_all(struct arena *arena, const struct cmd_ctx *ctx, struct opt_list *names,
                     struct err *err)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        struct address address;
        if (address_open(arena, ctx, false, names->items[idx], &address, err) < 0) {
            return -1;
        }
        if (address.pin && names->n > 1) {
            return err_set(err, ERR_USAGE,
                           "%s: a report goes by its address alone: what lies beside it would be "
                           "read for the others, too",
                           names->items[idx]);
        }
        names->items[idx] = address.report;
    }
    return 0;
}
