/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/command.h"
#include "base/log.h"
#include "base/table.h"
#include "base/vec.h"

#define OUTPUT_MAX (256u << 20)

typedef void clean_fn(char *text, size_t len);

/* A document is for programs, which want it as it is; on a terminal it is for people as well. */
static int put(struct str text, bool for_programs, clean_fn *clean, struct err *err)
{
    CLEANUP(free) char *plain = NULL;
    CLEANUP(strbuf) struct strbuf wrapped = STRBUF(SIZE_MAX);
    if (!for_programs || isatty(STDOUT_FILENO)) {
        plain = xmalloc(text.len + 1);
        memcpy(plain, text.ptr, text.len);
        clean(plain, text.len);
        text.ptr = plain;
    }
    if (!for_programs && isatty(STDOUT_FILENO)) {
        text_wrap(text, (size_t)log_output_columns(), &wrapped);
        text = strbuf_str(&wrapped);
    }
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
        if (errno == EPIPE) { /* head has read enough: that is nothing to tell anybody */
            return err_set(err, ERR_IO, "%s", "");
        }
        return err_set(err, err_code_of_errno(errno), "write to standard output: %s",
                       err_errno_text(errno));
    }
    return 0;
}

static bool is_document(struct str text)
{
    return text.len && (text.ptr[0] == '{' || text.ptr[0] == '<');
}

int cmd_print(struct str text, struct err *err)
{
    return put(text, is_document(text), text_plain, err);
}

int cmd_print_painted(struct str text, struct err *err)
{
    return put(text, is_document(text), text_plain_painted, err);
}

int cmd_print_document(struct str text, struct err *err)
{
    return put(text, true, text_plain, err);
}

/* The words, as options and operands; a "--" ends the options. */
static int parse(const struct cmd *c, int argc, char **argv, struct cmd_call *call, struct err *err)
{
    int n = 0;
    while (n < argc && strcmp(argv[n], "--") != 0) {
        n++;
    }
    if (opt_parse(c->opts, n, argv, call->args, &call->operands, err) < 0) {
        return -1;
    }
    call->n_before = call->operands.n;
    for (n++; n < argc; n++) {
        VEC_PUSH(&call->operands, argv[n]);
    }
    return c->expected && (call->operands.n < c->n_min || call->operands.n > c->n_max)
               ? err_set(err, ERR_USAGE, "%s", c->expected)
               : 0;
}

static int put_out(const struct cmd_call *call, struct err *err)
{
    struct str text = strbuf_str(call->out);
    return call->out->is_full ? err_set(err, ERR_IO, "%s: more than %u bytes to print",
                                        call->cmd->name, OUTPUT_MAX)
           : call->is_painted ? cmd_print_painted(text, err)
           : text.len         ? cmd_print(text, err)
                              : 0;
}

int cmd_call(const struct cmd *c, const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf out = STRBUF(OUTPUT_MAX);
    struct err print_err = {0};
    struct cmd_call call = {.cmd = c,
                            .arena = &arena,
                            .words = argv,
                            .n_words = argc,
                            .args = arena_alloc(&arena, c->args_size + 1, alignof(max_align_t)),
                            .out = &out};
    if (c->defaults) {
        memcpy(call.args, c->defaults, c->args_size);
    }
    int status = parse(c, argc, argv, &call, err);
    status = status < 0 ? -1 : c->run(ctx, &call, err);
    if (status >= 0) {
        status = put_out(&call, err) < 0 ? -1 : status;
    } else if (call.is_said && put_out(&call, &print_err) < 0) {
        log_line(LOG_DEBUG, "%s", print_err.msg); /* the first failure stands */
    }
    opt_release(c->opts, call.args);
    VEC_RELEASE(&call.operands);
    return status;
}

bool cmd_asks_for_help(int argc, char **argv)
{
    for (int idx = 0; idx < argc && strcmp(argv[idx], "--") != 0; idx++) {
        if (strcmp(argv[idx], "--help") == 0 || strcmp(argv[idx], "-h") == 0) {
            return true;
        }
    }
    return false;
}

void cmd_print_help(const struct cmd *c)
{
    printf("%s [options] %s\n\n%s\n\n", c->name, c->operands, c->summary);
    opt_print_help(stdout, c->opts);
    printf("  %-30s %s\n", "    --help", "this text");
}
