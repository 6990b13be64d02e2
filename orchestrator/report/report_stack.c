/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, conditions, environments and stacks of a report, and the forms of text. */
#include "base/base.h"

#include "report/report_decode.h"

#include "codec/json_table.h"
#include "report/container.h"
#include "report/source.h"

#define TEXT_BYTES_MAX 4096
#define LINE_BYTES_MAX 512
#define SLUG_BYTES_MAX 64
#define ENV_BYTES_MAX  1024
#define SOURCES_MAX    32
#define ENV_MAX        64
#define COMMIT_DIGITS  40
#define DIGEST_DIGITS  64
#define DIGEST_PREFIX  "sha256:"
#define CONDITIONS_MAX 128
#define DATE_BYTES     10

static const char *const PURPOSES[] = {"pull",    "build", "container", "code", "data",
                                       "install", "run",   "log",       NULL};

static const char *const PER[] = {"node", "rank", "head", NULL};

static bool is_lower_hex(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        char c = s.ptr[idx];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return true;
}

int check_text(const struct json *at, const char *key, struct str value, struct err *err)
{
    if (value.ptr && (value.len == 0 || value.len > TEXT_BYTES_MAX)) {
        return json_fail(at, err, "%s: expected text of 1 to %d bytes, found %zu", key,
                         TEXT_BYTES_MAX, value.len);
    }
    return 0;
}

int check_line(const struct json *at, const char *key, struct str value, struct err *err)
{
    if (value.ptr &&
        (value.len == 0 || value.len > LINE_BYTES_MAX || memchr(value.ptr, '\n', value.len))) {
        return json_fail(at, err, "%s: expected one line of 1 to %d bytes, found %zu bytes", key,
                         LINE_BYTES_MAX, value.len);
    }
    for (size_t idx = 0; idx < value.len; idx++) {
        /* It is printed on terminals, which interpret such bytes. */
        if ((unsigned char)value.ptr[idx] < ' ' || value.ptr[idx] == 0x7F) {
            return json_fail(at, err, "%s: expected text, found the control character 0x%02x", key,
                             (unsigned)value.ptr[idx]);
        }
    }
    return 0;
}

static bool is_slug_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Letters and digits, with single dots and dashes between them. */
static bool is_slug(struct str s)
{
    bool was_joint = true;
    for (size_t idx = 0; idx < s.len; idx++) {
        bool is_joint = s.ptr[idx] == '-' || s.ptr[idx] == '.';
        if (is_joint ? was_joint : !is_slug_char(s.ptr[idx])) {
            return false;
        }
        was_joint = is_joint;
    }
    return s.len > 0 && s.len <= SLUG_BYTES_MAX && !was_joint;
}

int check_slug(const struct json *at, const char *key, struct str value, struct err *err)
{
    return !value.ptr || is_slug(value)
               ? 0
               : json_fail(at, err,
                           "%s: expected small letters and digits joined "
                           "by - or ., at most %d, found \"%.*s\"",
                           key, SLUG_BYTES_MAX, (int)(value.len < 100 ? value.len : 100),
                           value.ptr);
}

int check_commit(const struct json *at, const char *key, struct str value, struct err *err)
{
    if (value.ptr && (value.len != COMMIT_DIGITS || !is_lower_hex(value))) {
        return json_fail(at, err, "%s: expected %d hex digits (a whole commit), found \"%.100s\"",
                         key, COMMIT_DIGITS, value.ptr);
    }
    return 0;
}

static bool has_blank(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if ((unsigned char)s.ptr[idx] <= ' ') {
            return true;
        }
    }
    return false;
}

static int check_url(const struct json *at, const char *key, struct str value, struct err *err)
{
    bool is_good =
        (str_starts(value, STR_LIT("https://")) || str_starts(value, STR_LIT("http://"))) &&
        value.len <= LINE_BYTES_MAX && !has_blank(value);
    return !value.ptr || is_good
               ? 0
               : json_fail(at, err, "%s: expected https://..., found \"%.160s\"", key, value.ptr);
}

int check_rel_path(const struct json *at, const char *key, struct str value, struct err *err)
{
    struct str rest = value;
    struct str part;
    bool is_good = value.len > 0 && value.len <= LINE_BYTES_MAX && !has_blank(value);
    while (is_good && str_next(&rest, '/', &part)) {
        is_good = part.len > 0 && !str_eq_z(part, ".") && !str_eq_z(part, "..");
    }
    return is_good ? 0
                   : json_fail(
                         at, err,
                         "%s: expected a relative path without blanks, . and .., found \"%.160s\"",
                         key, value.ptr);
}

/* A file's name may contain blanks; refused is only what leaves the folder or cannot be a name. */
int check_file_path(const struct json *at, const char *key, struct str value, struct err *err)
{
    CLEANUP(free) char *bare = xcalloc(1, value.len + 1);
    for (size_t idx = 0; idx < value.len; idx++) {
        bare[idx] = value.ptr[idx] == ' ' ? '_' : value.ptr[idx];
    }
    return check_rel_path(at, key, str_of(bare), err);
}

int check_word(const struct json *at, const char *key, struct str value, const char *const *words,
               struct err *err)
{
    if (!value.ptr || str_eq_any(value, words)) {
        return 0;
    }
    return json_fail(at, err, "%s: \"%.*s\" is not one of the words for it (%s, %s, ...)", key,
                     (int)(value.len < 100 ? value.len : 100), value.ptr, words[0], words[1]);
}

static int check_date(const struct json *at, const char *key, struct str value, struct err *err)
{
    static const char SHAPE[] = "dddd-dd-dd";
    bool is_good = value.len == DATE_BYTES;
    for (size_t idx = 0; is_good && idx < DATE_BYTES; idx++) {
        char c = value.ptr[idx];
        is_good = SHAPE[idx] == 'd' ? c >= '0' && c <= '9' : c == '-';
    }
    return is_good
               ? 0
               : json_fail(at, err, "%s: expected YYYY-MM-DD, found \"%.100s\"", key, value.ptr);
}

#define UPWARDS "(?!.*(^|/)\\.\\.?(/|$))"
const struct json_form FORM_SLUG = {
    .pattern = "^[a-z0-9]+([.-][a-z0-9]+)*$", .max = SLUG_BYTES_MAX, .check = check_slug};
const struct json_form FORM_LINE = {
    .pattern = "^[^\\n]+$", .max = LINE_BYTES_MAX, .check = check_line};
const struct json_form FORM_TEXT = {.is_filled = true, .max = TEXT_BYTES_MAX, .check = check_text};
const struct json_form FORM_COMMIT = {.pattern = "^[0-9a-f]{40}$", .check = check_commit};
const struct json_form FORM_URL = {
    .pattern = "^https?://[^\\s]+$", .max = LINE_BYTES_MAX, .check = check_url};
const struct json_form FORM_PATH = {
    .pattern = "^" UPWARDS "[^/\\s][^\\s]*$", .max = LINE_BYTES_MAX, .check = check_rel_path};
const struct json_form FORM_FILE_PATH = {.pattern = "^" UPWARDS "[^/\\s][^\\t\\r\\n]*$",
                                         .max = LINE_BYTES_MAX,
                                         .check = check_file_path};
const struct json_form FORM_DATE = {.pattern = "^20[0-9]{2}-[01][0-9]-[0-3][0-9]$",
                                    .check = check_date};
const struct json_field SOURCE_ROWS[4] = {
    ROW("repository", struct source_ref, repository, JSON_REQUIRED, .form = &FORM_URL),
    ROW("commit", struct source_ref, commit, JSON_REQUIRED, .form = &FORM_COMMIT),
    ROW("path", struct source_ref, path, JSON_REQUIRED, .form = &FORM_FILE_PATH),
    ROW("date", struct source_ref, date, JSON_REQUIRED, .form = &FORM_DATE),
};

int decode_source(const struct json *at, struct arena *arena, struct source_ref *ret,
                  struct err *err)
{
    return json_decode(at, arena, SOURCE_ROWS, ARRAY_LEN(SOURCE_ROWS), ret, err);
}

static bool is_sha256(struct str value)
{
    return value.len == DIGEST_DIGITS && is_lower_hex(value);
}

static const struct json_form SERIES_SHA256 = {
    .pattern = "^[0-9a-f]{64}$", .is_valid = is_sha256, .what = "64 lower-case hex digits"};

int decode_logs(const struct json *at, struct arena *arena, struct report *report, struct err *err)
{
    static const struct json_field ROWS[] = {
        ROW_HERE(struct report, logs_source, SOURCE_ROWS),
        ROW("series_sha256", struct report, series_sha256, 0, .form = &SERIES_SHA256),
        ROW("bundled", struct report, is_bundled, 0),
    };
    return json_decode(at, arena, ROWS, ARRAY_LEN(ROWS), report, err);
}

/* The members of an object whose values are text or, where nullable, null. */
static int decode_pairs(const struct json *at, struct arena *arena, size_t max,
                        struct condition **ret_items, size_t *ret_n, struct err *err)
{
    struct json item;
    struct condition *items;
    size_t n = 0;
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object of names and texts");
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        n++;
    }
    if (n > max) {
        return json_fail(at, err, "expected at most %zu names, found %zu", max, n);
    }
    items = arena_array(arena, struct condition, n + 1);
    n = 0;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        struct condition *c = &items[n++];
        c->name = str_dup(arena, str_of(item.key));
        if (json_is_null(&item)) {
            continue;
        }
        if (json_str(&item, arena, &c->value, err) < 0) {
            return -1;
        }
    }
    *ret_items = items;
    *ret_n = n;
    return 0;
}

static int compare_conditions(const void *a, const void *b)
{
    return str_cmp(((const struct condition *)a)->name, ((const struct condition *)b)->name);
}

static bool is_one_of(struct str name, const char *const *words, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq_z(name, words[idx])) {
            return true;
        }
    }
    return false;
}

static int check_condition(const struct json *at, struct str name, struct err *err)
{
    return vocabulary_has_condition(vocabulary_of(at), name)
               ? 0
               : json_fail(at, err, "name: \"%.*s\" is not one of the conditions",
                           (int)(name.len < 100 ? name.len : 100), name.ptr);
}

int decode_conditions_and(const struct json *at, struct arena *arena, const char *const *also,
                          size_t n_also, struct conditions *ret, struct err *err)
{
    if (decode_pairs(at, arena, CONDITIONS_MAX, &ret->items, &ret->n, err) < 0) {
        return -1;
    }
    qsort(ret->items, ret->n, sizeof(ret->items[0]), compare_conditions);
    for (size_t idx = 0; idx < ret->n; idx++) {
        const struct condition *c = &ret->items[idx];
        if ((!is_one_of(c->name, also, n_also) && check_condition(at, c->name, err) < 0) ||
            check_line(at, c->name.ptr, c->value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int decode_conditions(const struct json *at, struct arena *arena, struct conditions *ret,
                      struct err *err)
{
    return decode_conditions_and(at, arena, NULL, 0, ret, err);
}

int decode_environment(const struct json *at, struct arena *arena, struct environment *ret,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("id", struct environment, id, JSON_REQUIRED),
        ROW("title", struct environment, title, JSON_REQUIRED),
        ROW("nodes", struct environment, nodes, JSON_REQUIRED, .max = NODES_MAX),
        ROW("gpus_per_node", struct environment, gpus_per_node, JSON_REQUIRED,
            .max = GPUS_PER_NODE_MAX),
        ROW_ANY("conditions", JSON_REQUIRED),
        ROW_ANY("source", JSON_REQUIRED),
    };
    struct json member;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_slug(at, "id", ret->id, err) < 0 || check_line(at, "title", ret->title, err) < 0 ||
        json_member(at, "conditions", &member, err) < 0 ||
        decode_conditions(&member, arena, &ret->conditions, err) < 0 ||
        json_member(at, "source", &member, err) < 0) {
        return -1;
    }
    if (ret->nodes == 0 && ret->gpus_per_node != 0) {
        return json_member(at, "nodes", &member, err) < 0
                   ? -1
                   : json_fail(&member, err, "expected 1 to %d, or 0 with 0 GPUs: not printed",
                               NODES_MAX);
    }
    return decode_source(&member, arena, &ret->source, err);
}

static int decode_pin(const struct json *at, struct arena *arena, struct pin_source *ret,
                      struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("repository", struct pin_source, repository, JSON_REQUIRED),
        ROW("commit", struct pin_source, commit, JSON_REQUIRED | JSON_NULLABLE),
        ROW("ref", struct pin_source, ref, JSON_REQUIRED | JSON_NULLABLE),
        ROW("printed_url", struct pin_source, printed_url, JSON_REQUIRED | JSON_NULLABLE),
    };
    struct err why = {0};
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_commit(at, "commit", ret->commit, err) < 0 ||
        check_line(at, "ref", ret->ref, err) < 0 ||
        check_url(at, "printed_url", ret->printed_url, err) < 0) {
        return -1;
    }
    if (check_url(at, "repository", ret->repository, err) < 0) {
        return -1;
    }
    if (str_find(ret->repository, STR_LIT("/tree/")) >= 0 ||
        source_check_url(ret->repository, &why) < 0) {
        return json_fail(
            at, err, "repository: expected an https:// URL that git can clone, found \"%.160s\"",
            ret->repository.ptr);
    }
    return 0;
}

int decode_command(const struct json *at, struct arena *arena, struct command *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("purpose", struct command, purpose, JSON_REQUIRED),
        ROW("nodes", struct command, nodes, JSON_REQUIRED, .max = NODES_MAX),
        ROW("gpus", struct command, gpus, JSON_REQUIRED,
            .max = (int64_t)NODES_MAX * GPUS_PER_NODE_MAX),
        ROW("batch", struct command, batch, 0, .max = BATCH_MAX),
        ROW("precision", struct command, precision, JSON_REQUIRED | JSON_NULLABLE),
        ROW("per", struct command, per, JSON_REQUIRED),
        ROW("printed", struct command, printed, JSON_REQUIRED | JSON_NULLABLE),
        ROW("works", struct command, works, JSON_REQUIRED | JSON_NULLABLE),
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_word(at, "purpose", ret->purpose, PURPOSES, err) < 0 ||
        check_word(at, "per", ret->per, PER, err) < 0 ||
        check_precision(at, "precision", ret->precision, err) < 0 ||
        check_text(at, "printed", ret->printed, err) < 0 ||
        check_text(at, "works", ret->works, err) < 0) {
        return -1;
    }
    if (!ret->printed.ptr && !ret->works.ptr) {
        return json_fail(at, err, "expected a command in printed or works, found null in both");
    }
    return 0;
}

static int decode_stack_lists(const struct json *at, struct arena *arena, struct stack *ret,
                              struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "sources", &list, err) < 0 ||
        json_expect_array(&list, SOURCES_MAX, &ret->n_sources, err) < 0) {
        return -1;
    }
    ret->sources = arena_array(arena, struct pin_source, ret->n_sources + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_pin(&item, arena, &ret->sources[idx++], err) < 0) {
            return -1;
        }
    }
    if (json_member(at, "commands", &list, err) < 0 ||
        json_expect_array(&list, COMMANDS_MAX, &ret->n_commands, err) < 0) {
        return -1;
    }
    ret->commands = arena_array(arena, struct command, ret->n_commands + 1);
    idx = 0;
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_command(&item, arena, &ret->commands[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_digest(const struct json *at, struct str digest, struct err *err)
{
    struct str hex = str_sub(digest, sizeof(DIGEST_PREFIX) - 1, SIZE_MAX);
    if (digest.ptr && (!str_starts(digest, STR_LIT(DIGEST_PREFIX)) || hex.len != DIGEST_DIGITS ||
                       !is_lower_hex(hex))) {
        return json_fail(at, err,
                         "image_digest: expected sha256: and %d hex digits, found \"%.100s\"",
                         DIGEST_DIGITS, digest.ptr);
    }
    return 0;
}

static int check_env(const struct json *at, const struct condition *env, size_t n, struct err *err)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct str name = env[idx].name;
        bool is_good = name.len > 0 && !(name.ptr[0] >= '0' && name.ptr[0] <= '9');
        for (size_t pos = 0; is_good && pos < name.len; pos++) {
            char c = name.ptr[pos];
            is_good = is_slug_char(c) || (c >= 'A' && c <= 'Z') || c == '_';
        }
        if (!is_good || env[idx].value.len > ENV_BYTES_MAX) {
            return json_fail(at, err, "%.100s: expected a variable's name and at most %d bytes",
                             name.ptr, ENV_BYTES_MAX);
        }
    }
    return 0;
}

int decode_env(const struct json *at, struct arena *arena, struct condition **ret_env,
               size_t *ret_n, struct err *err)
{
    struct json member;
    if (!json_find(at, "env", &member)) {
        return 0;
    }
    return decode_pairs(&member, arena, ENV_MAX, ret_env, ret_n, err) < 0
               ? -1
               : check_env(&member, *ret_env, *ret_n, err);
}

/* ---- its recipes ---- */

const char *const MOUNT_KIND_NAMES[] = {
    [MOUNT_OVERLAY] = "overlay", [MOUNT_SOURCE] = "source", [MOUNT_DATASET] = "dataset", NULL};
/* Properties in a case's id from which a recipe may deviate. */
static const char *const OF_THE_CASE[] = {"device", "precision"};

const char *recipe_mount_kind_name(enum recipe_mount_kind kind)
{
    return MOUNT_KIND_NAMES[kind];
}

static bool has_source(const struct stack *stack, struct str repository)
{
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        if (str_eq(stack->sources[idx].repository, repository)) {
            return true;
        }
    }
    return false;
}

static int check_mount_source(const struct json *at, const struct stack *stack,
                              const struct recipe_mount *mount, struct err *err)
{
    struct err why = {0};
    if (!mount->commit.ptr) {
        return has_source(stack, mount->name)
                   ? 0
                   : json_fail(at, err, "name: expected a repository of the stack's sources");
    }
    return source_check_url(mount->name, &why) < 0 ? json_fail(at, err, "name: %s", why.msg)
                                                   : check_commit(at, "commit", mount->commit, err);
}

static int decode_paths(const struct json *at, struct arena *arena, struct recipe_mount *mount,
                        struct err *err)
{
    struct err why = {0};
    struct json list;
    struct str *items;
    const char *joined;
    size_t n;
    if (!json_find(at, "paths", &list)) {
        return 0;
    }
    if (json_str_list(&list, arena, SOURCE_PATHS_MAX, &items, &n, err) < 0) {
        return -1;
    }
    if (mount->kind != MOUNT_SOURCE) {
        return json_fail(&list, err, "only a source has paths");
    }
    if (source_join_paths(arena, items, n, &joined, &why) < 0) {
        return json_fail(&list, err, "%s", why.msg);
    }
    mount->paths = str_of(joined);
    return 0;
}

static int decode_mount(const struct json *at, struct arena *arena, const struct stack *stack,
                        struct recipe_mount *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW_WORD("kind", struct recipe_mount, kind, MOUNT_KIND_NAMES, JSON_REQUIRED),
        ROW("name", struct recipe_mount, name, JSON_REQUIRED),
        ROW("commit", struct recipe_mount, commit, 0),
        ROW_ANY("paths", 0),
        ROW("synthetic", struct recipe_mount, is_synthetic, 0),
        ROW("inside", struct recipe_mount, inside, JSON_REQUIRED),
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0) {
        return -1;
    }
    if ((ret->kind == MOUNT_SOURCE ? check_mount_source(at, stack, ret, err)
                                   : check_slug(at, "name", ret->name, err)) < 0) {
        return -1;
    }
    if (decode_paths(at, arena, ret, err) < 0) {
        return -1;
    }
    if (ret->commit.ptr && ret->kind != MOUNT_SOURCE) {
        return json_fail(at, err, "commit: only a source has one");
    }
    if (ret->is_synthetic && ret->kind != MOUNT_DATASET) {
        return json_fail(at, err, "synthetic: only a dataset has a synthetic version");
    }
    return container_is_path(ret->inside)
               ? 0
               : json_fail(at, err, "inside: expected an absolute path, found \"%.160s\"",
                           ret->inside.ptr);
}

static int decode_mounts(const struct json *at, struct arena *arena, const struct stack *stack,
                         struct recipe *ret, struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "mounts", &list)) {
        return 0;
    }
    if (json_expect_array(&list, RECIPE_MOUNTS_MAX, &ret->n_mounts, err) < 0) {
        return -1;
    }
    ret->mounts = arena_array(arena, struct recipe_mount, ret->n_mounts + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_mount(&item, arena, stack, &ret->mounts[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int decode_commands(const struct json *at, struct arena *arena, struct recipe *ret,
                           struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "commands", &list)) {
        return 0;
    }
    if (json_expect_array(&list, COMMANDS_MAX, &ret->n_commands, err) < 0) {
        return -1;
    }
    ret->commands = arena_array(arena, struct command, ret->n_commands + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct command *command = &ret->commands[idx++];
        if (decode_command(&item, arena, command, err) < 0) {
            return -1;
        }
        if (!str_eq_z(command->purpose, "run")) {
            return json_fail(&item, err, "purpose: all commands of a recipe are \"run\"");
        }
        if (ret->before.ptr && !str_eq_z(command->per, "node")) {
            return json_fail(&item, err, "per: \"before\" runs once per node, and so must this");
        }
    }
    return 0;
}

static int decode_differences(const struct json *at, struct arena *arena, struct recipe *ret,
                              struct err *err)
{
    struct json member;
    return json_find(at, "conditions", &member)
               ? decode_conditions_and(&member, arena, OF_THE_CASE, ARRAY_LEN(OF_THE_CASE),
                                       &ret->conditions, err)
               : 0;
}

static int decode_recipe(const struct json *at, struct arena *arena, const struct stack *stack,
                         struct recipe *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("title", struct recipe, title, JSON_REQUIRED),
        ROW("why_not", struct recipe, why_not, 0),
        ROW("else_why_not", struct recipe, else_why_not, 0),
        ROW("image", struct recipe, image, 0),
        ROW("container", struct recipe, container, 0),
        ROW("rule", struct recipe, rule, 0),
        ROW_HERE(struct recipe, beside, BESIDE_ROWS),
        ROW("before", struct recipe, before, 0),
        ROW_ANY("mounts", 0),
        ROW_ANY("env", 0),
        ROW_ANY("conditions", 0),
        ROW_ANY("commands", 0),
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_line(at, "title", ret->title, err) < 0 ||
        check_line(at, "why_not", ret->why_not, err) < 0 ||
        check_line(at, "else_why_not", ret->else_why_not, err) < 0 ||
        check_slug(at, "image", ret->image, err) < 0 ||
        check_text(at, "container", ret->container, err) < 0 ||
        check_line(at, "rule", ret->rule, err) < 0 ||
        check_text(at, "before", ret->before, err) < 0) {
        return -1;
    }
    if (ret->rule.ptr && str_find(ret->rule, STR_LIT("/")) <= 0) {
        return json_fail(at, err, "rule: expected FORMAT/NAME, found \"%.160s\"", ret->rule.ptr);
    }
    if (!ret->why_not.ptr == !ret->image.ptr) {
        return json_fail(at, err, "expected either an image or why_not");
    }
    return decode_mounts(at, arena, stack, ret, err) < 0 ||
                   decode_env(at, arena, &ret->env, &ret->n_env, err) < 0 ||
                   decode_differences(at, arena, ret, err) < 0
               ? -1
               : decode_commands(at, arena, ret, err);
}

static int decode_list(const struct json *stack_at, const char *profile, struct arena *arena,
                       const struct stack *stack, struct recipes *ret, struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(stack_at, profile, &list)) {
        return 0;
    }
    if (json_expect_array(&list, RECIPES_MAX, &ret->n, err) < 0) {
        return -1;
    }
    ret->items = arena_array(arena, struct recipe, ret->n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct recipe *recipe = &ret->items[idx++];
        if (decode_recipe(&item, arena, stack, recipe, err) < 0) {
            return -1;
        }
        if (recipe->beside.n_also && recipe->beside.why_not.ptr) {
            return json_fail(&item, err, "expected also or also_why_not, found both");
        }
        if ((recipe->rule.ptr || recipe->beside.target.series.ptr) && ret != &stack->smoke) {
            return json_fail(&item, err, "%s: a full run is judged by that of its case",
                             recipe->rule.ptr ? "rule" : "target");
        }
    }
    return 0;
}

static int decode_recipes(const struct json *at, struct arena *arena, struct stack *stack,
                          struct err *err)
{
    return decode_list(at, "smoke", arena, stack, &stack->smoke, err) < 0
               ? -1
               : decode_list(at, "full", arena, stack, &stack->full, err);
}

int decode_stack(const struct json *at, struct arena *arena, struct stack *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("id", struct stack, id, JSON_REQUIRED),
        ROW("framework", struct stack, framework, JSON_REQUIRED),
        ROW("label", struct stack, label, JSON_REQUIRED),
        ROW("image", struct stack, image, JSON_REQUIRED | JSON_NULLABLE),
        ROW("image_tag", struct stack, image_tag, JSON_REQUIRED | JSON_NULLABLE),
        ROW("image_digest", struct stack, image_digest, JSON_REQUIRED | JSON_NULLABLE),
        ROW("dataset", struct stack, dataset, JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("sources", JSON_REQUIRED),
        ROW_ANY("conditions", JSON_REQUIRED),
        ROW_ANY("env", JSON_REQUIRED),
        ROW_ANY("commands", JSON_REQUIRED),
        ROW_ANY("smoke", 0),
        ROW_ANY("full", 0),
    };
    struct json member;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_slug(at, "id", ret->id, err) < 0 ||
        check_slug(at, "framework", ret->framework, err) < 0 ||
        check_line(at, "label", ret->label, err) < 0 ||
        check_slug(at, "image", ret->image, err) < 0 ||
        check_line(at, "image_tag", ret->image_tag, err) < 0 ||
        check_digest(at, ret->image_digest, err) < 0 ||
        check_slug(at, "dataset", ret->dataset, err) < 0 ||
        json_member(at, "conditions", &member, err) < 0 ||
        decode_conditions(&member, arena, &ret->conditions, err) < 0 ||
        decode_env(at, arena, &ret->env, &ret->n_env, err) < 0 ||
        decode_stack_lists(at, arena, ret, err) < 0) {
        return -1;
    }
    return decode_recipes(at, arena, ret, err);
}
