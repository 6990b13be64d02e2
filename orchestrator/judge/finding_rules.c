/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of lint and audit. Ids are stable: tools and issues refer to them. Sorted by id. */
#include "base/base.h"

#include "judge/finding.h"

const struct finding_rule FINDING_RULES[] = {
    {"accumulation-differs", LEVEL_WARNING, "Rows compare different gradient accumulation",
     "An optimizer step after every batch and one after many do different work. Compare rows that "
     "accumulate equally."},
    {"archive-name-mismatch", LEVEL_ERROR,
     "The download has a different name than the unpacked file",
     "The URL's last part, as it is saved, is not the file that the next command unpacks. Give the "
     "download a name."},
    {"archive-not-folder", LEVEL_ERROR, "The archive is moved where its folder is meant",
     "The command moves the packed file to where the unpacked data is expected. Move the folder."},
    {"batch-differs", LEVEL_WARNING, "The batch differs from the table's",
     "A command, a second statement or the log names another batch than the row. The rate belongs "
     "to the batch that ran."},
    {"best-of", LEVEL_WARNING, "The best sample is published as the result",
     "The printed number is the largest sample of its log. State the mean and the spread."},
    {"cell-differs", LEVEL_ERROR, "The published number does not follow from its log",
     "The stated or inferred rule gives another number. Publish the number that the rule gives, or "
     "the rule."},
    {"checkpoint-in-window", LEVEL_WARNING, "A checkpoint is written inside the measured window",
     "An interval that ends with a checkpoint is far slower than the others and is averaged with "
     "them. End the window before it."},
    {"checksum-after-use", LEVEL_WARNING, "The checksum is checked after the archive is used",
     "A broken download is unpacked before it is noticed. Check first."},
    {"clock-implausible", LEVEL_WARNING, "The log's own times cannot be of this run",
     "Times inside the log's records contradict the times of its lines. The records were not "
     "written by this run as it ran."},
    {"command-changed", LEVEL_NOTE, "The printed command had to be changed to work",
     "The command does not run as printed; the manifest has one that does."},
    {"command-not-printed", LEVEL_WARNING, "No command is printed for a case",
     "The report does not say how this case was launched. Print the whole command."},
    {"command-typed-on-nodes", LEVEL_NOTE, "The command must be typed on every node",
     "Nothing starts the job on all nodes, so that start times and settings depend on people. Use "
     "a launcher."},
    {"condition-contradicts-command", LEVEL_WARNING, "A command contradicts a stated condition",
     "The text says one value and the launch command another. Only the command ran."},
    {"config-of-other-scale", LEVEL_WARNING, "The configuration is named for another GPU count",
     "A file made for another number of GPUs is used: batch, learning rate and schedule may be "
     "wrong."},
    {"copied-from-other-model", LEVEL_NOTE, "A command names another model",
     "Container names or paths of another model show copied text: other settings may have been "
     "copied too."},
    {"cuda-of-wheel-differs", LEVEL_WARNING,
     "The package is built for another CUDA than the machine's",
     "What ran is the CUDA that the package brings or was built for, not the stated one."},
    {"data-repeated", LEVEL_WARNING, "The log repeats its data, which the report does not say",
     "A short list read again and again stays in the page cache and never reaches the end of an "
     "epoch. Say so, on both sides."},
    {"dataset-differs", LEVEL_WARNING, "Rows compare different data",
     "Other images, another number of them or another repetition change what the data loader does. "
     "Use the same data."},
    {"dataset-no-checksum", LEVEL_WARNING, "The dataset has no checksum",
     "It cannot be verified that the same bytes were used. Publish a SHA-256."},
    {"device-hard-coded", LEVEL_WARNING, "A GPU is chosen that need not exist",
     "A variable or option names other devices than 0 to n-1. On another machine the job fails or "
     "shares a GPU."},
    {"download-from-branch", LEVEL_WARNING, "A script is downloaded from a branch",
     "A branch moves, so the script may change at any time. Use a commit in the URL."},
    {"few-samples", LEVEL_WARNING, "The number is based on few samples",
     "Fewer than ten intervals cannot show how far the number varies. Run longer."},
    {"framework-version-moving", LEVEL_WARNING, "The framework's version is a moving name",
     "A name such as develop means a different program every day. State the commit."},
    {"git-pull-moving", LEVEL_WARNING, "The command uses the current state of a branch",
     "A clone without a checkout, a pull, and an install or checkout of a branch cannot be "
     "repeated. "
     "Check out a commit, in the folder of the clone."},
    {"image-name-mismatch", LEVEL_ERROR, "The image that is run is not the one that is built",
     "The run command names an image that no printed command builds, tags or pulls."},
    {"image-tag-mutable", LEVEL_WARNING, "The image is named by a tag only",
     "A tag can be pushed again or be deleted. Pin the digest."},
    {"image-version-differs", LEVEL_WARNING, "The image has another version than the report states",
     "The version in the image's tag is not the framework version that the report states."},
    {"library-path-overwritten", LEVEL_WARNING, "LD_LIBRARY_PATH of the image is overwritten",
     "Libraries that the image put on the path are no longer found, or others are found instead. "
     "Append to it."},
    {"log-ambiguous", LEVEL_WARNING, "One log holds more than one run",
     "The file does not show which run a number is from. Publish one log a run."},
    {"log-changed", LEVEL_ERROR, "A raw log is not the one that was published",
     "Its SHA-256 differs from the one that logs/published records: get the published log again."},
    {"log-contradicts-condition", LEVEL_WARNING, "The log states another condition than the report",
     "The log was written by the run, the report by people: the number belongs to what the log "
     "says."},
    {"log-contradicts-itself", LEVEL_ERROR, "The log's own numbers contradict each other",
     "The times of the steps are not those between the moments of their lines. No number is taken "
     "from such a log."},
    {"log-incomplete", LEVEL_WARNING, "The log is not the whole of one run",
     "It was cut, the run failed, or lines are missing, doubled or cannot be read. A number from "
     "it describes only what is left."},
    {"log-links-swapped", LEVEL_WARNING, "A link to a log is labelled as another case",
     "The label says one precision and the file's name another."},
    {"log-missing", LEVEL_ERROR, "A log that the manifest names is missing",
     "The cell cannot be judged. Get the log, or use the published series."},
    {"log-name-unknown", LEVEL_WARNING, "A listed log is written by no command",
     "The text lists log names that the printed commands never write."},
    {"log-not-published", LEVEL_WARNING, "No log is published for a number",
     "The number cannot be checked. Publish the log."},
    {"log-older", LEVEL_WARNING, "A row is based on logs from another time than its table",
     "Rows of one table were measured long apart, with different software. Measure them together "
     "or say so."},
    {"log-without-number", LEVEL_ERROR, "A log exists, but its rule finds no number in it",
     "The cell was not checked. The log is empty, cut, of another format, or holds several runs."},
    {"network-differs", LEVEL_WARNING, "Rows compare different networks",
     "Parameters or operations a sample differ: a ratio of rates then measures the networks and "
     "not the frameworks."},
    {"node-hard-coded", LEVEL_ERROR, "A value that differs by node is fixed for all",
     "Every node takes the first one's address or rank, so that the job cannot form."},
    {"nodes-differ", LEVEL_ERROR,
     "The command starts another number of nodes or processes than its case has",
     "The launcher waits for, or leaves out, nodes or GPUs."},
    {"not-stated", LEVEL_NOTE, "Conditions that change the result are not stated",
     "Clocks, versions, seeds and the like move the number. State them."},
    {"number-conflict", LEVEL_WARNING, "The authors print two values for one quantity",
     "One of the two is wrong. Say which."},
    {"optimizer-differs", LEVEL_WARNING, "Rows compare different optimizers",
     "The optimizer step is part of the measured time. Use the same one."},
    {"precision-mode-mixed", LEVEL_WARNING, "One precision column mixes modes",
     "Pure half precision and mixed precision are different work under one heading."},
    {"rate-contradicts-time", LEVEL_ERROR, "Rate and time to train contradict each other",
     "Work divided by time gives another rate than the one printed. One of the two is not of this "
     "run."},
    {"recipe-rule-missing", LEVEL_ERROR, "A recipe asks for what its format does not have",
     "It names a rule or series that does not exist, or one of another format than reads its log: "
     "the run is refused."},
    {"repeats-differ", LEVEL_WARNING, "The commands repeat fewer times than stated",
     "The loop runs another number of repeats than the text says."},
    {"repeats-not-stated", LEVEL_WARNING, "One run, no spread",
     "Without repeats and variance a difference cannot be told from noise. Repeat and print the "
     "spread."},
    {"row-differs", LEVEL_ERROR, "The log belongs to another row",
     "What the log states about its run contradicts the row, so its number does not prove this "
     "cell. Publish the row's own log."},
    {"rule-differs-within-table", LEVEL_WARNING, "Cells of one table follow different rules",
     "Windows or statistics differ from cell to cell. Use one rule, stated in the report."},
    {"rule-missing", LEVEL_ERROR, "A cell has no rule that gives its number from its log",
     "It names a format or a rule that does not exist, or none at all: the cell was not checked."},
    {"rule-picks-sample", LEVEL_ERROR, "An unstated rule picks one sample",
     "Among many samples one gives almost any number. Use a mean over a window, or state the rule "
     "in the report."},
    {"rule-scale-differs", LEVEL_ERROR, "A rule scales by what its series does not count",
     "A rank's rate times the GPUs is the job's; a job's rate must not be multiplied. Use the "
     "scale that fits the scope, or state the rule in the report."},
    {"running-mean-averaged", LEVEL_WARNING, "Running means are averaged",
     "Each printed value already averages all steps so far: their mean weights early steps most. "
     "Average the steps."},
    {"samples-hand-picked", LEVEL_WARNING, "One single sample is published",
     "The number is one line of its log, while the mean of the window is another. Publish the "
     "mean."},
    {"scaling-mixes-hardware", LEVEL_WARNING, "A scaling series mixes machines",
     "One and many nodes were measured on different machines, so that a scaling ratio compares "
     "machines too."},
    {"seed-not-stated", LEVEL_WARNING, "No seed is stated",
     "Shuffling and augmentation differ from run to run. State and print the seed."},
    {"shm-too-small", LEVEL_WARNING, "Shared memory cannot hold the prefetched batches",
     "Loader workers and NCCL use /dev/shm, of which a container has 64 MiB by default. Give "
     "--shm-size what workers times batches need, or --ipc=host."},
    {"software-differs", LEVEL_WARNING, "Rows of one table ran different software",
     "Versions differ from row to row, so that a ratio or scaling series compares versions too."},
    {"source-not-pinned", LEVEL_WARNING, "Source code without a commit",
     "A branch or nothing is named. State the full commit."},
    {"speedup-mismatch", LEVEL_ERROR, "A ratio does not follow from its numbers",
     "The printed speed-up is not the quotient of the printed rates."},
    {"step-work-differs", LEVEL_WARNING, "A step of the log does different work than the row says",
     "Rate times time between steps is another number of items than the stated global batch: "
     "batches are accumulated, or not."},
    {"tar-wrong-filter", LEVEL_ERROR, "tar expects gzip for a plain archive",
     "tar -z fails on an archive that is not compressed. Leave the filter to tar."},
    {"trimming-differs", LEVEL_WARNING, "Slow intervals are left out on one side only",
     "One framework's slowest intervals are dropped and the other's are kept. Use one rule for "
     "both."},
    {"two-levels", LEVEL_WARNING, "The rate changes its level for good inside the window",
     "One number for both levels is that of neither: a node was throttled, slow or joined late. "
     "Print both, with the step between them."},
    {"url-not-cloneable", LEVEL_ERROR, "The printed URL cannot be cloned",
     "A page of a web site is not a repository. Print the repository and the commit."},
    {"variable-misspelt", LEVEL_ERROR, "A variable is set under another name than it is used",
     "The shell substitutes nothing. Use one spelling."},
    {"variable-without-dollar", LEVEL_ERROR, "A variable's name is used where its value is meant",
     "The dollar sign is missing, so that the name itself is used."},
    {"warmup-differs", LEVEL_WARNING, "Warm-up is left out on one side only",
     "One framework's first, slow steps are skipped and the other's are kept. Use one rule for "
     "both."},
    {"warmup-included", LEVEL_WARNING, "Warm-up is part of the measured window",
     "The first steps build graphs, choose kernels and fill queues. Leave them out."},
};
const size_t N_FINDING_RULES = ARRAY_LEN(FINDING_RULES);
