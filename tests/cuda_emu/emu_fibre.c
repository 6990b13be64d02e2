/* SPDX-License-Identifier: Apache-2.0 */
#include "emu_fibre.h"

#include "emu_internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)256 * 1024)
#else
#define STACK_BYTES ((size_t)64 * 1024)
#endif
#define GUARD_BYTES 4096

struct emu_fibre {
    struct emu_fibre *next; /* of those that are free */
    unsigned char *stack;   /* NULL: the OS thread's */
    size_t stack_bytes;
#ifdef __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
};

static struct emu_fibre host;
static struct emu_fibre *self = &host;
static struct emu_fibre *idle;
static struct emu_fibre *came_from;
static void (*begin)(void);

struct emu_fibre *emu_fibre_self(void)
{
    return self;
}

/* Called on the new stack: tells ASan of the switch. */
static void arrived(void *fake_stack)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom = NULL;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
    if (came_from == &host) {
        host.stack = (unsigned char *)(uintptr_t)bottom;
        host.stack_bytes = bytes;
    }
#else
    (void)fake_stack;
#endif
}

static void start(void)
{
    arrived(NULL);
    begin();
    abort();
}

#ifdef __x86_64__
/* Saves what a call preserves (System V ABI, AMD64 supplement, 3.2.1) on this stack, its top at *from, and goes on with the one at to. */
void emu_fibre_jump(void **from, void *to);
__asm__(".text\n"
        ".type emu_fibre_jump, @function\n"
        "emu_fibre_jump:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emu_fibre_jump, .-emu_fibre_jump\n");

static void prepare(struct emu_fibre *fibre)
{
    /* Six registers, where to return to, and a word that keeps the stack aligned as after a call. */
    void **top = (void **)(void *)(fibre->stack + fibre->stack_bytes) - 8;
    for (int i = 0; i < 8; i++) {
        top[i] = NULL;
    }
    *(void (**)(void))(void *)&top[6] = start;
    fibre->sp = top;
}
static void jump(struct emu_fibre *from, struct emu_fibre *to)
{
    emu_fibre_jump(&from->sp, to->sp);
}
#else
static void prepare(struct emu_fibre *fibre)
{
    if (getcontext(&fibre->context) != 0) {
        emu_die("getcontext failed");
    }
    fibre->context.uc_stack.ss_sp = fibre->stack;
    fibre->context.uc_stack.ss_size = fibre->stack_bytes;
    makecontext(&fibre->context, start, 0);
}
static void jump(struct emu_fibre *from, struct emu_fibre *to)
{
    (void)swapcontext(&from->context, &to->context);
}
#endif

struct emu_fibre *emu_fibre_take(void (*entry)(void))
{
    begin = entry;
    struct emu_fibre *fibre = idle;
    if (fibre != NULL) {
        idle = fibre->next;
        return fibre;
    }
    fibre = calloc(1, sizeof(*fibre));
    unsigned char *stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fibre == NULL || stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0) {
        emu_die("no memory for a thread's stack");
    }
    fibre->stack = stack + GUARD_BYTES;
    fibre->stack_bytes = STACK_BYTES;
    prepare(fibre);
    return fibre;
}

void emu_fibre_switch(struct emu_fibre *to)
{
    struct emu_fibre *from = self;
    void *fake_stack = NULL;
    self = to;
    came_from = from;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake_stack, to->stack, to->stack_bytes);
#endif
    jump(from, to);
    arrived(fake_stack);
}

void emu_fibre_leave(struct emu_fibre *to)
{
    self->next = idle;
    idle = self;
    emu_fibre_switch(to);
}

__attribute__((no_sanitize("address"))) void emu_fibre_poison(unsigned char *ptr, size_t bytes)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        *(volatile uint64_t *)(void *)(ptr + i) = UINT64_MAX;
    }
}
