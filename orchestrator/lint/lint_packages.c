/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is downloaded or installed: from a branch, without a version, for another CUDA. */
#include "base/base.h"

#include "lint/lint_parts.h"

#define COMMIT_DIGITS_MIN 7
#define COMMIT_DIGITS_MAX 40

bool is_commit(struct str s)
{
    return str_is_made_of(s, "0-9a-f") && s.len >= COMMIT_DIGITS_MIN && s.len <= COMMIT_DIGITS_MAX;
}

/* ---- where code is kept ---- */

/* "https://HOST/PATH" and "git@HOST:PATH": host and path. */
static bool url_parts(struct str url, struct str *ret_host, struct str *ret_path)
{
    int64_t at = str_find(url, STR_LIT("://"));
    url = at >= 0 ? str_sub(url, (size_t)at + 3, SIZE_MAX) : url;
    at = str_find(url, STR_LIT("@"));
    int64_t slash = str_find(url, STR_LIT("/"));
    if (at >= 0 && (slash < 0 || at < slash)) {
        url = str_sub(url, (size_t)at + 1, SIZE_MAX);
        slash = str_find(url, STR_LIT("/"));
    }
    if (slash <= 0) {
        return false;
    }
    *ret_host = str_sub(url, 0, (size_t)slash);
    *ret_path = str_sub(url, (size_t)slash + 1, SIZE_MAX);
    return true;
}

static bool is_code_host(struct str host)
{
    static const char HOSTS[] = "github.com www.github.com gitee.com bitbucket.org codeberg.org";
    return is_word_of(host, HOSTS) || str_starts(host, STR_LIT("gitlab."));
}

static bool is_raw_host(struct str host)
{
    static const char HOSTS[] =
        "raw.githubusercontent.com raw.github.com rawgit.com cdn.rawgit.com raw.gitmirror.com";
    return is_word_of(host, HOSTS);
}

static size_t count_parts(struct str path)
{
    struct str part;
    size_t n = 0;
    while (str_next(&path, '/', &part)) {
        n += part.len > 0;
    }
    return n;
}

bool url_can_be_cloned(struct str url)
{
    static const char *const PAGES[] = {"/tree/",    "/blob/", "/commit/", "/releases", "/archive/",
                                        "/pull/",    "/raw/",  "/wiki",    "/issues",   "/-/",
                                        "/commits/", "/src/",  "?",        "#",         NULL};
    struct str host;
    struct str path;
    if (is_unknown(url) || !url_parts(url, &host, &path)) {
        return true;
    }
    for (const char *const *page = PAGES; *page; page++) {
        if (str_find(url, str_of(*page)) > 0) {
            return false;
        }
    }
    return !is_raw_host(host) && !ends_with_any(url, ARCHIVE_SUFFIXES) &&
           !(is_code_host(host) && !str_starts(host, STR_LIT("gitlab.")) && count_parts(path) > 2);
}

/* ---- downloads ---- */

struct download {
    struct str owner, name, ref;
    bool is_tag;
};

/* REF/..., refs/heads/REF/..., refs/tags/REF/... */
static void read_ref(struct str rest, struct download *d)
{
    struct str part;
    if (str_starts(rest, STR_LIT("refs/"))) {
        d->is_tag = str_starts(rest, STR_LIT("refs/tags/"));
        (void)str_next(&rest, '/', &part);
        (void)str_next(&rest, '/', &part);
    }
    (void)str_next(&rest, '/', &d->ref);
    d->ref.len -= ends_with_any(d->ref, ARCHIVE_SUFFIXES);
}

/* The part of a code host's page below OWNER/NAME/: skips the words before the ref. False if it names no state. */
static bool read_page(struct str path, struct download *d)
{
    static const char KINDS[] = "raw archive tarball zipball zip tar.gz legacy.zip legacy.tar.gz "
                                "resolve get blob tree trunk";
    struct str part = STR_EMPTY;
    if (str_starts(path, STR_LIT("-/"))) {
        path = str_sub(path, 2, SIZE_MAX);
    }
    if (str_starts(path, STR_LIT("releases/latest"))) {
        d->ref = STR_LIT("latest");
        return true;
    }
    if (!str_next(&path, '/', &part)) {
        return false;
    }
    if (!is_word_of(part, KINDS)) {
        return false;
    }
    read_ref(str_eq_z(part, "trunk") ? part : path, d);
    return d->ref.ptr && d->ref.len;
}

/* Whether the URL names files of a repository at a named state. */
static bool read_download(struct str url, struct download *ret)
{
    struct str host;
    struct str path;
    if (!url_parts(url, &host, &path)) {
        return false;
    }
    if (str_eq_z(host, "api.github.com") && str_starts(path, STR_LIT("repos/"))) {
        path = str_sub(path, 6, SIZE_MAX);
        host = STR_LIT("github.com");
    } else if (str_eq_z(host, "cdn.jsdelivr.net") && str_starts(path, STR_LIT("gh/"))) {
        int64_t at = str_find(path, STR_LIT("@"));
        path = str_sub(path, 3, SIZE_MAX);
        (void)str_next(&path, '/', &ret->owner);
        (void)str_next(&path, at > 0 ? '@' : '/', &ret->name);
        read_ref(at > 0 ? path : STR_LIT("latest"), ret);
        return true;
    }
    if (!str_next(&path, '/', &ret->owner) || !str_next(&path, '/', &ret->name) || !path.ptr) {
        return false;
    }
    if (is_raw_host(host)) {
        read_ref(path, ret);
        return ret->ref.ptr != NULL;
    }
    return (is_code_host(host) || str_eq_z(host, "codeload.github.com") ||
            str_eq_z(host, "huggingface.co")) &&
           read_page(path, ret);
}

bool is_release(struct str ref)
{
    size_t at = ref.len && (ref.ptr[0] == 'v' || ref.ptr[0] == 'V');
    bool has_dot = false;
    if (at >= ref.len || !is_digit(ref.ptr[at])) {
        return false;
    }
    for (; at < ref.len && (is_digit(ref.ptr[at]) || ref.ptr[at] == '.'); at++) {
        has_dot = has_dot || ref.ptr[at] == '.';
    }
    return has_dot && memchr(ref.ptr, '/', ref.len) == NULL;
}

static void lint_download(const struct lint_command *c, const struct shell_run *run,
                          struct str word)
{
    struct download d = {.is_tag = false};
    bool is_page = str_find(word, STR_LIT("/blob/")) > 0 || str_find(word, STR_LIT("/tree/")) > 0;
    int64_t scheme = str_find(word, STR_LIT("://"));
    if (scheme < 0 || (is_page && !shell_is_any(run, "wget curl aria2c axel pip pip3 svn")) ||
        str_find(word, STR_LIT("git+")) == 0 || !read_download(word, &d)) {
        return;
    }
    if (!d.is_tag && !is_commit(d.ref) && !is_release(d.ref) && !is_unknown(d.ref)) {
        lint_add(c->lint, "download-from-branch", c->at,
                 "files of %.*s/%.*s are downloaded from branch %.*s", STR_ARG(d.owner),
                 STR_ARG(d.name), STR_ARG(d.ref));
    }
}

/* ---- installs ---- */

/* git+URL@REF#egg=NAME */
static void lint_git_package(const struct lint_command *c, struct str word)
{
    int64_t at = str_find(word, STR_LIT("git+"));
    struct str url = str_sub(word, (size_t)at + 4, SIZE_MAX);
    struct str host;
    struct str rest;
    int64_t hash = str_find(url, STR_LIT("#"));
    url = hash > 0 ? str_sub(url, 0, (size_t)hash) : url;
    if (!url_parts(url, &host, &rest)) {
        return;
    }
    int64_t ref_at = str_find(rest, STR_LIT("@"));
    if (ref_at < 0) {
        lint_add(c->lint, "git-pull-moving", c->at, "%.*s is installed from its default branch",
                 STR_ARG(url));
        return;
    }
    rest = str_sub(rest, (size_t)ref_at + 1, SIZE_MAX);
    if (!is_commit(rest) && !is_unknown(rest)) {
        lint_add(c->lint, "git-pull-moving", c->at, "%.*s is installed from branch or tag %.*s",
                 STR_ARG(str_sub(url, 0, url.len - rest.len - 1)), STR_ARG(rest));
    }
}

/* A framework's package by its bare name, which means the newest. */
static void lint_bare_package(const struct lint_command *c, struct str word)
{
    static const char PACKAGES[] =
        "torch tensorflow tensorflow-gpu tf-nightly tf-nightly-gpu paddlepaddle paddlepaddle-gpu "
        "mxnet mxnet-cu oneflow jax jaxlib mindspore mindspore-gpu pytorch tensorflow-cpu";
    if (is_word_of(word, PACKAGES)) {
        lint_add(c->lint, "framework-version-moving", c->at, "%.*s is installed without a version",
                 STR_ARG(word));
    }
}

/* The CUDA that all cases of a stack state; NULL if they differ or do not state it. */
static struct str stated_cuda(const struct lint *lint, const struct stack *s)
{
    struct str all = STR_EMPTY;
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        struct str cuda = STR_EMPTY;
        if (!case_condition(c, "cuda", &cuda) || !cuda.ptr) {
            continue;
        }
        if (all.ptr && !str_eq(all, cuda)) {
            return STR_EMPTY;
        }
        all = cuda;
    }
    return all;
}

static void lint_package_cuda(const struct lint_command *c, struct str word)
{
    char built[16];
    char other[16];
    struct str cuda = stated_cuda(c->lint, c->stack);
    struct str version = STR_EMPTY;
    if (!cuda.ptr || !package_cuda(word, built, sizeof(built)) || same_cuda(built, cuda)) {
        return;
    }
    if (stack_condition(c->stack, "framework_version", &version) && version.ptr &&
        str_find(word, version) >= 0 && package_cuda(version, other, sizeof(other))) {
        return; /* reported for the stated version */
    }
    lint_add(c->lint, "cuda-of-wheel-differs", c->at,
             "package %.*s is built for CUDA %s, but CUDA %.*s is stated", STR_ARG(word), built,
             STR_ARG(cuda));
}

static void lint_install(const struct lint_command *c, const struct shell_run *run)
{
    static const char *const INSTALLERS[] = {"pip", "conda", "mamba", "micromamba", "uv", "poetry"};
    struct str program = shell_program(run);
    bool is_installer = false;
    for (size_t idx = 0; idx < ARRAY_LEN(INSTALLERS); idx++) {
        is_installer = is_installer || str_starts(program, str_of(INSTALLERS[idx]));
    }
    for (size_t at = 1; is_installer && at < run->n; at++) {
        struct str word = run->words[at].text;
        if (str_find(word, STR_LIT("git+")) >= 0) {
            lint_git_package(c, word);
            continue;
        }
        lint_package_cuda(c, word);
        if (shell_run_flag(run, "install") && !str_eq_z(run->words[at - 1].text, "-n")) {
            lint_bare_package(c, word);
        }
    }
}

void lint_packages(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    for (size_t word = 0; !shell_is(run, "git") && word < run->n; word++) {
        lint_download(c, run, run->words[word].text);
    }
    for (size_t set = 0; set < run->n_sets; set++) {
        lint_download(c, run, run->sets[set].text);
    }
    lint_install(c, run);
}
