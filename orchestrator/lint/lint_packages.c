/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is downloaded or installed: from a branch, without a version, for another CUDA. */
#include "base/base.h"

#include "lint/lint_parts.h"

/* ---- where code is kept ---- */

/* "https://HOST/PATH" and "git@HOST:PATH", up to the host. */
#define URL        "(?<![^ ])(?!git\\+)[^ ]*?://(?:[^/@ ]*@)?+"
#define CODE_HOST  "(?:(?:www\\.)?github\\.com|gitee\\.com|bitbucket\\.org|codeberg\\.org)"
#define RAW_HOST   "(?:raw\\.githubusercontent|raw\\.github|(?:cdn\\.)?rawgit|raw\\.gitmirror)\\.com"
#define OWNER_NAME "/([^/ ]*)/([^/@ ]*)"
#define OF_HOST                                                                                    \
    URL "(?:" CODE_HOST "|gitlab\\.[^/ ]*|codeload\\.github\\.com|huggingface\\.co|"               \
        "api\\.github\\.com/repos)" OWNER_NAME "/(?:-/)?"

bool url_can_be_cloned(struct lint *lint, struct str url)
{
    static const char PAGE[] =
        "(?:/(?:tree|blob|commits?|archive|pull|raw|-|src)/|/(?:releases|wiki|issues)|[?#])|"
        "://(?:[^/@]*@)?(?:" RAW_HOST "/|" CODE_HOST "/+[^/]+/+[^/]+/+[^/])";
    return is_unknown(url) || !lint_has(lint, "://", url) ||
           (!ends_with_any(url, ARCHIVE_SUFFIXES) && !lint_has(lint, PAGE, url));
}

/* A branch: no tag, commit or release, and known. Then an archive's suffix, the rest of a path, or the end. */
#define BRANCH                                                                                     \
    "(?!refs/tags/)(?:refs/[^/ ]*/)?(?!" COMMIT "(?:[./ ?]|\\z)|[vV]?\\d+\\.|[^/ ]*[$`])"          \
    "([^/ ]+?)(?:\\.tar(?:\\.(?:gz|bz2|xz|zst))?|\\.t(?:gz|bz2|xz)|\\.zip)?[/ ]"
#define DOWNLOADED "files of $1/$2 are downloaded from branch $3"
#define INSTALLERS "pip pip3 conda mamba micromamba uv poetry"
#define GIT_URL    "git\\+((?>[^# ]*?://)?+(?:[^/@# ]*@)?+[^/# ]+/[^@# ]*)"

static const struct lint_row ROWS[] = {
    {"download-from-branch", "!git", URL "cdn\\.jsdelivr\\.net/gh" OWNER_NAME "@" BRANCH,
     DOWNLOADED},
    {"download-from-branch", "!git", URL RAW_HOST OWNER_NAME "/" BRANCH, DOWNLOADED},
    {"download-from-branch", "!git",
     OF_HOST "(?:raw|archive|tarball|zipball|zip|tar\\.gz|legacy\\.zip|legacy\\.tar\\.gz|resolve|"
             "get)/" BRANCH,
     DOWNLOADED},
    {"download-from-branch", "!git", OF_HOST "releases/(latest)/", DOWNLOADED},
    /* Others name a page for people. */
    {"download-from-branch", "wget curl aria2c axel pip pip3 svn", OF_HOST "(?:blob|tree)/" BRANCH,
     DOWNLOADED},
    {"git-pull-moving", INSTALLERS, GIT_URL "(?=[# ])", "$1 is installed from its default branch"},
    {"git-pull-moving", INSTALLERS, GIT_URL "@(?!" COMMIT "[# ]|[^# ]*[$`])([^# ]*)",
     "$1 is installed from branch or tag $2"},
    /* A framework's package by its bare name, which means the newest. */
    {"framework-version-moving", INSTALLERS,
     " install (?:.* )?(?<! -n )(torch|pytorch|tensorflow|tensorflow-gpu|tensorflow-cpu|"
     "tf-nightly|tf-nightly-gpu|paddlepaddle|paddlepaddle-gpu|mxnet|mxnet-cu|oneflow|jax|jaxlib|"
     "mindspore|mindspore-gpu) ",
     "$1 is installed without a version"},
};

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
    if (conditions_find(&c->stack->conditions, "framework_version", &version) && version.ptr &&
        str_find(word, version) >= 0 && package_cuda(c->lint, version).ptr) {
        return; /* reported for the stated version */
    }
    lint_add(c->lint, "cuda-of-wheel-differs", c->at,
             "package %.*s is built for CUDA %.*s, but CUDA %.*s is stated", STR_ARG(word),
             STR_ARG(built), STR_ARG(cuda));
}

void lint_packages(const struct lint_command *c)
{
    lint_by_rows(c, ROWS, ARRAY_LEN(ROWS));
    for (size_t at = 1; shell_is(c->run, INSTALLERS) && at < c->run->n; at++) {
        lint_package_cuda(c, c->run->words[at].text);
    }
}
