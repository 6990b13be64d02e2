/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to lines; parser_line.c makes samples of them.

       parser_feed: pieces of PIECE_BYTES -> the complete lines of a piece are a region; the rest is carried to the next
         -> take_region: NULs, escape sequences and launchers' tags are cut out
         -> parser_region: literals_next -> the line around a hit -> on_line | parser_line | guesser_region

   (1) A region is searched for the format's literals as a whole, and only lines that hold one are looked at: most bytes are never
       split into lines. Where every line counts (an open table, records, the cut end, a visitor) all are.
   (2) Where pieces begin and end changes nothing: what is carried has lost its NULs already, as a region loses them, and a line
       is at most FORMAT_LINE_MAX bytes long wherever it is cut.
   (3) Most pieces need no copy: a region is the caller's bytes unless something had to be cut out.
   (4) Matching has a budget of steps that grows with the bytes read: no pattern makes the work grow faster than the log. */
#include "base/base.h"

#include "log/logtime.h"
#include "log/parser_impl.h"

/* Less than FORMAT_LINE_MAX, so that a line within a piece is never too long. */
#define PIECE_BYTES (128u << 10)

#define BREAK_STEP 256
#define NO_LINES   "\x01\x02\x03\x04" /* a literal that no line is looked for by */

struct parser *parser_of_lines(const struct format *format, struct arena *arena)
{
    struct parser *p = xcalloc(1, sizeof(*p));
    p->format = format;
    p->arena = arena;
    p->series = xcalloc(format->n_series, sizeof(p->series[0]));
    for (size_t idx = 0; idx < format->n_series; idx++) {
        p->n_open += !format->series[idx].line.literal.len && !format->series[idx].after.pattern;
    }
    p->fact_of = xcalloc(format->n_facts, sizeof(p->fact_of[0]));
    p->gap.facts = xcalloc(format->n_facts, sizeof(p->gap.facts[0]));
    p->budget.left = STEPS_OF_LOG;
    p->now = RUN_NEW;
    p->most_rank = -1;
    strbuf_init(&p->bytes.record, FORMAT_LINE_MAX);
    p->records =
        format->records == RECORD_NONE ? NULL : records_new(format->records, format->vocabulary);
    return p;
}

int parser_new(const struct format *format, struct arena *arena, struct parser **ret_parser,
               struct err *err)
{
    if (format->n_literals == 0) {
        return err_set(err, ERR_MANIFEST, "format %.*s has no literal", STR_ARG(format->id));
    }
    struct parser *p = parser_of_lines(format, arena);
    if (!*format->search) {
        *format->search = literals_new(format->literals, format->n_literals);
    }
    p->search = *format->search;
    *ret_parser = p;
    return 0;
}

struct parser *parser_new_lines(struct arena *arena, line_visit *visit, void *ctx)
{
    struct format *format = arena_new(arena, struct format);
    struct parser *p;
    format->strips_mpirun = true;
    format->strips_srun = true;
    format->literals[0] = STR_LIT(NO_LINES);
    format->n_literals = 1;
    format->search = arena_new(arena, struct literals *);
    int status = parser_new(format, arena, &p, ERR_IGNORED);
    ASSERT(status == 0);
    p->on_line = visit;
    p->on_line_ctx = ctx;
    return p;
}

int parser_finish_lines(struct parser *parser, int64_t *ret_n_lines, struct err *err)
{
    int status = parser_finish_bytes(parser, err);
    *ret_n_lines = parser->bytes.n_lines;
    return status;
}

void parser_free_lines(struct parser *parser)
{
    struct literals *search = *parser->format->search;
    parser_free(parser);
    literals_free(search);
}

void parser_restart(struct parser *parser)
{
    parser->bytes.carry_len = 0;
    parser->bytes.n_bytes = parser->bytes.line_at = 0;
    parser->bytes.n_lines = 0;
}

void parser_skip_scores(struct parser *parser, struct str named)
{
    parser->skips_scores = true;
    parser->named = named;
}

void parser_keep_lines(struct parser *parser)
{
    parser->keeps_lines = true;
}

void parser_free(struct parser *parser)
{
    if (!parser) {
        return;
    }
    for (size_t idx = 0; idx < parser->format->n_series; idx++) {
        free(parser->series[idx].items);
        free(parser->series[idx].lines);
        free(parser->series[idx].ranks);
    }
    for (size_t idx = 0; idx < parser->format->n_facts; idx++) {
        free(parser->gap.facts[idx].text);
    }
    free(parser->gap.facts);
    VEC_RELEASE(&parser->facts);
    VEC_RELEASE(&parser->bytes.tags);
    patterns_release(&parser->patterns);
    free(parser->series);
    free(parser->fact_of);
    records_free(parser->records);
    strbuf_release(&parser->bytes.record);
    free(parser->bytes.carry);
    free(parser->bytes.scratch[0]);
    free(parser->bytes.scratch[1]);
    free(parser);
}

static char *scratch_of(struct parser *p, int idx, size_t len)
{
    if (p->bytes.scratch_max[idx] < len) {
        free(p->bytes.scratch[idx]);
        p->bytes.scratch[idx] = xmalloc(len);
        p->bytes.scratch_max[idx] = len;
    }
    return p->bytes.scratch[idx];
}

/* Position after the ESC sequence that begins at `at`: CSI to its final byte, OSC and the like to BEL or ESC \, else two
   bytes. It ends no later than the line. Source: ECMA-48, 5.4 and 5.6. */
static size_t skip_escape(struct parser *p, struct str text, size_t at)
{
    static const char ESCAPE[] =
        "^\\x1b(?:\\[[\\x20-\\x3f]*+[^\\x00-\\x3f]?|[\\]P_^X](?:(?!\\x1b\\\\)[^\\n\\r\\a])*+"
        "(?:\\a|\\x1b\\\\)?|[()#][^\\n\\r]?|[^\\n\\r])?";
    struct str found = {NULL, 1};
    (void)patterns_find(&p->patterns, ESCAPE, str_sub(text, at, SIZE_MAX), &found, 1);
    return at + found.len;
}

/* What is before the next c goes to *out, which may be the text itself; *out and *at move behind it. */
static void keep_before(struct str text, char c, size_t *at, char **out)
{
    const char *hit = memchr(text.ptr + *at, c, text.len - *at);
    size_t end = hit ? (size_t)(hit - text.ptr) : text.len;
    memmove(*out, text.ptr + *at, end - *at);
    *out += end - *at;
    *at = end;
}

/* out may be text.ptr. Returns how much is left. */
static size_t drop_nuls(struct str text, char *out)
{
    char *end = out;
    for (size_t at = 0; at < text.len; at++) {
        keep_before(text, '\0', &at, &end);
    }
    return (size_t)(end - out);
}

static size_t drop_escapes(struct parser *p, struct str text, char *out)
{
    char *end = out;
    for (size_t at = 0; at < text.len; at = at < text.len ? skip_escape(p, text, at) : at) {
        keep_before(text, '\033', &at, &end);
    }
    return (size_t)(end - out);
}

/* NULs first: text carried over from piece to piece has lost its own already, and both must read the same (2). Text without
   either is not copied (3). */
static struct str drop_controls(struct parser *p, struct str text)
{
    if (memchr(text.ptr, '\0', text.len)) {
        char *out = scratch_of(p, 0, text.len);
        text = (struct str){out, drop_nuls(text, out)};
    }
    if (memchr(text.ptr, '\033', text.len)) {
        char *out =
            text.ptr == p->bytes.scratch[0] ? p->bytes.scratch[0] : scratch_of(p, 0, text.len);
        text = (struct str){out, drop_escapes(p, text, out)};
    }
    return text;
}

/* "Thu Dec 17 15:05:20 2020" before position end: its length, or 0. */
static size_t date_before(struct str text, size_t end)
{
    static const char SHAPE[] = "Aaa Aaa 99 99:99:99 9999";
    size_t len = sizeof(SHAPE) - 1;
    if (end < len) {
        return 0;
    }
    for (size_t idx = 0; idx < len; idx++) {
        char c = text.ptr[end - len + idx];
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        bool is_digit =
            (c >= '0' && c <= '9') || (c == ' ' && idx == 8); /* " 7": day of one digit */
        bool fits = SHAPE[idx] == '9'   ? is_digit
                    : SHAPE[idx] == ' ' ? c == ' '
                    : SHAPE[idx] == ':' ? c == ':'
                                        : is_letter;
        if (!fits) {
            return 0;
        }
    }
    return len;
}

/* Length of "]<stdout>:", "]<stderr>:" or "]<stddiag>:" at text[mid], or 0. */
static size_t mark_len(struct str text, size_t mid)
{
    static const char *const MARKS[] = {"]<stdout>:", "]<stderr>:", "]<stddiag>:"};
    struct str rest = str_sub(text, mid, 11);
    for (size_t idx = 0; rest.len >= 10 && idx < ARRAY_LEN(MARKS); idx++) {
        if (rest.ptr[5] == MARKS[idx][5] && str_starts(rest, str_of(MARKS[idx]))) {
            return strlen(MARKS[idx]);
        }
    }
    return 0;
}

/* Where the digits that end at `end` begin. */
static size_t digits_before(struct str text, size_t floor, size_t end)
{
    while (end > floor && is_digit(text.ptr[end - 1])) {
        end--;
    }
    return end;
}

/* The "[1,0]<stdout>:" around the "]<std" at `mid`, with the date before it: [*ret_from, *ret_to). */
static bool find_tag(struct str text, size_t mid, size_t floor, size_t *ret_from, size_t *ret_to,
                     int32_t *ret_rank)
{
    size_t len = mark_len(text, mid);
    size_t from = digits_before(text, floor, mid);
    int64_t rank;
    if (len == 0 || from <= floor || text.ptr[from - 1] != ',' ||
        !logwhole_parse(str_sub(text, from, mid - from), INT32_MAX, &rank)) {
        return false;
    }
    from = digits_before(text, floor, from - 1);
    if (from <= floor || text.ptr[--from] != '[') {
        return false;
    }
    *ret_to = mid + len;
    *ret_from = from - date_before(str_sub(text, floor, text.len), from - floor);
    *ret_rank = (int32_t)rank;
    return true;
}

/* Where the next "]<std" is, or text.len. Looked for by its "<", which logs rarely hold otherwise. */
static size_t next_mark(struct str text, size_t from)
{
    size_t at = from + 1;
    while (at < text.len) {
        const char *hit = memchr(text.ptr + at, '<', text.len - at);
        if (!hit) {
            return text.len;
        }
        at = (size_t)(hit - text.ptr) + 1;
        if (hit[-1] == ']' && str_starts(str_sub(text, at, 3), STR_LIT("std"))) {
            return at - 2;
        }
    }
    return text.len;
}

/* Cuts mpirun's tags out of lines, wherever they are, and remembers whose text follows. */
static struct str drop_tags(struct parser *p, struct str text)
{
    size_t mark = next_mark(text, 0);
    size_t len = 0;
    size_t at = 0;
    p->bytes.tags.n = 0;
    if (mark == text.len) {
        return text;
    }
    char *out = scratch_of(p, 1, text.len);
    while (mark < text.len) {
        size_t mid = mark;
        size_t from;
        size_t to;
        int32_t rank;
        if (find_tag(text, mid, at, &from, &to, &rank)) {
            to = to < text.len ? to : text.len;
            memcpy(out + len, text.ptr + at, from - at);
            len += from - at;
            at = to;
            VEC_PUSH(&p->bytes.tags, (struct tag){len, rank});
        } else {
            memcpy(out + len, text.ptr + at, mid + 1 - at);
            len += mid + 1 - at;
            at = mid + 1;
        }
        mark = next_mark(text, at);
    }
    memcpy(out + len, text.ptr + at, text.len - at);
    return (struct str){out, len + text.len - at};
}

static int take_region(struct parser *p, struct str text, bool is_cut, struct err *err)
{
    struct region region = {.is_cut = is_cut};
    if (text.len == 0) {
        return 0;
    }
    text = drop_controls(p, text);
    if (p->format->strips_mpirun) {
        text = drop_tags(p, text);
        region.tags = p->bytes.tags.items;
        region.n_tags = p->bytes.tags.n;
    }
    region.text = text;
    region.has_cr = memchr(text.ptr, '\r', text.len) != NULL;
    return parser_region(p, &region, err);
}

/* Appends to the unfinished line, without NULs (2). */
static int carry_add(struct parser *p, const char *ptr, size_t len, struct err *err)
{
    if (p->bytes.carry_max < p->bytes.carry_len + len) {
        p->bytes.carry_max = 2 * (p->bytes.carry_len + len);
        p->bytes.carry = xrealloc(p->bytes.carry, p->bytes.carry_max);
    }
    while (len > 0) {
        const char *nul = memchr(ptr, '\0', len);
        size_t part = nul ? (size_t)(nul - ptr) : len;
        memcpy(p->bytes.carry + p->bytes.carry_len, ptr, part);
        p->bytes.carry_len += part;
        ptr += part;
        len -= part;
        while (len > 0 && *ptr == '\0') {
            ptr++;
            len--;
        }
    }
    /* A line break, possibly the last byte here, does not count. */
    if (p->bytes.carry_len > FORMAT_LINE_MAX + 1 ||
        (p->bytes.carry_len == FORMAT_LINE_MAX + 1 && p->bytes.carry[FORMAT_LINE_MAX] != '\n' &&
         p->bytes.carry[FORMAT_LINE_MAX] != '\r')) {
        return err_set(err, ERR_PARSE,
                       "the line at byte %" PRIu64 " is longer than %u bytes; is this a log?",
                       p->bytes.line_at, FORMAT_LINE_MAX);
    }
    return 0;
}

/* Where the first line break is, or len. has_cr: it may be a CR. In steps, so that neither of the two is looked for to the end of
   the text once for each line of the other. */
static size_t first_break(const char *ptr, size_t len, bool has_cr)
{
    size_t from = 0;
    while (from < len) {
        size_t step = has_cr && len - from > BREAK_STEP ? BREAK_STEP : len - from;
        const char *lf = memchr(ptr + from, '\n', step);
        size_t end = lf ? (size_t)(lf - ptr) : from + step;
        const char *cr = has_cr ? memchr(ptr + from, '\r', end - from) : NULL;
        if (cr || lf) {
            return cr ? (size_t)(cr - ptr) : end;
        }
        from = end;
    }
    return len;
}

/* Number of bytes up to and including the last line break. */
static size_t complete_lines(const char *ptr, size_t len, bool has_cr)
{
    const char *lf = memrchr(ptr, '\n', len);
    size_t from = lf ? (size_t)(lf - ptr) + 1 : 0;
    const char *cr = has_cr ? memrchr(ptr + from, '\r', len - from) : NULL;
    return cr ? (size_t)(cr - ptr) + 1 : from;
}

static int feed_piece(struct parser *p, const char *ptr, size_t len, struct err *err)
{
    if (p->bytes.carry_len > 0) {
        size_t end = first_break(ptr, len, true);
        size_t take = end < len ? end + 1 : len;
        if (carry_add(p, ptr, take, err) < 0) {
            return -1;
        }
        p->bytes.n_bytes += take;
        if (end == len) {
            return 0;
        }
        size_t carried = p->bytes.carry_len;
        p->bytes.carry_len = 0;
        if (take_region(p, (struct str){p->bytes.carry, carried}, false, err) < 0) {
            return -1;
        }
        ptr += take;
        len -= take;
    }
    size_t whole = complete_lines(ptr, len, true);
    if (take_region(p, (struct str){ptr, whole}, false, err) < 0) {
        return -1;
    }
    p->bytes.line_at = p->bytes.n_bytes + whole;
    p->bytes.n_bytes += len;
    return carry_add(p, ptr + whole, len - whole, err);
}

int parser_feed(struct parser *parser, const char *ptr, size_t len, struct err *err)
{
    while (len > 0) {
        size_t piece = len < PIECE_BYTES ? len : PIECE_BYTES;
        if (feed_piece(parser, ptr, piece, err) < 0) {
            return -1;
        }
        ptr += piece;
        len -= piece;
    }
    return 0;
}

/* Counts byte c, 16 at a time, in vector registers that every machine has. */
static size_t count_byte(const char *ptr, size_t len, char c)
{
    typedef int8_t lanes __attribute__((vector_size(16)));
    size_t count = 0;
    while (len >= 16) {
        lanes sum = {0};
        size_t rounds = len / 16 < 127 ? len / 16 : 127; /* a lane holds 127 */
        for (size_t round = 0; round < rounds; round++) {
            lanes part;
            memcpy(&part, ptr + 16 * round, 16);
            sum -= (lanes)(part == c); /* equal lanes are -1 */
        }
        for (int lane = 0; lane < 16; lane++) {
            count += (size_t)sum[lane];
        }
        ptr += 16 * rounds;
        len -= 16 * rounds;
    }
    for (size_t idx = 0; idx < len; idx++) {
        count += ptr[idx] == c;
    }
    return count;
}

int64_t parser_line_number(struct parser *p, const struct region *region, size_t from, size_t end)
{
    p->bytes.n_lines +=
        (int64_t)count_byte(region->text.ptr + p->bytes.counted, from - p->bytes.counted, '\n');
    p->bytes.counted = end;
    return p->bytes.n_lines + 1;
}

static int32_t rank_at(const struct region *region, size_t line_at, size_t line_end)
{
    size_t low = 0;
    size_t high = region->n_tags;
    while (low < high) { /* first tag past the line */
        size_t mid = low + (high - low) / 2;
        if (region->tags[mid].at <= line_end) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low > 0 && region->tags[low - 1].at >= line_at ? region->tags[low - 1].rank : -1;
}

/* srun -l puts "12: " before every line. */
static void strip_srun(struct line *line)
{
    struct str text = line->text;
    int64_t rank;
    size_t len = str_span(text, 0, " ");
    size_t from = len;
    len = str_span(text, len, DIGITS);
    if (len > from && len + 1 < text.len && text.ptr[len] == ':' && text.ptr[len + 1] == ' ' &&
        logwhole_parse(str_sub(text, from, len - from), INT32_MAX, &rank)) {
        line->rank = (int32_t)rank;
        line->text = str_sub(text, len + 2, text.len);
    }
}

/* The next place in the region that holds literals. */
struct cursor {
    size_t at; /* SIZE_MAX: no more */
    uint64_t mask;
};

static void move_cursor(const struct parser *p, struct str text, size_t from, struct cursor *cursor)
{
    cursor->at = literals_next(p->search, text, from, UINT64_MAX, &cursor->mask);
}

void parser_line_around(const struct parser *p, const struct region *region, size_t hit,
                        struct line *line)
{
    struct str text = region->text;
    size_t floor = line->end;
    size_t from = floor + complete_lines(text.ptr + floor, hit - floor, region->has_cr);
    size_t end = hit + first_break(text.ptr + hit, text.len - hit, region->has_cr);
    line->text = (struct str){text.ptr + from, end - from};
    line->from = from;
    line->end = end;
    line->rank = region->n_tags ? rank_at(region, from, end) : -1;
    line->is_cut = region->is_cut && end == text.len;
    if (p->format->strips_srun && line->rank < 0) {
        strip_srun(line);
    }
}

/* The line around text[hit] and its literals; the cursor moves past it. */
static void next_line(struct parser *p, const struct region *region, size_t hit,
                      struct cursor *cursor, struct line *line)
{
    parser_line_around(p, region, hit, line);
    line->mask = 0;
    while (cursor->at < line->end) {
        line->mask |= cursor->mask;
        move_cursor(p, region->text, cursor->at + 1, cursor);
    }
    line->number = parser_line_number(p, region, line->from, line->end);
    p->most_rank = line->rank > p->most_rank ? line->rank : p->most_rank;
}

/* Replaces a line by the text of its record. A last line without a line break may have lost a part. */
static bool take_record(struct parser *p, struct line *line)
{
    struct cursor cursor;
    bool is_record = records_line(p->records, line->text, &p->bytes.record);
    if (line->is_cut && line->text.len > 0 &&
        (p->format->records == RECORD_CSV || (!is_record && line->text.ptr[0] == '{'))) {
        p->is_truncated = true;
        return false;
    }
    if (!is_record) {
        return line->mask != 0;
    }
    ASSERT(!p->bytes.record.is_full);
    line->text = strbuf_str(&p->bytes.record);
    line->mask = 0;
    move_cursor(p, line->text, 0, &cursor);
    while (cursor.at < line->text.len) {
        line->mask |= cursor.mask;
        move_cursor(p, line->text, cursor.at + 1, &cursor);
    }
    line->is_cut = false;
    return true;
}

int parser_region(struct parser *p, const struct region *region, struct err *err)
{
    struct str text = region->text;
    struct cursor cursor;
    struct line line = {.end = 0};
    size_t at = 0;
    p->bytes.counted = 0;
    if (p->guesser) {
        if (guesser_region(p->guesser, region, err) < 0) {
            return -1;
        }
        (void)parser_line_number(p, region, text.len, text.len);
        return 0;
    }
    move_cursor(p, text, 0, &cursor);
    while (at < text.len) {
        /* An open table reads every line, and a truncated last line may lack its literal (1). */
        bool wants_all = p->n_open > 0 || region->is_cut || p->records || p->on_line;
        size_t hit = wants_all ? at : cursor.at;
        if (hit == SIZE_MAX) {
            break;
        }
        next_line(p, region, hit, &cursor, &line);
        p->budget.left += STEPS_OF_BYTE * (line.end - at); /* (4) */
        if (p->records && !take_record(p, &line)) {
            at = line.end + 1;
            continue;
        }
        if (p->on_line) {
            p->on_line(p->on_line_ctx, &line);
        } else if (parser_line(p, &line, err) < 0) {
            return err_wrap(err, "line %" PRId64, line.number);
        }
        at = line.end + 1;
    }
    p->budget.left += at < text.len ? STEPS_OF_BYTE * (text.len - at) : 0;
    (void)parser_line_number(p, region, text.len, text.len);
    return 0;
}

int parser_finish_bytes(struct parser *p, struct err *err)
{
    size_t carried = p->bytes.carry_len;
    p->bytes.carry_len = 0;
    if (take_region(p, (struct str){p->bytes.carry, carried}, true, err) < 0) {
        return -1;
    }
    p->bytes.n_lines += carried > 0;
    return 0;
}
