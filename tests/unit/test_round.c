/* SPDX-License-Identifier: Apache-2.0 */
/* Matching rows of a table of results to their folders: by names, and by scores where those are ambiguous. */
#include "unit.h"

#include <math.h>

#include "draft/round.h"

#define FOLDERS 4

struct made {
    struct submission items[FOLDERS];
    struct round round;
    struct round_row rows[FOLDERS];
};

/* A folder of Acme, and its row. */
static void add(struct made *m, const char *folder, const char *name, double minutes)
{
    size_t idx = m->round.n++;
    m->items[idx] = (struct submission){.folder = str_of(folder),
                                        .submitter = STR_LIT("Acme"),
                                        .machine = str_of(folder),
                                        .machine_name = str_of(name),
                                        .benchmark = STR_LIT("resnet"),
                                        .n_runs = 5,
                                        .minutes = minutes};
    m->round.items = m->items;
    m->rows[idx] = (struct round_row){.submitter = STR_LIT("Acme"),
                                      .machine = str_of(name),
                                      .benchmark = STR_LIT("resnet"),
                                      .published = minutes};
}

static void match(struct made *m, size_t n)
{
    struct round_rows rows = {m->rows, n};
    round_rows_match(&m->round, &rows);
}

static void says(const struct round_row *row, const struct submission *of, const char *how)
{
    assert_ptr_equal(row->of, of);
    if (!strstr(row->how, how)) {
        fail_msg("\"%s\" does not say \"%s\"", row->how, how);
    }
}

TEST(each_row_has_the_folder_of_its_names)
{
    struct made m = {0};
    add(&m, "a8", "A 8", 30);
    add(&m, "a16", "A-16", 20);
    m.rows[0].submitter = STR_LIT("ACME+Inc."); /* only letters and digits are compared */
    match(&m, 2);
    says(&m.rows[0], &m.items[0], "by its submitter, system, benchmark and score");
    says(&m.rows[1], &m.items[1], "by its submitter, system, benchmark and score");
}

TEST(the_score_decides_among_folders_of_one_name)
{
    struct made m = {0};
    add(&m, "b1", "B", 30);
    add(&m, "b2", "B", 40);
    m.rows[0].published = 40;
    m.rows[1].published = 30 * (1 + 5e-7); /* two computations of one mean */
    match(&m, 2);
    says(&m.rows[0], &m.items[1], "and score");
    says(&m.rows[1], &m.items[0], "and score"); /* the other is taken */
}

TEST(a_system_may_have_another_name_there)
{
    struct made m = {0};
    add(&m, "c8", "C", 30);
    add(&m, "d8", "D", 30);
    add(&m, "e8", "E", 50);
    m.rows[0].machine = STR_LIT("renamed");
    m.rows[1].machine = STR_LIT("c-8"); /* the folder's own name counts, too */
    m.rows[2].submitter = STR_LIT("ACME, Inc.");
    m.items[2].submitter = STR_LIT("handed in by another");
    m.items[2].submitter_name = STR_LIT("Acme");
    match(&m, 3);
    says(&m.rows[0], &m.items[0], "the system has another name there");
    says(&m.rows[1], &m.items[1], "the system has another name there"); /* c8 is taken */
    says(&m.rows[2], &m.items[2], "by its submitter, system");
    assert_true(m.rows[0].is_score && m.rows[1].is_score && m.rows[2].is_score);
}

TEST(a_folder_of_another_score_is_named)
{
    struct made m = {0};
    add(&m, "f8", "F", 30);
    add(&m, "g8", "G", (double)NAN);
    m.rows[0].published = 30 * (1 + 2e-6); /* more than two computations differ by */
    m.rows[1].published = 50;
    match(&m, 2);
    says(&m.rows[0], &m.items[0], "its score is another");
    says(&m.rows[1], &m.items[1], "its score is another");
    assert_false(m.rows[0].is_score || m.rows[1].is_score);
}

TEST(rows_of_others_have_none)
{
    struct made m = {0};
    add(&m, "i8", "I", 30);
    add(&m, "j8", "J", 40);
    add(&m, "k8", "K", 50);
    m.rows[0].submitter = STR_LIT("Bolt"); /* of its score, and of nobody else's */
    m.rows[1].benchmark = STR_LIT("bert");
    m.rows[2].machine = STR_LIT("L");
    m.rows[2].published = 60;
    match(&m, 3);
    for (size_t idx = 0; idx < 3; idx++) {
        says(&m.rows[idx], NULL, "no folder has this score");
    }
}

/* A later row of that score takes its folder before an earlier one guesses by name. */
TEST(scores_go_before_names)
{
    struct made m = {0};
    add(&m, "n1", "N", 30);
    add(&m, "n2", "N", 40);
    m.rows[0].published = 33;
    m.rows[1].published = 30;
    match(&m, 2);
    says(&m.rows[1], &m.items[0], "and score");
    says(&m.rows[0], &m.items[1], "its score is another");
}
