/* SPDX-License-Identifier: Apache-2.0 */
/* Images, sources, data and versions that may be different tomorrow. */
#include "base/base.h"

#include "lint/lint_parts.h"

#define VERSION_PARTS 3

/* Whether a printed command pulls or runs an image by its digest: then the tag is only a name. */
static bool is_by_digest(struct lint *lint, const struct stack *s)
{
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        for (size_t at = 1; at < c.run->n; at++) {
            struct str word = c.run->words[at].text;
            int64_t digest = str_find(word, STR_LIT("@sha256:"));
            struct str name = digest > 0 ? str_sub(word, 0, (size_t)digest) : STR_EMPTY;
            if (name.ptr && str_starts(s->image_tag, name)) {
                return true;
            }
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

struct version {
    int64_t parts[VERSION_PARTS];
    size_t n;
};

/* Digits, dot, digits and perhaps more at s[at]. */
static struct version version_at(struct str s, size_t at)
{
    struct version v = {.n = 0};
    while (v.n < VERSION_PARTS) {
        size_t from = at;
        at = str_span(s, at, DIGITS);
        if (!to_count(str_sub(s, from, at - from), INT32_MAX, &v.parts[v.n])) {
            break;
        }
        v.n++;
        if (at >= s.len || s.ptr[at] != '.') {
            break;
        }
        at++;
    }
    return v;
}

/* The first version of two parts or more at the beginning of a word: 2.5.0 in "2.5.0-cuda11.2", 1.2 in "v1.2"; n is 0 if there is
   none. */
static struct version version_in(struct str s)
{
    for (size_t at = 0; at < s.len; at++) {
        size_t word = at > 0 && s.ptr[at - 1] == 'v' ? at - 1 : at;
        char before = word > 0 ? s.ptr[word - 1] : '-';
        struct version v = {.n = 0};
        if (is_digit(s.ptr[at]) && strchr("-_ :", before)) {
            v = version_at(s, at);
        }
        if (v.n > 1) {
            return v;
        }
    }
    return (struct version){.n = 0};
}

/* Monthly names such as 20.06 are versions of the image, not of its contents. */
static bool is_month(const struct version *v)
{
    return v->n == 2 && v->parts[0] >= 15 && v->parts[1] >= 1 && v->parts[1] <= 12;
}

static void lint_image_version(struct lint *lint, const struct stack *s)
{
    struct str stated = STR_EMPTY;
    int64_t colon = s->image_tag.ptr ? str_find(s->image_tag, STR_LIT(":")) : -1;
    struct str tag = colon >= 0 ? str_sub(s->image_tag, (size_t)colon + 1, SIZE_MAX) : STR_EMPTY;
    struct version of_tag = version_in(tag);
    if (!of_tag.n || is_month(&of_tag) || !stack_condition(s, "framework_version", &stated) ||
        !stated.ptr) {
        return;
    }
    struct version run = version_in(stated);
    for (size_t idx = 0; idx < run.n && idx < of_tag.n; idx++) {
        if (run.parts[idx] != of_tag.parts[idx]) {
            lint_add(lint, "image-version-differs", in_stack(s, ".image_tag"),
                     "the image is tagged %.*s, but the framework is stated as %s", STR_ARG(tag),
                     stated.ptr);
            return;
        }
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
            !url_can_be_cloned(source->printed_url)) {
            lint_add(lint, "url-not-cloneable", at, "git cannot clone %s", source->printed_url.ptr);
        }
    }
}

/* "develop+613c46bc", "2.0.dev20201203+g1a2b3c4" */
static bool names_commit(struct str version)
{
    for (size_t from = 0; from < version.len; from++) {
        size_t to = from;
        while (to < version.len && is_commit(str_sub(version, from, 7)) &&
               (is_digit(version.ptr[to]) || (version.ptr[to] >= 'a' && version.ptr[to] <= 'f'))) {
            to++;
        }
        if (to > from) {
            return true;
        }
    }
    return false;
}

static void lint_version(struct lint *lint, const struct stack *s)
{
    static const char MOVING[] =
        "develop development dev master main nightly latest head trunk tip "
        "newest unreleased";
    struct str version = STR_EMPTY;
    struct str commit = STR_EMPTY;
    if (!stack_condition(s, "framework_version", &version) || !version.ptr ||
        (stack_condition(s, "framework_commit", &commit) && commit.ptr)) {
        return;
    }
    /* Paddle built from its branch calls itself 0.0.0. */
    bool is_moving = str_starts(version, STR_LIT("0.0.0")) || holds_word(version, MOVING);
    if (is_moving && !names_commit(version)) {
        lint_add(lint, "framework-version-moving", in_stack(s, ".conditions.framework_version"),
                 "the framework's version is stated as \"%s\", without a commit", version.ptr);
    }
}

static bool digits_at(struct str s, size_t at, struct str *ret)
{
    size_t end = at;
    while (end < s.len && (is_digit(s.ptr[end]) || (s.ptr[end] == '.' && end > at &&
                                                    end + 1 < s.len && is_digit(s.ptr[end + 1])))) {
        end++;
    }
    *ret = str_sub(s, at, end - at);
    return end > at;
}

/* "102" is 10.2, "92" 9.2, "11" and "12" are only majors, "10.1" and "11.8.0" as they are. */
static bool cuda_of_digits(struct str digits, char *ret, size_t size)
{
    int64_t dot = str_find(digits, STR_LIT("."));
    if (dot > 0) {
        struct str minor = str_sub(digits, (size_t)dot + 1, SIZE_MAX);
        int64_t next = str_find(minor, STR_LIT("."));
        minor = next > 0 ? str_sub(minor, 0, (size_t)next) : minor;
        snprintf(ret, size, "%.*s.%.*s", (int)dot, digits.ptr, STR_ARG(minor));
    } else if (digits.len == 3) {
        snprintf(ret, size, "%.2s.%c", digits.ptr, digits.ptr[2]);
    } else if (digits.len == 2 && digits.ptr[0] != '1') {
        snprintf(ret, size, "%c.%c", digits.ptr[0], digits.ptr[1]);
    } else if (digits.len <= 2) {
        snprintf(ret, size, "%.*s", STR_ARG(digits));
    } else {
        return false;
    }
    return true;
}

/* "1.8.3.post107" is CUDA 10, "2.5.0.post112" CUDA 11.2; "1.6.0+cu102" CUDA 10.2. Source: the frameworks' own naming of
   packages: PaddlePaddle before 2.0 gives the majors of CUDA and cuDNN, later CUDA's major and minor, as PyTorch does. */
bool package_cuda(struct str version, char *ret, size_t size)
{
    static const char *const MARKS[] = {"cudatoolkit", "pytorch-cuda", "cuda-version", "cuda",
                                        "cu"};
    int64_t post = str_find(version, STR_LIT(".post"));
    struct str digits;
    if (post >= 0 && digits_at(version, (size_t)post + 5, &digits) &&
        (digits.len == 2 || digits.len == 3)) {
        int64_t equals = str_find(version, STR_LIT("=="));
        char first = version.ptr[equals >= 0 && (size_t)equals + 2 < version.len ? equals + 2 : 0];
        if (first == '0' || first == '1') {
            snprintf(ret, size, "%.*s.0", (int)digits.len - 1, digits.ptr);
            return true;
        }
        return cuda_of_digits(digits, ret, size);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(MARKS); idx++) {
        size_t len = strlen(MARKS[idx]);
        for (size_t at = 0; at + len < version.len; at++) {
            size_t to = at + len;
            bool is_word = at == 0 || !((version.ptr[at - 1] | 0x20) >= 'a' &&
                                        (version.ptr[at - 1] | 0x20) <= 'z');
            while (to < version.len && strchr("=-", version.ptr[to])) {
                to++;
            }
            if (is_word && memcmp(version.ptr + at, MARKS[idx], len) == 0 &&
                digits_at(version, to, &digits) && cuda_of_digits(digits, ret, size)) {
                return true;
            }
        }
    }
    return false;
}

bool same_cuda(const char *built, struct str stated)
{
    size_t len = strlen(built);
    size_t common = len < stated.len ? len : stated.len;
    const char *longer = len > stated.len ? built : stated.ptr;
    return memcmp(built, stated.ptr, common) == 0 && (len == stated.len || longer[common] == '.');
}

static void lint_wheel(struct lint *lint, const struct stack *s)
{
    char built[16];
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        struct str version = STR_EMPTY;
        struct str cuda = STR_EMPTY;
        if (!case_condition(c, "framework_version", &version) || !version.ptr ||
            !case_condition(c, "cuda", &cuda) || !cuda.ptr ||
            !package_cuda(version, built, sizeof(built))) {
            continue;
        }
        if (!same_cuda(built, cuda)) {
            lint_add(lint, "cuda-of-wheel-differs", in_stack(s, ".conditions.framework_version"),
                     "package %s is built for CUDA %s, but CUDA %s is stated", version.ptr, built,
                     cuda.ptr);
        }
    }
}

static void lint_data(struct lint *lint, const struct stack *s)
{
    if (!s->dataset.ptr) {
        return;
    }
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        if (is_checksum(c.run)) {
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
