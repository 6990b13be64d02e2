/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of lint and audit. Ids are stable: tools and issues refer to them. Sorted by id. Why each matters is in
   finding_rules.txt. */
#include "base/base.h"

#include "base/embed.h"
#include "judge/finding.h"

EMBED(finding_rules_txt,
      "orchestrator/judge/finding_rules.txt"); /* lines of id and text, between tabs */

const struct finding_rule FINDING_RULES[] = {
    {"accumulation-differs", LEVEL_WARNING, "Rows compare different gradient accumulation"},
    {"archive-name-mismatch", LEVEL_ERROR,
     "The download has a different name than the unpacked file"},
    {"archive-not-folder", LEVEL_ERROR, "The archive is moved where its folder is meant"},
    {"batch-differs", LEVEL_WARNING, "The batch differs from the table's"},
    {"best-of", LEVEL_WARNING, "The best sample is published as the result"},
    {"cell-differs", LEVEL_ERROR, "The published number does not follow from its log"},
    {"checkpoint-in-window", LEVEL_WARNING, "A checkpoint is written inside the measured window"},
    {"checksum-after-use", LEVEL_WARNING, "The checksum is checked after the archive is used"},
    {"clock-implausible", LEVEL_WARNING, "The log's own times cannot be of this run"},
    {"command-changed", LEVEL_NOTE, "The printed command had to be changed to work"},
    {"command-not-printed", LEVEL_WARNING, "No command is printed for a case"},
    {"command-typed-on-nodes", LEVEL_NOTE, "The command must be typed on every node"},
    {"condition-contradicts-command", LEVEL_WARNING, "A command contradicts a stated condition"},
    {"config-of-other-scale", LEVEL_WARNING, "The configuration is named for another GPU count"},
    {"copied-from-other-model", LEVEL_NOTE, "A command names another model"},
    {"cuda-of-wheel-differs", LEVEL_WARNING,
     "The package is built for another CUDA than the machine's"},
    {"data-repeated", LEVEL_WARNING, "The log repeats its data, which the report does not say"},
    {"dataset-differs", LEVEL_WARNING, "Rows compare different data"},
    {"dataset-no-checksum", LEVEL_WARNING, "The dataset has no checksum"},
    {"device-hard-coded", LEVEL_WARNING, "A GPU is chosen that need not exist"},
    {"download-from-branch", LEVEL_WARNING, "A script is downloaded from a branch"},
    {"few-samples", LEVEL_WARNING, "The number is based on few samples"},
    {"framework-version-moving", LEVEL_WARNING, "The framework's version is a moving name"},
    {"git-pull-moving", LEVEL_WARNING, "The command uses the current state of a branch"},
    {"image-name-mismatch", LEVEL_ERROR, "The image that is run is not the one that is built"},
    {"image-tag-mutable", LEVEL_WARNING, "The image is named by a tag only"},
    {"image-version-differs", LEVEL_WARNING,
     "The image has another version than the report states"},
    {"library-path-overwritten", LEVEL_WARNING, "LD_LIBRARY_PATH of the image is overwritten"},
    {"log-ambiguous", LEVEL_WARNING, "One log holds more than one run"},
    {"log-changed", LEVEL_ERROR, "A raw log is not the one that was published"},
    {"log-contradicts-condition", LEVEL_WARNING,
     "The log states another condition than the report"},
    {"log-contradicts-itself", LEVEL_ERROR, "The log's own numbers contradict each other"},
    {"log-incomplete", LEVEL_WARNING, "The log is not the whole of one run"},
    {"log-links-swapped", LEVEL_WARNING, "A link to a log is labelled as another case"},
    {"log-missing", LEVEL_ERROR, "A log that the manifest names is missing"},
    {"log-name-unknown", LEVEL_WARNING, "A listed log is written by no command"},
    {"log-not-published", LEVEL_WARNING, "No log is published for a number"},
    {"log-older", LEVEL_WARNING, "A row is based on logs from another time than its table"},
    {"log-without-number", LEVEL_ERROR, "A log exists, but its rule finds no number in it"},
    {"network-differs", LEVEL_WARNING, "Rows compare different networks"},
    {"node-hard-coded", LEVEL_ERROR, "A value that differs by node is fixed for all"},
    {"nodes-differ", LEVEL_ERROR,
     "The command starts another number of nodes or processes than its case has"},
    {"not-stated", LEVEL_NOTE, "Conditions that change the result are not stated"},
    {"number-conflict", LEVEL_WARNING, "The authors print two values for one quantity"},
    {"optimizer-differs", LEVEL_WARNING, "Rows compare different optimizers"},
    {"precision-mode-mixed", LEVEL_WARNING, "One precision column mixes modes"},
    {"rate-contradicts-time", LEVEL_ERROR, "Rate and time to train contradict each other"},
    {"recipe-rule-missing", LEVEL_ERROR, "A recipe asks for what its format does not have"},
    {"repeats-differ", LEVEL_WARNING, "The commands repeat fewer times than stated"},
    {"repeats-not-stated", LEVEL_WARNING, "One run, no spread"},
    {"row-differs", LEVEL_ERROR, "The log belongs to another row"},
    {"rule-differs-within-table", LEVEL_WARNING, "Cells of one table follow different rules"},
    {"rule-missing", LEVEL_ERROR, "A cell has no rule that gives its number from its log"},
    {"rule-picks-sample", LEVEL_ERROR, "An unstated rule picks one sample"},
    {"rule-scale-differs", LEVEL_ERROR, "A rule scales by what its series does not count"},
    {"running-mean-averaged", LEVEL_WARNING, "Running means are averaged"},
    {"samples-hand-picked", LEVEL_WARNING, "One single sample is published"},
    {"scaling-mixes-hardware", LEVEL_WARNING, "A scaling series mixes machines"},
    {"seed-not-stated", LEVEL_WARNING, "No seed is stated"},
    {"shm-too-small", LEVEL_WARNING, "Shared memory cannot hold the prefetched batches"},
    {"software-differs", LEVEL_WARNING, "Rows of one table ran different software"},
    {"source-not-pinned", LEVEL_WARNING, "Source code without a commit"},
    {"speedup-mismatch", LEVEL_ERROR, "A ratio does not follow from its numbers"},
    {"step-work-differs", LEVEL_WARNING, "A step of the log does different work than the row says"},
    {"tar-wrong-filter", LEVEL_ERROR, "tar expects gzip for a plain archive"},
    {"trimming-differs", LEVEL_WARNING, "Slow intervals are left out on one side only"},
    {"two-levels", LEVEL_WARNING, "The rate changes its level for good inside the window"},
    {"url-not-cloneable", LEVEL_ERROR, "The printed URL cannot be cloned"},
    {"variable-misspelt", LEVEL_ERROR, "A variable is set under another name than it is used"},
    {"variable-without-dollar", LEVEL_ERROR, "A variable's name is used where its value is meant"},
    {"warmup-differs", LEVEL_WARNING, "Warm-up is left out on one side only"},
    {"warmup-included", LEVEL_WARNING, "Warm-up is part of the measured window"},
};
const size_t N_FINDING_RULES = ARRAY_LEN(FINDING_RULES);

struct str finding_help(const struct finding_rule *rule)
{
    struct str rest = EMBEDDED(finding_rules_txt), line, id = STR_EMPTY;
    while (!str_eq_z(id, rule->id)) {
        bool has_more = str_next(&rest, '\n', &line) && str_next(&line, '\t', &id);
        ASSERT(has_more); /* each rule is there: explain alone prints all */
    }
    return line;
}
