/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/source.h"

#include "codec/digest.h"

#define SHOWN_MAX  160
#define SHOWN(s)   (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr
#define NAME_BYTES 100

bool source_is_commit(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.len == SOURCE_COMMIT_HEX;
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
        return err_set(err, ERR_USAGE, "\"%.*s\" is no address of a repository", SHOWN(url));
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

/* OWNER/REPOSITORY/tree/... of a web site: the address of a page, beside which the repository's own is named. */
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
        return err_set(err, ERR_USAGE, "%.*s: of https, http, git, ssh and file it is none",
                       SHOWN(url));
    }
    host = rest;
    for (size_t idx = 0; idx < host.len; idx++) {
        if (host.ptr[idx] == '/') {
            host.len = idx;
        }
    }
    if (scheme < 3 && str_find(host, STR_LIT("@")) >= 0) {
        return err_set(err, ERR_USAGE,
                       "the address of the repository has a user or password in it: it would be "
                       "recorded");
    }
    if (scheme < 4 && (host.len == 0 || host.ptr[0] == '-')) {
        return err_set(err, ERR_USAGE, "%.*s names no host", SHOWN(url));
    }
    return scheme < 2 ? check_page(url, rest, err) : 0;
}

static bool is_ref(struct str ref)
{
    for (size_t idx = 0; idx < ref.len; idx++) {
        char c = ref.ptr[idx];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.' || c == '/' || c == '+')) {
            return false;
        }
    }
    return ref.len > 0 && ref.len <= SOURCE_REF_MAX && ref.ptr[0] != '-' && ref.ptr[0] != '/' &&
           str_find(ref, STR_LIT("..")) < 0;
}

/* What was meant as a commit: 7 to 40 hex digits, not as they should be. */
static bool is_short_commit(struct str pin)
{
    for (size_t idx = 0; idx < pin.len; idx++) {
        char c = pin.ptr[idx];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
            return false;
        }
    }
    return pin.len >= 7 && pin.len <= SOURCE_COMMIT_HEX && !source_is_commit(pin);
}

int source_parse_name(struct arena *arena, struct str name, struct source_name *ret_name,
                      struct err *err)
{
    struct str url = name, pin;
    while (url.len > 0 && url.ptr[url.len - 1] != '@') {
        url.len--;
    }
    pin = str_sub(name, url.len, name.len);
    url.len -= url.len > 0;
    if (url.len == 0 || !is_ref(pin)) {
        return err_set(err, ERR_USAGE,
                       "source:%.*s: expected source:URL@COMMIT (40 hex digits) or, for lock, "
                       "source:URL@BRANCH",
                       SHOWN(name));
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
    *ret_name = (struct source_name){.url = str_z(arena, url)};
    if (source_is_commit(pin)) {
        ret_name->commit = str_z(arena, pin);
    } else {
        ret_name->ref = str_z(arena, pin);
    }
    return 0;
}

int source_repo_name(struct arena *arena, const char *url, char **ret_name, struct err *err)
{
    struct str rest = after_scheme(str_of(url));
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE], name[NAME_BYTES + 1];
    size_t len = 0;
    rest = rest.ptr ? rest : str_of(url);
    if (str_ends(rest, STR_LIT(".git"))) {
        rest.len -= 4;
    }
    if (rest.len > NAME_BYTES) {
        rest = str_sub(rest, rest.len - NAME_BYTES, NAME_BYTES);
    }
    if (sha256_of(str_of(url), sha256, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < rest.len; idx++) {
        char c = rest.ptr[idx];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || (c == '.' && len > 0);
        if (is_plain || (len > 0 && name[len - 1] != '-')) {
            name[len++] = is_plain ? c : '-';
        }
    }
    name[len] = '\0';
    hex_encode(sha256, 4, hex);
    *ret_name = arena_printf(arena, "%s-%s", len ? name : "repository", hex);
    return 0;
}

static bool is_local(struct str url)
{
    struct str rest = after_scheme(url);
    bool has_host = rest.ptr || (url.len && url.ptr[0] != '/' && memchr(url.ptr, ':', url.len));
    return !has_host || (url.len >= 5 && strncasecmp(url.ptr, "file:", 5) == 0);
}

/* As git has it since 2.38.1 (CVE-2022-39253): what came over a network does not choose from this machine's folders. */
static int check_reach(const char *base, struct str url, struct err *err)
{
    return is_local(url) && !is_local(str_of(base))
               ? err_set(err, ERR_INTEGRITY,
                         "a submodule's address is on this machine, its repository's is not: "
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
    /* Nothing above the host, or above the colon of user@host:path. */
    if (rest.ptr) {
        host_end = (size_t)(rest.ptr - above.ptr);
        while (host_end < above.len && above.ptr[host_end] != '/') {
            host_end++;
        }
    } else {
        host_end = (size_t)(str_find(above, STR_LIT(":")) + 1);
    }
    while (above.len > host_end && above.ptr[above.len - 1] == '/') {
        above.len--;
    }
    for (;;) {
        if (str_starts(url, STR_LIT("./"))) {
            url = str_sub(url, 2, url.len);
        } else if (str_starts(url, STR_LIT("../"))) {
            url = str_sub(url, 3, url.len);
            if (above.len <= host_end) {
                return err_set(err, ERR_INTEGRITY,
                               "a submodule's address leads above the host of %.200s", base);
            }
            while (above.len > host_end && above.ptr[above.len - 1] != '/') {
                above.len--;
            }
            above.len -= above.len > host_end;
        } else {
            break;
        }
    }
    *ret_url = arena_printf(arena, "%.*s%s%.*s", STR_ARG(above),
                            above.len && above.ptr[above.len - 1] == ':' ? "" : "/", STR_ARG(url));
    return source_check_url(str_of(*ret_url), err);
}
