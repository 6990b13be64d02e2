/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/source.h"

#include "base/str.h"
#include "codec/digest.h"

#define SHOWN_MAX  160
#define SHOWN(s)   (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr
#define NAME_BYTES 100

bool source_is_commit(struct str text)
{
    return str_is_made_of(text, "0-9a-f") && text.len == SOURCE_COMMIT_HEX;
}

/* The part behind "://", or STR_EMPTY. */
static struct str after_scheme(struct str url)
{
    int64_t at = str_find(url, STR_LIT("://"));
    return at < 0 ? STR_EMPTY : str_sub(url, (size_t)at + 3, url.len);
}

static int check_characters(struct str url, struct err *err)
{
    if (url.len == 0 || url.len > SOURCE_URL_MAX || url.ptr[0] == '-') {
        return err_set(err, ERR_USAGE, "\"%.*s\" is not the address of a repository", SHOWN(url));
    }
    for (size_t idx = 0; idx < url.len; idx++) {
        uint8_t c = (uint8_t)url.ptr[idx];
        if (c <= ' ' || c == 0x7f || c == '\\' || c == '"') {
            return err_set(err, ERR_USAGE,
                           "the repository's address has a blank or control character at byte %zu",
                           idx);
        }
    }
    return 0;
}

/* OWNER/REPOSITORY/tree/... on a web site is the address of a page; the message names the repository's address. */
static int check_page(struct str url, struct str rest, struct err *err)
{
    static const char *const PAGES[] = {"/tree/", "/blob/",   "/raw/",      "/commit/", "/commits/",
                                        "/src/",  "/issues/", "/releases/", "/-/"};
    for (size_t idx = 0; idx < ARRAY_LEN(PAGES); idx++) {
        int64_t at = str_find(rest, str_of(PAGES[idx]));
        struct str before =
            str_sub(url, 0, (size_t)(rest.ptr - url.ptr) + (size_t)(at < 0 ? 0 : at));
        size_t n_slashes = 0;
        for (size_t k = 0; at > 0 && k < (size_t)at; k++) {
            n_slashes += rest.ptr[k] == '/';
        }
        if (n_slashes >= 2) { /* host, owner, repository come before */
            return err_set(err, ERR_USAGE,
                           "%.*s is a page for people and cannot be cloned; the repository is "
                           "probably %.*s.git",
                           SHOWN(url), SHOWN(before));
        }
    }
    return 0;
}

int source_check_url(struct str url, struct err *err)
{
    static const char *const SCHEMES[] = {"https://", "http://", "git://", "ssh://", "file:///"};
    struct str rest = after_scheme(url), host;
    size_t scheme = 0;
    if (check_characters(url, err) < 0) {
        return -1;
    }
    if (!rest.ptr) {
        /* user@host:path is ssh's short form; anything else is a path or another helper's address. */
        int64_t colon = str_find(url, STR_LIT(":")), at = str_find(url, STR_LIT("@"));
        return at > 0 && colon > at && str_find(url, STR_LIT("::")) < 0
                   ? 0
                   : err_set(err, ERR_USAGE, "%.*s: expected https://..., ssh://... or file:///...",
                             SHOWN(url));
    }
    while (scheme < ARRAY_LEN(SCHEMES) && !str_starts(url, str_of(SCHEMES[scheme]))) {
        scheme++;
    }
    if (scheme == ARRAY_LEN(SCHEMES)) {
        return err_set(err, ERR_USAGE, "%.*s: expected https, http, git, ssh or file", SHOWN(url));
    }
    host = rest;
    for (size_t idx = 0; idx < host.len; idx++) {
        if (host.ptr[idx] == '/') {
            host.len = idx;
        }
    }
    int64_t at = str_find(host, STR_LIT("@")); /* a user is part of ssh's addresses */
    if (at >= 0 && (scheme < 3 || str_find(str_sub(host, 0, (size_t)at), STR_LIT(":")) >= 0)) {
        return err_set(
            err, ERR_USAGE,
            "the address of the repository contains a user or password, which would be recorded");
    }
    if (scheme < 4 && (host.len == 0 || host.ptr[0] == '-')) {
        return err_set(err, ERR_USAGE, "%.*s: no host", SHOWN(url));
    }
    return scheme < 2 ? check_page(url, rest, err) : 0;
}

static bool is_ref(struct str ref)
{
    return str_is_made_of(ref, "a-zA-Z0-9_./+-") && ref.len <= SOURCE_REF_MAX &&
           ref.ptr[0] != '-' && ref.ptr[0] != '/' && str_find(ref, STR_LIT("..")) < 0;
}

/* --- a part of a repository ------------------------------------------------------------------------------------------------ */

static bool is_path(struct str path)
{
    struct str rest = path, segment;
    while (str_next(&rest, '/', &segment)) {
        if (segment.len == 0 || str_eq_z(segment, ".")) {
            return false;
        }
    }
    return is_ref(path);
}

bool source_lies_in(struct str path, struct str above)
{
    return str_starts(path, above) && (path.len == above.len || path.ptr[above.len] == '/');
}

int source_join_paths(struct arena *arena, const struct str *paths, size_t n,
                      const char **ret_paths, struct err *err)
{
    struct str sorted[SOURCE_PATHS_MAX];
    const char *joined = "";
    if (n == 0 || n > SOURCE_PATHS_MAX) {
        return err_set(err, ERR_USAGE, "expected 1 to %d paths of a repository, found %zu",
                       SOURCE_PATHS_MAX, n);
    }
    for (size_t idx = 0; idx < n; idx++) {
        sorted[idx] = paths[idx];
        if (!is_path(paths[idx])) {
            return err_set(err, ERR_USAGE,
                           "\"%.*s\": expected a file or folder below the repository's top, of "
                           "letters, digits and - _ . + /",
                           SHOWN(paths[idx]));
        }
    }
    qsort(sorted, n, sizeof(sorted[0]), str_cmp_first);
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t at = 0; at < idx; at++) {
            if (source_lies_in(sorted[idx], sorted[at])) {
                return err_set(err, ERR_USAGE, "path %.*s: already within %.*s", SHOWN(sorted[idx]),
                               SHOWN(sorted[at]));
            }
        }
        joined = arena_printf(arena, "%s%s%.*s", joined, idx ? "," : "", STR_ARG(sorted[idx]));
    }
    *ret_paths = joined;
    return 0;
}

static int parse_paths(struct arena *arena, struct str text, const char **ret_paths,
                       struct err *err)
{
    struct str items[SOURCE_PATHS_MAX + 1], item;
    size_t n = 0;
    while (n <= SOURCE_PATHS_MAX && str_next(&text, ',', &item)) {
        items[n++] = item;
    }
    return source_join_paths(arena, items, n, ret_paths, err);
}

int source_parse_pin(struct arena *arena, const char *text, struct source_pin *ret_pin,
                     struct err *err)
{
    struct source_pin pin = {.commit = arena_strndup(arena, text, strcspn(text, ":"))};
    struct err why = {0};
    struct str item;
    if (!source_is_commit(str_of(pin.commit))) {
        return err_set(err, ERR_MANIFEST, "\"%.60s\" is not a commit: expected 40 hex digits",
                       text);
    }
    if (text[SOURCE_COMMIT_HEX]) {
        struct str rest = str_of(text + SOURCE_COMMIT_HEX + 1);
        if (parse_paths(arena, rest, &pin.paths, &why) < 0 || !str_eq_z(rest, pin.paths)) {
            return err_set(err, ERR_MANIFEST, "paths of %.60s: %s", pin.commit,
                           why.code ? why.msg : "not in order");
        }
        pin.items = arena_array(arena, struct str, SOURCE_PATHS_MAX);
        while (str_next(&rest, ',', &item)) {
            pin.items[pin.n++] = item;
        }
    }
    *ret_pin = pin;
    return 0;
}

const char *source_folder_name(struct arena *arena, struct str pin)
{
    uint8_t sha256[SHA256_BYTES];
    if (pin.len <= SOURCE_COMMIT_HEX) {
        return str_z(arena, pin);
    }
    sha256_of(pin, sha256);
    return arena_printf(arena, "%.*s-%s", SOURCE_COMMIT_HEX, pin.ptr, hex_of(sha256, 4).text);
}

/* Probably meant as a commit: 7 to 40 hex digits, but not 40 in lower case. */
static bool is_short_commit(struct str pin)
{
    return str_is_made_of(pin, "0-9a-fA-F") && pin.len >= 7 && pin.len <= SOURCE_COMMIT_HEX &&
           !source_is_commit(pin);
}

int source_parse_name(struct arena *arena, struct str name, struct source_name *ret_name,
                      struct err *err)
{
    struct str url = name;
    const char *joined = NULL;
    url = str_rcut(url, 0, "@");
    struct str pin = str_sub(name, url.len, name.len);
    url.len -= url.len > 0;
    int64_t colon = str_find(pin, STR_LIT(":"));
    struct str paths = colon < 0 ? STR_EMPTY : str_sub(pin, (size_t)colon + 1, pin.len);
    pin = colon < 0 ? pin : str_sub(pin, 0, (size_t)colon);
    if (url.len == 0 || !is_ref(pin)) {
        return err_set(err, ERR_USAGE,
                       "source:%.*s: expected source:URL@COMMIT (40 hex digits) or, for lock, "
                       "source:URL@BRANCH; for a part of it, :PATH,PATH after that",
                       SHOWN(name));
    }
    if (colon >= 0 && parse_paths(arena, paths, &joined, err) < 0) {
        return err_wrap(err, "source:%.*s", SHOWN(name));
    }
    if (is_short_commit(pin)) {
        return err_set(err, ERR_USAGE,
                       "source:%.*s: \"%.*s\" is a commit cut short or in capitals: expected 40 "
                       "lower-case hex digits",
                       SHOWN(name), STR_ARG(pin));
    }
    if (source_check_url(url, err) < 0) {
        return -1;
    }
    *ret_name = (struct source_name){.url = str_z(arena, url), .paths = joined};
    if (source_is_commit(pin)) {
        ret_name->commit = str_z(arena, pin);
    } else {
        ret_name->ref = str_z(arena, pin);
    }
    return 0;
}

char *source_repo_name(struct arena *arena, const char *url)
{
    struct str repository = str_of(url);
    repository.len -= str_ends(repository, STR_LIT(".git")) ? 4 : 0; /* two spellings of one */
    struct str rest = after_scheme(repository);
    uint8_t sha256[SHA256_BYTES];
    char name[NAME_BYTES + 1];
    size_t len = 0;
    rest = rest.ptr ? rest : repository;
    if (rest.len > NAME_BYTES) {
        rest = str_sub(rest, rest.len - NAME_BYTES, NAME_BYTES);
    }
    sha256_of(repository, sha256);
    for (size_t idx = 0; idx < rest.len; idx++) {
        char c = rest.ptr[idx];
        bool is_plain =
            str_is_made_of(str_sub(rest, idx, 1), len > 0 ? "a-zA-Z0-9_." : "a-zA-Z0-9_");
        if (is_plain || (len > 0 && name[len - 1] != '-')) {
            name[len++] = is_plain ? c : '-';
        }
    }
    name[len] = '\0';
    return arena_printf(arena, "%s-%s", len ? name : "repository", hex_of(sha256, 4).text);
}

static bool is_local(struct str url)
{
    struct str rest = after_scheme(url);
    bool has_host = rest.ptr || (url.len && url.ptr[0] != '/' && memchr(url.ptr, ':', url.len));
    return !has_host || (url.len >= 5 && strncasecmp(url.ptr, "file:", 5) == 0);
}

/* As in git since 2.38.1 (CVE-2022-39253): what came over a network must not refer to folders of this machine. */
static int check_reach(const char *base, struct str url, struct err *err)
{
    return is_local(url) && !is_local(str_of(base))
               ? err_set(err, ERR_INTEGRITY,
                         "a submodule's address is on this machine, but its repository's is not: "
                         "%.200s",
                         base)
               : source_check_url(url, err);
}

int source_resolve_url(struct arena *arena, const char *base, struct str url, char **ret_url,
                       struct err *err)
{
    struct str above = str_of(base);
    size_t host_end = 0;
    struct str rest = after_scheme(above);
    if (!str_starts(url, STR_LIT("./")) && !str_starts(url, STR_LIT("../"))) {
        *ret_url = str_z(arena, url);
        return check_reach(base, url, err);
    }
    /* Not above the host, or above the colon of user@host:path. */
    if (rest.ptr) {
        host_end = (size_t)(rest.ptr - above.ptr);
        host_end = str_cspan(above, host_end, "/");
    } else {
        host_end = (size_t)(str_find(above, STR_LIT(":")) + 1);
    }
    above = str_rtrim(above, host_end, "/");
    for (;;) {
        if (str_starts(url, STR_LIT("./"))) {
            url = str_sub(url, 2, url.len);
        } else if (str_starts(url, STR_LIT("../"))) {
            url = str_sub(url, 3, url.len);
            if (above.len <= host_end) {
                return err_set(err, ERR_INTEGRITY,
                               "a submodule's address leads above the host of %.200s", base);
            }
            above = str_rcut(above, host_end, "/");
            above.len -= above.len > host_end;
        } else {
            break;
        }
    }
    *ret_url = arena_printf(arena, "%.*s%s%.*s", STR_ARG(above),
                            above.len && above.ptr[above.len - 1] == ':' ? "" : "/", STR_ARG(url));
    return source_check_url(str_of(*ret_url), err);
}
