/*
 * What tests/check_gdb.pl looks at with gdb: `outer` calls `inner`, which leaves through an exit to
 * a handler in C; then a cache misses, and then its code faults; with the argument `free`, the code
 * is freed first. Code memory has a single mapping; with the argument `dual`, which is otherwise
 * like `free`, it has two if the system can.
 *
 * SPDX-License-Identifier: MIT
 */
#include "llvm_engine_support.h"

#include <cairn/debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char text[] = SUPPORT_INTRINSICS
    "define i64 @outer(i64 %x) uwtable !dbg !4 {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 48, "
    "ptr null, i32 1, i64 %x), !dbg !7\n"
    "  %s = add i64 %r, %x, !dbg !8\n  ret i64 %s, !dbg !8\n}\n"
    "define i64 @inner(i64 %y) uwtable !dbg !9 {\n"
    "  %z = mul i64 %y, 10, !dbg !10\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 2, i32 48, "
    "ptr null, i32 0, i64 %y), !dbg !11\n"
    "  ret i64 %z, !dbg !11\n}\n"
    "define i64 @width(ptr %object) uwtable {\n"
    "  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, i32 48, "
    "ptr null, i32 1, ptr %object)\n"
    "  ret i64 %r\n}\n"
    "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2, !3}\n"
    "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)\n"
    "!1 = !DIFile(filename: \"lines.src\", directory: \"/somewhere\")\n"
    "!2 = !{i32 2, !\"Debug Info Version\", i32 3}\n!3 = !{i32 2, !\"Dwarf Version\", i32 4}\n"
    "!4 = distinct !DISubprogram(name: \"outer\", file: !1, line: 10, type: !5, scopeLine: 10, "
    "unit: !0, spFlags: DISPFlagDefinition)\n"
    "!5 = !DISubroutineType(types: !6)\n!6 = !{}\n"
    "!7 = !DILocation(line: 11, scope: !4)\n!8 = !DILocation(line: 12, scope: !4)\n"
    "!9 = distinct !DISubprogram(name: \"inner\", file: !1, line: 20, type: !5, scopeLine: 20, "
    "unit: !0, spFlags: DISPFlagDefinition)\n"
    "!10 = !DILocation(line: 21, scope: !9)\n!11 = !DILocation(line: 22, scope: !9)\n";

struct object {
    uint64_t shape; /* 1 means that fields[0] is the width; 2 means that fields[1] is */
    int64_t fields[2];
};

void handle_exit(struct cairn_exit_call *call, void *user);
void handle_exit(struct cairn_exit_call *call, void *user)
{
    (void)call;
    (void)user;
}

void handle_miss(struct cairn_ic_miss *miss, void *user);
void handle_miss(struct cairn_ic_miss *miss, void *user)
{
    const struct object *object = cairn_value_pointer(&miss->operands[0]);
    const int64_t *field = &object->fields[object->shape - 1];
    const struct cairn_value width = cairn_value_of_integer(64, *field);
    const struct cairn_ic_case found = {
        .guard = {.width = sizeof object->shape, .key = object->shape},
        .action = CAIRN_IC_LOAD,
        .field = {.offset = (int32_t)((const char *)field - (const char *)object), .width = 8},
    };
    (void)user;
    if (cairn_ic_return(miss, &width, NULL) != CAIRN_OK ||
        cairn_ic_add(miss->ic, &found, CAIRN_RELAXED, NULL) != CAIRN_OK)
        abort();
}

void code_is_freed(void);
void code_is_freed(void) { puts("freed"); }

static void check(enum cairn_status status, const struct cairn_error *error)
{
    if (status == CAIRN_OK)
        return;
    fprintf(stderr, "gdb_host: %s\n", error->message);
    exit(1);
}

/* Returns an object of shape 2 whose last field cannot be read. */
static const struct object *half_object(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        abort();
    struct object *object = (struct object *)(void *)(pages + page - 16);
    object->shape = 2;
    return object;
}

static void use_cache(cairn_engine *engine)
{
    const struct object first = {1, {10, 0}}, second = {2, {0, 20}};
    const struct cairn_ic_options options = {.handler = handle_miss};
    struct cairn_error error = {0};
    cairn_ic *ic;
    cairn_site *site = support_compiled_site(engine, 3, &error);
    check(site == NULL ? error.status : cairn_ic_create(site, &options, &ic, &error), &error);
    int64_t (*width)(const struct object *) = (int64_t(*)(const struct object *))(
        uintptr_t)support_compiled_function(engine, "width", NULL);
    if (width(&first) + width(&second) + width(&second) != 50)
        abort();
    width(half_object());
}

int main(int argc, char **argv)
{
    struct cairn_error error = {0};
    cairn_runtime *own;
    cairn_debugger *debugger;
    cairn_engine *engine;
    cairn_exit *created;
    LLVMContextRef own_context = LLVMContextCreate();
    const struct cairn_engine_options options = {.optimisation_level = 2};
    bool is_dual = argc == 2 && strcmp(argv[1], "dual") == 0;
    const struct cairn_runtime_options memory = {.code_mode = is_dual ? CAIRN_CODE_MODE_AUTOMATIC
                                                                      : CAIRN_CODE_MODE_SINGLE};
    check(cairn_runtime_create(&memory, &own, &error), &error);
    check(cairn_debugger_attach(own, &debugger, &error), &error);
    check(cairn_engine_create(own, support_parse(own_context, text), &options, &engine, &error),
          &error);
    function *outer = (function *)(uintptr_t)support_compiled_function(engine, "outer", &error);
    check(error.status, &error);
    const void *inner = support_compiled_function(engine, "inner", &error);
    check(cairn_site_call(support_compiled_site(engine, 1, NULL), inner, CAIRN_SYNC, &error),
          &error);
    check(cairn_site_leave(support_compiled_site(engine, 2, NULL), handle_exit, NULL, CAIRN_SYNC,
                           &created, &error),
          &error);
    printf("%ld\n", (long)outer(4));
    if (argc == 1)
        use_cache(engine);
    cairn_exit_destroy(created);
    cairn_engine_destroy(engine);
    cairn_runtime_quiesce(own);
    code_is_freed();
    cairn_debugger_destroy(debugger);
    cairn_runtime_destroy(own);
    LLVMContextDispose(own_context);
    return is_dual || (argc == 2 && strcmp(argv[1], "free") == 0) ? 0 : 1;
}
