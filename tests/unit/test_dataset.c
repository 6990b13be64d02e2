/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/fs.h"
#include "document.h"
#include "report/dataset.h"

#define FILE_OF(name, more)                                                                        \
    "{'name':'" name "','urls':['https://a.example/"                                               \
    "x'],'bytes':null,'md5':null,'sha256':null,'unpack':'tar','nested':false,'"                    \
    "into':null,'source':null" more "}"
#define GROUP(name, glob, format, pair)                                                            \
    "{'name':'" name "','split':'train','role':'image','glob':'" glob                              \
    "','files':4,'folders':null,'folder_files':[1,3],'format':'" format                            \
    "','width':8,'height':null,'channels':3,'pair':" pair "}"
#define PAIR "{'of':'a','from':'img','to':'lab','from_end':'.png','to_end':'_l.png'}"
#define SYNTHETIC(split, folders)                                                                  \
    "{'seed':7,'width':8,'height':8,'splits':[{'name':'" split "','samples':4,'folders':" folders  \
    "}],'files':null}"
#define PACK "{'kind':'classes','short_side':256,'classes':2,'sequence':null,'predictions':null}"
#define DATASET(files, groups, pack, synthetic)                                                    \
    "{'schema_version':1,'id':'d-1','title':'T','synthetic':false,'licence':null,'login':false,'"  \
    "derived_from':null,'files':[" files                                                           \
    "],'splits':[{'name':'train','samples':4,'classes':null}],'groups':[" groups                   \
    "],'others':true,'list':null,'pack':" pack ",'twin':" synthetic                                \
    ",'note':null,'layout_source':null,'source':null}"
#define ONE_FILE FILE_OF("a.tar", "")
#define TWO_GROUPS                                                                                 \
    GROUP("a", "img/*/*.png", "png", "null") "," GROUP("b", "lab/**/*.png", "png", PAIR)
#define GOOD DATASET(ONE_FILE, TWO_GROUPS, PACK, SYNTHETIC("train", "2"))

static int decode(struct arena *arena, const char *text, struct dataset *ret, struct err *err)
{
    const struct json *root = document(text, NULL, err);
    return root ? dataset_decode(root, arena, ret, err) : -1;
}

TEST(a_description_is_read)
{
    struct dataset d = {0};
    struct str partner;
    PASSES(decode(ARENA, GOOD, &d, ERR));
    assert_int_equal(d.n_files, 1);
    assert_int_equal(d.files[0].size_bytes, -1);
    assert_false(d.files[0].has_md5);
    assert_int_equal(d.n_groups, 2);
    assert_int_equal(d.groups[0].n_folders, -1);
    assert_int_equal(d.groups[0].folder_min, 1);
    assert_int_equal(d.groups[0].folder_max, 3);
    assert_int_equal(d.groups[0].width, 8);
    assert_int_equal(d.groups[0].height, -1);
    assert_int_equal(d.pack.kind, PACK_CLASSES);
    assert_int_equal(d.pack.sequence, -1);
    assert_true(d.synthetic.is_there);
    assert_int_equal(d.synthetic.n_files, 1);
    assert_string_equal(d.synthetic.files[0].unpack.ptr, "tar");
    assert_int_equal(d.synthetic.files[0].n_urls, 0);
    assert_string_equal(dataset_tree_name(ARENA, &d, true), "d-1.synthetic");
    assert_string_equal(dataset_tree_name(ARENA, &d, false), "d-1");
    partner = dataset_partner(ARENA, &d.groups[1], STR_LIT("img/x/a_img.png"));
    assert_string_equal(partner.ptr, "lab/x/a_lab_l.png");
    assert_null(dataset_partner(ARENA, &d.groups[1], STR_LIT("img/x/a_img.jpg")).ptr);
    assert_ptr_equal(dataset_group_of(&d, STR_LIT("lab/x/y/z.png")), &d.groups[1]);
    assert_null(dataset_group_of(&d, STR_LIT("img/x/y/z.png")));
    assert_ptr_equal(dataset_group_find(&d, STR_LIT("train"), ROLE_IMAGE), &d.groups[0]);
    assert_null(dataset_group_find(&d, STR_LIT("val"), ROLE_IMAGE));
}

TEST(what_is_wrong_is_named)
{
    static const char *const BAD[][2] = {
        {DATASET(FILE_OF("a.tar", ",'colour':1"), "", "null", "null"), "$.files[0]"},
        {DATASET(FILE_OF("../a.tar", ""), "", "null", "null"), "$.files[0].name"},
        {DATASET(FILE_OF("_a.tar", ""), "", "null", "null"), "$.files[0].name"},
        {DATASET(ONE_FILE "," ONE_FILE, "", "null", "null")},
        {DATASET(FILE_OF("a.tar", ",'pieces':'p'"), "", "null", "null")},
        {DATASET(ONE_FILE, GROUP("a", "img/../*", "png", "null"), "null", "null"),
         "$.groups[0].glob"},
        {DATASET(ONE_FILE, GROUP("a", "img/*", "gif", "null"), "null", "null"), "format"},
        {DATASET(ONE_FILE, GROUP("a", "img/*", "hdf5", "null"), "null", "null")},
        {DATASET(ONE_FILE, GROUP("a", "img/*", "png", PAIR), "null", "null"), "$.groups[0]"},
        {DATASET(ONE_FILE, GROUP("a", "img/*", "png", "null") "," GROUP("a", "i/*", "png", "null"),
                 "null", "null")},
        {DATASET(ONE_FILE, "", PACK, SYNTHETIC("val", "2"))},
        {DATASET(ONE_FILE, "", PACK, SYNTHETIC("train", "5")), "folders"},
        {DATASET("", "", PACK, SYNTHETIC("train", "2"))},
        {DATASET(ONE_FILE, "",
                 "{'kind':'tokens','short_side':null,'classes':null,'sequence':8,'predictions':9}",
                 "null"),
         "predictions"},
        {DATASET(ONE_FILE, "",
                 "{'kind':'none','short_side':null,'classes':2,'sequence':null,'predictions':null}",
                 "null"),
         "kind"},
    };
    for (EACH(row, BAD)) {
        struct dataset d = {.id = STR_LIT("kept")};
        FAILS_WITH(decode(ARENA, (*row)[0], &d, ERR), ERR_MANIFEST, (*row)[1] ? (*row)[1] : "");
        assert_string_equal(d.id.ptr, "kept");
    }
}

TEST(globs_match_whole_paths)
{
    static const struct {
        const char *glob, *path;
        bool matches;
    } ROWS[] = {
        {"a/*/b.png", "a/x/b.png", true},
        {"a/*/b.png", "a/x/y/b.png", false},
        {"a/*/b.png", "a//b.png", true},
        {"*.png", "b.png", true},
        {"*.png", "a/b.png", false},
        {"*_x_*.png", "1_x_2_x_3.png", true},
        {"*_x_*.png", "1_y_3.png", false},
        {"a?c", "abc", true},
        {"a?c", "a/c", false},
        {"a?c", "ac", false},
        {"**/*.h5", "x.h5", true},
        {"**/*.h5", "a/b/c/x.h5", true},
        {"**/*.h5", "a/b/c/x.h", false},
        {"a/**/b/*.h5", "a/b/x.h5", true},
        {"a/**/b/*.h5", "a/b/c/b/x.h5", true},
        {"a/**/b/*.h5", "a/b/c/x.h5", false},
        {"**/training/*", "q/wikicorpus_en/training/part-0", true},
        {"**/training/*", "q/training/deep/part-0", false},
        {"**/a/**/b/*", "x/a/y/b/c/b/d", true},
        {"**/a/**/b/*", "x/a/y/c", false},
        {"[a]", "a", false},
        {"", "", true},
    };
    for (EACH(row, ROWS)) {
        bool matches = dataset_glob_matches(str_of(row->glob), str_of(row->path));
        assert_int_equal(matches, row->matches);
    }
}

/* Every description that comes with reperf is read, and its id is its folder's name. */
TEST(ours_are_read)
{
    struct fs_names names;
    size_t n = 0;
    PASSES(fs_list(ARENA, "datasets", &names, ERR));
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        struct dataset d = {0};
        struct json root;
        const char *path = arena_printf(ARENA, "datasets/%s/dataset.json", names.items[idx]);
        if (!fs_exists(path)) {
            continue;
        }
        PASSES(json_read_file(path, &doc, ERR));
        root = doc.root;
        PASSES(dataset_decode(&root, ARENA, &d, ERR));
        assert_string_equal(d.id.ptr, names.items[idx]);
        n++;
    }
    assert_true(n >= 8);
}
