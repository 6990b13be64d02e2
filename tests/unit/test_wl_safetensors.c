/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "core/json_writer.h"
#include "core/safetensors.h"

/* A file of this header and n_data bytes of data. */
static int parse(struct arena *arena, const char *header, size_t n_data, struct st_file *ret_file,
                 struct err *err)
{
    size_t len = strlen(header);
    CLEANUP(free) char *content = xcalloc(8 + len + n_data, 1);
    for (int i = 0; i < 8; i++) {
        content[i] = (char)(len >> (8 * i) & 0xFFU);
    }
    memcpy(content + 8, header, len);
    int status = st_parse(arena, (struct str){content, 8 + len + n_data}, ret_file, err);
    return status;
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *why;
    const char *header;
    size_t n_data;
    const char *message; /* must be part of the error */
} REFUSED[] = {
    {"no object", "[]", 0, "expected '{'"},
    {"empty", "", 0, "byte 0"},
    {"rest after the header", "{} x", 0, "expected the end"},
    {"second document", "{}{}", 0, "expected the end"},
    {"NUL after the header", "{\"a\":" T("F32", "[1]", "[0,4]") "}\x01", 4, "expected the end"},
    {"comma at the end", "{\"a\":" T("F32", "[1]", "[0,4]") ",}", 4, "expected '\"'"},
    {"no comma", "{\"a\":" T("F32", "[]", "[0,4]") "\"b\":" T("F32", "[]", "[4,8]") "}", 8, "','"},
    {"key without quotes", "{a:1}", 0, "expected '\"'"},
    {"name twice", "{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8,
     "tensor a occurs twice"},
    {"text twice", "{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "double key a"},
    {"name twice, once escaped",
     "{\"a\":" T("F32", "[1]", "[0,4]") ",\"\\u0061\":" T("F32", "[1]", "[4,8]") "}", 8,
     "tensor a occurs twice"},
    {"empty name", "{\"\":" T("F32", "[1]", "[0,4]") "}", 4, "empty tensor name"},
    {"NUL in a name", "{\"a\\u0000b\":" T("F32", "[1]", "[0,4]") "}", 4, "NUL"},
    {"half a surrogate pair", "{\"\\ud800\":" T("F32", "[1]", "[0,4]") "}", 4, "surrogate"},
    {"name not UTF-8", "{\"\xC0\x80\":" T("F32", "[1]", "[0,4]") "}", 4, "UTF-8"},
    {"control character in a name", "{\"a\nb\":" T("F32", "[1]", "[0,4]") "}", 4, "UTF-8"},
    {"unknown escape", "{\"a\\x41\":" T("F32", "[1]", "[0,4]") "}", 4, "escape"},
    {"text without an end", "{\"abc", 0, "expected '\"'"},
    {"text that ends in a backslash", "{\"abc\\", 0, "escape"},
    {"no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor a: dtype"},
    {"unknown dtype", "{\"a\":" T("F33", "[1]", "[0,4]") "}", 4, "dtype F33"},
    {"a dtype that is not supported", "{\"a\":" T("BF16", "[2]", "[0,4]") "}", 4, "dtype BF16"},
    {"dtype in small letters", "{\"a\":" T("f32", "[1]", "[0,4]") "}", 4, "dtype f32"},
    {"key twice",
     "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "double key dtype"},
    {"unknown key", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
     "unknown key x"},
    {"metadata that is not text", "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "double key __metadata__"},
    {"negative dimension", "{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, "whole number"},
    {"dimension with a fraction", "{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4, "whole number"},
    {"dimension with an exponent", "{\"a\":" T("F32", "[1e0]", "[0,4]") "}", 4, "whole number"},
    {"dimension with a leading zero", "{\"a\":" T("F32", "[01]", "[0,4]") "}", 4, "whole number"},
    {"dimension past 64 bits", "{\"a\":" T("F32", "[99999999999999999999]", "[0,4]") "}", 4,
     "byte"},
    {"product past 64 bits",
     "{\"a\":" T("F32", "[1099511627776,1099511627776,1099511627776]", "[0,4]") "}", 4,
     "tensor a: more than"},
    {"product past 64 bits that wraps to 1",
     "{\"a\":" T("F32", "[274177,67280421310721]", "[0,4]") "}", 4, "tensor a"},
    {"nine dimensions", "{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "8 dimensions"},
    {"three offsets", "{\"a\":" T("F32", "[1]", "[0,4,8]") "}", 4, "expected ']'"},
    {"one offset", "{\"a\":" T("F32", "[1]", "[0]") "}", 4, "expected ','"},
    {"offsets backwards", "{\"a\":" T("F32", "[1]", "[4,0]") "}", 4,
     "tensor a: data_offsets [4, 0]"},
    {"offsets past the end", "{\"a\":" T("F32", "[1]", "[0,4]") "}", 3, "in 3 bytes of data"},
    {"offsets too narrow", "{\"a\":" T("F64", "[1]", "[0,4]") "}", 4, "hold 4 bytes"},
    {"offsets not of whole elements", "{\"a\":" T("F32", "[1]", "[0,3]") "}", 3, "hold 3 bytes"},
    {"overlap", "{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[1]", "[4,8]") "}", 8,
     "tensor b: data begin at 4, expected 8 (they overlap others)"},
    {"the same bytes twice",
     "{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4,
     "they overlap others"},
    {"hole at the start", "{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "there is a hole"},
    {"hole in the middle",
     "{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", 12, "tensor b"},
    {"bytes after the last tensor", "{\"a\":" T("F32", "[1]", "[0,4]") "}", 5,
     "1 bytes follow the last tensor"},
    {"data without tensors", "{}", 1, "1 bytes follow"},
};

TEST(hostile_files_are_refused_with_their_place)
{
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        struct st_file file = {0};
        struct err err = {0};
        if (parse(ARENA, REFUSED[i].header, REFUSED[i].n_data, &file, &err) == 0) {
            fail_msg("%s: was read", REFUSED[i].why);
        }
        if (err.code != ERR_PARSE || !strstr(err.msg, REFUSED[i].message)) {
            fail_msg("%s: code %d, \"%s\" does not say \"%s\"", REFUSED[i].why, (int)err.code,
                     err.msg, REFUSED[i].message);
        }
    }
}

TEST(header_sizes_are_checked)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {{"", 0},
                 {"\x02\0\0\0\0\0\0", 7},
                 {"\x03\0\0\0\0\0\0\0{}", 10},
                 {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10},
                 {"\xF8\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10},
                 {"\0\0\0\0\0\0\0\x80{}", 10}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct st_file file;
        FAILS(st_parse(ARENA, (struct str){cases[i].bytes, cases[i].len}, &file, ERR), ERR_PARSE);
        SAYS("header size");
    }
}

TEST(good_files_are_read)
{
    struct st_file file;
    PASSES(parse(ARENA, "{}   ", 0, &file, ERR));
    assert_int_equal(file.n_tensors, 0);
    PASSES(
        parse(ARENA,
              " { \"b\" : " T(
                  "I64", "[ 2 ]",
                  "[4 , 20]") ",\n\"__metadata__\":{\"x\":\"y\\\"\"},"
                              "\"\\u00e9\\ud83d\\ude00\":" T("F32", "[]", "[0,4]") ",\"none\":" T(
                                  "F64", "[3,0,1099511627776]", "[20,20]") "}  ",
              20, &file, ERR));
    assert_int_equal(file.n_tensors, 3);
    const struct st_tensor *scalar = st_find(&file, "\xC3\xA9\xF0\x9F\x98\x80");
    assert_non_null(scalar);
    assert_int_equal(scalar->dtype, DT_F32);
    assert_int_equal(scalar->shape.n_dims, 0);
    assert_int_equal(scalar->bytes, 4);
    assert_int_equal(st_find(&file, "b")->bytes, 16);
    assert_int_equal(st_find(&file, "none")->bytes, 0);
    assert_null(st_find(&file, "a"));
}

/* Memory must not grow by much more than the header's own size, whatever it holds. */
TEST(many_short_texts_take_little_memory)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf header;
    strbuf_init(&header, 4 << 20);
    strbuf_add_z(&header, "{\"__metadata__\":{");
    for (int i = 0; i < 100000; i++) {
        strbuf_printf(&header, "%s\"%x\":\"\\\"\"", i ? "," : "", (unsigned)i);
    }
    strbuf_add_z(&header, "}}");
    struct st_file file;
    PASSES(parse(&arena, header.ptr, 0, &file, ERR));
    assert_true(arena.used_bytes < 16 * header.len);
}

TEST(what_is_written_is_read)
{
    struct err err = {0};
    char folder[] = "/tmp/reperf-st-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *path = fs_join(ARENA, folder, "a.safetensors");
    const float f[3] = {1.5F, -0.0F, 3e-40F};
    const double d = 0.1;
    const int64_t n[2] = {INT64_MIN, 7};
    const struct st_tensor tensors[] = {
        {.name = "f \"q\"", .dtype = DT_F32, .shape = SHAPE(3, 1), .data = f, .bytes = sizeof(f)},
        {.name = "d", .dtype = DT_F64, .shape = SHAPE_SCALAR, .data = &d, .bytes = sizeof(d)},
        {.name = "n", .dtype = DT_I64, .shape = SHAPE(2), .data = n, .bytes = sizeof(n)},
    };
    assert_int_equal(st_write(path, tensors, 3, &err), 0);
    struct st_file file;
    assert_int_equal(st_read(ARENA, path, &file, &err), 0);
    assert_int_equal(file.n_tensors, 3);
    for (int i = 0; i < 3; i++) {
        const struct st_tensor *tensor = st_find(&file, tensors[i].name);
        assert_non_null(tensor);
        assert_true(shape_eq(&tensor->shape, &tensors[i].shape));
        assert_int_equal(tensor->dtype, tensors[i].dtype);
        assert_memory_equal(tensor->data, tensors[i].data, (size_t)tensors[i].bytes);
    }
    /* A second write replaces it, and leaves no temporary file. */
    assert_int_equal(st_write(path, tensors, 1, &err), 0);
    struct fs_names names;
    assert_int_equal(fs_list(ARENA, folder, &names, &err), 0);
    assert_int_equal(names.n, 1);
    /* A missing folder is named. */
    assert_int_equal(st_write("/nonexistent/folder/a", tensors, 1, &err), -1);
    assert_non_null(strstr(err.msg, "/nonexistent/folder/a"));
    struct err gone = {0};
    assert_int_equal(fs_remove_tree(folder, &gone), 0);
}

TEST(json_output_is_quoted_and_exact)
{
    CLEANUP(strbuf) struct strbuf buf;
    strbuf_init(&buf, 4096);
    struct json_out out = {.buf = &buf};
    json_out_open(&out, '{');
    json_out_put_text(&out, "a", "q\" b\\ n\n \x01 \x7F \xC3\xA9 \xFF");
    json_out_put_i64(&out, "b", INT64_C(1) << 53);
    json_out_put_i64(&out, "c", (INT64_C(1) << 53) + 1);
    json_out_put_f64(&out, "d", 0.1);
    json_out_key(&out, "e");
    json_out_open(&out, '[');
    json_out_i64(&out, -1);
    json_out_f64(&out, 1e300);
    json_out_close(&out, ']');
    json_out_close(&out, '}');
    assert_string_equal(buf.ptr,
                        "{\"a\":\"q\\\" b\\\\ n\\u000a \\u0001 \\u007f \xC3\xA9 \xEF\xBF\xBD\","
                        "\"b\":9007199254740992,\"c\":\"9007199254740993\",\"d\":0.1,"
                        "\"e\":[-1,1e+300]}");
}
