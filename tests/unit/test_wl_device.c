/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a CUDA build accepts, and its messages about the others. */
#include "wl_fixture.h"

#include "backend_cuda/device_fit.h"

/* A machine without a fault; each case breaks one thing. */
static struct device_facts good(void)
{
    return (struct device_facts){.driver_version = 13000,
                                 .runtime_version = 13000,
                                 .n_devices = 2,
                                 .wanted = 1,
                                 .name = "NVIDIA H100",
                                 .major = 9,
                                 .minor = 0,
                                 .archs = "75_80_90"};
}

static void refused(const struct device_facts *facts, bool is_by_driver, const char *message)
{
    struct err err = {0};
    int status = is_by_driver ? device_judge_driver(facts, &err) : device_judge(facts, &err);
    assert_int_equal(status, -1);
    assert_int_equal(err.code, ERR_USAGE);
    if (!strstr(err.msg, message)) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, message);
    }
}

TEST(test_drivers)
{
    struct device_facts facts = good();
    PASSES(device_judge_driver(&facts, ERR));
    facts.driver_version = 13020;
    PASSES(device_judge_driver(&facts, ERR));
    facts.driver_version = 12080;
    refused(&facts, true, "knows CUDA up to 12.8 and this build is made with 13.0");
    facts.runtime_version = 12090; /* within one major version any driver will do */
    PASSES(device_judge_driver(&facts, ERR));
    facts.driver_version = 0;
    refused(&facts, true, "no NVIDIA driver");
    facts = good();
    facts.n_devices = 0;
    refused(&facts, true, "no GPU that this process may see");
    facts.n_devices = 1;
    refused(&facts, true, "wants GPU 1 (counted from 0) and sees 1");
}

TEST(test_capabilities)
{
    struct device_facts facts = good();
    PASSES(device_judge(&facts, ERR));
    facts.major = 6;
    facts.minor = 1;
    facts.archs = "61_75";
    refused(&facts, false, "compute capability 6.1, expected 7.0 or later");
    facts = good();
    facts.major = 7;
    refused(&facts, false,
            "has compute capability 7.0, for which this build has no kernels (it has 75_80_90)");
    facts.major = 10;
    refused(&facts, false, "CUDA_ARCHS=100");
}

TEST(test_which_code_runs_where)
{
    assert_true(device_runs("70", 7, 0));
    assert_true(device_runs("70", 7, 5));
    assert_false(device_runs("75", 7, 0));
    assert_true(device_runs("75_80", 8, 6));
    assert_false(device_runs("75_80", 9, 0));
    assert_true(device_runs("75_80_120", 12, 1));
    assert_false(device_runs("", 9, 0));
}

TEST(test_driver_versions)
{
    static const struct {
        const char *text, *version;
    } CASES[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC\n",
         "580.95.05"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
         "GCC version:  gcc version 13.3.0\n",
         "580.159.04"},
        {"GCC 13\n", ""},
        {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char version[64];
        device_driver_version(CASES[i].text, version, sizeof(version));
        assert_string_equal(version, CASES[i].version);
    }
}
