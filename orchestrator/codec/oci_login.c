/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci_login.h"

#include "codec/json.h"
#include "codec/oci_ref.h"
#include "codec/sign.h"

/* "https://index.docker.io/v1/" to "docker.io", "https://host:5000/v2/" to "host:5000", "host/team" as it is. */
static struct str plain_key(struct str key)
{
    static const char *const DOCKER[] = {"index.docker.io", "registry-1.docker.io"};
    int64_t scheme = str_find(key, STR_LIT("://"));
    if (scheme >= 0) {
        key = str_sub(key, (size_t)scheme + 3, key.len);
    }
    key = str_rtrim(key, 0, "/");
    if (str_ends(key, STR_LIT("/v1")) || str_ends(key, STR_LIT("/v2"))) {
        key.len -= 3;
    }
    int64_t slash = str_find(key, STR_LIT("/"));
    struct str host = slash >= 0 ? str_sub(key, 0, (size_t)slash) : key;
    for (size_t idx = 0; idx < ARRAY_LEN(DOCKER); idx++) {
        if (slash < 0 && str_eq_z(host, DOCKER[idx])) {
            return STR_LIT("docker.io");
        }
    }
    return key;
}

/* Whether a key is the name itself, or a folder above it. */
static bool covers(struct str key, const char *name)
{
    return str_starts(str_of(name), key) && (name[key.len] == '\0' || name[key.len] == '/') &&
           key.len > 0;
}

/* user:password in base64; no part of it may get into a message. */
static int read_login(const struct json *entry, struct arena *arena, struct oci_login *ret_login,
                      struct err *err)
{
    struct json member;
    struct err why = {0};
    struct str packed, bytes;
    if (json_find(entry, "identitytoken", &member) && !json_is_null(&member)) {
        return json_fail(entry, err,
                         "an identity token is not supported: log in with a name and a password "
                         "or an access token");
    }
    if (!json_find(entry, "auth", &member) || json_is_null(&member)) {
        return 0; /* docker leaves an empty entry if a helper keeps the login */
    }
    if (json_str(&member, arena, &packed, err) < 0) {
        return -1;
    }
    if (packed.len > OCI_LOGIN_MAX || base64_decode(arena, packed, &bytes, &why) < 0) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    int64_t colon = str_find(bytes, STR_LIT(":"));
    if (colon <= 0 || memchr(bytes.ptr, '\n', bytes.len) || memchr(bytes.ptr, '\0', bytes.len)) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    ret_login->user = str_sub(bytes, 0, (size_t)colon);
    ret_login->password = str_sub(bytes, (size_t)colon + 1, bytes.len);
    ret_login->packed = packed;
    return 0;
}

static int refuse_helper(const struct json *at, struct str host, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str helper;
    if (json_str(at, &arena, &helper, err) < 0) {
        return -1;
    }
    return err_set(err, ERR_AUTH,
                   "%s: the login for %.*s is kept by the credential helper \"%.*s\", which is not "
                   "started; write the login into a file of its own",
                   at->name, STR_ARG(host), STR_ARG(str_sub(helper, 0, 80)));
}

static int check_helpers(const struct json *root, struct str host, bool has_login, struct err *err)
{
    struct json helpers, item;
    if (json_find(root, "credHelpers", &helpers) && json_is_object(&helpers)) {
        for (bool more = json_first(&helpers, &item); more; more = json_next(&item)) {
            if (str_eq(plain_key(str_of(item.key)), host)) {
                return refuse_helper(&item, host, err);
            }
        }
    }
    if (!has_login && json_find(root, "credsStore", &item) && json_is_str(&item)) {
        return refuse_helper(&item, host, err);
    }
    return 0;
}

static int find_login(const struct json *root, struct arena *arena, struct str host,
                      struct str path, struct oci_login *ret_login, struct err *err)
{
    const char *name = arena_printf(arena, "%.*s/%.*s", STR_ARG(host), STR_ARG(path));
    struct json auths, item;
    struct str best = STR_EMPTY;
    size_t n = 0;
    if (!json_find(root, "auths", &auths) || json_is_null(&auths)) {
        return check_helpers(root, host, false, err);
    }
    if (!json_is_object(&auths)) {
        return json_fail(&auths, err, "expected an object");
    }
    for (bool more = json_first(&auths, &item); more; more = json_next(&item)) {
        struct str key = plain_key(str_of(item.key));
        if (++n > OCI_AUTHS_MAX) {
            return json_fail(&auths, err, "expected at most %d logins", OCI_AUTHS_MAX);
        }
        if (covers(key, name) && key.len >= host.len && key.len > best.len) {
            struct oci_login login = {0};
            if (read_login(&item, arena, &login, err) < 0) {
                return -1;
            }
            if (login.user.ptr) {
                best = key;
                *ret_login = login;
            }
        }
    }
    return check_helpers(root, host, best.ptr != NULL, err);
}

int oci_login_find(struct arena *arena, struct str text, const char *name,
                   const struct oci_ref *ref, struct oci_login *ret_login, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    *ret_login = (struct oci_login){0};
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (!json_is_object(&root)) {
        return json_fail(&root, err, "expected an object");
    }
    return find_login(&root, arena, ref->host, ref->path, ret_login, err);
}
