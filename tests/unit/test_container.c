/* SPDX-License-Identifier: Apache-2.0 */
/* `docker run` lines as data: each way of writing an option, and every container command of the reports. */
#include "unit.h"

#include "base/fs.h"
#include "document.h"
#include "report/container.h"
#include "report/shell_script.h"

static struct container_flags flags_of(struct arena *arena, const char *text)
{
    struct container_flags flags = {0};
    PASSES(container_flags_of_command(arena, str_of(text), &flags, ERR));
    return flags;
}

static void is_str(struct str got, const char *wanted)
{
    char text[512];
    snprintf(text, sizeof(text), "%.*s", STR_ARG(got));
    assert_string_equal(text, wanted);
}

TEST(flags_of_a_whole_line_are_read)
{
    struct container_flags whole = flags_of(
        ARENA, "NV=1 sudo docker -H unix:///x run --gpus all --net host --ipc=host --pid=host "
               "--privileged --shm-size=64g -m 512MiB --ulimit memlock=-1 --ulimit "
               "stack=67108864:67108864 --ulimit=nofile=1048576 --ulimit nproc=4096 "
               "--device=/dev/infiniband --device /dev/fuse --cap-add=IPC_LOCK "
               "--security-opt seccomp=unconfined --cpuset-cpus=0-3,8 -w /work "
               "-e A='b c' -e=NVIDIA_VISIBLE_DEVICES=all -itv /h:/c --rm --name x "
               "img:1 sh -c 'a b' --shm-size=1g");
    const struct container_flags *flags = &whole;
    assert_true(flags->wants_gpus && flags->is_host_net && flags->is_host_ipc &&
                flags->is_host_pid && flags->is_privileged);
    assert_int_equal(flags->shm_bytes, 64LL << 30);
    assert_int_equal(flags->memory_bytes, 512 << 20);
    assert_int_equal(flags->memlock_bytes, LIMIT_UNLIMITED);
    assert_int_equal(flags->stack_bytes, 67108864);
    assert_int_equal(flags->n_files, 1048576);
    assert_int_equal(flags->n_processes, 4096);
    assert_int_equal(flags->n_devices, 2);
    is_str(flags->devices[0], "/dev/infiniband");
    is_str(flags->devices[1], "/dev/fuse");
    assert_int_equal(flags->n_caps, 1);
    is_str(flags->caps[0], "IPC_LOCK");
    assert_int_equal(flags->n_security, 1);
    is_str(flags->security[0], "seccomp=unconfined");
    is_str(flags->cpuset, "0-3,8");
    is_str(flags->workdir, "/work");
    assert_int_equal(flags->n_env, 2);
    is_str(flags->env[0], "A=b c");
    is_str(flags->env[1], "NVIDIA_VISIBLE_DEVICES=all");
    assert_int_equal(flags->n_not_understood, 0);
}

TEST(ways_of_writing_are_the_same)
{
    static const struct {
        const char *text;
        int64_t shm_bytes;
    } SIZES[] = {{"64g", 64LL << 30}, {"64G", 64LL << 30},    {"64GB", 64LL << 30},
                 {"1gib", 1LL << 30}, {"67108864", 67108864}, {"512m", 512 << 20},
                 {"7b", 7},           {"100k", 102400},       {"1t", 1LL << 40}};
    for (EACH(row, SIZES)) {
        struct container_flags flags =
            flags_of(ARENA, arena_printf(ARENA, "docker run --shm-size=%s i", row->text));
        assert_int_equal(flags.shm_bytes, row->shm_bytes);
        assert_int_equal(flags.n_not_understood, 0);
    }
    assert_true(flags_of(ARENA, "nvidia-docker run i").wants_gpus);
    assert_true(flags_of(ARENA, "docker run --runtime=nvidia i").wants_gpus);
    assert_true(flags_of(ARENA, "podman run --network=host -- i").is_host_net);
    assert_true(flags_of(ARENA, "docker container run --privileged=true i").is_privileged);
    assert_false(flags_of(ARENA, "docker run --privileged=false i").is_privileged);
    assert_false(flags_of(ARENA, "docker run i --privileged").is_privileged);
    assert_int_equal(flags_of(ARENA, "docker run -m4g i").memory_bytes, 4LL << 30);
}

/* Each of these has one unknown item; the image after it is still found. */
TEST(what_is_not_understood_is_kept)
{
    static const struct {
        const char *options, *wanted;
    } CASES[] = {{"--net=$DOCKER_BRIDGE", "--net=$DOCKER_BRIDGE"},
                 {"--net mynet", "--net mynet"},
                 {"--shm-size=64x", "--shm-size=64x"},
                 {"--shm-size=0", "--shm-size=0"},
                 {"--shm-size=9999999p", "--shm-size=9999999p"},
                 {"--ulimit core=0", "--ulimit core=0"},
                 {"--ulimit nofile=1024:2048", "--ulimit nofile=1024:2048"},
                 {"--ulimit memlock", "--ulimit memlock"},
                 {"--ulimit memlock=-2", "--ulimit memlock=-2"},
                 {"--gpus '\"device=0,1\"'", "--gpus \"device=0,1\""},
                 {"-e SECRET", "-e SECRET"},
                 {"-e A=$B", "-e A=$B"},
                 {"-e A=`b`", "-e A=`b`"},
                 {"--device=dev", "--device=dev"},
                 {"-w .", "-w ."},
                 {"--runtime=kata", "--runtime=kata"},
                 {"-u 1000", "-u 1000"},
                 {"-Pv /a:/b", "-Pv /a:/b"},
                 {"-Pe A=1", "-Pe A=1"},
                 {"--tmpfs /x", "--tmpfs /x"},
                 {"--hostname=h", "--hostname=h"},
                 {"--cpuset-cpus=a", "--cpuset-cpus=a"},
                 {"--no-such-thing", "--no-such-thing"},
                 {"-Z", "-Z"}};
    for (EACH(row, CASES)) {
        struct container_flags flags = flags_of(
            ARENA, arena_printf(ARENA, "docker run --rm %s img --privileged", row->options));
        assert_int_equal(flags.n_not_understood, 1);
        is_str(flags.not_understood[0], row->wanted);
        assert_false(flags.is_privileged); /* that is the image's */
        assert_int_equal(flags.shm_bytes, 0);
    }
}

TEST(lines_that_are_no_run_are_refused)
{
    static const char *const LINES[] = {"",
                                        "docker",
                                        "docker run",
                                        "docker run --rm",
                                        "docker run --name",
                                        "docker pull img",
                                        "echo docker run img",
                                        "# docker run img",
                                        "docker; run img",
                                        "mydocker run img"};
    CLEANUP(strbuf) struct strbuf many = STRBUF(1 << 20);
    for (EACH(row, LINES)) {
        struct container_flags flags;
        FAILS(container_flags_of_command(ARENA, str_of(*row), &flags, ERR), ERR_MANIFEST);
    }
    { /* JSON could not hold it */
        struct container_flags flags;
        FAILS(container_flags_of_command(ARENA, STR_LIT("docker run --name=a\0b img"), &flags, ERR),
              ERR_MANIFEST);
    }
    strbuf_add_z(&many, "docker run");
    for (size_t n = 0; n <= CONTAINER_LIST_MAX; n++) {
        strbuf_printf(&many, " --device=/dev/x%zu", n);
    }
    strbuf_add_z(&many, " img");
    { /* one more than the list holds: kept in place */
        struct container_flags flags = flags_of(ARENA, many.ptr);
        assert_int_equal(flags.n_devices, CONTAINER_LIST_MAX);
        assert_int_equal(flags.n_not_understood, 1);
    }
}

static int decode(const char *text, struct container_flags *ret_flags, struct err *err)
{
    const struct json *root = document(text, NULL, err);
    return root ? json_decode(root, ARENA, CONTAINER_FLAGS_ROWS, CONTAINER_FLAGS_N, ret_flags, err)
                : -1;
}

static const char *encoded(const struct container_flags *flags)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    struct json_out out;
    jw_begin(&out, &text, true);
    jw_object(&out, NULL);
    json_encode(&out, CONTAINER_FLAGS_ROWS, CONTAINER_FLAGS_N, flags);
    jw_end_object(&out);
    return arena_strndup(ARENA, text.ptr, text.len);
}

TEST(flags_come_back_from_json)
{
    struct container_flags flags = flags_of(
        ARENA, "nvidia-docker run --shm-size=1g --ulimit memlock=-1 --ulimit stack=67108864 "
               "--net=host --device=/dev/infiniband --cap-add SYS_PTRACE --security-opt "
               "seccomp=unconfined -e 'A=\"b\" c' -w /w --cpuset-cpus=1 -u 0 i");
    struct container_flags back = {0};
    const char *once = encoded(&flags);
    PASSES(decode(once, &back, ERR));
    assert_string_equal(encoded(&back), once);
    assert_int_equal(back.memlock_bytes, LIMIT_UNLIMITED);
    is_str(back.not_understood[0], "-u 0");
}

/* One value of a good document made bad. */
TEST(bad_json_is_refused)
{
    static const struct {
        const char *from, *to;
    } CASES[] = {{"\"shm_bytes\":0", "\"shm_bytes\":-1"},
                 {"\"memlock_bytes\":-1", "\"memlock_bytes\":-2"},
                 {"\"n_files\":0", "\"n_file\":0"},
                 {"\"cpuset\":null", "\"cpuset\":\"0;1\""},
                 {"\"workdir\":null", "\"workdir\":\"x\""},
                 {"\"devices\":[]", "\"devices\":[\"-v\"]"},
                 {"\"caps\":[]", "\"caps\":[\"A B\"]"},
                 {"\"security\":[]", "\"security\":[\"--x\"]"},
                 {"\"env\":[]", "\"env\":[\"A\"]"},
                 {"\"env\":[]", "\"env\":[\"A=$(x)\"]"},
                 {"\"wants_gpus\":false", "\"wants_gpus\":1"}};
    struct container_flags flags = flags_of(ARENA, "docker run --ulimit memlock=-1 i");
    const char *good = encoded(&flags);
    for (EACH(row, CASES)) {
        struct container_flags read;
        FAILS(decode(replaced(good, row->from, row->to), &read, ERR), ERR_MANIFEST);
    }
}

/* ---- the reports ---- */

/* All objects below: those whose purpose is "container". */
static size_t walk(struct arena *arena, const struct json *at)
{
    struct json item, purpose, printed;
    struct str text = STR_EMPTY;
    struct err err = {0};
    size_t n = 0;
    if (json_is_object(at) && json_find(at, "purpose", &purpose) && json_is_str(&purpose) &&
        json_str(&purpose, arena, &text, &err) == 0 && str_eq_z(text, "container")) {
        static const char *const KEYS[] = {"printed", "works"};
        for (EACH(row, KEYS)) {
            if (json_find(at, *row, &printed) && json_is_str(&printed)) {
                PASSES(json_str(&printed, arena, &text, ERR));
                flags_of(arena, str_z(arena, text));
                n++;
            }
        }
        return n;
    }
    if (!json_is_object(at) && !json_is_array(at)) {
        return 0;
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        n += walk(arena, &item);
    }
    return n;
}

TEST(every_container_command_of_the_reports)
{
    struct fs_names names;
    size_t n = 0;
    PASSES(fs_list(ARENA, "manifests/reports", &names, ERR));
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        struct json root;
        if (!str_ends(str_of(names.items[idx]), STR_LIT(".json"))) {
            continue;
        }
        PASSES(json_read_file(fs_join(ARENA, "manifests/reports", names.items[idx]), &doc, ERR));
        root = doc.root;
        n += walk(ARENA, &root);
    }
    print_message("# %zu lines\n", n);
    assert_true(n >= 20);
}
