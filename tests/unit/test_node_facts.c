/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that nodes report, in the forms that real tools print. */
#include "unit.h"

#include "report/node_facts.h"

static struct node_facts parsed(struct arena *arena, const char *text)
{
    struct node_facts facts;
    PASSES(facts_parse(arena, str_of(text), &facts, ERR));
    return facts;
}

static void is_refused(const char *text, const char *why)
{
    struct node_facts facts;
    FAILS_WITH(facts_parse(ARENA, str_of(text), &facts, ERR), ERR_NODE, why);
}

static void is_value(const struct node_facts *facts, const char *key, const char *value)
{
    struct str found = facts_value(facts, key);
    if (!found.ptr || !str_eq_z(found, value)) {
        fail_msg("%s is \"%.*s\", not \"%s\"", key, STR_ARG(found), value);
    }
}

TEST(lines)
{
    struct node_facts facts =
        parsed(ARENA, "= system.kernel Linux 6.1.0\r\n? nvidia.smi no nvidia-smi\n"
                      "= cdi.specs \n= a.number 17\n= x.escape \033[31mred\n");
    int64_t number = 0;
    assert_int_equal(facts.n, 5);
    is_value(&facts, "system.kernel", "Linux 6.1.0");
    is_value(&facts, "cdi.specs", "");
    is_value(&facts, "x.escape", "[31mred"); /* the escape became a blank, and was trimmed */
    assert_null(facts_value(&facts, "nvidia.smi").ptr);
    assert_true(str_eq_z(facts_why(&facts, "nvidia.smi"), "no nvidia-smi"));
    assert_true(str_eq_z(facts_why(&facts, "never.said"), "the node did not say"));
    assert_true(facts_i64(&facts, "a.number", &number));
    assert_int_equal(number, 17);
    assert_false(facts_i64(&facts, "system.kernel", &number));
    assert_false(facts_i64(&facts, "nvidia.smi", &number));
}

TEST(refused)
{
    is_refused("= a 1\n= a 2\n", "twice");
    is_refused("a 1\n", "line 1");
    is_refused("= \n", "line 1");
    is_refused("= a/b 1\n", "line 1");
    is_refused("\n", "line 1");
    is_refused("= a 1\nsh: printf: not found\n", "line 2");
}

/* As R450 prints it for a V100 (fields newer than the driver are in no group), R535 for an A100 in MIG mode, R580 for an H200. */
#define V100                                                                                       \
                                                                                                   \
    "= nvidia.smi | NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     "  \
    "|\n"                                                                                          \
    "= nvidia.devices 2\n"                                                                         \
    "= smi.id.0 index, name, pci.bus_id, memory.total [MiB], memory.used [MiB], driver_version\n"  \
    "= smi.id.1 0, Tesla V100-SXM2-16GB, 00000000:1A:00.0, 16160 MiB, 0 MiB, 450.80.02\n"          \
    "= smi.id.2 1, Tesla V100-SXM2-16GB, 00000000:1B:00.0, 16160 MiB, 12 MiB, 450.80.02\n"         \
    "? smi.cap status 2: Field \"compute_cap\" is not a valid field to query.\n"                   \
    "= smi.clock.0 index, clocks.current.sm [MHz], clocks.max.sm [MHz]\n"                          \
    "= smi.clock.1 0, 135 MHz, 1530 MHz\n"                                                         \
    "= smi.clock.2 1, 1290 MHz, 1530 MHz\n"                                                        \
    "= smi.mig.0 index, mig.mode.current\n"                                                        \
    "= smi.mig.1 0, [N/A]\n"                                                                       \
    "= smi.mig.2 1, [Not Supported]\n"                                                             \
    "= smi.power.0 index, power.draw [W], utilization.gpu [%]\n"                                   \
    "= smi.power.1 0, 43.72 W, 0 %\n"                                                              \
    "= smi.power.2 1, [Unknown Error], 100 %\n"

TEST(gpus_of_an_old_driver)
{
    struct node_facts facts = parsed(ARENA, V100);
    PASSES(facts_expand_gpus(ARENA, &facts, ERR));
    is_value(&facts, "gpu.count", "2");
    is_value(&facts, "nvidia.driver", "450.80.02");
    is_value(&facts, "nvidia.cuda", "11.0");
    is_value(&facts, "gpu.0.name", "Tesla V100-SXM2-16GB");
    is_value(&facts, "gpu.1.memory.used_mib", "12");
    is_value(&facts, "gpu.1.clocks.current.sm_mhz", "1290");
    is_value(&facts, "gpu.1.utilization.gpu_percent", "100");
    assert_true(str_starts(facts_value(&facts, "gpu.0.power.draw_w"), STR_LIT("43.7")));
    assert_null(facts_value(&facts, "gpu.1.power.draw_w").ptr);
    assert_true(str_eq_z(facts_why(&facts, "gpu.1.power.draw_w"), "[Unknown Error]"));
    assert_true(str_eq_z(facts_why(&facts, "gpu.1.mig.mode.current"), "[Not Supported]"));
    assert_null(facts_value(&facts, "gpu.0.compute_cap").ptr);
}

TEST(gpus_in_one_query)
{
    struct node_facts facts = parsed(
        ARENA, "= nvidia.smi | NVIDIA-SMI 610.57.04   KMD Version: 610.57.04   CUDA UMD Version: "
               "13.3 |\n"
               "= smi.all.0 index, name, memory.total [MiB], driver_version, compute_cap\n"
               "= smi.all.1 0, NVIDIA H200, 143771 MiB, 610.57.04, 9.0\n");
    PASSES(facts_expand_gpus(ARENA, &facts, ERR));
    is_value(&facts, "gpu.count", "1");
    is_value(&facts, "nvidia.cuda", "13.3");
    is_value(&facts, "gpu.0.compute_cap", "9.0");
}

TEST(no_gpus)
{
    static const struct {
        const char *text, *count, *why;
    } ROWS[] = {
        {"= nvidia.devices 0\n? nvidia.smi no nvidia-smi\n", "0", NULL},
        {"= nvidia.devices 4\n? nvidia.smi no nvidia-smi\n", "4", NULL},
        /* A driver that does not match its library: there are GPUs, but how many work is unknown. */
        {"= nvidia.devices 4\n? nvidia.smi status 18: Failed to initialize NVML: "
         "Driver/library version mismatch\n? smi.id status 18: Failed to initialize NVML: "
         "Driver/library version mismatch\n",
         NULL, "mismatch"},
        {"? nvidia.smi status 9: NVIDIA-SMI has failed\n", NULL, "status 9"},
    };
    for (EACH(row, ROWS)) {
        struct node_facts facts = parsed(ARENA, row->text);
        PASSES(facts_expand_gpus(ARENA, &facts, ERR));
        if (row->count) {
            is_value(&facts, "gpu.count", row->count);
        } else {
            assert_null(facts_value(&facts, "gpu.count").ptr);
            assert_true(str_find(facts_why(&facts, "gpu.count"), str_of(row->why)) >= 0);
        }
    }
}

TEST(rows_that_are_no_csv)
{
    static const char *const ROWS[][2] = {{"index, name", "0"},
                                          {"index", "0, V100"},
                                          {"index, clocks.sm [MHz]", "0, 1530"},
                                          {"index, clocks.sm [MHz]", "0, 15 GHz"},
                                          {"index, clocks.sm [furlongs]", "0, 1 furlongs"},
                                          {"index, clocks.sm [MHz", "0, 1 MHz"}};
    for (EACH(row, ROWS)) {
        struct smi_cell cells[SMI_COLUMNS_MAX];
        size_t n = 0;
        FAILS(smi_row(ARENA, str_of((*row)[0]), str_of((*row)[1]), cells, &n, ERR), ERR_NODE);
    }
}

TEST(banners)
{
    static const char *const ROWS[][2] = {
        {"| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |", "12.2"},
        {"| NVIDIA-SMI 390.46                 Driver Version: 390.46                    |", ""},
        {"| NVIDIA-SMI 470.57   Driver Version: 470.57   CUDA Version: N/A      |", ""},
        {"", ""}};
    for (EACH(row, ROWS)) {
        assert_true(str_eq_z(smi_banner_cuda(str_of((*row)[0])), (*row)[1]));
    }
}
