/*
 * Describes inline caches, one by one, in a visit, and as text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ic/cache.h"

#include "record/table.h"
#include "runtime/events.h"
#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cairn_ic_state_name(enum cairn_ic_state state)
{
    static const char *const names[] = {
        [CAIRN_IC_EMPTY] = "empty",
        [CAIRN_IC_MONOMORPHIC] = "monomorphic",
        [CAIRN_IC_POLYMORPHIC] = "polymorphic",
        [CAIRN_IC_MEGAMORPHIC] = "megamorphic",
        [CAIRN_IC_DESTROYED] = "destroyed",
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

/* ---- Events ---- */

_Static_assert((int)CAIRN_IC_MEGAMORPHIC == (int)CAIRN_LOG_CACHE_MEGAMORPHIC &&
                   (int)CAIRN_IC_DESTROYED == (int)CAIRN_LOG_CACHE_DISABLED,
               "the states of caches are those of the log");

void ic_note_change(const cairn_ic *ic, enum cairn_ic_state from, enum cairn_ic_state to,
                    uint64_t added_key)
{
    const cairn_site *site = ic->site;
    const struct log_sink *sink = code_space_sink(site->table->space);
    EVENT_PROBE4(cache, site->address, from, to, added_key);
    cairn_log *log = log_of(sink);
    if (!event_has_log(log))
        return;
    uint64_t start;
    struct cairn_log_event event = {
        .kind = CAIRN_LOG_CACHE,
        .address = site->address,
        .id = site_id(site),
        .module = event_module(sink, site->table->module_number),
        .a = (uint64_t)from << 32 | (uint64_t)to,
        .b = added_key,
    };
    const char *name = event_function(table_owner(site->table->records), site->address, &start);
    log_record(log, &event, name, NULL);
}

/* ---- Single caches ---- */

static void describe_seen(const struct ic_seen *seen, struct cairn_ic_description *description)
{
    description->seen_count = seen->count;
    memcpy(description->cases, seen->cases, sizeof seen->cases);
    memcpy(description->hits, seen->hits, sizeof seen->hits);
    memcpy(description->additions, seen->additions, sizeof seen->additions);
    description->other_additions = seen->other_additions;
}

static void describe_locked(cairn_ic *ic, struct cairn_ic_description *description)
{
    bool is_destroyed = atomic_load_explicit(&ic->is_destroyed, memory_order_relaxed);
    enum cairn_ic_state state =
        is_destroyed ? CAIRN_IC_DESTROYED : ic_state_of(ic->is_megamorphic, ic->case_count);
    *description = (struct cairn_ic_description){
        .ic = ic,
        .site = ic->site,
        .id = site_id(ic->site),
        .address = ic->site->address,
        .state = state,
        .case_count = is_destroyed ? 0 : ic->case_count,
        .case_limit = ic->options.case_limit,
        .table_case_count = is_destroyed ? 0 : ic_table_count(ic->table),
        .counts_hits = ic->options.counts_hits,
        .misses = atomic_load_explicit(&ic->misses, memory_order_relaxed),
        .code_bytes = is_destroyed ? 0 : ic->code.stub->code_bytes,
        .case_bytes = is_destroyed ? 0 : ic->code.case_bytes,
    };
    if (!is_destroyed && ic->is_inline) {
        description->code_bytes += ic->inline_bytes;
        description->case_bytes += ic->inline_bytes;
    }
    description->seen_count = description->case_count;
    for (uint32_t i = 0; i < description->case_count; i++) {
        const struct ic_case *entry = &ic->cases[i];
        description->cases[i] = entry->public;
        if (ic->options.counts_hits)
            description->hits[i] = __atomic_load_n(&ic->hits[entry->counter], __ATOMIC_RELAXED);
    }
    if (!is_destroyed && ic->is_megamorphic)
        describe_seen(ic->seen, description);
}

/* A visitor holds the lock already. */
void cairn_ic_describe(cairn_ic *ic, struct cairn_ic_description *description)
{
    bool is_locked = cache_set_lock(ic->set);
    describe_locked(ic, description);
    if (is_locked)
        cache_set_leave(ic->set);
}

enum cairn_ic_state cairn_ic_state(cairn_ic *ic)
{
    struct cairn_ic_description description;
    cairn_ic_describe(ic, &description);
    return description.state;
}

cairn_ic *cairn_site_ic(cairn_site *site)
{
    struct cache_set *set = site->table->ics;
    bool is_locked = cache_set_lock(set);
    cairn_ic *ic = site->ic;
    if (is_locked)
        cache_set_leave(set);
    return ic;
}

/* ---- All caches ---- */

/* A visitor may call this again: nothing changes during a visit. */
void cairn_runtime_visit_ics(cairn_runtime *runtime, cairn_ic_visitor *visit, void *user)
{
    /* The visitor may release the host's reference to the runtime. */
    cairn_runtime_retain(runtime);
    struct cache_set *set = &runtime->ics;
    bool is_locked = cache_set_lock(set);
    bool continues = true;
    for (cairn_ic *ic = set->first; ic != NULL && continues; ic = ic->next) {
        struct cairn_ic_description description;
        if (ic_is_retired(ic))
            continue;
        describe_locked(ic, &description);
        continues = visit(&description, user);
    }
    if (is_locked)
        cache_set_leave(set);
    cairn_runtime_destroy(runtime);
}

/* ---- As text ---- */

/* Invariant: `length` is the length of the whole text, of which `text` holds the start. */
struct output {
    char *text;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void print(struct output *output, const char *format,
                                                        ...)
{
    bool is_cut = output->length >= output->size;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(is_cut ? NULL : output->text + output->length,
                           is_cut ? 0 : output->size - output->length, format, arguments);
    va_end(arguments);
    if (length > 0)
        output->length += (size_t)length;
}

static void print_place(struct output *output, const struct cairn_ic_field *field)
{
    print(output, "%u bytes at %d", field->width, field->offset);
    if (field->is_out_of_line)
        print(output, " from the pointer at %d", field->pointer_offset);
}

static void print_comparison(struct output *output, const struct cairn_ic_guard *guard)
{
    print(output, "%u bytes", guard->width);
    if (guard->mask != ic_all_bits(guard->width))
        print(output, " & 0x%" PRIx64, guard->mask);
    print(output, " = 0x%" PRIx64, guard->key);
}

/* Prints what a case does in addition to its action. */
static void print_more(struct output *output, const struct cairn_ic_case *described)
{
    const struct cairn_ic_barrier *barrier = &described->barrier;
    if (described->elements.length_width != 0)
        print(output, ", element operand %u of %u bytes at %d", described->elements.index,
              described->elements.length_width, described->elements.length_offset);
    if (described->changes_key)
        print(output, ", then key 0x%" PRIx64, described->new_key);
    if (barrier->kind == CAIRN_IC_BARRIER_CARD)
        print(output, ", card 0x%x at 0x%" PRIx64 " + address >> %u", barrier->card, barrier->cards,
              barrier->card_shift);
}

static void print_case(struct output *output, const struct cairn_ic_case *described)
{
    const struct cairn_ic_guard *guard = &described->guard;
    long long offset = guard->offset;
    print(output, "    [operand %u %c %lld] ", guard->operand, offset < 0 ? '-' : '+',
          offset < 0 ? -offset : offset);
    print_comparison(output, guard);
    if (described->holder.object != NULL) {
        print(output, ", [0x%" PRIxPTR " %+d] ", (uintptr_t)described->holder.object,
              described->holder.guard.offset);
        print_comparison(output, &described->holder.guard);
    }
    print(output, ": ");
    switch (described->action) {
    case CAIRN_IC_LOAD:
        print(output, described->field.is_signed ? "load signed " : "load ");
        print_place(output, &described->field);
        break;
    case CAIRN_IC_STORE:
        print(output, "store operand %u, ", described->operand);
        print_place(output, &described->field);
        break;
    case CAIRN_IC_CONSTANT:
        print(output, "constant 0x%" PRIx64, described->constant);
        break;
    case CAIRN_IC_CALL:
        print(output, "call 0x%" PRIxPTR, (uintptr_t)described->target);
        break;
    }
    print_more(output, described);
}

static bool print_cache(const struct cairn_ic_description *description, void *user)
{
    struct output *output = user;
    uint64_t hits = 0;
    for (uint32_t i = 0; i < description->seen_count; i++)
        hits += description->hits[i];
    print(output, "site %" PRIu64 " at 0x%" PRIx64 ": %s, %u of %u cases", description->id,
          description->address, cairn_ic_state_name(description->state), description->case_count,
          description->case_limit);
    if (description->table_case_count > 0)
        print(output, ", %u in its table", description->table_case_count);
    if (description->counts_hits)
        print(output, ", %" PRIu64 " hits, %" PRIu64 " misses", hits, description->misses);
    print(output, "\n");
    for (uint32_t i = 0; i < description->seen_count; i++) {
        print_case(output, &description->cases[i]);
        if (description->counts_hits)
            print(output, ", %" PRIu64 " hits", description->hits[i]);
        if (description->state == CAIRN_IC_MEGAMORPHIC)
            print(output, ", %" PRIu64 " additions", description->additions[i]);
        print(output, "\n");
    }
    return true;
}

size_t cairn_runtime_format_ics(cairn_runtime *runtime, char *text, size_t size)
{
    struct output output = {.text = text, .size = size};
    if (size > 0)
        text[0] = '\0';
    cairn_runtime_visit_ics(runtime, print_cache, &output);
    return output.length;
}
