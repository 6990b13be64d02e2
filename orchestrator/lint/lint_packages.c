/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is downloaded or installed: from a branch, without a version, for another CUDA. */
#include "base/base.h"

#include "lint/lint_parts.h"

bool is_commit(struct str s)
{
    return str_is_made_of(s, "0-9a-f") && s.len >= 7 && s.len <= 40;
}

/* ---- where code is kept ---- */

/* "https://HOST/PATH" and "git@HOST:PATH", up to the host. */
#define URL        "(?s)^(?>.*?://)?+(?:[^/@]*@)?+"
#define CODE_HOST  "(?:(?:www\\.)?github\\.com|gitee\\.com|bitbucket\\.org|codeberg\\.org)"
#define ANY_HOST   "(?:" CODE_HOST "|gitlab\\.[^/]*)"
#define RAW_HOST   "(?:raw\\.githubusercontent|raw\\.github|(?:cdn\\.)?rawgit|raw\\.gitmirror)\\.com"
#define OWNER_NAME "/([^/]*)/([^/]*)/"

bool url_can_be_cloned(struct lint *lint, struct str url)
{
    static const char *const NOT[] = {
        "(?s).(?:/(?:tree|blob|commits?|archive|pull|raw|-|src)/|/(?:releases|wiki|issues)|[?#])",
        URL RAW_HOST "/", URL CODE_HOST "/+[^/]+/+[^/]+/+[^/]"};
    bool is_good = !ends_with_any(url, ARCHIVE_SUFFIXES);
    for (size_t idx = 0; idx < ARRAY_LEN(NOT); idx++) {
        is_good = is_good && !lint_has(lint, NOT[idx], url);
    }
    return is_good || is_unknown(url) || !lint_has(lint, URL "[^/]+/", url);
}

/* ---- downloads ---- */

/* REF/..., refs/heads/REF/..., refs/tags/REF/..., without the suffix of an archive: whether it is a tag, and the ref. */
#define REF                                                                                        \
    "(?:refs/(?:(tags)|[^/]*)/)?([^/]+?)(?:\\.tar(?:\\.(?:gz|bz2|xz|zst))?|\\.t(?:gz|bz2|xz)|"     \
    "\\.zip)?(?:/|\\z)"

/* URLs that name files of a repository at a named state: owner, name, and as REF; no ref means the latest. */
static const char *const DOWNLOADS[] = {
    URL "cdn\\.jsdelivr\\.net/gh"
        "/([^/]*)/([^/@]*)(?:@" REF ")?",
    URL RAW_HOST OWNER_NAME REF,
    URL "(?:" ANY_HOST
        "|codeload\\.github\\.com|huggingface\\.co|api\\.github\\.com/repos)" OWNER_NAME
        "(?:-/)?(?|(?:raw|archive|tarball|zipball|zip|tar\\.gz|legacy\\.zip|legacy\\.tar\\.gz|"
        "resolve|get|blob|tree)/" REF "|()(trunk)(?:/|\\z)|releases/latest)"};

bool is_release(struct lint *lint, struct str ref)
{
    return lint_has(lint, "^[vV]?\\d+\\.[^/]*\\z", ref);
}

static void lint_download(const struct lint_command *c, const struct shell_run *run,
                          struct str word)
{
    struct lint *lint = c->lint;
    struct str d[5]; /* as DOWNLOADS has them */
    bool is_page = lint_has(lint, "./(?:blob|tree)/", word);
    bool is_found = false;
    if (!lint_has(lint, "^(?!git\\+).*://", word) ||
        (is_page && !shell_is_any(run, "wget curl aria2c axel pip pip3 svn"))) {
        return;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(DOWNLOADS) && !is_found; idx++) {
        is_found = patterns_find(&lint->patterns, DOWNLOADS[idx], word, d, ARRAY_LEN(d));
    }
    if (is_found && !d[3].len && !is_commit(d[4]) && !is_release(lint, d[4]) && !is_unknown(d[4])) {
        lint_add(lint, "download-from-branch", c->at,
                 "files of %.*s/%.*s are downloaded from branch %.*s", STR_ARG(d[1]), STR_ARG(d[2]),
                 STR_ARG(d[4].ptr ? d[4] : STR_LIT("latest")));
    }
}

/* ---- installs ---- */

static void lint_git_package(const struct lint_command *c, struct str word)
{
    static const char PACKAGE[] = "git\\+((?>[^#]*?://)?+(?:[^/@#]*@)?+[^/#]+/[^@#]*)(?:@([^#]*))?";
    struct str g[3]; /* URL and ref, of git+URL@REF#egg=NAME */
    if (!patterns_find(&c->lint->patterns, PACKAGE, word, g, ARRAY_LEN(g))) {
        return;
    }
    if (!g[2].ptr) {
        lint_add(c->lint, "git-pull-moving", c->at, "%.*s is installed from its default branch",
                 STR_ARG(g[1]));
    } else if (!is_commit(g[2]) && !is_unknown(g[2])) {
        lint_add(c->lint, "git-pull-moving", c->at, "%.*s is installed from branch or tag %.*s",
                 STR_ARG(g[1]), STR_ARG(g[2]));
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
    struct str cuda = stated_cuda(c->lint, c->stack);
    struct str version = STR_EMPTY;
    struct str built = package_cuda(c->lint, word);
    if (!cuda.ptr || !built.ptr || same_cuda(built, cuda)) {
        return;
    }
    if (stack_condition(c->stack, "framework_version", &version) && version.ptr &&
        str_find(word, version) >= 0 && package_cuda(c->lint, version).ptr) {
        return; /* reported for the stated version */
    }
    lint_add(c->lint, "cuda-of-wheel-differs", c->at,
             "package %.*s is built for CUDA %.*s, but CUDA %.*s is stated", STR_ARG(word),
             STR_ARG(built), STR_ARG(cuda));
}

static void lint_install(const struct lint_command *c, const struct shell_run *run)
{
    bool is_installer =
        lint_has(c->lint, "^(?:pip|conda|mamba|micromamba|uv|poetry)", shell_program(run));
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
