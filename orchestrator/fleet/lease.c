/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/lease.h"

#include <limits.h>
#include <unistd.h>

#define OUTPUT_MAX  65536
#define STATUS_HELD 3
#define STATUS_FULL 10

/* $1 WORK, $2 run, $3 seconds, $4 take or drop, $5 whose run it is. Times are the node's own clock's. A job lives whose
   process is the one that wrote its pid file, not one that has its number since, as after a reboot. Where WORK lies may have blanks and
   what a shell takes for a pattern in its name. A holder that left no name is one that is writing it, unless that is long ago. */
static const char SCRIPT[] =
    "lease=$1/lease run=$2 ttl=$3\n"
    "now=$(date +%s) || exit 70\n"
    "read -r boot </proc/sys/kernel/random/boot_id\n"
    "held() {\n"
    "  who=\n"
    "  [ -f \"$lease/who\" ] && read -r who <\"$lease/who\"\n"
    "  echo \"held $holder${who:+ of $who}\"\n"
    "  exit 3\n"
    "}\n"
    "alive() (\n"
    "  cd \"$1\" 2>/dev/null || exit 1\n"
    "  find . -name pid 2>/dev/null | {\n"
    "    while IFS= read -r pid_file; do\n"
    "      [ -e \"${pid_file%/pid}/status\" ] && continue\n"
    "      read -r pid start of_boot <\"$pid_file\" && [ \"$of_boot\" = \"$boot\" ] || continue\n"
    "      read -r stat 2>/dev/null <\"/proc/$pid/stat\" || continue\n"
    "      set -- ${stat##*) }\n"
    "      [ \"${20}\" = \"$start\" ] && [ \"$1\" != Z ] && exit 0\n"
    "    done\n"
    "    exit 1\n"
    "  }\n"
    ")\n"
    "holder=unknown since=0\n"
    "[ -f \"$lease/holder\" ] && read -r holder since <\"$lease/holder\"\n"
    "if [ \"$4\" = drop ]; then\n"
    "  [ \"$holder\" != \"$run\" ] || rm -rf \"$lease\" || exit 10\n"
    "  exit 0\n"
    "fi\n"
    "mkdir -p \"$1\" || exit 10\n"
    "if mkdir \"$lease\" 2>/dev/null || [ \"$holder\" = \"$run\" ]; then\n"
    "  :\n"
    "elif [ ! -d \"$lease\" ]; then\n"
    "  exit 10\n"
    "elif [ \"$holder\" = unknown ] && [ -z \"$(find \"$lease\" -prune -mmin +2)\" ]; then\n"
    "  held\n"
    "else\n"
    "  [ \"$holder\" = unknown ] || [ $((now - since)) -ge \"$ttl\" ] || held\n"
    "  alive \"$1/jobs/$holder\" && held\n"
    "  mv \"$lease\" \"$lease.stale.$$\" 2>/dev/null || held\n"
    "  now_holds=$holder\n"
    "  [ -f \"$lease.stale.$$/holder\" ] && read -r now_holds since <\"$lease.stale.$$/holder\"\n"
    "  if [ \"$now_holds\" != \"$holder\" ]; then\n"
    "    holder=$now_holds\n"
    "    mv \"$lease.stale.$$\" \"$lease\"\n"
    "    held\n"
    "  fi\n"
    "  rm -rf \"$lease.stale.$$\"\n"
    "  mkdir \"$lease\" 2>/dev/null || held\n"
    "fi\n"
    "echo \"$5\" >\"$lease/who\" || exit 10\n"
    "echo \"$run $now\" >\"$lease/holder.part\" || exit 10\n"
    "mv \"$lease/holder.part\" \"$lease/holder\" || exit 10\n";

/* Of both only what a name is made of: it is read on other machines and shown on terminals. */
static void name_us(char ret_who[LEASE_WHO_MAX])
{
    static const char OTHERS[] = "0123456789._-@";
    const char *user = getenv("LOGNAME");
    char host[HOST_NAME_MAX + 1] = "";
    user = user && user[0] ? user : getenv("USER");
    if (gethostname(host, sizeof(host) - 1) < 0 || !host[0]) {
        snprintf(host, sizeof(host), "unknown");
    }
    if (user && user[0]) {
        snprintf(ret_who, LEASE_WHO_MAX, "%.40s@%.80s", user, host);
    } else {
        snprintf(ret_who, LEASE_WHO_MAX, "uid-%ld@%.80s", (long)geteuid(), host);
    }
    for (char *at = ret_who; *at; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        *at = is_letter || strchr(OTHERS, *at) ? *at : '_';
    }
}

static enum step begin(struct lease_op *op, struct remote *remote, struct err *err)
{
    enum step step;
    if (!op->is_begun) {
        strbuf_init(&op->output, OUTPUT_MAX);
        op->is_begun = true;
        name_us(op->who);
    }
    if (op->work_folder) {
        return STEP_DONE;
    }
    step = remote->ops->work_folder(remote, &op->work_folder, err);
    return step;
}

static struct str last_line(const struct lease_op *op)
{
    struct str rest = str_trim(strbuf_str(&op->output));
    struct str line = STR_EMPTY;
    while (str_next(&rest, '\n', &line)) {
        continue;
    }
    return str_trim(line);
}

enum step lease_step(struct lease_op *op, struct remote *remote, const char *run_id,
                     enum lease_mode mode, struct str *ret_holder, struct err *err)
{
    char ttl[16];
    const char *args[] = {NULL, run_id, ttl, mode == LEASE_TAKE ? "take" : "drop", op->who, NULL};
    /* Taken twice it is ours, dropped twice it is gone. */
    struct remote_exec exec = {.script = SCRIPT, .args = args, .is_repeatable = true};
    int status = -1;
    enum step step = begin(op, remote, err);
    if (step != STEP_DONE) {
        return step;
    }
    snprintf(ttl, sizeof(ttl), "%d", LEASE_TTL_S);
    args[0] = op->work_folder;
    exec.output = &op->output;
    step = remote->ops->exec(remote, &exec, &status, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str line = last_line(op);
    if (status == STATUS_HELD && str_starts(line, STR_LIT("held "))) {
        *ret_holder = str_sub(line, 5, line.len);
        return STEP_DONE;
    }
    if (status != 0) {
        return step_fail(err_set(err, status == STATUS_FULL ? ERR_DISK : ERR_NODE,
                                 "%s/lease: cannot be written: %.*s", op->work_folder,
                                 STR_ARG(str_sub(line, 0, 200))));
    }
    *ret_holder = STR_EMPTY;
    return STEP_DONE;
}

void lease_op_release(struct lease_op *op)
{
    if (op->is_begun) {
        strbuf_release(&op->output);
    }
    *op = (struct lease_op){0};
}
