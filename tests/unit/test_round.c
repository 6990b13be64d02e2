/* SPDX-License-Identifier: Apache-2.0 */
/* Matching rows of a table of results to their folders: by names, and by scores where those are ambiguous. */
#include "unit.h"

#include <math.h>

#include "draft/round.h"

#define FOLDERS 3

#define BY_NAMES "by its submitter, system, benchmark and score"
#define RENAMED  "the system has another name there"
#define ANOTHER  "its score is another"
#define NONE     "no folder has this score"

/* Folders of Acme, each with what describes it, and rows of the table; a row that says nothing says what its folder does. */
static const struct {
    const char *name;
    struct {
        const char *folder, *machine, *submitter, *described; /* submitter NULL: Acme */
        double minutes;
        const char *row_submitter, *row_system, *row_benchmark;
        double published;
        int of; /* the folder that the row has; -1: none */
        const char *how;
    } rows[FOLDERS];
} CASES[] = {
    {"by its names; only letters and digits are compared",
     {{"a8", "A 8", .minutes = 30, .row_submitter = "ACME+Inc.", .of = 0, .how = BY_NAMES},
      {"a16", "A-16", .minutes = 20, .of = 1, .how = BY_NAMES}}},
    {"the score decides among folders of one name; two computations of one mean are alike",
     {{"b1", "B", .minutes = 30, .published = 40, .of = 1, .how = "and score"},
      {"b2", "B", .minutes = 40, .published = 30 * (1 + 5e-7), .of = 0, .how = "and score"}}},
    {"a system may have another name there; the folder's own counts, too",
     {{"c8", "C", .minutes = 30, .row_system = "renamed", .of = 0, .how = RENAMED},
      {"d8", "D", .minutes = 30, .row_system = "c-8", .of = 1, .how = RENAMED},
      {"e8", "E", "handed in by another", "Acme", .minutes = 50, .row_submitter = "ACME, Inc.",
       .of = 2, .how = "by its submitter, system"}}},
    {"a folder of another score is named: 2e-6 is more than two computations differ by",
     {{"f8", "F", .minutes = 30, .published = 30 * (1 + 2e-6), .of = 0, .how = ANOTHER},
      {"g8", "G", .minutes = (double)NAN, .published = 50, .of = 1, .how = ANOTHER}}},
    {"rows of others have none",
     {{"i8", "I", .minutes = 30, .row_submitter = "Bolt", .of = -1, .how = NONE},
      {"j8", "J", .minutes = 40, .row_benchmark = "bert", .of = -1, .how = NONE},
      {"k8", "K", .minutes = 50, .row_system = "L", .published = 60, .of = -1, .how = NONE}}},
    {"a later row of that score takes its folder before an earlier one guesses by name",
     {{"n1", "N", .minutes = 30, .published = 33, .of = 1, .how = ANOTHER},
      {"n2", "N", .minutes = 40, .published = 30, .of = 0, .how = "and score"}}},
};

static struct str either(const char *said, const char *otherwise)
{
    return str_of(said ? said : otherwise);
}

TEST(each_row_has_its_folder)
{
    for (EACH(c, CASES)) {
        struct submission items[FOLDERS];
        struct round_row rows[FOLDERS];
        struct round round = {.items = items};
        for (; round.n < FOLDERS && c->rows[round.n].folder; round.n++) {
            const typeof(c->rows[0]) *r = &c->rows[round.n];
            items[round.n] = (struct submission){.folder = str_of(r->folder),
                                                 .submitter = either(r->submitter, "Acme"),
                                                 .submitter_name = str_of(r->described),
                                                 .machine = str_of(r->folder),
                                                 .machine_name = str_of(r->machine),
                                                 .benchmark = STR_LIT("resnet"),
                                                 .n_runs = 5,
                                                 .minutes = r->minutes};
            rows[round.n] =
                (struct round_row){.submitter = either(r->row_submitter, "Acme"),
                                   .machine = either(r->row_system, r->machine),
                                   .benchmark = either(r->row_benchmark, "resnet"),
                                   .published = r->published > 0 ? r->published : r->minutes};
        }
        round_rows_match(&round, &(struct round_rows){rows, round.n});
        for (size_t idx = 0; idx < round.n; idx++) {
            int of = c->rows[idx].of;
            assert_ptr_equal(rows[idx].of, of < 0 ? NULL : &items[of]);
            assert_int_equal(rows[idx].is_score, of >= 0 && strcmp(c->rows[idx].how, ANOTHER) != 0);
            if (!strstr(rows[idx].how, c->rows[idx].how)) {
                fail_msg("%s: \"%s\" does not say \"%s\"", c->name, rows[idx].how,
                         c->rows[idx].how);
            }
        }
    }
}
