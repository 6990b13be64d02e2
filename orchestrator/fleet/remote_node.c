/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-node on a node: put there once, its digest checked each time before it is run, and then spoken to over one channel. Whatever
   ends it under an operation lets it be run again, and the operation be asked again, which is the same as asking once; what keeps it
   from running, or answers with what is no answer, fails the operation (ERR_NODE), and is said with what can be done. */
#include "base/base.h"

#include "fleet/remote_ssh_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"

#define ENDS_MAX      3 /* of one operation */
#define SAID_MAX      (NODE_HEADER_BYTES + NODE_TEXT_MAX + 2 * (size_t)SAID_SLACK)
#define SAID_SLACK    65536
#define SCRIPT_MAX    65536
#define SEQ_AT        4 /* in a frame's header */
#define SELF_BYTES    4096
#define WHY_MAX       240
#define STATUS_ABSENT 75 /* of the launch */
#define PUT_SPAN_NS   (300 * NS_PER_S)

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "unknown"
#endif

/* Sets w to the work folder, as $1 or the default, and $@ to the folders in which the program may lie, the first that lets programs run
   has it; sum FILE prints its SHA-256. Those beside the work folder must be ours alone: others may write where they lie. */
static const char PRELUDE[] =
    "LC_ALL=C; export LC_ALL\n"
    "w=$1 sum=$2 word=$3\n"
    "if [ -z \"$w\" ]; then\n"
    "  if [ -z \"$XDG_STATE_HOME$HOME\" ]; then echo 'HOME is not set there'; exit 74; fi\n"
    "  w=${XDG_STATE_HOME:-$HOME/.local/state}/reperf\n"
    "fi\n"
    "name=reperf-node-$sum uid=$(id -u)\n"
    "set -- \"$w/bin\" ${HOME:+\"$HOME/.cache/reperf\"} "
    "${XDG_RUNTIME_DIR:+\"$XDG_RUNTIME_DIR/reperf\"} \"/var/tmp/reperf-$uid\" "
    "\"/dev/shm/reperf-$uid\"\n"
    "is_ours() { [ \"$1\" = \"$w/bin\" ] || { [ -d \"$1\" ] && [ ! -L \"$1\" ] && [ -O \"$1\" ]; "
    "}; "
    "}\n"
    "sum() {\n"
    "  if command -v sha256sum >/dev/null 2>&1; then r=$(sha256sum <\"$1\")\n"
    "  elif command -v openssl >/dev/null 2>&1; then r=$(openssl dgst -sha256 -r <\"$1\")\n"
    "  elif command -v busybox >/dev/null 2>&1; then r=$(busybox sha256sum <\"$1\")\n"
    "  else echo 'nothing there makes a SHA-256 to check it with: install coreutils, openssl or "
    "busybox'; exit 74; fi\n"
    "  [ \"${r%% *}\" = \"$sum\" ]\n"
    "}\n"
    "runs() { \"$1\" --version >/dev/null 2>&1; }\n";

/* $3: what machine it is for. A shell takes a program of another machine for a script: it is not even tried. */
static const char LAUNCH[] =
    "m=$(uname -m)\n"
    "if [ \"$m\" != \"$word\" ]; then\n"
    "  echo \"the node is a $m, reperf-node is for $word: name one for it (REPERF_NODE)\"; exit "
    "74\n"
    "fi\n"
    "for d; do\n"
    "  [ -f \"$d/$name\" ] && is_ours \"$d\" && sum \"$d/$name\" && runs \"$d/$name\" && exec "
    "\"$d/$name\" \"$w\"\n"
    "done\n"
    "exit 75\n";

/* $3: a word of this put's own; stdin: the file. What puts that were cut off left goes after an hour, older versions of ours after a
   month. */
static const char PUT[] =
    "mkdir -p \"$w/bin\" || exit 74\n"
    "for d; do\n"
    "  find \"$d\" -name '.reperf-node-*' -mmin +60 -exec rm -f {} \\;\n"
    "  find \"$d\" -name 'reperf-node-*' -mtime +30 -exec rm -f {} \\;\n"
    "done 2>/dev/null\n"
    "came=$w/bin/.reperf-node-$word.$$ tried=''\n"
    "bad() { rm -f \"$came\"; exit 74; }\n"
    "(umask 077; cat >\"$came\") || bad\n"
    "sum \"$came\" || { echo 'it did not come whole'; bad; }\n"
    "for d; do\n"
    "  part=$d/.reperf-node-$word.$$\n"
    "  (umask 077; [ -d \"$d\" ] || mkdir -p \"$d\"; is_ours \"$d\" && { [ \"$part\" = \"$came\" ] "
    "|| cat \"$came\" >\"$part\"; }) 2>/dev/null &&\n"
    "    chmod 700 \"$part\" && runs \"$part\" && mv -f \"$part\" \"$d/$name\" && { rm -f "
    "\"$came\"; "
    "exit 0; }\n"
    "  [ \"$part\" = \"$came\" ] || rm -f \"$part\"\n"
    "  tried=\"$tried $d\"\n"
    "done\n"
    "echo \"no folder lets it run there (tried$tried): name a work folder that is not mounted "
    "noexec\"\n"
    "bad\n";

void remote_node_init(struct remote_ssh *r)
{
    r->node = (struct remote_node){.put_fd = -1};
    strbuf_init(&r->node.script, SCRIPT_MAX);
    strbuf_init(&r->node.feed, 2 * NODE_FRAME_MAX);
    strbuf_init(&r->node.said, SAID_MAX);
}

void remote_node_release(struct remote_ssh *r)
{
    strbuf_release(&r->node.script);
    strbuf_release(&r->node.feed);
    strbuf_release(&r->node.said);
    fd_cleanup(&r->node.put_fd);
    free(r->node.program);
    free(r->node.there);
    r->node.program = r->node.there = NULL;
}

void remote_node_lost(struct remote_ssh *r)
{
    r->node.is_open = r->node.is_asked = false;
    if (r->node.state == NODE_UP) {
        r->node.state = NODE_LAUNCH;
    }
}

void remote_node_close(struct remote_ssh *r)
{
    if (r->node.is_open && r->ssh) {
        ssh_abort(r->ssh);
    }
    remote_node_lost(r);
}

bool remote_node_abort(struct remote_ssh *r)
{
    struct remote_node *node = &r->node;
    fd_cleanup(&node->put_fd);
    node->is_asked = false;
    if (node->is_open && node->state == NODE_UP) {
        ssh_pause(r->ssh); /* its answer will be one to a number that nobody waits for */
        return true;
    }
    node->is_open = false;
    return false;
}

void remote_node_request(struct remote_ssh *r, enum node_op op, const struct str *fields,
                         size_t n_fields)
{
    if (!r->op.request.len) {
        node_request_write(&r->op.request, &(struct node_request){
                                               .op = op, .fields = fields, .n_fields = n_fields});
    }
}

/* Of what the node says the first line, as one for people. */
static int fails(struct remote_ssh *r, const char *what, struct str said, struct err *err)
{
    static const char *const FULL[] = {"No space left on device", "Disk quota exceeded",
                                       "Read-only file system", "File too large"};
    struct str rest = str_trim(said);
    struct str line = STR_EMPTY;
    char text[WHY_MAX];
    enum err_code code = ERR_NODE;
    for (size_t idx = 0; idx < ARRAY_LEN(FULL); idx++) {
        code = str_find(rest, str_of(FULL[idx])) >= 0 ? ERR_DISK : code;
    }
    (void)str_next(&rest, '\n', &line);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
    for (char *c = text; *c; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    return err_set(err, code, "%s: %s%s%s", remote_ssh_label(r), what, text[0] ? ": " : "", text);
}

/* The next operation tries again. */
static enum step never(struct remote_ssh *r, const char *what, struct str why, struct err *err)
{
    remote_node_close(r);
    r->node.state = NODE_UNKNOWN;
    r->node.was_put = false;
    return step_fail(fails(r, what, why, err));
}

/* ---- here ---- */

char *remote_node_file(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *named = getenv("REPERF_NODE");
    char self[SELF_BYTES];
    ssize_t len;
    if (named && named[0]) {
        return xstrdup(named);
    }
    len = readlink("/proc/self/exe", self, sizeof(self));
    while (len > 0 && self[len - 1] != '/') {
        len--;
    }
    return xstrdup(arena_printf(&arena, "%.*sreperf-node", len > 0 ? (int)len : 0, self));
}

static enum step prepare(struct remote_ssh *r, struct err *err)
{
    struct remote_node *node = &r->node;
    struct digest_value value;
    struct err why = {0};
    free(node->program);
    node->program = remote_node_file();
    if (digest_file(node->program, DIGEST_SHA256, &value, &why) < 0) {
        return never(r, "reperf-node cannot be read here", str_of(why.msg), err);
    }
    hex_encode(value.sha256, SHA256_BYTES, node->sha256);
    node->state = NODE_LAUNCH;
    return STEP_DONE;
}

/* ---- the channel ---- */

/* One turn of it. STEP_DONE: what ran there has ended, with that status. */
static enum step turn(struct remote_ssh *r, int *ret_status, bool *ret_again, struct err *err)
{
    struct remote_node *node = &r->node;
    const char *const args[] = {r->work_wanted, node->sha256, MACHINE, NULL};
    const struct ssh_script script = {.text = node->script.ptr,
                                      .args = args,
                                      .input_fd = -1,
                                      .feed = &node->feed,
                                      .on_output = remote_ssh_collect,
                                      .output_ctx = &node->said,
                                      .deadline_ns = REMOTE_OWN_DEADLINE_NS};
    const struct run_opts opts = {&script, true, r->op.what};
    enum step step = remote_ssh_run(r, &opts, ret_status, ret_again, err);
    if (step == STEP_AGAIN && r->is_up) {
        node->is_open = true;
    } else if (step == STEP_DONE) {
        remote_node_lost(r); /* the channel is closed */
    }
    return step;
}

/* It is gone, or is not to be trusted: once more, or no more. */
static enum step is_over(struct remote_ssh *r, const char *what, struct str why, struct err *err)
{
    if (++r->op.n_ends >= ENDS_MAX) {
        return never(r, what, why, err);
    }
    remote_node_close(r);
    r->node.state = NODE_LAUNCH;
    return STEP_DONE;
}

static enum step has_ended(struct remote_ssh *r, int status, struct err *err)
{
    char text[32];
    snprintf(text, sizeof(text), "status %d", status);
    return is_over(r, "reperf-node ended there", str_of(text), err);
}

/* "reperf-node VERSION PATH" and a line break. 1: it is up; 0: more is to come; -1: it says something else. */
static int take_hello(struct remote_node *node)
{
    struct str said = strbuf_str(&node->said);
    struct str hello = STR_LIT(NODE_HELLO);
    ptrdiff_t end = str_find(said, STR_LIT("\n"));
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (end < 0) {
        return said.len <= SAID_SLACK &&
                       str_starts(said.len < hello.len ? hello : said,
                                  str_sub(said.len < hello.len ? said : hello, 0, hello.len))
                   ? 0
                   : -1;
    }
    if (!str_starts(said, hello) || (size_t)end == hello.len || said.ptr[hello.len] != '/') {
        return -1;
    }
    free(node->there);
    node->there = xstrdup(str_z(&arena, str_sub(said, hello.len, (size_t)end - hello.len)));
    strbuf_clear(&node->said); /* it says nothing more unasked */
    node->state = NODE_UP;
    node->is_asked = node->was_put = false;
    return 1;
}

static void begin_script(struct remote_node *node, const char *text)
{
    strbuf_clear(&node->script);
    strbuf_add_z(&node->script, PRELUDE);
    strbuf_add_z(&node->script, text);
    strbuf_clear(&node->feed);
    strbuf_clear(&node->said);
}

static enum step launch(struct remote_ssh *r, struct err *err)
{
    struct remote_node *node = &r->node;
    int status = 0, hello;
    bool is_again;
    enum step step;
    if (!node->is_open) {
        begin_script(node, LAUNCH);
    }
    step = turn(r, &status, &is_again, err);
    if (step == STEP_FAIL || is_again) {
        return step;
    }
    if (step == STEP_DONE && status == STATUS_ABSENT && !node->was_put) {
        node->state = NODE_PUT;
        return STEP_DONE;
    }
    if (step == STEP_DONE && status == STATUS_ABSENT) {
        return never(r, "reperf-node was put there and is gone, or is another", STR_EMPTY, err);
    }
    hello = take_hello(node);
    if (step == STEP_DONE && hello > 0) {
        return has_ended(r, status, err);
    }
    if (step == STEP_DONE || hello < 0) {
        return never(r, "reperf-node does not run there", strbuf_str(&node->said), err);
    }
    return hello > 0 ? STEP_DONE : step;
}

static enum step put(struct remote_ssh *r, struct err *err)
{
    struct remote_node *node = &r->node;
    const char *const args[] = {r->work_wanted, node->sha256, r->op.nonce, NULL};
    int status = 0;
    bool is_again;
    enum step step;
    if (node->put_fd < 0) {
        node->put_fd = open(node->program, O_RDONLY | O_CLOEXEC);
        if (node->put_fd < 0) {
            return never(r, node->program, str_of(err_errno_text(errno)), err);
        }
        begin_script(node, PUT);
    }
    const struct ssh_script script = {.text = node->script.ptr,
                                      .args = args,
                                      .input_fd = node->put_fd,
                                      .on_output = remote_ssh_collect,
                                      .output_ctx = &node->said,
                                      .deadline_ns = PUT_SPAN_NS};
    const struct run_opts opts = {&script, true, r->op.what};
    step = remote_ssh_run(r, &opts, &status, &is_again, err);
    if (is_again) {
        strbuf_clear(&node->said);
    }
    if (step == STEP_AGAIN) {
        return step;
    }
    fd_cleanup(&node->put_fd);
    if (step == STEP_FAIL) {
        return step;
    }
    if (status != 0) {
        return never(r, "reperf-node could not be put there", strbuf_str(&node->said), err);
    }
    node->was_put = true;
    node->state = NODE_LAUNCH;
    return STEP_DONE;
}

/* ---- one operation ---- */

/* 1: the answer was there and is taken; 0: not yet; -1: what came is none. */
static int take_answer(struct remote_ssh *r, int *ret_exit_status, struct err *err)
{
    struct remote_node *node = &r->node;
    struct node_answer answer;
    size_t len = 0;
    int rc;
    while ((rc = node_answer_read(strbuf_str(&node->said), &answer, &len, err)) > 0) {
        bool is_ours = node->is_asked && answer.seq == node->seq;
        if (is_ours) {
            strbuf_clear(&r->op.output);
            strbuf_add_str(&r->op.output, answer.text);
            *ret_exit_status = answer.status;
        }
        memmove(node->said.ptr, node->said.ptr + len, node->said.len - len + 1);
        node->said.len -= len;
        if (is_ours) {
            return 1;
        }
    }
    if (rc == 0 && node->said.is_full) {
        rc = err_set(err, ERR_PARSE, "more than %zu bytes", node->said.cap_bytes);
    }
    return rc;
}

static void send_request(struct remote_ssh *r)
{
    struct remote_node *node = &r->node;
    uint32_t seq = ++node->seq;
    for (size_t idx = 0; idx < 4; idx++) {
        r->op.request.ptr[SEQ_AT + idx] = (char)(uint8_t)(seq >> (8 * idx));
    }
    strbuf_add_str(&node->feed, strbuf_str(&r->op.request));
    node->is_asked = true;
    ssh_go_on(r->ssh, REMOTE_OWN_DEADLINE_NS);
}

/* *ret_is_done: it is answered; else, with STEP_DONE, the state is another. */
static enum step ask(struct remote_ssh *r, int *ret_exit_status, bool *ret_is_done, struct err *err)
{
    struct remote_node *node = &r->node;
    struct err cause = {0};
    int status = 0, rc;
    bool is_again;
    enum step step;
    if (!node->is_asked) {
        send_request(r);
    }
    step = turn(r, &status, &is_again, err);
    if (is_again || (step == STEP_FAIL && !(r->has_script_failed && err->code == ERR_NODE))) {
        return step;
    }
    if (step == STEP_FAIL) {
        cause = *err;
        *err = (struct err){0};
        return is_over(r, "reperf-node ended there", str_of(cause.msg), err);
    }
    bool was_asked = node->is_asked;
    node->is_asked = true; /* also where it ended with its answer */
    rc = take_answer(r, ret_exit_status, &cause);
    node->is_asked = was_asked && rc == 0;
    if (rc > 0) {
        r->down_since_ns = r->retry_at_ns = 0;
        *ret_is_done = true;
        if (node->is_open) {
            ssh_pause(r->ssh);
        }
        return STEP_DONE;
    }
    if (rc < 0) {
        return is_over(r, "reperf-node there gave no answer", str_of(cause.msg), err);
    }
    return step == STEP_DONE ? has_ended(r, status, err) : step;
}

/* Until it is up and, where is_question, has answered. */
static enum step serve(struct remote_ssh *r, bool is_question, int *ret_status, struct err *err)
{
    enum step step = STEP_DONE;
    bool is_done = false;
    while (step == STEP_DONE && !is_done) {
        switch (r->node.state) {
        case NODE_UNKNOWN:
            step = prepare(r, err);
            break;
        case NODE_LAUNCH:
            step = launch(r, err);
            break;
        case NODE_PUT:
            step = put(r, err);
            break;
        case NODE_UP:
        default:
            is_done = !is_question;
            step = is_question ? ask(r, ret_status, &is_done, err) : STEP_DONE;
            break;
        }
    }
    return step;
}

enum step remote_node_ask(struct remote_ssh *r, struct err *err)
{
    int status = 0;
    enum step step = serve(r, true, &status, err);
    if (step == STEP_DONE && status != 0) {
        char what[128];
        snprintf(what, sizeof(what), "%s failed (%d)", r->op.what, status);
        step = step_fail(fails(r, what, strbuf_str(&r->op.output), err));
    }
    if (step == STEP_FAIL) {
        remote_ssh_end(r);
    }
    return step;
}

enum step remote_node_there(struct remote *remote, const char **ret_path, struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    enum step step = STEP_DONE;
    int unused;
    if (!r->node.there) {
        if (!r->op.is_active) {
            remote_ssh_begin(r, "the start of reperf-node");
        }
        step = serve(r, false, &unused, err);
        if (step == STEP_DONE && r->node.is_open) {
            ssh_pause(r->ssh);
        }
        if (step != STEP_AGAIN) {
            remote_ssh_end(r);
        }
    }
    if (step == STEP_DONE) {
        *ret_path = r->node.there;
    }
    return step;
}
