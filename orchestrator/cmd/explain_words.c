/* SPDX-License-Identifier: Apache-2.0 */
/* Every word that a status, a verdict or a column of a document can be. tests/integration/test_explain.sh holds it against the schemas. */
#include "base/base.h"

#include "cmd/explain_names.h"

const struct meaning MEANINGS[] = {
    {"0", "exit status", "Everything that was asked for was done, and holds."},
    {"1", "exit status",
     "A cell does not hold: audit found one that differs, lint found an error, or a run did not "
     "reproduce a number. Nothing else failed."},
    {"2", "exit status", "The command line is wrong, or names something that does not exist."},
    {"3", "exit status",
     "A manifest (report, format, inventory) is wrong; the message says where."},
    {"4", "exit status", "Something could not be fetched."},
    {"5", "exit status",
     "Integrity: a digest, signature, archive or host key is not what it must be, or a login was "
     "refused."},
    {"6", "exit status", "A node: it is unreachable, or lacks what the case needs (GPUs, nodes)."},
    {"7", "exit status", "A container: the engine or the image is missing, or did not start."},
    {"8", "exit status", "The workload itself failed, or cannot do what the case asks."},
    {"9", "exit status",
     "A log gives no number: no metric, truncated, not a number, or two runs in one. Or no cell of "
     "an audited report could be checked, for want of logs."},
    {"10", "exit status", "Disk: full, over quota, read-only, or not writable."},
    {"11", "exit status",
     "A proposal, not known to be right: measure --suggest, or what a proposed format reads."},
    {"70", "exit status", "A fault of reperf itself. Please report it."},
    {"124", "exit status", "A deadline passed; what ran was stopped."},
    {"128+n", "exit status",
     "Stopped by signal n (130: ^C, 143: TERM). A run continues with reperf resume."},
    {"exact", "audit verdict",
     "The value from the log, rounded or cut by the rule at the printed digits, is the printed "
     "one."},
    {"match", "audit verdict", "The value from the log is within 0.05 % of the printed one."},
    {"differs", "audit verdict", "The value from the log is neither exact nor within 0.05 %."},
    {"no_log", "audit verdict", "There is no log from which the cell could be computed."},
    {"reproduced", "run verdict",
     "The run's value is within 5 % of the published one: day-to-day variation of one machine is "
     "up "
     "to 4 %."},
    {"faster", "run verdict", "The run's value is more than 5 % over the published one."},
    {"slower", "run verdict", "The run's value is more than 5 % under the published one."},
    {"not_comparable", "run verdict",
     "There is a value, but it says nothing about the published one: the smoke profile, no "
     "published "
     "number, or another unit. The conditions that differ are listed."},
    {"failed", "run verdict",
     "At least one repeat does not count: it did not end with status 0, or its log gives no "
     "number."},
    {"not_run", "run verdict",
     "The case cannot be run here; its cause says why and gives the exit status. Leave it out with "
     "--case."},
    {"ok", "parse verdict", "The log is whole and gives numbers."},
    {"proposed", "parse verdict",
     "As ok, but read by a format that was made from a log's own lines and that nothing confirms. "
     "Name it with --format, or delete \"proposed\" in its file, once you have looked at its "
     "pattern."},
    {"no_metric", "parse verdict", "Nothing in the log is the metric that the format looks for."},
    {"incomplete", "parse verdict", "The log stops before the step or the end that it announces."},
    {"nan", "parse verdict", "A value of the metric is not a number, or infinite."},
    {"ambiguous", "parse verdict", "The log holds more than one run and the rule takes one."},
    {"truncated", "parse verdict", "The last line is truncated."},
    {"two_levels", "parse verdict",
     "The rate changes its level for good within the window (throttling, a slow node). No mean of "
     "both is given; both are "
     "shown, with the step."},
    {"contradicts_itself", "parse verdict",
     "Two statements of the log exclude each other, such as a rate and a time per step: both are "
     "shown, and no number is "
     "given."},
    {"full", "proof",
     "The log states everything that the row says of itself: GPUs, nodes, precision, batch, "
     "model."},
    {"partial", "proof",
     "The log does not state all that the row says of itself; what is missing is listed. Nothing "
     "differs."},
    {"contradicted", "proof",
     "The log states something else than the row: the cell differs whatever its number is."},
    {"proven", "proof of one fact", "The log states what the row says."},
    {"unproven", "proof of one fact", "The log does not state it."},
    {"whole", "log state", "The log is one run from its start to its end."},
    {"incomplete", "log state", "The log is not the whole of one run."},
    {"unreadable", "log state",
     "The rule finds no number in the log, or some of its numbers are malformed."},
    {"no_rule", "log state", "No rule says how the number follows from the log."},
    {"absent", "log state", "No log is published, or the one that is named is missing."},
    {"stated", "origin of a rule", "The report's authors say how they averaged."},
    {"inferred", "origin of a rule",
     "Nobody says how the number was averaged: this rule was chosen because it gives the printed "
     "numbers. How many of how "
     "many it gives is said beside it."},
    {"own", "origin of a rule", "The rule is reperf's own, for its own runs."},
    {"job", "scope", "A rate of all GPUs together."},
    {"node", "scope", "A rate of one node."},
    {"rank", "scope", "A rate of one process, which as a rule has one GPU."},
    {"holds", "claim",
     "The run's ratio of both columns agrees with the published one, within its interval."},
    {"weaker", "claim", "The column that was published as faster is faster here too, but by less."},
    {"reversed", "claim", "The column that was published as faster is slower here."},
    {"undecided", "claim", "The interval is too wide to say: more repeats would tell."},
    {"within", "node or gate", "Not worse than the limit allows."},
    {"outlier", "node", "Worse than the other nodes of its kind by more than the limit."},
    {"not_compared", "node", "There is no other node of its kind to compare it with."},
    {"not_measured", "node", "It gave no number where others did."},
    {"missing", "gate", "The run has no number where the one that it is held against has one."},
    {"running", "run state", "A process works on the run. status --follow shows it."},
    {"interrupted", "run state",
     "A signal or an error ended the process. reperf resume continues the run."},
    {"died", "run state",
     "No process works on the run, and it is not over. reperf resume continues it."},
    {"cancelled", "run state", "The run was given up by reperf cancel."},
    {"sealed", "run state", "The run is over, and its evidence is in one archive."},
    {"damaged", "run state", "The run's journal or evidence is not what a run leaves."},
    {"exited", "end of a job", "The job ended by itself, with the status beside it."},
    {"deadline", "end of a job", "The job was stopped because its time was over."},
    {"fails", "doctor verdict", "The node lacks what is required."},
    {"not_known", "doctor verdict", "It could not be found out whether the node has it."},
    {"partly", "data verdict", "What could be checked holds; what could not is listed."},
    {"wrong", "data verdict",
     "A file is missing, extra, corrupt or unreadable, or a count is wrong."},
    {"ready", "state of a need", "It is there."},
    {"partial", "state of a need", "A part of it is there."},
    {"absent", "state of a need", "It is not there; the command beside it gets it."},
};
const size_t N_MEANINGS = ARRAY_LEN(MEANINGS);
