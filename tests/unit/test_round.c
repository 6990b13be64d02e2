/* SPDX-License-Identifier: Apache-2.0 */
/* Matching rows of a table of results to their folders: by names and counts, and by content where those are
   ambiguous. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "draft/round.h"

#define FOLDERS 4

struct made {
    struct machine machines[FOLDERS];
    struct submission items[FOLDERS];
    struct round round;
    struct round_row rows[FOLDERS];
    struct round_match matches[FOLDERS];
};

/* A folder of Acme, and its row. */
static void add(struct made *m, const char *folder, const char *name, int64_t n, double minutes)
{
    size_t idx = m->round.n++;
    m->machines[idx] = (struct machine){
        .name = str_of(name), .submitter = STR_LIT("Acme Inc"), .nodes = 1, .per_node = n};
    m->items[idx] = (struct submission){.folder = str_of(folder),
                                        .submitter = STR_LIT("Acme"),
                                        .system_folder = str_of(folder),
                                        .benchmark = STR_LIT("resnet"),
                                        .machine = &m->machines[idx],
                                        .n_logs = 5,
                                        .minutes = minutes};
    m->round.items = m->items;
    m->rows[idx] = (struct round_row){.submitter = STR_LIT("Acme"),
                                      .machine = str_of(name),
                                      .benchmark = STR_LIT("resnet"),
                                      .published = minutes,
                                      .accelerators = n};
}

static void match(struct arena *arena, struct made *m, size_t n)
{
    round_match(arena, &m->round, m->rows, n, m->matches);
}

static void says(const struct round_match *match, const struct submission *of, const char *how)
{
    assert_ptr_equal(match->submission, of);
    if (!strstr(match->how.ptr, how)) {
        fail_msg("\"%s\" does not say \"%s\"", match->how.ptr, how);
    }
}

static void each_row_has_the_folder_of_its_names(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "a8", "A 8", 8, 30);
    add(&m, "a16", "A-16", 16, 20);
    m.rows[0].submitter = STR_LIT("ACME+Inc."); /* only letters and digits are compared */
    match(&arena, &m, 2);
    says(&m.matches[0], &m.items[0], "the one folder by submitter, benchmark, accelerator count");
    says(&m.matches[1], &m.items[1], "a16, the one folder");
}

static void the_score_decides_among_folders_of_one_name(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "b1", "B", 8, 30);
    add(&m, "b2", "B", 8, 40);
    m.rows[0].published = 40;
    m.rows[1].published = 30 * (1 + 5e-7); /* two computations of one mean */
    match(&arena, &m, 2);
    says(&m.matches[0], &m.items[1], "the one of 2 folders whose score it is");
    says(&m.matches[1], &m.items[0], "the one folder"); /* the other is taken */
}

static void a_system_or_a_count_may_be_another_there(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "c8", "C", 8, 30);
    add(&m, "d8", "D", 8, 40);
    add(&m, "e8", "E", 8, 50);
    m.rows[0].machine = STR_LIT("renamed");
    m.rows[1].accelerators = 9;
    m.rows[2].machine = STR_LIT("other");
    m.rows[2].accelerators = 4;
    match(&arena, &m, 3);
    says(&m.matches[0], &m.items[0], "the system has another name there");
    says(&m.matches[1], &m.items[1], "the accelerator count is another there");
    says(&m.matches[2], &m.items[2], "system and accelerator count are others there");
}

static void what_no_score_is_of_says_what_was_tried(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "f8", "F", 8, 30);
    add(&m, "g8", "G", 8, 40);
    add(&m, "h8", "H", 8, (double)NAN);
    m.rows[0].published = 30 * (1 + 2e-6); /* more than two computations differ by */
    m.items[1].n_absent = 2;
    m.items[1].minutes = (double)NAN;
    m.items[2].why = STR_LIT("two runs failed");
    m.rows[2].published = 50;
    match(&arena, &m, 3);
    says(&m.matches[0], &m.items[0], "its logs give 30 minutes, and no score of the 3 folders");
    says(&m.matches[1], &m.items[1], "2 of its 5 logs are absent");
    says(&m.matches[2], &m.items[2], "two runs failed");
}

static void rows_of_others_have_none(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "i8", "I", 8, 30);
    add(&m, "j8", "J", 8, 40);
    add(&m, "k8", "K", 8, 50);
    m.rows[0].submitter = STR_LIT("Bolt"); /* of its score, and of nobody else's */
    m.rows[1].benchmark = STR_LIT("bert");
    m.rows[2].machine = STR_LIT("L");
    m.rows[2].published = 60;
    match(&arena, &m, 3);
    for (size_t idx = 0; idx < 3; idx++) {
        says(&m.matches[idx], NULL, "no folder by submitter");
    }
}

/* A later row of that score takes its folder before an earlier one guesses by name. */
static void scores_go_before_names(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct made m = {0};
    add(&m, "n1", "N", 8, 30);
    add(&m, "n2", "N", 8, 40);
    m.rows[0].published = 33;
    m.rows[1].published = 30;
    match(&arena, &m, 2);
    says(&m.matches[1], &m.items[0], "whose score it is");
    says(&m.matches[0], &m.items[1], "its logs give 40 minutes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_has_the_folder_of_its_names),
        cmocka_unit_test(the_score_decides_among_folders_of_one_name),
        cmocka_unit_test(a_system_or_a_count_may_be_another_there),
        cmocka_unit_test(what_no_score_is_of_says_what_was_tried),
        cmocka_unit_test(rows_of_others_have_none),
        cmocka_unit_test(scores_go_before_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
