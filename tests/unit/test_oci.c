/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "codec/oci.h"
#include "codec/oci_ref.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

/* ---- references ---- */

TEST(references_are_taken_apart)
{
    static const struct {
        const char *text, *host, *path, *tag, *whole;
        bool has_digest;
    } ROWS[] = {
        {"debian", "docker.io", "library/debian", NULL, "docker.io/library/debian", false},
        {"debian:12-slim", "docker.io", "library/debian", "12-slim",
         "docker.io/library/debian:12-slim", false},
        {"paddlepaddle/paddle", "docker.io", "paddlepaddle/paddle", NULL,
         "docker.io/paddlepaddle/paddle", false},
        {"nvcr.io/nvidia/pytorch:20.06-py3", "nvcr.io", "nvidia/pytorch", "20.06-py3",
         "nvcr.io/nvidia/pytorch:20.06-py3", false},
        {"localhost/a", "localhost", "a", NULL, "localhost/a", false},
        {"localhost:5000/a/b_c--d.e__f:T", "localhost:5000", "a/b_c--d.e__f", "T",
         "localhost:5000/a/b_c--d.e__f:T", false},
        {"[::1]:5000/a:x", "[::1]:5000", "a", "x", "[::1]:5000/a:x", false},
        {"a:1@sha256:" HEX_A, "docker.io", "library/a", "1", "docker.io/library/a:1@sha256:" HEX_A,
         true},
        {"127.0.0.1:1/x@sha256:" HEX_B, "127.0.0.1:1", "x", NULL, "127.0.0.1:1/x@sha256:" HEX_B,
         true},
    };
    for (EACH(row, ROWS)) {
        struct oci_ref ref, again;
        char *whole;
        PASSES(oci_ref_parse(ARENA, str_of(row->text), &ref, ERR));
        assert_true(str_eq_z(ref.host, row->host));
        assert_true(str_eq_z(ref.path, row->path));
        assert_true(row->tag ? str_eq_z(ref.tag, row->tag) : !ref.tag.ptr);
        assert_int_equal(ref.has_digest, row->has_digest);
        whole = oci_ref_text(ARENA, &ref);
        assert_string_equal(whole, row->whole);
        PASSES(oci_ref_parse(ARENA, str_of(whole), &again, ERR));
        assert_string_equal(oci_ref_text(ARENA, &again), whole);
    }
}

TEST(bad_references_are_refused)
{
    static const char *const ROWS[] = {
        "",
        "/a",
        "a/",
        "a//b",
        "A/b",
        "host.io/Upper",
        "a:",
        "a:.x",
        "a:b:c",
        "a b",
        "a:tag with blank",
        "-a",
        "a-",
        "a..b",
        "a___b",
        "a._b",
        "../a",
        "host.io/../a",
        "host.io:0/a",
        "host.io:65536/a",
        "host.io:x/a",
        "ho_st.io/a",
        "-h.io/a",
        "h..io/a",
        "[::1/a",
        "user@host.io/a",
        "https://host.io/a",
        "a@sha256:" HEX_A "a",
        "a@sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "a@md5:d41d8cd98f00b204e9800998ecf8427e",
        "a@sha256:" HEX_A "@sha256:" HEX_A,
        "a?b",
        "a%2fb",
    };
    for (EACH(row, ROWS)) {
        struct oci_ref ref;
        FAILS(oci_ref_parse(ARENA, str_of(*row), &ref, ERR), ERR_USAGE);
    }
}

TEST(lengths_are_limited)
{
    struct oci_ref ref;
    char name[OCI_REF_MAX + 2];
    memset(name, 'a', sizeof(name));
    memcpy(name, "h.io/", 5);
    PASSES(oci_ref_parse(ARENA, (struct str){name, 255}, &ref, ERR));
    FAILS(oci_ref_parse(ARENA, (struct str){name, 256}, &ref, ERR), ERR_ANY);
    FAILS(oci_ref_parse(ARENA, (struct str){name, OCI_REF_MAX + 1}, &ref, ERR), ERR_ANY);
    memset(name, 't', sizeof(name));
    memcpy(name, "a:", 2);
    PASSES(oci_ref_parse(ARENA, (struct str){name, 2 + 128}, &ref, ERR));
    FAILS(oci_ref_parse(ARENA, (struct str){name, 2 + 129}, &ref, ERR), ERR_ANY);
}

TEST(digests_of_other_kinds_are_refused_by_name)
{
    uint8_t sha256[SHA256_BYTES];
    char text[OCI_DIGEST_SIZE];
    PASSES(oci_digest_parse(STR_LIT("sha256:" HEX_A), sha256, ERR));
    oci_digest_text(sha256, text);
    assert_string_equal(text, "sha256:" HEX_A);
    FAILS(oci_digest_parse(STR_LIT("sha512:" HEX_A HEX_A), sha256, ERR), ERR_PARSE);
    FAILS(oci_digest_parse(STR_LIT("hello"), sha256, ERR), ERR_ANY);
}

TEST(loopback_is_only_this_machine)
{
    static const char *const YES[] = {"localhost",      "localhost:1", "127.0.0.1",
                                      "127.9.9.9:5000", "[::1]",       "[::1]:443"};
    static const char *const NO[] = {"localhost.example.org",
                                     "127.0.0.1.example.org",
                                     "127.0.0",
                                     "127.0.0.256",
                                     "128.0.0.1",
                                     "[::2]:1",
                                     "127.example.org",
                                     "xlocalhost:1",
                                     ""};
    for (EACH(row, YES)) {
        assert_true(oci_host_is_loopback(str_of(*row)));
    }
    for (EACH(row, NO)) {
        assert_false(oci_host_is_loopback(str_of(*row)));
    }
}

/* ---- manifests ---- */

#define CONFIG(type) "{'mediaType':'" type "','digest':'sha256:" HEX_A "','size':7}"
#define LAYER(type)  "{'mediaType':'" type "','digest':'sha256:" HEX_B "','size':8}"
#define OCI_IMAGE                                                                                  \
    "{'schemaVersion':2,'mediaType':'" OCI_TYPE_MANIFEST                                           \
    "','config':" CONFIG(OCI_TYPE_CONFIG) ",'layers':[" LAYER(OCI_TYPE_LAYER) "," LAYER(           \
        OCI_TYPE_LAYER "+zstd") "]}"

TEST(both_makes_of_manifest_are_read)
{
#define DOCKER_CONFIG CONFIG("application/vnd.docker.container.image.v1+json")
#define DOCKER_LAYER  LAYER("application/vnd.docker.image.rootfs.diff.tar.gzip")
    static const char *const DOCKER =
        "{'schemaVersion':2,'mediaType':'" DOCKER_TYPE_MANIFEST "','config':" DOCKER_CONFIG
        ",'layers':[" DOCKER_LAYER "],'unknown':{'is':[1]}}";
    struct oci_manifest manifest;
    PASSES(oci_manifest_parse(ARENA, str_of(json_text(OCI_IMAGE)), "m", &manifest, ERR));
    assert_false(manifest.is_index);
    assert_int_equal(manifest.n_layers, 2);
    assert_int_equal(manifest.layers[0].packing, OCI_TAR);
    assert_int_equal(manifest.layers[1].packing, OCI_TAR_ZSTD);
    assert_int_equal(manifest.config.size_bytes, 7);
    assert_int_equal(manifest.config.sha256[31], 0xaa);
    assert_int_equal(oci_manifest_bytes(&manifest), 7 + 8 + 8);
    PASSES(oci_manifest_parse(ARENA, str_of(json_text(DOCKER)), "m", &manifest, ERR));
    assert_int_equal(manifest.layers[0].packing, OCI_TAR_GZIP);
}

TEST(bad_manifests_are_refused)
{
#define IMAGE(config, layers) "{'schemaVersion':2,'config':" config ",'layers':[" layers "]}"
#define DIGEST(digest, size)                                                                       \
    IMAGE(CONFIG(OCI_TYPE_CONFIG),                                                                 \
          "{'mediaType':'" OCI_TYPE_LAYER "','digest':'" digest "','size':" size "}")
    static const char *const ROWS[] = {
        "[]",
        "{}",
        "{'schemaVersion':3}",
        "{'schemaVersion':1,'fsLayers':[]}",
        "{'schemaVersion':2,'mediaType':'text/html','layers':[]}",
        "{'schemaVersion':2,'layers':[],'manifests':[]}",
        IMAGE(CONFIG("application/vnd.cncf.helm.config.v1+json"), ""),
        IMAGE(CONFIG(OCI_TYPE_CONFIG),
              LAYER("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")),
        DIGEST("sha512:" HEX_A HEX_A, "1"),
        DIGEST("sha256:" HEX_A, "-1"),
        DIGEST("sha256:" HEX_A, "1099511627777"),
        OCI_IMAGE "x",
        "{'schemaVersion':2,'schemaVersion':2}",
    };
    struct oci_manifest manifest;
    PASSES(oci_manifest_parse(ARENA, str_of(json_text(DIGEST("sha256:" HEX_A, "1"))), "m",
                              &manifest, ERR));
    for (EACH(row, ROWS)) {
        FAILS(oci_manifest_parse(ARENA, str_of(json_text(*row)), "m", &manifest, ERR), ERR_PARSE);
    }
}

TEST(too_much_is_refused_before_it_is_allocated)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(8u << 20);
    struct oci_manifest manifest;
    strbuf_add_z(&buf, "{'schemaVersion':2,'config':" CONFIG(OCI_TYPE_CONFIG) ",'layers':[");
    for (size_t idx = 0; idx <= OCI_LAYERS_MAX; idx++) {
        strbuf_printf(&buf, "%s" LAYER(OCI_TYPE_LAYER), idx ? "," : "");
    }
    strbuf_add_z(&buf, "]}");
    FAILS(oci_manifest_parse(ARENA, str_of(json_text(buf.ptr)), "m", &manifest, ERR), ERR_ANY);
    SAYS("$.layers");
    strbuf_clear(&buf);
    for (size_t idx = 0; idx <= OCI_MANIFEST_BYTES_MAX; idx++) {
        strbuf_add_char(&buf, ' ');
    }
    FAILS(oci_manifest_parse(ARENA, str_of(json_text(buf.ptr)), "m", &manifest, ERR), ERR_ANY);
}

#define ENTRY(hex, platform)                                                                       \
    "{'mediaType':'" OCI_TYPE_MANIFEST "','digest':'sha256:" hex                                   \
    "','size':9,'platform':{" platform "}}"

TEST(platforms_are_chosen)
{
#define LIST(entries)                                                                              \
    "{'schemaVersion':2,'mediaType':'" OCI_TYPE_INDEX "','manifests':[" entries "]}"
#define AMD64_V3 ENTRY(HEX_C, "'os':'linux','architecture':'amd64','variant':'v3'")
#define AMD64_V2 ENTRY(HEX_B, "'os':'linux','architecture':'amd64','variant':'v2'")
#define AMD64    ENTRY(HEX_A, "'os':'linux','architecture':'amd64'")
#define ARM64    ENTRY(HEX_B, "'os':'linux','architecture':'arm64','variant':'v8'")
#define UNKNOWN  ENTRY(HEX_B, "'os':'unknown','architecture':'unknown'")
    static const struct {
        const char *text;
        int chosen; /* first byte */
    } ROWS[] = {
        {LIST(AMD64_V3 "," AMD64 "," ARM64 "," UNKNOWN), 0xaa},
        {LIST(AMD64_V3 "," AMD64_V2 "," ARM64), 0xbb},
        {LIST(ARM64 "," AMD64_V3), 0xcc},
    };
    const struct oci_descriptor *entry;
    struct oci_manifest list;
    for (EACH(row, ROWS)) {
        PASSES(oci_manifest_parse(ARENA, str_of(json_text(row->text)), "l", &list, ERR));
        assert_true(list.is_index);
        PASSES(oci_choose_platform(&list, "l", &entry, ERR));
        assert_int_equal(entry->sha256[0], row->chosen);
    }
    PASSES(oci_manifest_parse(ARENA, str_of(json_text(LIST(ARM64 "," UNKNOWN))), "l", &list, ERR));
    FAILS(oci_choose_platform(&list, "l", &entry, ERR), ERR_NOT_FOUND);
    SAYS("there is linux/arm64/v8");
    assert_null(strstr(ERR->msg, "unknown"));
}

TEST(configs_are_read)
{
    static const char TEXT[] =
        "{'os':'linux','architecture':'amd64','created':'2020-01-01T00:00:00Z','config':{'Cmd':null"
        "},'rootfs':{'type':'layers','diff_ids':['sha256:" HEX_A "','sha256:" HEX_B
        "']},'history':[]}";
    uint8_t(*diff_ids)[SHA256_BYTES];
    PASSES(oci_config_parse(ARENA, str_of(json_text(TEXT)), 2, "c", &diff_ids, ERR));
    assert_int_equal(diff_ids[1][0], 0xbb);
    FAILS(oci_config_parse(ARENA, str_of(json_text(TEXT)), 3, "c", &diff_ids, ERR), ERR_PARSE);
}

/* ---- logins ---- */

static const char AUTHS[] =
    "{'auths':{'https://index.docker.io/v1/"
    "':{'auth':'ZG9jazpodWI='},'r.io:5000':{'auth':'YTpiOmM='},'r.io:5000/"
    "team':{'auth':'dDp0'},'https://q.io/v2/"
    "':{'auth':'cTpx'},'empty.io':{},'bad.io':{'auth':'c2VjcmV0'},'id.io':{'auth':'cTpx','"
    "identitytoken':'x'}},'credHelpers':{'gcr.io':'gcloud'},'HttpHeaders':{'User-Agent':'x'}}";

TEST(logins_are_found)
{
    static const struct {
        const char *host, *path, *user, *password;
    } ROWS[] = {
        {"docker.io", "library/a", "dock", "hub"},
        {"r.io:5000", "a", "a", "b:c"},
        {"r.io:5000", "team/a", "t", "t"},
        {"r.io:5000", "teams/a", "a", "b:c"},
        {"q.io", "x", "q", "q"},
        {"empty.io", "a", NULL, NULL},
        {"r.io", "a", NULL, NULL},
        {"nowhere.io", "a", NULL, NULL},
    };
    for (EACH(row, ROWS)) {
        struct oci_login login;
        struct oci_ref ref = {.host = str_of(row->host), .path = str_of(row->path)};
        PASSES(oci_login_find(ARENA, str_of(json_text(AUTHS)), "auth", &ref, &login, ERR));
        assert_true(str_eq(login.user, str_of(row->user)));
        assert_true(str_eq(login.password, str_of(row->password)));
    }
}

TEST(logins_that_cannot_be_used_are_named_without_the_secret)
{
    static const struct {
        const char *text, *host;
        enum err_code code;
    } ROWS[] = {
        {AUTHS, "gcr.io", ERR_AUTH},
        {AUTHS, "bad.io", ERR_MANIFEST},
        {AUTHS, "id.io", ERR_MANIFEST},
        {"{'credsStore':'desktop'}", "x.io", ERR_AUTH},
        {"{'auths':{'x.io':{'auth':'!!!!'}}}", "x.io", ERR_MANIFEST},
        {"{'auths':{'x.io':{'auth':'YQpiOmM='}}}", "x.io", ERR_MANIFEST},
        {"{'auths':[]}", "x.io", ERR_MANIFEST},
    };
    for (EACH(row, ROWS)) {
        struct oci_login login;
        struct oci_ref ref = {.host = str_of(row->host), .path = STR_LIT("a")};
        FAILS(oci_login_find(ARENA, str_of(json_text(row->text)), "auth", &ref, &login, ERR),
              row->code);
        assert_null(strstr(ERR->msg, "secret"));
        assert_null(strstr(ERR->msg, "c2VjcmV0"));
    }
}
