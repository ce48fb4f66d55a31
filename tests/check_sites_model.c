/*
 * A model of the protocol by which threads change the patch word of one site (site/commit.c,
 * site/veneers.c). It tries all interleavings of a few changes and of executions of the site, with
 * sequential consistency and with the store buffers of x86-64 (TSO). In each state:
 *  - While the word branches to a veneer, the slot holds the target of the change that has stored
 *    the word.
 *  - An execution reaches the target of a change that has begun, and that no other change has
 *    replaced which had returned before the execution began.
 *  - No change makes a veneer, if there is one more than there are threads.
 * The model must find a violation if the protocol's steps are in a wrong order, or if there are
 * fewer veneers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTORS = 3, CHANGES = 3, VENEERS = ACTORS + 1, BUFFER = 4, STATES = 1 << 21, BEGUN = 128 };
enum { UNKNOWN = 255 };

/* Variables. The word is the number of the veneer that it branches to, from 1 on, or 0; times 16;
 * plus the target. Target n + 1 is that of change n; 0 is what the site did at first. */
enum { WORD, RETURNED, SLOTS, TURNS = SLOTS + VENEERS, VARIABLES = TURNS + VENEERS };

enum step { NOTHING, LOOK, CHECK, TAKE, SLOT, RELEASE, STORE, BARRIER, RETURN, STEPS = 8 };

struct state {
    uint8_t memory[VARIABLES];
    uint8_t before[CHANGES]; /* BEGUN, and the changes that had returned when this one began */
    struct actor {
        uint8_t change, position, veneer, stores;
        /* The veneer's turns, their sum in this search so far, and in the search before. */
        uint8_t turns, sum, previous;
        uint8_t buffer[BUFFER][2];
    } actors[ACTORS];
    uint8_t fetched, returned; /* an execution at its veneer: the word, and RETURNED before it */
};

/* What is tried: change n is made by actor n % actors; one bit for each change. */
static const enum step *steps;
static unsigned actors, changes, far, synchronised, veneers;
static bool has_buffers;

static struct state states[STATES];
static uint32_t set[2 * STATES]; /* numbers of states, from 1 on, by hash */
static size_t count;
static bool is_violated;

static bool drain(struct state *state, struct actor *actor)
{
    const uint8_t variable = actor->buffer[0][0], value = actor->buffer[0][1];
    if (actor->stores == 0)
        return false;
    state->memory[variable] = variable == RETURNED ? state->memory[variable] | value : value;
    memmove(actor->buffer, actor->buffer + 1, sizeof actor->buffer - sizeof *actor->buffer);
    memset(actor->buffer[--actor->stores], 0, sizeof *actor->buffer);
    return true;
}

static bool store(struct state *state, struct actor *actor, unsigned variable, unsigned value)
{
    if (actor->stores == BUFFER)
        return false;
    actor->buffer[actor->stores][0] = (uint8_t)variable;
    actor->buffer[actor->stores++][1] = (uint8_t)value;
    return has_buffers || drain(state, actor);
}

static unsigned load(const struct state *state, const struct actor *actor, unsigned variable)
{
    for (int i = actor->stores; i-- > 0;)
        if (actor->buffer[i][0] == variable)
            return actor->buffer[i][1];
    return state->memory[variable];
}

/* Does a step, unless it must wait. `*fits` is whether the veneer can be used. */
static bool perform(struct state *state, struct actor *actor, enum step step, bool *fits)
{
    const unsigned change = actor->change, turns = TURNS + actor->veneer;
    const bool is_far = far >> change & 1, is_synchronised = synchronised >> change & 1;
    if (!is_far && step < STORE)
        return true;
    switch (step) {
    case LOOK:
        actor->turns = (uint8_t)load(state, actor, turns);
        actor->sum = (uint8_t)(actor->sum + actor->turns);
        *fits = actor->turns % 2 == 0;
        return true;
    case CHECK:
        *fits = load(state, actor, WORD) >> 4 != actor->veneer + 1U;
        return true;
    case TAKE: /* a locked compare-and-swap */
        *fits = state->memory[turns] == actor->turns;
        state->memory[turns] += *fits;
        return actor->stores == 0;
    case SLOT:
        return store(state, actor, SLOTS + actor->veneer, change + 1);
    case RELEASE:
        return store(state, actor, turns, actor->turns + 2U);
    case STORE:
        return store(state, actor, WORD, (is_far ? actor->veneer + 1U : 0) << 4 | (change + 1));
    case BARRIER:
        return !is_synchronised || actor->stores == 0;
    case RETURN: /* other threads know at once, or, without a barrier, when they can see it */
        if (!is_synchronised)
            return store(state, actor, RETURNED, 1U << change);
        state->memory[RETURNED] |= (uint8_t)(1U << change);
        return true;
    default:
        return true;
    }
}

/* Goes on with the next veneer. A change that has seen all of them twice, and none was taken or
 * released meanwhile, would make a veneer. */
static void search_on(struct actor *actor)
{
    actor->position = 0;
    actor->veneer = (uint8_t)((actor->veneer + 1U) % veneers);
    if (actor->veneer != 0)
        return;
    is_violated |= actor->sum == actor->previous;
    actor->previous = actor->sum;
    actor->sum = 0;
}

static void begin(struct actor *actor, unsigned change)
{
    actor->change = (uint8_t)change;
    actor->position = actor->veneer = actor->turns = actor->sum = 0;
    actor->previous = UNKNOWN;
}

static bool advance(struct state *state, struct actor *actor)
{
    const unsigned change = actor->change;
    bool fits = true;
    if (change >= changes)
        return false;
    unsigned own = change >= actors ? 1U << (change - actors) : 0;
    if (state->before[change] == 0)
        state->before[change] = (uint8_t)(BEGUN | state->memory[RETURNED] | own);
    if (!perform(state, actor, steps[actor->position], &fits))
        return false;
    if (!fits)
        search_on(actor);
    else if (++actor->position == STEPS)
        begin(actor, change + actors);
    return true;
}

/* Fetches the word, or loads the slot of the veneer that the execution is at. Returns whether the
 * state has changed. */
static bool execute(struct state *state)
{
    const bool begins = state->fetched == 0;
    const uint8_t word = begins ? state->memory[WORD] : state->fetched;
    const uint8_t returned = begins ? state->memory[RETURNED] : state->returned;
    const unsigned veneer = word >> 4;
    const unsigned target = veneer == 0 ? word : state->memory[SLOTS + veneer - 1];
    is_violated |= begins && target != (word & 15);
    is_violated |= target == 0 ? returned != 0 : state->before[target - 1] == 0;
    for (unsigned i = 0; i < changes && target != 0; i++)
        is_violated |= (returned >> i & 1) && (state->before[i] >> (target - 1) & 1);
    state->fetched = begins && veneer != 0 ? word : 0;
    state->returned = state->fetched != 0 ? returned : 0;
    return !begins || veneer != 0;
}

static void add(const struct state *state)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof *state; i++)
        hash = (hash ^ ((const uint8_t *)state)[i]) * UINT64_C(0x9E3779B97F4A7C15);
    size_t place = (size_t)(hash >> 32) % (2 * STATES);
    while (set[place] != 0 && memcmp(&states[set[place] - 1], state, sizeof *state) != 0)
        place = (place + 1) % (2 * STATES);
    if (set[place] != 0)
        return;
    if (count == STATES)
        abort();
    states[count++] = *state;
    set[place] = (uint32_t)count;
}

static void try_all_interleavings(void)
{
    struct state initial = {0};
    for (unsigned i = 0; i < ACTORS; i++)
        begin(&initial.actors[i], i < actors ? i : CHANGES);
    memset(set, 0, sizeof set);
    count = 0;
    add(&initial);
    for (size_t i = 0; i < count && !is_violated; i++) {
        struct state next = states[i];
        if (execute(&next))
            add(&next);
        for (unsigned way = 0; way < 2 * actors; way++) {
            next = states[i];
            struct actor *actor = &next.actors[way / 2];
            if (way % 2 == 0 ? advance(&next, actor) : drain(&next, actor))
                add(&next);
        }
    }
}

/* Whether threads that make one change each make these in an order that is not tried before,
 * because the threads are alike. The kind of a change is a bit of `far` and one of `synchronised`.
 */
static bool is_new(void)
{
    for (unsigned i = 1; i < changes && actors == changes; i++)
        if ((far >> i & 1) * 2 + (synchronised >> i & 1) <
            (far >> (i - 1) & 1) * 2 + (synchronised >> (i - 1) & 1))
            return false;
    return true;
}

/* Tries near and far targets, and changes with and without a barrier, in all combinations. Returns
 * whether one violates what must hold. */
static bool finds_violation(const enum step *tried, unsigned actor_count, unsigned veneer_count,
                            unsigned change_count, bool with_buffers)
{
    size_t total = 0;
    steps = tried, actors = actor_count, veneers = veneer_count, changes = change_count;
    has_buffers = with_buffers;
    is_violated = false;
    for (unsigned kinds = 0; kinds < 1U << 2 * changes && !is_violated; kinds++) {
        far = kinds >> changes;
        synchronised = kinds;
        if (!is_new())
            continue;
        try_all_interleavings();
        total += count;
    }
    printf("%u changes, %u threads, %u veneers, %s: %zu states%s\n", changes, actors, veneers,
           has_buffers ? "TSO" : "SC", total, is_violated ? ", violated" : "");
    return is_violated;
}

int main(void)
{
    static const enum step right[] = {LOOK, CHECK, TAKE, SLOT, STORE, RELEASE, BARRIER, RETURN};
    static const enum step wrong[][STEPS] = {
        /* the slot is written after the word */
        {LOOK, CHECK, TAKE, STORE, SLOT, RELEASE, BARRIER, RETURN},
        /* a veneer may be taken that the word branches to */
        {LOOK, NOTHING, TAKE, SLOT, STORE, RELEASE, BARRIER, RETURN},
        {CHECK, LOOK, TAKE, SLOT, STORE, RELEASE, BARRIER, RETURN},
        /* a veneer is released before the word branches to it */
        {LOOK, CHECK, TAKE, SLOT, RELEASE, STORE, BARRIER, RETURN},
        /* there is no barrier, which matters with store buffers only */
        {LOOK, CHECK, TAKE, SLOT, STORE, RELEASE, NOTHING, RETURN},
    };
    enum { WRONG = sizeof wrong / sizeof *wrong };
    bool is_right = true;
    for (unsigned buffers = 0; buffers < 2; buffers++) {
        is_right &= !finds_violation(right, 3, 4, 3, buffers);
        is_right &= !finds_violation(right, 2, 3, 3, buffers);
        is_right &= finds_violation(right, 2, 2, 3, buffers); /* too few veneers */
        for (int i = 0; i < WRONG; i++)
            is_right &= finds_violation(wrong[i], 2, 3, 3, buffers) == (i < WRONG - 1 || buffers);
    }
    return is_right ? 0 : 1;
}
