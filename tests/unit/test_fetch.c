/* SPDX-License-Identifier: Apache-2.0 */
/* The state's bytes, and a fetch as its callers use it: several over one client, stopped, reused. Network faults are in
   tests/integration/test_fetch*.sh. */
#include "unit.h"

#include "base/rng.h"
#include "net/fetch.h"
#include "net/fetch_state.h"
#include "scratch.h"

#define MAP "..#-+"

static void good_state(struct strbuf *text)
{
    struct state_mirror mirrors[] = {{STR_LIT("http://a/f"), STR_LIT("\"e\""), STR_EMPTY},
                                     {STR_LIT("http://b/f"), STR_EMPTY, STR_LIT("Sat")}};
    struct state state = {.boot = STR_LIT("a-b"),
                          .size_bytes = 16 * 5 - 3,
                          .block_bytes = 16,
                          .mirrors = mirrors,
                          .n_mirrors = 2,
                          .map = MAP,
                          .n_blocks = 5};
    state_text(&state, text);
}

TEST(a_state_is_read_as_it_was_written)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    struct state state;
    good_state(&text);
    PASSES(state_parse(&scratch_arena, strbuf_str(&text), &state, ERR));
    assert_true(str_eq_z(state.boot, "a-b"));
    assert_int_equal(state.size_bytes, 16 * 5 - 3);
    assert_int_equal(state.n_blocks, 5);
    assert_int_equal(state.n_mirrors, 2);
    assert_true(str_eq_z(state.mirrors[0].etag, "\"e\""));
    assert_int_equal(state.mirrors[0].last_modified.len, 0);
    assert_true(str_eq_z(state.mirrors[1].last_modified, "Sat"));
    assert_memory_equal(state.map, MAP, 5);
}

/* However it was cut off, or grew: it is refused. */
TEST(a_state_of_another_length_is_refused)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    struct state state;
    good_state(&text);
    for (size_t len = 0; len < text.len; len++) {
        struct str part = str_sub(strbuf_str(&text), 0, len);
        FAILS(state_parse(&scratch_arena, part, &state, ERR), ERR_PARSE);
    }
    strbuf_add_char(&text, '#');
    FAILS(state_parse(&scratch_arena, strbuf_str(&text), &state, ERR), ERR_ANY);
}

/* --- fetches ------------------------------------------------------------------------------------------ */

struct bench {
    struct fetch_run run;
    struct fetch_spec spec; /* of one source: its URL, and a folder of its own */
    const char *url;
    uint8_t sha256[SHA256_BYTES];
};

/* Bytes that differ from place to place, in a file; its URL. */
static const char *make_source(const char *name, size_t size, uint8_t *ret_sha256)
{
    CLEANUP(free) char *bytes = xmalloc(size);
    struct rng rng;
    rng_init(&rng, size);
    for (size_t idx = 0; idx < size; idx++) {
        bytes[idx] = (char)rng_u64(&rng);
    }
    scratch_write(scratch_path(name), (struct str){bytes, size});
    sha256_of((struct str){bytes, size}, ret_sha256);
    return arena_printf(&scratch_arena, "file://%s/%s", scratch_folder, name);
}

static void bench_start(struct bench *bench)
{
    static const struct http_settings SETTINGS = {.allows_file = true, .proxy = ""};
    *bench = (struct bench){0};
    bench->run.clock = clock_system();
    PASSES(pool_new(2, &bench->run.pool, ERR));
    PASSES(http_new(&SETTINGS, &bench->run.http, ERR));
}

static void bench_source(struct bench *bench, const char *name, size_t size)
{
    bench->url = make_source(name, size, bench->sha256);
    bench->spec = (struct fetch_spec){.name = "it",
                                      .urls = &bench->url,
                                      .n_urls = 1,
                                      .folder = arena_printf(ARENA, "%s.out", scratch_path(name)),
                                      .size_bytes = -1,
                                      .sha256 = bench->sha256};
}

static void bench_cleanup(struct bench *bench)
{
    http_free(bench->run.http);
    pool_free(bench->run.pool);
}

TEST(several_share_a_client)
{
    static const size_t SIZES[] = {1, 3000000, 10000000};
    CLEANUP(bench) struct bench bench;
    bench_start(&bench);
    for (EACH(size, SIZES)) {
        CLEANUP(fetch) struct fetch *fetch = NULL;
        struct digest_value value;
        bench_source(&bench, arena_printf(&scratch_arena, "many-%zu", *size), *size);
        bench.spec.folder = scratch_path("out-many");
        bench.spec.kinds = DIGEST_MD5;
        PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
        PASSES(fetch_all(fetch, ERR));
        const struct fetch_result *result = fetch_result(fetch);
        assert_int_equal(result->value.size_bytes, *size);
        assert_int_equal(result->received_bytes, *size + result->again_bytes);
        PASSES(digest_file(result->data_path, DIGEST_MD5 | DIGEST_SHA256, &value, ERR));
        assert_memory_equal(value.sha256, bench.sha256, SHA256_BYTES);
        assert_memory_equal(value.sha256, result->value.sha256, SHA256_BYTES);
        assert_memory_equal(value.md5, result->value.md5, MD5_BYTES);
    }
}

static int n_steps_left;

static bool stop_soon(void)
{
    return n_steps_left-- <= 0;
}

TEST(a_stopped_fetch_goes_on_later)
{
    CLEANUP(bench) struct bench bench;
    struct fetch *fetch;
    uint64_t done, total;
    bench_start(&bench);
    bench_source(&bench, "stopped", 12000000);
    bench.spec.size_bytes = 12000000;
    bench.spec.n_connections = 2;
    bench.run.should_stop = stop_soon;
    n_steps_left = 6;
    PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
    FAILS(fetch_all(fetch, ERR), ERR_INTERRUPTED);
    fetch_progress(fetch, &done, &total);
    assert_int_equal(total, 12000000);
    assert_true(done > 0 && done < total);
    fetch_free(fetch);
    n_steps_left = 100000;
    PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
    PASSES(fetch_all(fetch, ERR));
    /* Less than a block of each connection comes again. */
    assert_true(fetch_result(fetch)->kept_bytes + 2 * 4096 >= done);
    assert_int_equal(fetch_result(fetch)->kept_bytes + fetch_result(fetch)->received_bytes,
                     12000000 + fetch_result(fetch)->again_bytes);
    fetch_free(fetch);
}

TEST(a_folder_is_for_one_at_a_time)
{
    CLEANUP(bench) struct bench bench;
    struct fetch *fetch, *other;
    bench_start(&bench);
    bench_source(&bench, "locked", 100);
    PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
    FAILS(fetch_new(&bench.run, &bench.spec, &other, ERR), ERR_IO);
    fetch_free(fetch);
    PASSES(fetch_new(&bench.run, &bench.spec, &other, ERR));
    fetch_free(other);
}

/* Pieces of a length that no power of two divides, the last one shorter. */
TEST(pieces_may_have_any_length)
{
    CLEANUP(bench) struct bench bench;
    struct fetch *fetch;
    uint8_t pieces[4][SHA256_BYTES];
    struct fetch_pieces known = {300007, (const uint8_t(*)[SHA256_BYTES])pieces, 4};
    bench_start(&bench);
    bench_source(&bench, "odd", 1000003);
    bench.spec.pieces = &known;
    struct str bytes = scratch_read(scratch_path("odd"));
    for (size_t idx = 0; idx < 4; idx++) {
        sha256_of(str_sub(bytes, idx * 300007, 300007), pieces[idx]);
    }
    PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
    PASSES(fetch_all(fetch, ERR));
    assert_int_equal(fetch_result(fetch)->n_bad_pieces, 0);
    fetch_free(fetch);
    pieces[3][0] ^= 1; /* the same bytes again, and a digest that they do not have */
    PASSES(fetch_new(&bench.run, &bench.spec, &fetch, ERR));
    FAILS_WITH(fetch_all(fetch, ERR), ERR_INTEGRITY, "bytes 900021 to 1000002");
    fetch_free(fetch);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
