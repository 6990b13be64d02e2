/* SPDX-License-Identifier: Apache-2.0 */
/* Images, sources, data and versions that may be different tomorrow. */
#include "base/base.h"

#include "lint/lint_parts.h"

#define VERSION_PARTS 3

/* Whether a printed command pulls or runs an image by its digest: then the tag is only a name. */
static bool is_by_digest(struct lint *lint, const struct stack *s)
{
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        struct str name = lint_part(lint, "([^ ]+)@sha256:", c.line);
        if (name.ptr && str_starts(s->image_tag, name)) {
            return true;
        }
    }
    return false;
}

static void lint_image(struct lint *lint, const struct stack *s)
{
    if (s->image_tag.ptr && !s->image_digest.ptr && !is_by_digest(lint, s)) {
        lint_add(lint, "image-tag-mutable", in_stack(s, ".image_digest"),
                 "image %s is named by its tag, without a digest", s->image_tag.ptr);
    }
}

/* The first version of two parts or more at the beginning of a word: 2.5.0 in "2.5.0-cuda11.2", 1.2 in "v1.2". */
static bool version_in(struct lint *lint, struct str text, int64_t *ret_parts)
{
    struct str g[1 + VERSION_PARTS];
    bool is_found = patterns_find(&lint->patterns, "(?:^|[-_ :])v?(\\d+)\\.(\\d+)(?:\\.(\\d+))?",
                                  text, g, ARRAY_LEN(g));
    for (size_t idx = 0; idx < VERSION_PARTS; idx++) {
        ret_parts[idx] = -1;
        (void)(is_found && to_count(g[idx + 1], INT32_MAX, &ret_parts[idx]));
    }
    return is_found;
}

/* Monthly names such as 20.06 are versions of the image, not of its contents. */
static bool is_month(const int64_t *parts)
{
    return parts[2] < 0 && parts[0] >= 15 && parts[1] >= 1 && parts[1] <= 12;
}

static void lint_image_version(struct lint *lint, const struct stack *s)
{
    struct str stated = STR_EMPTY;
    int64_t colon = s->image_tag.ptr ? str_find(s->image_tag, STR_LIT(":")) : -1;
    struct str tag = colon >= 0 ? str_sub(s->image_tag, (size_t)colon + 1, SIZE_MAX) : STR_EMPTY;
    int64_t of_tag[VERSION_PARTS], run[VERSION_PARTS];
    bool differ = false;
    if (!version_in(lint, tag, of_tag) || is_month(of_tag) ||
        !conditions_find(&s->conditions, "framework_version", &stated) ||
        !version_in(lint, stated, run)) {
        return;
    }
    for (size_t idx = 0; idx < VERSION_PARTS; idx++) {
        differ = differ || (run[idx] >= 0 && of_tag[idx] >= 0 && run[idx] != of_tag[idx]);
    }
    if (differ) {
        lint_add(lint, "image-version-differs", in_stack(s, ".image_tag"),
                 "the image is tagged %.*s, but the framework is stated as %s", STR_ARG(tag),
                 stated.ptr);
    }
}

static void lint_sources(struct lint *lint, const struct stack *s)
{
    for (size_t idx = 0; idx < s->n_sources; idx++) {
        const struct pin_source *source = &s->sources[idx];
        struct spot at = in_stack(s, arena_printf(lint->arena, ".sources[%zu]", idx));
        if (!source->commit.ptr) {
            lint_add(lint, "source-not-pinned", at, "%s is named by %s%s, without a commit",
                     source->repository.ptr,
                     source->ref.ptr ? "branch or tag " : "nothing but its URL",
                     source->ref.ptr ? source->ref.ptr : "");
        }
        /* Files that are downloaded one by one need no clone. */
        if (source->printed_url.ptr && str_find(source->printed_url, STR_LIT("://raw.")) < 0 &&
            !url_can_be_cloned(lint, source->printed_url)) {
            lint_add(lint, "url-not-cloneable", at, "git cannot clone %s", source->printed_url.ptr);
        }
    }
}

static void lint_version(struct lint *lint, const struct stack *s)
{
    struct str version = STR_EMPTY;
    struct str commit = STR_EMPTY;
    if (!conditions_find(&s->conditions, "framework_version", &version) || !version.ptr ||
        (conditions_find(&s->conditions, "framework_commit", &commit) && commit.ptr)) {
        return;
    }
    /* Paddle built from its branch calls itself 0.0.0; "develop+613c46bc" and "2.0.dev20201203+g1a2b3c4" have a commit. */
    if (lint_has(lint,
                 "(?i)^(?!.*(?-i:[0-9a-f]{7}))(?:0\\.0\\.0|.*(?<![a-z])(?:develop|development|dev|"
                 "master|main|nightly|latest|head|trunk|tip|newest|unreleased)(?![a-z]))",
                 version)) {
        lint_add(lint, "framework-version-moving", in_stack(s, ".conditions.framework_version"),
                 "the framework's version is stated as \"%s\", without a commit", version.ptr);
    }
}

/* "102" is 10.2, "92" 9.2, "11" and "12" are only majors, "10.1" and "11.8.0" as they are. */
#define CUDA "(?|(\\d+)\\.(\\d+)|(\\d\\d)(\\d)|([02-9])(\\d)|(\\d\\d?))(?!\\d)"

/* "1.8.3.post107" is CUDA 10, "2.5.0.post112" CUDA 11.2; "1.6.0+cu102" CUDA 10.2. Source: the frameworks' own naming of
   packages: PaddlePaddle before 2.0 gives the majors of CUDA and cuDNN, later CUDA's major and minor, as PyTorch does. */
struct str package_cuda(struct lint *lint, struct str version)
{
    static const char OF_PADDLE_1[] = "^(?:.*?==)?+[01].*\\.post(\\d{1,2})\\d(?!\\d)";
    static const char OTHERS[] = "(?:\\.post(?=\\d\\d)|(?<![A-Za-z])(?:cudatoolkit|pytorch-cuda|"
                                 "cuda-version|cuda|cu)[=-]*)" CUDA;
    struct str g[3];
    if (patterns_find(&lint->patterns, OF_PADDLE_1, version, g, 2)) {
        return str_printf(lint->arena, "%.*s.0", STR_ARG(g[1]));
    }
    return patterns_find(&lint->patterns, OTHERS, version, g, 3)
               ? str_printf(lint->arena, "%.*s%s%.*s", STR_ARG(g[1]), g[2].len ? "." : "",
                            STR_ARG(g[2]))
               : STR_EMPTY;
}

bool same_cuda(struct str built, struct str stated)
{
    struct str longer = built.len > stated.len ? built : stated;
    struct str other = built.len > stated.len ? stated : built;
    return str_starts(longer, other) && (longer.len == other.len || longer.ptr[other.len] == '.');
}

static void lint_wheel(struct lint *lint, const struct stack *s)
{
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        struct str version = STR_EMPTY;
        struct str cuda = STR_EMPTY;
        if (!case_condition(c, "framework_version", &version) || !version.ptr ||
            !case_condition(c, "cuda", &cuda) || !cuda.ptr) {
            continue;
        }
        struct str built = package_cuda(lint, version);
        if (built.ptr && !same_cuda(built, cuda)) {
            lint_add(lint, "cuda-of-wheel-differs", in_stack(s, ".conditions.framework_version"),
                     "package %s is built for CUDA %s, but CUDA %s is stated", version.ptr,
                     built.ptr, cuda.ptr);
        }
    }
}

static void lint_data(struct lint *lint, const struct stack *s)
{
    if (!s->dataset.ptr) {
        return;
    }
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        if (is_checksum(&c)) {
            return;
        }
    }
    lint_add(lint, "dataset-no-checksum", in_stack(s, ".dataset"),
             "dataset %s is used, but no printed command checks it", s->dataset.ptr);
}

void lint_pins(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        if (!stack_next_case(lint, s, NULL)) {
            continue;
        }
        lint_image(lint, s);
        lint_image_version(lint, s);
        lint_sources(lint, s);
        lint_version(lint, s);
        lint_wheel(lint, s);
        lint_data(lint, s);
    }
}
