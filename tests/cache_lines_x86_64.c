/* SPDX-License-Identifier: MIT */
#include "tests/cache_lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OPERAND_BYTES = 48, FIRST_NEW = 8, LAST_OLD_VECTOR = 32 };

/* ---- Lines ---- */

static struct cache_line *__attribute__((format(printf, 2, 3)))
add(struct cache_lines *lines, const char *format, ...)
{
    va_list arguments;
    struct cache_line *line = &lines->lines[lines->count++];
    va_start(arguments, format);
    vsnprintf(line->text, sizeof line->text, format, arguments);
    va_end(arguments);
    return line;
}

static void refer(struct cache_line *line, enum cache_reference reference, uint64_t target)
{
    line->reference = reference;
    line->target = target;
}

static void refer_to_literal(struct cache_lines *lines, struct cache_line *line, uint64_t value)
{
    refer(line, REFERENCE_LITERAL, lines->literal_count);
    lines->literals[lines->literal_count++] = value;
}

/* ---- Operands ---- */

struct operand {
    char text[OPERAND_BYTES];
};

static struct operand register_of(uint16_t dwarf, unsigned width)
{
    static const char *const old[FIRST_NEW][4] = {
        {"al", "ax", "eax", "rax"},  {"dl", "dx", "edx", "rdx"},  {"cl", "cx", "ecx", "rcx"},
        {"bl", "bx", "ebx", "rbx"},  {"sil", "si", "esi", "rsi"}, {"dil", "di", "edi", "rdi"},
        {"bpl", "bp", "ebp", "rbp"}, {"spl", "sp", "esp", "rsp"}};
    static const char *const suffixes[] = {"b", "w", "d", ""};
    unsigned index = width == 8 ? 3 : width / 2;
    struct operand operand;
    if (dwarf < FIRST_NEW)
        snprintf(operand.text, sizeof operand.text, "%%%s", old[dwarf][index]);
    else if (dwarf < 16)
        snprintf(operand.text, sizeof operand.text, "%%r%u%s", dwarf, suffixes[index]);
    else
        snprintf(operand.text, sizeof operand.text, "%%xmm%u",
                 dwarf <= LAST_OLD_VECTOR ? dwarf - 17U : dwarf - 51U);
    return operand;
}

static struct operand memory_of(int32_t offset, uint16_t base, const char *index)
{
    struct operand operand;
    char number[16] = "";
    if (offset != 0)
        snprintf(number, sizeof number, "%" PRId32, offset);
    snprintf(operand.text, sizeof operand.text, "%s(%.4s%s)", number, register_of(base, 8).text,
             index);
    return operand;
}

static bool fits_i32(uint64_t value)
{
    return value <= INT32_MAX || value >= (uint64_t)(int64_t)INT32_MIN;
}

/* LLVM prints an immediate of 4 bytes without a sign, one that is extended from a byte with one. */
static int64_t immediate_4(uint64_t value)
{
    int32_t number = (int32_t)value;
    return number >= INT8_MIN && number <= INT8_MAX ? number : (int64_t)(uint32_t)value;
}

/* ---- Guards ---- */

static void add_whole_guard(struct cache_lines *lines, const char *word, unsigned width,
                            uint64_t key)
{
    if (width == 1)
        add(lines, "cmpb $%d, %s", (int8_t)key, word);
    if (width == 2) {
        add(lines, "movzwl %s, %%r11d", word);
        add(lines, "cmpl $%" PRIu64 ", %%r11d", key);
    }
    if (width == 4)
        add(lines, "cmpl $%" PRId64 ", %s", immediate_4(key), word);
    if (width == 8 && fits_i32(key))
        add(lines, "cmpq $%" PRId64 ", %s", (int64_t)key, word);
    if (width == 8 && !fits_i32(key)) {
        add(lines, "movabsq $%" PRId64 ", %%r11", (int64_t)key);
        add(lines, "cmpq %%r11, %s", word);
    }
}

static void add_narrow_masked_guard(struct cache_lines *lines, const char *word, unsigned width,
                                    uint64_t mask, uint64_t key)
{
    const char *load = width == 1 ? "movzbl" : width == 2 ? "movzwl" : "movl";
    int64_t number = width == 1 ? (int8_t)mask : width == 2 ? (int16_t)mask : (int32_t)mask;
    add(lines, "%s %s, %%r11d", load, word);
    add(lines, "andl $%" PRId64 ", %%r11d", immediate_4((uint64_t)number));
    if (key != 0)
        add(lines, "cmpl $%" PRId64 ", %%r11d", immediate_4(key));
}

static void add_wide_masked_guard(struct cache_lines *lines, const char *word, uint64_t mask,
                                  uint64_t key)
{
    if (fits_i32(mask)) {
        add(lines, "movq %s, %%r11", word);
        add(lines, "andq $%" PRId64 ", %%r11", (int64_t)mask);
    } else {
        add(lines, "movabsq $%" PRId64 ", %%r11", (int64_t)mask);
        add(lines, "andq %s, %%r11", word);
    }
    if (key != 0 && fits_i32(key))
        add(lines, "cmpq $%" PRId64 ", %%r11", (int64_t)key);
    if (!fits_i32(key))
        refer_to_literal(lines, add(lines, "cmpq @(%%rip), %%r11"), key);
}

static void add_guard(struct cache_lines *lines, const struct arch_cache_case *of)
{
    struct operand word = memory_of(of->key_offset, of->receiver, "");
    unsigned width = of->key_width;
    /* The lower half is enough where the upper one does not count. */
    for (unsigned half = width / 2; half > 0 && of->mask >> (8 * half) == 0; half /= 2)
        width = half;
    if (of->mask == UINT64_MAX >> (64 - 8 * width))
        add_whole_guard(lines, word.text, width, of->key);
    else if (width < 8)
        add_narrow_masked_guard(lines, word.text, width, of->mask, of->key);
    else
        add_wide_masked_guard(lines, word.text, of->mask, of->key);
}

/* ---- Hits ---- */

static bool is_vector(const struct arch_cache_case *of) { return of->value >= 17; }

static const char *vector_move(const struct arch_cache_case *of, unsigned width)
{
    if (of->value > LAST_OLD_VECTOR)
        return width == 4 ? "vmovss" : "vmovsd";
    return width == 4 ? "movss" : "movsd";
}

static struct operand add_field(struct cache_lines *lines, const struct arch_cache_case *of)
{
    if (!of->field.is_out_of_line)
        return memory_of(of->field.offset, of->receiver, "");
    add(lines, "movq %s, %%r11", memory_of(of->field.pointer_offset, of->receiver, "").text);
    return memory_of(of->field.offset, 11, "");
}

static void add_load_from(struct cache_lines *lines, const struct arch_cache_case *of,
                          const char *field)
{
    static const char *const loads[] = {[1] = "movzbl", [2] = "movzwl", [4] = "movl", [8] = "movq"};
    static const char *const signed_loads[] = {
        [1] = "movsbq", [2] = "movswq", [4] = "movslq", [8] = "movq"};
    unsigned width = of->field.width;
    unsigned written = of->field.is_signed || width == 8 ? 8 : 4;
    if (is_vector(of))
        add(lines, "%s %s, %s", vector_move(of, width), field, register_of(of->value, 8).text);
    else
        add(lines, "%s %s, %s", of->field.is_signed ? signed_loads[width] : loads[width], field,
            register_of(of->value, written).text);
}

static void add_load(struct cache_lines *lines, const struct arch_cache_case *of)
{
    struct operand field = add_field(lines, of);
    add_load_from(lines, of, field.text);
}

static void add_store(struct cache_lines *lines, const struct arch_cache_case *of)
{
    static const char *const stores[] = {[1] = "movb", [2] = "movw", [4] = "movl", [8] = "movq"};
    struct operand field = add_field(lines, of);
    unsigned width = of->field.width;
    add(lines, "%s %s, %s", is_vector(of) ? vector_move(of, width) : stores[width],
        register_of(of->value, width).text, field.text);
}

static void add_constant(struct cache_lines *lines, const struct arch_cache_case *of)
{
    if (is_vector(of))
        refer_to_literal(lines,
                         add(lines, "%s @(%%rip), %s", vector_move(of, of->constant_width),
                             register_of(of->value, 8).text),
                         of->constant);
    else if (of->constant <= UINT32_MAX)
        add(lines, "movl $%" PRIu64 ", %s", of->constant, register_of(of->value, 4).text);
    else
        add(lines, "%s $%" PRId64 ", %s", fits_i32(of->constant) ? "movq" : "movabsq",
            (int64_t)of->constant, register_of(of->value, 8).text);
}

static void add_restored_flags(struct cache_lines *lines)
{
    add(lines, "popfq");
    add(lines, "leaq 128(%%rsp), %%rsp");
}

static void add_return(struct cache_lines *lines, const struct arch_cache *cache)
{
    if (cache->is_called)
        add(lines, "retq");
    else
        refer(add(lines, "jmp @"), REFERENCE_ADDRESS, cache->site_end);
}

static void add_jump(struct cache_lines *lines, uint64_t target)
{
    add(lines, "movabsq $%" PRId64 ", %%r11", (int64_t)target);
    add(lines, "jmpq *%%r11");
}

static void add_exit(struct cache_lines *lines, const struct arch_cache *cache, uint64_t data)
{
    if (!cache->is_called) {
        refer(add(lines, "leaq @(%%rip), %%r11"), REFERENCE_ADDRESS, cache->return_address);
        add(lines, "pushq %%r11");
    }
    add(lines, "movabsq $%" PRId64 ", %%r11", (int64_t)data);
    add(lines, "pushq %%r11");
    add(lines, "jmpq *(%%r11)");
}

static void add_hit(struct cache_lines *lines, const struct arch_cache *cache,
                    const struct arch_cache_case *of)
{
    if (of->counter != 0) {
        add(lines, "movabsq $%" PRId64 ", %%r11", (int64_t)of->counter);
        add(lines, "incq (%%r11)");
    }
    if (cache->keeps_flags)
        add_restored_flags(lines);
    if (of->action == ARCH_CACHE_LOAD)
        add_load(lines, of);
    if (of->action == ARCH_CACHE_STORE)
        add_store(lines, of);
    if (of->action == ARCH_CACHE_CONSTANT)
        add_constant(lines, of);
    if (of->action == ARCH_CACHE_JUMP)
        add_jump(lines, of->target);
    else if (of->action == ARCH_CACHE_EXIT)
        add_exit(lines, cache, of->target);
    else
        add_return(lines, cache);
}

/* ---- Caches ---- */

static void add_cases(struct cache_lines *lines, const struct arch_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++) {
        add_guard(lines, &cache->cases[i]);
        struct cache_line *branch = add(lines, "jne @");
        add_hit(lines, cache, &cache->cases[i]);
        refer(branch, REFERENCE_LINE, lines->count);
    }
}

/* Keys are compared as literals: one is too wide. */
static bool has_wide_key(const struct arch_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        if (cache->cases[i].key_width == 8 && !fits_i32(cache->cases[i].key))
            return true;
    return false;
}

static bool has_one_word(const struct arch_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        if (cache->cases[i].key_width != 8 ||
            cache->cases[i].key_offset != cache->cases[0].key_offset)
            return false;
    return true;
}

static bool selects(const struct arch_cache *cache)
{
    bool all = cache->may_select && !cache->keeps_flags && cache->count >= 3;
    const struct arch_cache_case *first = &cache->cases[0];
    for (size_t i = 0; all && i < cache->count; i++) {
        const struct arch_cache_case *of = &cache->cases[i];
        struct arch_cache_field field = of->field;
        bool is_whole = (of->key_width == 4 && of->mask == UINT32_MAX) ||
                        (of->key_width == 8 && of->mask == UINT64_MAX);
        field.offset = first->field.offset;
        if (!field.is_out_of_line)
            field.pointer_offset = first->field.pointer_offset;
        all = of->action == ARCH_CACHE_LOAD && !is_vector(of) && of->counter == 0 && is_whole &&
              of->field.offset != INT32_MIN && of->receiver == first->receiver &&
              of->value == first->value && field.width == first->field.width &&
              field.is_signed == first->field.is_signed &&
              field.is_out_of_line == first->field.is_out_of_line &&
              field.pointer_offset == first->field.pointer_offset;
    }
    return all && (!has_wide_key(cache) || has_one_word(cache));
}

static uint64_t unused_lower_half(const struct arch_cache *cache)
{
    for (uint64_t number = 1;; number++) {
        size_t equal = 0;
        for (size_t i = 0; i < cache->count; i++)
            equal += (cache->cases[i].key & UINT32_MAX) == number;
        if (equal == 0)
            return number;
    }
}

static void add_selected_cases(struct cache_lines *lines, const struct arch_cache *cache,
                               int32_t origin)
{
    for (size_t i = cache->count; i > 0; i--) {
        const struct arch_cache_case *of = &cache->cases[i - 1];
        struct operand word = memory_of(of->key_offset, of->receiver, "");
        if (of->key_width == 4)
            add(lines, "cmpl $%" PRId64 ", %s", immediate_4(of->key), word.text);
        else
            add(lines, "cmpq $%" PRId64 ", %s", (int64_t)of->key, word.text);
        refer_to_literal(lines, add(lines, "cmovel @(%%rip), %%r11d"),
                         (uint64_t)((int64_t)of->field.offset - origin));
    }
}

static void add_selected_load(struct cache_lines *lines, const struct arch_cache *cache,
                              int32_t origin)
{
    const struct arch_cache_case *first = &cache->cases[0];
    struct operand field = memory_of(origin, first->receiver, ",%r11");
    if (first->field.is_out_of_line) {
        add(lines, "addq %s, %%r11",
            memory_of(first->field.pointer_offset, first->receiver, "").text);
        field = memory_of(origin, 11, "");
    }
    add_load_from(lines, first, field.text);
    add_return(lines, cache);
}

static void add_short_selection(struct cache_lines *lines, const struct arch_cache *cache,
                                int32_t origin)
{
    lines->literal_bytes = 4;
    add(lines, "xorl %%r11d, %%r11d");
    add_selected_cases(lines, cache, origin);
    add(lines, "testl %%r11d, %%r11d");
    struct cache_line *branch = add(lines, "je @");
    add_selected_load(lines, cache, origin);
    refer(branch, REFERENCE_LINE, lines->count);
}

static void add_wide_selection(struct cache_lines *lines, const struct arch_cache *cache,
                               int32_t origin)
{
    uint64_t tag = unused_lower_half(cache);
    add(lines, "movq %s, %%r11",
        memory_of(cache->cases[0].key_offset, cache->cases[0].receiver, "").text);
    add(lines, "cmpl $%" PRIu64 ", %%r11d", tag);
    struct cache_line *before = add(lines, "je @");
    for (size_t i = 0; i < cache->count; i++) {
        uint64_t distance = (uint64_t)((int64_t)cache->cases[i].field.offset - origin);
        refer_to_literal(lines, add(lines, "cmpq @(%%rip), %%r11"), cache->cases[i].key);
        refer_to_literal(lines, add(lines, "cmoveq @(%%rip), %%r11"), distance << 32 | tag);
    }
    add(lines, "cmpl $%" PRIu64 ", %%r11d", tag);
    struct cache_line *behind = add(lines, "jne @");
    add(lines, "shrq $32, %%r11");
    add_selected_load(lines, cache, origin);
    refer(before, REFERENCE_LINE, lines->count);
    refer(behind, REFERENCE_LINE, lines->count);
}

static void add_selection(struct cache_lines *lines, const struct arch_cache *cache)
{
    int32_t origin = INT32_MAX;
    for (size_t i = 0; i < cache->count; i++)
        if (cache->cases[i].field.offset <= origin)
            origin = cache->cases[i].field.offset - 1;
    if (has_wide_key(cache))
        add_wide_selection(lines, cache, origin);
    else
        add_short_selection(lines, cache, origin);
}

static void add_way_out(struct cache_lines *lines, const struct arch_cache *cache)
{
    if (cache->keeps_flags && cache->count > 0)
        add_restored_flags(lines);
    if (cache->miss_target != 0) {
        add_jump(lines, cache->miss_target);
        return;
    }
    add_exit(lines, cache, cache->exit_data);
}

static void write_lines(const struct arch_cache *cache, struct cache_lines *lines)
{
    lines->literal_bytes = 8;
    if (cache->keeps_flags && cache->count > 0) {
        add(lines, "leaq -128(%%rsp), %%rsp");
        add(lines, "pushfq");
    }
    if (selects(cache))
        add_selection(lines, cache);
    else
        add_cases(lines, cache);
    lines->way_out = lines->count;
    add_way_out(lines, cache);
}

static const uint16_t general[] = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15};
static const uint16_t vectors[] = {17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
                                   67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82};

const struct cache_writer cache_writer_x86_64 = {
    .general = general,
    .general_count = sizeof general / sizeof *general,
    .vectors = vectors,
    .vector_count = sizeof vectors / sizeof *vectors,
    .counts_from_end = true,
    .write = write_lines,
};
