/* SPDX-License-Identifier: Apache-2.0 */
/* split_golden json|text FILE FACTS WORDS: what a command printed, as two files that tests/golden/golden.sh compares with kept ones. FACTS has the
   numbers, statuses, verdicts and names, WORDS the sentences, so that a change of wording changes no fact.
   A document's FACTS are its members in order. In an array an object omits what it has in common with the one before it, and names as absent what that one
   has beyond it, so equal files come from equal documents alone. A sentence shows there as "..."; WORDS has each once per place, with how often it occurs.
   Of a text FACTS has the numbers and verdicts line by line, WORDS the lines without them. */
#include "base/base.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "codec/digest.h"
#include "codec/json.h"

#define OUT_MAX     (64u << 20)
#define COLUMNS_MAX 150 /* columns of a value on one line */
#define LIST_MAX    600 /* bytes of a list of files; a longer one is told by its ends and its digest */

static const char *const SENTENCES[] = {"message", "note", "why",   "what", "words",
                                        "says",    "text", "title", "help", NULL};

/* In a text; verdicts that are words of every day are in documents alone. */
static const char *const VERDICTS[] = {
    "exact",    "differs", "no_log",     "reproduced", "faster", "slower",    "not_comparable",
    "failed",   "not_run", "no_metric",  "incomplete", "nan",    "ambiguous", "truncated",
    "proposed", "ok",      "two_levels", "partial",    NULL};

struct words {
    struct arena arena;
    struct map counts; /* "PLACE: SENTENCE" to a size_t */
};

static bool is_sentence(const struct json *at)
{
    return at->key && json_is_str(at) && str_eq_any(str_of(at->key), SENTENCES);
}

static struct str scalar(struct arena *arena, const struct json *at)
{
    struct err err = {0};
    struct str text = STR_EMPTY;
    double number = 0;
    bool flag = false;
    if (json_is_null(at)) {
        return STR_LIT("null");
    }
    if (json_is_str(at)) {
        CLEANUP(strbuf) struct strbuf buf;
        struct json_out out;
        strbuf_init(&buf, OUT_MAX);
        if (json_str(at, arena, &text, &err) < 0) {
            return STR_LIT("?");
        }
        jw_begin(&out, &buf, true);
        jw_str(&out, NULL, text);
        return str_trim(str_dup(arena, strbuf_str(&buf)));
    }
    if (json_bool(at, &flag, &err) == 0) {
        return flag ? STR_LIT("true") : STR_LIT("false");
    }
    err = (struct err){0};
    if (json_f64(at, &number, &err) == 0) {
        CLEANUP(strbuf) struct strbuf buf;
        strbuf_init(&buf, OUT_MAX);
        strbuf_add_f64(&buf, number);
        return str_dup(arena, strbuf_str(&buf));
    }
    return STR_LIT("?");
}

/* Sentences count as equal. */
static bool is_same(const struct json *a, const struct json *b)
{
    struct json x, y;
    bool more_x, more_y;
    if (json_is_object(a) != json_is_object(b) || json_is_array(a) != json_is_array(b)) {
        return false;
    }
    if (!json_is_object(a) && !json_is_array(a)) {
        CLEANUP(arena) struct arena arena = {0};
        return (is_sentence(a) && is_sentence(b)) || str_eq(scalar(&arena, a), scalar(&arena, b));
    }
    more_x = json_first(a, &x);
    more_y = json_first(b, &y);
    while (more_x && more_y) {
        if ((x.key && strcmp(x.key, y.key) != 0) || !is_same(&x, &y)) {
            return false;
        }
        more_x = json_next(&x);
        more_y = json_next(&y);
    }
    return more_x == more_y;
}

static void facts(struct strbuf *out, const struct json *at, const struct json *before, int depth);

static void new_line(struct strbuf *out, int depth)
{
    if (depth >= 0) {
        strbuf_printf(out, "\n%*s", depth, "");
    }
}

static void items(struct strbuf *out, const struct json *at, const struct json *before, int depth)
{
    bool is_object = json_is_object(at);
    struct json item, last, other;
    bool has_last = false, has_any = false;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        const struct json *like = NULL;
        if (is_object && before && json_find(before, item.key, &other)) {
            if (is_same(&item, &other)) {
                continue;
            }
            like = &other;
        } else if (!is_object && has_last) {
            like = &last;
        }
        strbuf_add_z(out, has_any && depth < 0 ? ", " : "");
        has_any = true;
        new_line(out, depth);
        if (is_object) {
            strbuf_printf(out, "%s: ", item.key);
        }
        facts(out, &item, like && json_is_object(like) && json_is_object(&item) ? like : NULL,
              depth);
        last = item;
        has_last = true;
    }
    for (bool more = is_object && before && json_first(before, &item); more;
         more = json_next(&item)) {
        if (!json_find(at, item.key, &other)) {
            strbuf_add_z(out, has_any && depth < 0 ? ", " : "");
            has_any = true;
            new_line(out, depth);
            strbuf_printf(out, "%s: absent", item.key);
        }
    }
}

/* A list of files with digests: how many, the first, the last, and the digest of it all. */
static bool is_long_list(struct strbuf *out, const struct json *at, const struct strbuf *line)
{
    CLEANUP(arena) struct arena arena = {0};
    struct json item, member, first = {0}, last = {0};
    uint8_t digest[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    size_t n = 0;
    if (!json_is_array(at) || line->len <= LIST_MAX || !json_first(at, &item) ||
        !json_find(&item, "sha256", &member)) {
        return false;
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        if (!json_find(&item, "path", n++ ? &last : &first)) {
            return false;
        }
    }
    if (n < 2) {
        return false;
    }
    sha256_of(strbuf_str(line), digest);
    hex_encode(digest, SHA256_BYTES, hex);
    strbuf_printf(out, "[%zu from %.*s to %.*s, %.16s]", n, STR_ARG(scalar(&arena, &first)),
                  STR_ARG(scalar(&arena, &last)), hex);
    return true;
}

/* depth < 0: on one line */
static void facts(struct strbuf *out, const struct json *at, const struct json *before, int depth)
{
    CLEANUP(strbuf) struct strbuf line;
    const char *ends = json_is_object(at) ? "{}" : "[]";
    strbuf_init(&line, OUT_MAX);
    if (is_sentence(at)) {
        strbuf_add_z(out, "...");
    } else if (json_is_object(at) || json_is_array(at)) {
        if (depth >= 0) {
            facts(&line, at, before, -1);
        }
        if (depth >= 0 && is_long_list(out, at, &line)) {
        } else if (depth >= 0 && line.len <= COLUMNS_MAX) {
            strbuf_add_str(out, strbuf_str(&line));
        } else {
            strbuf_add_char(out, ends[0]);
            items(out, at, before, depth < 0 ? depth : depth + 1);
            strbuf_add_char(out, ends[1]);
        }
    } else {
        CLEANUP(arena) struct arena arena = {0};
        strbuf_add_str(out, scalar(&arena, at));
    }
}

static void gather(struct words *words, const struct json *at, const char *place)
{
    struct json item;
    if (is_sentence(at)) {
        struct str text = scalar(&words->arena, at);
        struct str key = str_printf(&words->arena, "%s: %.*s", place, STR_ARG(text));
        size_t *n = map_get(&words->counts, key);
        if (!n) {
            n = arena_new(&words->arena, size_t);
            ASSERT(map_add(&words->counts, key, n));
        }
        *n += 1;
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        gather(words, &item,
               item.key ? arena_printf(&words->arena, "%s.%s", place, item.key) : place);
    }
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(((const struct map_entry *)a)->key, ((const struct map_entry *)b)->key);
}

static int split_json(const char *path, struct strbuf *facts_out, struct strbuf *words_out,
                      struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct words words = {0};
    struct json root;
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    facts(facts_out, &root, NULL, 0);
    strbuf_add_char(facts_out, '\n');
    gather(&words, &root, "$");
    qsort(words.counts.entries, words.counts.n, sizeof(struct map_entry), by_text);
    for (size_t i = 0; i < words.counts.n; i++) {
        struct map_entry *entry = &words.counts.entries[i];
        strbuf_printf(words_out, "%zu %.*s\n", *(size_t *)entry->value, STR_ARG(entry->key));
    }
    map_release(&words.counts);
    arena_release(&words.arena);
    return 0;
}

static bool is_in_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The number or verdict at the line's begin, as a length; 0 where another word stands there. */
static size_t fact_len(struct str line)
{
    size_t n = 0;
    if (!is_digit(line.ptr[0])) {
        while (n < line.len && is_in_word(line.ptr[n])) {
            n++;
        }
        return str_eq_any(str_sub(line, 0, n), VERDICTS) ? n : 0;
    }
    while (n < line.len && (is_digit(line.ptr[n]) || line.ptr[n] == '.')) {
        n++;
    }
    while (line.ptr[n - 1] == '.') { /* the sentence's end */
        n--;
    }
    return n < line.len && is_in_word(line.ptr[n]) ? 0 : n;
}

static bool split_line(struct str line, struct strbuf *facts_out, struct strbuf *words_out)
{
    bool has_fact = false;
    for (size_t i = 0, n; i < line.len; i += n) {
        struct str rest = str_sub(line, i, line.len - i);
        n = is_in_word(rest.ptr[0]) ? fact_len(rest) : 1;
        if (n && is_in_word(rest.ptr[0])) {
            strbuf_add_char(words_out, '#');
            strbuf_printf(facts_out, " %.*s", (int)n, rest.ptr);
            has_fact = true;
            continue;
        }
        while (n < rest.len && is_in_word(rest.ptr[n]) && is_in_word(rest.ptr[0])) {
            n++;
        }
        strbuf_add(words_out, rest.ptr, n);
    }
    strbuf_add_char(words_out, '\n');
    return has_fact;
}

static int split_text(const char *path, struct strbuf *facts_out, struct strbuf *words_out,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = {0};
    struct str text, line;
    if (fs_read(&arena, path, OUT_MAX, &text, err) < 0) {
        return -1;
    }
    while (str_next(&text, '\n', &line)) {
        if (split_line(line, facts_out, words_out)) {
            strbuf_add_char(facts_out, '\n');
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(strbuf) struct strbuf facts_out, words_out;
    struct err err = {0};
    strbuf_init(&facts_out, OUT_MAX);
    strbuf_init(&words_out, OUT_MAX);
    if (argc != 5) {
        fprintf(stderr, "usage: split_golden json|text FILE FACTS WORDS\n");
        return 2;
    }
    if ((strcmp(argv[1], "json") == 0 ? split_json : split_text)(argv[2], &facts_out, &words_out,
                                                                 &err) < 0 ||
        fs_replace(argv[3], strbuf_str(&facts_out), &err) < 0 ||
        fs_replace(argv[4], strbuf_str(&words_out), &err) < 0) {
        fprintf(stderr, "split_golden: %s\n", err.msg);
        return 1;
    }
    if (facts_out.is_full || words_out.is_full) {
        fprintf(stderr, "split_golden: %s is too long\n", argv[2]);
        return 1;
    }
    return 0;
}
