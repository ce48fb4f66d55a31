/*
 * Tests that execute the code of inline caches on the host. Random caches run with random registers
 * and objects, and the result is compared with a model in C. Everything that a case does not define
 * must be unchanged.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arch/arch.h"
#include "code_support.h"
#include "tests/context_support.h"
#include "tests/machine.h"
#include "tests/registers.h"

#include <cairn/cairn.h>
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 4000, ROUNDS_EMULATED = 300, SKIPPED = 77 };

/* More registers than any architecture has. */
static const uint16_t numbers = 130;

/* ---- The machines ---- */

enum { GIVEN_UP_MAX = 3 };

struct machine {
    enum cairn_architecture architecture;
    /* The first and the last register that operands and results may use. */
    uint16_t general[2];
    uint16_t vectors[2];
    /* The same, for vector levels of at least `more_level`. */
    uint16_t more_vectors[2];
    uint32_t more_level;
    /* Registers in these ranges that are not operands: those that the code may change, and the
     * stack pointer. */
    uint16_t given_up[GIVEN_UP_MAX];
    size_t given_up_count;
    /* Flags that the code may change if the cache does not preserve them. */
    uint64_t changed_flags;
    /* Offset of the scalar in a vector register of 16 bytes. */
    size_t scalar_offset;
};

/* Offset of the first doubleword of a PPC64 vector register. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { FIRST_DOUBLEWORD = 8 };
#else
enum { FIRST_DOUBLEWORD = 0 };
#endif
#define PPC64                                                                                      \
    .general = {0, 31}, .vectors = {32, 63}, .more_vectors = {77, 108}, .more_level = 3,           \
    .given_up = {11, 12, 66}, .given_up_count = 3, .scalar_offset = FIRST_DOUBLEWORD

static const struct machine machines[] = {
    {
        .architecture = CAIRN_ARCHITECTURE_X86_64,
        .general = {0, 15},
        .vectors = {17, 32},
        .more_vectors = {67, 82},
        .more_level = 3,
        .given_up = {11},
        .given_up_count = 1,
        .changed_flags = 0x8D5, /* CF, PF, AF, ZF, SF, OF */
    },
    {
        .architecture = CAIRN_ARCHITECTURE_AARCH64,
        .general = {0, 29},
        .vectors = {64, 95},
        .given_up = {16, 17},
        .given_up_count = 2,
    },
    {.architecture = CAIRN_ARCHITECTURE_PPC64_ELFV2, PPC64},
    {.architecture = CAIRN_ARCHITECTURE_PPC64_ELFV1, PPC64},
};

static const struct machine *machine;
static const struct cairn_arch *arch;
static const struct arch_cache_encoder *encoder;

static bool find_machine(void)
{
    arch = arch_host();
    encoder = arch_host_cache_encoder();
    if (arch == NULL)
        return false;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].architecture == arch->architecture)
            machine = &machines[i];
    return machine != NULL;
}

static bool is_given_up(uint16_t dwarf)
{
    for (size_t i = 0; i < machine->given_up_count; i++)
        if (machine->given_up[i] == dwarf)
            return true;
    return registers_is_given_up(dwarf);
}

/* ---- Randomness ---- */

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return (uint64_t)support_random(&random_state) << 32 | support_random(&random_state);
}

static size_t random_below(size_t limit) { return support_random(&random_state) % limit; }
static bool random_one_in(size_t count) { return random_below(count) == 0; }

static void fill_random(void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t value = random_u64();
        memcpy((uint8_t *)bytes + i, &value, sizeof value);
    }
}

/* Returns numbers of random length, so that all forms of immediates occur. */
static uint64_t random_number(void)
{
    uint64_t number = random_u64() >> random_below(64);
    return random_one_in(3) ? ~number : number;
}

static uint8_t random_width(void) { return (uint8_t)(1U << random_below(4)); }

/* Width of a floating-point number. */
static uint8_t random_float_width(void) { return random_below(2) == 0 ? 4 : 8; }

static uint16_t random_in(const uint16_t range[2])
{
    return (uint16_t)(range[0] + random_below(range[1] - range[0] + 1U));
}

static uint16_t random_general(void)
{
    uint16_t dwarf;
    do
        dwarf = random_in(machine->general);
    while (is_given_up(dwarf) || registers_is_fixed(dwarf));
    return dwarf;
}

static uint16_t random_vector(uint32_t level)
{
    bool has_more = machine->more_level != 0 && level >= machine->more_level;
    return random_in(has_more && random_one_in(2) ? machine->more_vectors : machine->vectors);
}

/* ---- Memory ---- */

/* Receivers, and the objects that their pointers point to. Displacements of all sizes occur:
 * pointers are to the middle of an object minus an origin, and the offset contains the origin. */
enum {
    RECEIVERS = 2,
    THING_BYTES = 512,
    MIDDLE = 256,
    LAST_WORD = THING_BYTES - 8,
    POINTERS = 8,
    POINTERS_AT = 192,
    /* One length for each case, all of them at most LENGTH_MAX. */
    LENGTHS_AT = POINTERS_AT + 8 * POINTERS,
    LENGTH_MAX = 24,
    LAST_ELEMENTS = THING_BYTES - 8 * LENGTH_MAX,
    CARDS = 64
};

struct world {
    uint8_t things[2 * RECEIVERS][THING_BYTES]; /* the receivers come first */
    uint64_t counters[ARCH_CACHE_CASES_MAX];
    uint8_t cards[CARDS];
};

static struct world world;
static uint16_t receiver_registers[RECEIVERS];
static int32_t receiver_origins[RECEIVERS];
static int32_t pointer_origins[RECEIVERS][POINTERS];
static uint16_t index_register;

static int32_t random_origin(void)
{
    static const int32_t origins[] = {
        0, 0, 0, MIDDLE, -MIDDLE, INT32_MAX - MIDDLE, INT32_MIN + MIDDLE};
    size_t count = sizeof origins / sizeof *origins;
    size_t choice = random_below(count + 1);
    if (choice < count)
        return origins[choice];
    return (int32_t)((int64_t)(random_u64() % (UINT32_MAX - THING_BYTES)) + INT32_MIN + MIDDLE);
}

static uint64_t middle_of(size_t thing, int32_t origin)
{
    return (uintptr_t)world.things[thing] + MIDDLE - (uint64_t)(int64_t)origin;
}

static int32_t offset_of(int32_t origin, size_t at) { return origin + ((int32_t)at - MIDDLE); }

static void make_world(void)
{
    fill_random(&world, sizeof world);
    for (size_t i = 0; i < RECEIVERS; i++) {
        receiver_origins[i] = random_origin();
        for (size_t j = 0; j < POINTERS; j++) {
            pointer_origins[i][j] = random_origin();
            uint64_t pointer = middle_of(RECEIVERS + i, pointer_origins[i][j]);
            memcpy(world.things[i] + POINTERS_AT + 8 * j, &pointer, sizeof pointer);
        }
        do
            receiver_registers[i] = random_general();
        while (i > 0 && receiver_registers[i] == receiver_registers[0]);
    }
    do
        index_register = random_general();
    while (index_register == receiver_registers[0] || index_register == receiver_registers[1]);
}

static uint64_t load(const uint8_t *from, uint8_t width)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (width) {
    case 1:
        memcpy(&one, from, sizeof one);
        return one;
    case 2:
        memcpy(&two, from, sizeof two);
        return two;
    case 4:
        memcpy(&four, from, sizeof four);
        return four;
    default:
        memcpy(&eight, from, sizeof eight);
        return eight;
    }
}

static void store(uint8_t *to, uint64_t value, uint8_t width)
{
    const uint8_t one = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    switch (width) {
    case 1:
        memcpy(to, &one, sizeof one);
        break;
    case 2:
        memcpy(to, &two, sizeof two);
        break;
    case 4:
        memcpy(to, &four, sizeof four);
        break;
    default:
        memcpy(to, &value, sizeof value);
    }
}

static uint64_t all_bits(uint8_t width) { return UINT64_MAX >> (64 - 8 * width); }

static uint64_t sign_extended(uint64_t value, uint8_t width)
{
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    return (value ^ sign) - sign;
}

/* ---- Code ---- */

/* A page of code and a page of data. */
static struct {
    uint8_t *code;
    uint8_t *data;
    size_t page;
} pages;

/* Offsets in the code page. */
enum { SITE_AT = ARCH_CACHE_BYTES_MAX, STUBS_AT = SITE_AT + 192, STUBS = 3, CODE_BYTES = 1 << 14 };

/* The contents of the data page. */
struct data {
    struct arch_exit miss;
    struct arch_exit stubs[STUBS];
    uint64_t descriptors[STUBS][3];
};

static struct data *data(void) { return (struct data *)(void *)pages.data; }

static void set_up(void)
{
    random_state = support_seed();
    pages.page = (size_t)sysconf(_SC_PAGESIZE);
    if (pages.page < CODE_BYTES)
        pages.page = CODE_BYTES;
    pages.code =
        mmap(NULL, 2 * pages.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages.code, MAP_FAILED);
    pages.data = pages.code + pages.page;
    ck_assert_uint_le(STUBS_AT + STUBS * ARCH_EXIT_CODE_BYTES_MAX, pages.page);
}

static void tear_down(void) { munmap(pages.code, 2 * pages.page); }

/* ---- A trial ---- */

/* The exit through which the code left: the number of the stub that a case or a miss branches to,
 * or one of these. */
enum way { WAY_HIT = -2, WAY_MISS = -1 };

static struct {
    struct arch_cache cache;
    struct arch_cache_case cases[ARCH_CACHE_CASES_MAX];
    uint32_t level;
    struct registers before;
    struct registers after;
    struct registers seen; /* the registers that an exit's handler saw */
    int way;
    uint64_t pc;
    uint64_t sp;

    int expected_way;
    struct registers expected;
    struct world expected_world;
    uint16_t result; /* no_register: there is no result */
    size_t result_bytes;
} trial;
static const uint16_t no_register = UINT16_MAX;

static void record_exit(struct cairn_context *context, int way)
{
    trial.way = way;
    trial.pc = read_register(context, CAIRN_REGISTER_PC);
    trial.sp = read_register(context, CAIRN_REGISTER_SP);
    trial.seen.flags = read_register(context, CAIRN_REGISTER_FLAGS);
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++) {
        size_t offset;
        size_t bytes;
        if (!is_given_up(dwarf) && registers_place(dwarf, trial.level, &offset, &bytes) &&
            cairn_context_read(context, dwarf, (uint8_t *)&trial.seen + offset, bytes, NULL) !=
                CAIRN_OK)
            trial.way = WAY_HIT; /* so that it differs from the expected one */
    }
}

/* Returns the link register of an architecture that has one. */
static uint16_t link_register(void) { return arch->unwind_slots[ARCH_UNWIND_RETURN_ADDRESS].dwarf; }

/* A site that jumps to its cache keeps all of its registers. But a miss writes its return address
 * to the link register, so this restores the site's return address. */
static void missed(struct cairn_context *context, void *user)
{
    (void)user;
    record_exit(context, WAY_MISS);
    uint64_t returned = registers_code_address(registers_returned);
    if (arch->has_link_register &&
        cairn_context_write(context, link_register(), &returned, sizeof returned, NULL) != CAIRN_OK)
        trial.way = WAY_HIT;
}

static void reached_stub(struct cairn_context *context, void *user)
{
    record_exit(context, (int)((struct arch_exit *)user - data()->stubs));
}

static uint64_t stub_function(size_t stub)
{
    return arch->has_descriptors
               ? (uintptr_t)data()->descriptors[stub]
               : (uintptr_t)pages.code + STUBS_AT + stub * ARCH_EXIT_CODE_BYTES_MAX;
}

static void init_exit(struct arch_exit *exit, arch_exit_handler *handler, void *user)
{
    static _Atomic uint32_t level;
    level = trial.level;
    ck_assert_int_eq(arch_exit_init(exit, handler, user, &level, NULL), CAIRN_OK);
}

static void write_stub(size_t stub)
{
    size_t at = STUBS_AT + stub * ARCH_EXIT_CODE_BYTES_MAX;
    struct arch_exit *exit = &data()->stubs[stub];
    uint64_t address = (uintptr_t)pages.code + at;
    init_exit(exit, reached_stub, exit);
    data()->descriptors[stub][0] = address;
    data()->descriptors[stub][1] = random_u64();
    ck_assert(arch->encode_exit(arch, address, (uintptr_t)exit, pages.code + at));
}

static void write_site(void)
{
    uint8_t *site = pages.code + SITE_AT;
    size_t length = arch->instruction_bytes;
    uint64_t bits;
    ck_assert(arch->encode_branch(arch, CAIRN_SITE_JUMP, (uintptr_t)site, (uintptr_t)pages.code,
                                  length, &bits));
    for (size_t i = 0; i < length; i++) {
        size_t place = arch->byte_order == CAIRN_BIG_ENDIAN ? length - 1 - i : i;
        site[place] = (uint8_t)(bits >> 8 * i);
    }
    trial.cache.return_address = (uintptr_t)site + length;
    trial.cache.site_end = trial.cache.return_address;
    machine_return(site + length);
}

static void begin_code(void)
{
    ck_assert_int_eq(mprotect(pages.code, pages.page, PROT_READ | PROT_WRITE), 0);
    memset(pages.code, 0, pages.page);
    init_exit(&data()->miss, missed, NULL);
    trial.cache.exit_data = (uintptr_t)&data()->miss;
    for (size_t stub = 0; stub < STUBS; stub++)
        write_stub(stub);
}

static void end_code(void)
{
    arch_host_code_written(pages.code, pages.code, pages.page);
    ck_assert_int_eq(mprotect(pages.code, pages.page, PROT_READ | PROT_EXEC), 0);
}

/* Writes the first case, or the first two, into `bytes` bytes of the site, and the other cases as
 * the cache's code. The branch for misses is set later, as when another case is added. Returns
 * false if the first case does not fit or is only for the cache's code. */
static bool write_inline_code(size_t bytes)
{
    uint8_t *site = pages.code + SITE_AT;
    struct arch_cache_size size;
    struct arch_cache_inline inlined = {.address = (uintptr_t)site, .miss = (uintptr_t)site};
    begin_code();
    trial.cache.site_end = (uintptr_t)site + bytes;
    trial.cache.return_address = trial.cache.site_end;
    machine_return(site + bytes);
    inlined.has_second = trial.cache.count > 1 && random_one_in(2) &&
                         arch->architecture == CAIRN_ARCHITECTURE_X86_64;
    if (!encoder->encode_inline(arch, &trial.cache, &inlined, site))
        return false;
    struct arch_cache others = trial.cache;
    others.cases += 1 + inlined.has_second;
    others.count -= 1 + inlined.has_second;
    ck_assert_uint_le(inlined.code_bytes, bytes);
    ck_assert_uint_eq(inlined.miss_offset / arch->word_bytes,
                      (inlined.miss_offset + arch->miss_bytes - 1) / arch->word_bytes);
    ck_assert_uint_le((inlined.miss_offset / arch->word_bytes + 1) * arch->word_bytes, bytes);
    ck_assert(encoder->encode_miss(arch, inlined.address + inlined.miss_offset,
                                   (uintptr_t)pages.code, site + inlined.miss_offset));
    ck_assert(encoder->encode_cache(arch, &others, (uintptr_t)pages.code, pages.code, &size));
    end_code();
    return true;
}

static void write_code(void)
{
    struct arch_cache_size size;
    begin_code();
    write_site();
    ck_assert(encoder->encode_cache(arch, &trial.cache, (uintptr_t)pages.code, pages.code, &size));
    ck_assert_uint_le(size.bytes, ARCH_CACHE_BYTES_MAX);
    end_code();
}

/* ---- Registers ---- */

/* Returns the bytes of a value of 8 bytes in a register. */
static uint8_t *bytes_of(struct registers *registers, uint16_t dwarf)
{
    size_t offset;
    size_t bytes;
    ck_assert(registers_place(dwarf, trial.level, &offset, &bytes));
    return (uint8_t *)registers + offset + (bytes == 16 ? machine->scalar_offset : 0);
}

static bool is_vector(uint16_t dwarf) { return dwarf > machine->general[1]; }

static uint64_t get_register(uint16_t dwarf) { return load(bytes_of(&trial.before, dwarf), 8); }

static void set_register(struct registers *registers, uint16_t dwarf, uint64_t value)
{
    store(bytes_of(registers, dwarf), value, 8);
}

/* Returns the contents of a register with a float of 4 bytes, if registers hold floats as
 * doubles. */
static uint64_t widened(uint32_t bits)
{
    enum { EXPONENT = 0xFF, FRACTION_BITS = 23, MORE_FRACTION_BITS = 29 };
    const uint64_t infinity = UINT64_C(0x7FF0000000000000);
    uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint64_t fraction = bits & ((UINT32_C(1) << FRACTION_BITS) - 1);
    float narrow;
    double wide;
    uint64_t wide_bits;
    if ((bits >> FRACTION_BITS & EXPONENT) == EXPONENT)
        return sign | infinity | fraction << MORE_FRACTION_BITS;
    memcpy(&narrow, &bits, sizeof narrow);
    wide = (double)narrow;
    memcpy(&wide_bits, &wide, sizeof wide_bits);
    return wide_bits;
}

/* The inverse of `widened`. The value must not be a NaN. */
static uint32_t narrowed(uint64_t bits)
{
    float narrow;
    double wide;
    uint32_t narrow_bits;
    memcpy(&wide, &bits, sizeof wide);
    narrow = (float)wide;
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    return narrow_bits;
}

static bool is_widened(uint16_t dwarf, uint8_t width)
{
    return arch->arguments.widens_floats && is_vector(dwarf) && width == 4;
}

/* Makes stored registers hold floats. If a register holds a double that is not representable as a
 * float, only the upper bits of what a 4-byte store writes are defined. */
static void make_stored_floats(void)
{
    for (size_t i = 0; i < trial.cache.count; i++) {
        const struct arch_cache_case *of = &trial.cases[i];
        uint32_t bits = (uint32_t)random_u64() & ~(UINT32_C(1) << 23);
        if (of->action == ARCH_CACHE_STORE && is_widened(of->value, of->field.width))
            set_register(&trial.before, of->value, widened(bits));
    }
}

static void make_registers(void)
{
    struct registers unused;
    fill_random(&trial.before, sizeof trial.before);
    registers_make_possible(&trial.before);
    unused = trial.before;
    registers_make_pair(&trial.before, &unused);
    for (size_t i = 0; i < RECEIVERS; i++)
        set_register(&trial.before, receiver_registers[i], middle_of(i, receiver_origins[i]));
    uint64_t index = random_one_in(6) ? random_number() : random_below(LENGTH_MAX + 2);
    if (random_one_in(2)) /* as in a register of which only the low half is the index */
        index = (uint32_t)index | random_u64() << 32;
    set_register(&trial.before, index_register, index);
    make_stored_floats();
}

/* ---- The model ---- */

static size_t receiver_of(const struct arch_cache_case *of)
{
    return of->receiver == receiver_registers[0] ? 0 : 1;
}

static uint8_t *place_of(const struct arch_cache_case *of, int32_t offset)
{
    size_t receiver = receiver_of(of);
    int32_t at = offset - receiver_origins[receiver] + MIDDLE;
    return world.things[receiver] + at;
}

static uint64_t index_of(const struct arch_cache_case *of)
{
    uint64_t index = get_register(of->elements.index);
    return of->elements.is_narrow ? (uint32_t)index : index;
}

static bool hits(const struct arch_cache_case *of)
{
    const struct arch_cache_second *second = &of->second;
    const struct arch_cache_elements *elements = &of->elements;
    const uint8_t *word = (const uint8_t *)(uintptr_t)second->word;
    if ((load(place_of(of, of->key_offset), of->key_width) & of->mask) != of->key)
        return false;
    if (second->width != 0 && (load(word, second->width) & second->mask) != second->key)
        return false;
    return elements->length_width == 0 ||
           index_of(of) < load(place_of(of, elements->length_offset), elements->length_width);
}

/* Returns a place in the expected memory. */
static uint8_t *expected_place(uint64_t address)
{
    return (uint8_t *)&trial.expected_world + (address - (uintptr_t)&world);
}

static uint8_t *field_of(const struct arch_cache_case *of)
{
    const struct arch_cache_field *field = &of->field;
    uint64_t base = of->holder != 0 ? of->holder : get_register(of->receiver);
    if (field->is_out_of_line)
        base = load((uint8_t *)(uintptr_t)(base + (uint64_t)(int64_t)field->pointer_offset), 8);
    base += (uint64_t)(int64_t)field->offset;
    if (of->elements.length_width != 0)
        base += index_of(of) * field->width;
    return expected_place(base);
}

static void expect_result(const struct arch_cache_case *of, uint64_t value, uint8_t width)
{
    if (is_widened(of->value, width)) {
        value = widened((uint32_t)value);
        width = sizeof value;
    }
    uint8_t *result = bytes_of(&trial.expected, of->value);
    trial.result = of->value;
    trial.result_bytes = is_vector(of->value) ? width : 8;
    store(result, value, (uint8_t)trial.result_bytes);
}

static void expect_load(const struct arch_cache_case *of)
{
    uint64_t value = load(field_of(of), of->field.width);
    if (of->field.is_signed)
        value = sign_extended(value, of->field.width);
    expect_result(of, value, of->field.width);
}

static void expect_store(const struct arch_cache_case *of)
{
    uint64_t value = get_register(of->value);
    if (is_widened(of->value, of->field.width))
        value = narrowed(value);
    store(field_of(of), value, of->field.width);
    const struct arch_cache_epilogue *epilogue = &of->epilogue;
    if (epilogue->key_width != 0)
        store(expected_place((uintptr_t)place_of(of, of->key_offset)), epilogue->key,
              epilogue->key_width);
    if (epilogue->marks_card)
        *expected_place(epilogue->cards + (get_register(of->receiver) >> epilogue->card_shift)) =
            epilogue->card;
}

static void expect_hit(const struct arch_cache_case *of)
{
    trial.expected_way = WAY_HIT;
    if (of->counter != 0)
        trial.expected_world.counters[(of->counter - (uintptr_t)world.counters) / 8]++;
    switch (of->action) {
    case ARCH_CACHE_LOAD:
        expect_load(of);
        break;
    case ARCH_CACHE_STORE:
        expect_store(of);
        break;
    case ARCH_CACHE_CONSTANT:
        expect_result(of, of->constant, of->constant_width);
        break;
    case ARCH_CACHE_JUMP:
        trial.expected_way = of->target == stub_function(0) ? 0 : 1;
        break;
    case ARCH_CACHE_EXIT:
        trial.expected_way = WAY_MISS;
        break;
    }
}

/* A function that is entered through a descriptor has the TOC pointer of the descriptor. */
static void expect_function(void)
{
    if (trial.expected_way >= 0 && arch->has_descriptors)
        trial.expected.general[arch->toc_register] = data()->descriptors[trial.expected_way][1];
}

/* ---- The table ---- */

static uint64_t table_words[1 << ARCH_CACHE_TABLE_BITS_MAX];

static uint64_t table_key(void)
{
    const struct arch_cache_case *access = &trial.cache.table.access;
    return load(place_of(access, access->key_offset), access->key_width);
}

static uint64_t *table_word(void)
{
    const struct arch_cache_table *table = &trial.cache.table;
    return &table_words[arch_cache_table_slot(table_key(), table->multiplier, table->bits)];
}

static bool is_in_table(void)
{
    unsigned bit = arch_cache_table_offset_bit(trial.cache.table.access.key_width);
    return (*table_word() & ((UINT64_C(1) << bit) - 1)) == table_key();
}

static bool expect_table(void)
{
    struct arch_cache_case access = trial.cache.table.access;
    if (trial.cache.table.address == 0 || !is_in_table())
        return false;
    access.field.offset = (int32_t)(*table_word() >> arch_cache_table_offset_bit(access.key_width));
    expect_hit(&access);
    return true;
}

/* With keys of 8 bytes, x86-64 pushes words. */
static bool may_push(void)
{
    return trial.cache.table.address != 0 && trial.cache.table.access.key_width == 8;
}

static void expect(void)
{
    trial.result = no_register;
    trial.expected = trial.before;
    trial.expected_world = world;
    for (size_t i = 0; i < trial.cache.count; i++)
        if (hits(&trial.cases[i])) {
            expect_hit(&trial.cases[i]);
            expect_function();
            return;
        }
    if (expect_table())
        return;
    trial.expected_way = trial.cache.miss_target == 0 ? WAY_MISS : STUBS - 1;
    expect_function();
}

/* ---- Comparing ---- */

/* Does not use ck_assert for each register, because each one writes to a pipe. */
static void compare_register(const struct registers *got, uint16_t dwarf, const char *when)
{
    size_t offset;
    size_t bytes;
    if (!registers_place(dwarf, trial.level, &offset, &bytes) || registers_is_fixed(dwarf) ||
        is_given_up(dwarf) || offset == offsetof(struct registers, flags))
        return;
    if (dwarf == trial.result) {
        offset += bytes == 16 ? machine->scalar_offset : 0;
        bytes = trial.result_bytes;
    }
    if (memcmp((const uint8_t *)got + offset, (const uint8_t *)&trial.expected + offset, bytes) !=
        0)
        ck_abort_msg("%s register %u (%s) has another value", when, dwarf,
                     cairn_register_name(arch->architecture, dwarf));
}

static void compare_registers(const struct registers *got, const char *when)
{
    uint64_t flags = registers_flags_mask() & ~machine->changed_flags;
    for (uint16_t dwarf = 0; dwarf < numbers; dwarf++)
        compare_register(got, dwarf, when);
    ck_assert_msg(((got->flags ^ trial.expected.flags) & flags) == 0,
                  "%s flags are %" PRIx64 ", not %" PRIx64, when, got->flags, trial.expected.flags);
}

/* Compares with the registers that a call of the exit by the site would have. */
static void compare_exit(void)
{
    struct registers expected = trial.expected;
    if (arch->has_link_register && !trial.cache.is_called)
        set_register(&trial.expected, link_register(), trial.cache.return_address);
    compare_registers(&trial.seen, "at the exit");
    trial.expected = expected;
    if (trial.cache.is_called) {
        ck_assert_uint_eq(trial.pc, registers_code_address(registers_returned));
        ck_assert_uint_eq(trial.sp, registers_sp);
    } else {
        ck_assert_uint_eq(trial.pc, trial.cache.return_address);
        ck_assert_uint_eq(trial.sp, registers_sp - registers_call_bytes());
    }
}

static void run(void)
{
    expect();
    trial.way = WAY_HIT;
    registers_run(&trial.before, &trial.after, pages.code + (trial.cache.is_called ? 0 : SITE_AT),
                  trial.level);
    ck_assert_msg(trial.way == trial.expected_way, "the exit is %d, not %d", trial.way,
                  trial.expected_way);
    if (trial.way != WAY_HIT)
        compare_exit();
    else if (registers_has_red_zone() && !may_push())
        ck_assert_mem_eq(trial.after.below, trial.before.below, sizeof trial.after.below);
    compare_registers(&trial.after, "afterwards");
    ck_assert_uint_eq(trial.after.general[registers_stack_pointer()], registers_sp);
    ck_assert_mem_eq(&world, &trial.expected_world, sizeof world);
}

/* ---- Random caches ---- */

static uint64_t random_mask(uint8_t width)
{
    static const uint64_t masks[] = {0xF0, 0xFFFF00, 0xFFFFFFFF, ~UINT64_C(7),
                                     UINT64_C(0x0000FFFFFFFFFFF8)};
    size_t count = sizeof masks / sizeof *masks;
    size_t choice = random_below(3 * count);
    if (choice < count)
        return masks[choice] & all_bits(width);
    if (choice == count)
        return UINT64_C(1) << random_below(8U * width);
    if (choice < 2 * count)
        return random_number() & all_bits(width);
    return all_bits(width);
}

/* Guards a word that is in memory already. One in three cases hits. */
static void make_guard(struct arch_cache_case *of)
{
    size_t receiver = random_below(RECEIVERS);
    of->receiver = receiver_registers[receiver];
    of->key_width = random_width();
    of->key_offset = offset_of(receiver_origins[receiver], random_below(POINTERS_AT - 7));
    of->mask = random_mask(of->key_width);
    uint8_t *word = place_of(of, of->key_offset);
    if (random_one_in(4))
        store(word, random_number(), of->key_width);
    of->key = (random_one_in(3) ? load(word, of->key_width) : random_number()) & of->mask;
}

static void make_field(struct arch_cache_case *of)
{
    struct arch_cache_field *field = &of->field;
    size_t receiver = receiver_of(of);
    size_t pointer = random_below(POINTERS);
    field->is_out_of_line = random_one_in(3);
    field->pointer_offset = offset_of(receiver_origins[receiver], POINTERS_AT + 8 * pointer);
    field->offset = offset_of(field->is_out_of_line ? pointer_origins[receiver][pointer]
                                                    : receiver_origins[receiver],
                              random_below(LAST_WORD + 1));
    field->width = is_vector(of->value) ? random_float_width() : random_width();
    field->is_signed = !is_vector(of->value) && random_one_in(2);
}

/* The second guard compares a word of any object. Two in three hold. */
static void make_second(struct arch_cache_case *of)
{
    struct arch_cache_second *second = &of->second;
    const uint8_t *word = world.things[random_below(2 * RECEIVERS)] + random_below(POINTERS_AT - 7);
    second->width = random_width();
    second->word = (uintptr_t)word;
    second->mask = random_mask(second->width);
    second->key = (random_one_in(3) ? random_number() : load(word, second->width)) & second->mask;
}

/* Makes the field that of an object at a constant address. */
static void make_holder(struct arch_cache_case *of)
{
    struct arch_cache_field *field = &of->field;
    size_t holder = random_below(RECEIVERS);
    size_t pointer = random_below(POINTERS);
    int32_t origin = random_origin();
    of->holder = middle_of(holder, origin);
    field->pointer_offset = offset_of(origin, POINTERS_AT + 8 * pointer);
    field->offset = offset_of(field->is_out_of_line ? pointer_origins[holder][pointer] : origin,
                              random_below(LAST_WORD + 1));
}

static void make_elements(struct arch_cache_case *of, size_t index)
{
    struct arch_cache_elements *elements = &of->elements;
    int32_t origin = receiver_origins[receiver_of(of)];
    size_t pointer = random_below(POINTERS);
    elements->index = index_register;
    elements->is_narrow = random_one_in(2);
    elements->length_width = random_width();
    elements->length_offset = offset_of(origin, LENGTHS_AT + 8 * index);
    store(place_of(of, elements->length_offset), random_below(LENGTH_MAX + 1),
          elements->length_width);
    of->field.pointer_offset = offset_of(origin, POINTERS_AT + 8 * pointer);
    if (of->field.is_out_of_line)
        origin = pointer_origins[receiver_of(of)][pointer];
    of->field.offset = offset_of(origin, random_below(LAST_ELEMENTS + 1));
}

static void make_epilogue(struct arch_cache_case *of)
{
    enum { SHIFT_MIN = 5, SHIFTS = 8 };
    struct arch_cache_epilogue *epilogue = &of->epilogue;
    size_t receiver = receiver_of(of);
    if (random_one_in(2) && of->mask == all_bits(of->key_width))
        epilogue->key_width = of->key_width;
    epilogue->key = random_number() & all_bits(of->key_width);
    epilogue->marks_card = random_one_in(2);
    epilogue->card_shift = (uint8_t)(SHIFT_MIN + random_below(SHIFTS));
    epilogue->card = random_one_in(2) ? 0 : (uint8_t)random_u64();
    epilogue->cards = (uintptr_t)&world.cards[random_below(CARDS)] -
                      (middle_of(receiver, receiver_origins[receiver]) >> epilogue->card_shift);
}

/* Adds further conditions and actions to one case in three. */
static void extend_case(struct arch_cache_case *of, size_t index)
{
    if (!random_one_in(3))
        return;
    if (random_one_in(2))
        make_second(of);
    if (of->action == ARCH_CACHE_LOAD && random_one_in(2))
        make_holder(of);
    else if (of->action <= ARCH_CACHE_STORE && random_one_in(2))
        make_elements(of, index);
    if (of->action == ARCH_CACHE_STORE)
        make_epilogue(of);
}

static void make_action(struct arch_cache_case *of)
{
    of->value = random_one_in(3) ? random_vector(trial.level) : random_general();
    of->action = (enum arch_cache_action)random_below(trial.cache.is_called ? ARCH_CACHE_JUMP + 1
                                                                            : ARCH_CACHE_JUMP);
    make_field(of);
    of->field.is_signed = of->field.is_signed && of->action == ARCH_CACHE_LOAD;
    of->constant_width = is_vector(of->value) ? of->field.width : 8;
    of->constant = random_number() & all_bits(of->constant_width);
    of->target = of->action == ARCH_CACHE_EXIT ? (uintptr_t)&data()->miss
                                               : stub_function(random_below(STUBS - 1));
}

static void make_case(size_t index)
{
    struct arch_cache_case *of = &trial.cases[index];
    make_guard(of);
    make_action(of);
    extend_case(of, index);
    of->counter = random_one_in(3) ? (uintptr_t)&world.counters[index] : 0;
}

/* Adds a table to one cache in two. Its words are random, except for that of the key, in most
 * cases. A store of 4 bytes from a vector register would need a register that holds a float. */
static void make_table(void)
{
    struct arch_cache_table *table = &trial.cache.table;
    struct arch_cache_case *access = &table->access;
    if (random_one_in(2))
        return;
    make_guard(access);
    make_action(access);
    access->key_width = random_one_in(2) ? 4 : 8;
    access->mask = all_bits(access->key_width);
    access->action = random_one_in(2) ? ARCH_CACHE_LOAD : ARCH_CACHE_STORE;
    access->field.is_out_of_line = false;
    access->field.is_signed = access->field.is_signed && access->action == ARCH_CACHE_LOAD;
    if (is_vector(access->value) && access->action == ARCH_CACHE_STORE)
        access->field.width = 8;
    if (access->key_width == 8 && !random_one_in(4))
        store(place_of(access, access->key_offset), random_u64() >> 16, 8);
    table->address = (uintptr_t)table_words;
    table->bits = 6 + (unsigned)random_below(ARCH_CACHE_TABLE_BITS_MAX - 5);
    table->multiplier = ((uint32_t)random_u64() & INT32_MAX) | 1;
    fill_random(table_words, sizeof table_words);
    if (is_in_table())
        *table_word() ^= 1;
    int64_t offset = offset_of(receiver_origins[receiver_of(access)], random_below(LAST_WORD + 1));
    bool fits =
        offset >= 0 && (access->key_width == 4 || (offset <= UINT16_MAX && table_key() >> 48 == 0));
    if (fits && !random_one_in(4))
        *table_word() =
            (uint64_t)offset << arch_cache_table_offset_bit(access->key_width) | table_key();
}

static void begin_cache(size_t count)
{
    memset(&trial, 0, sizeof trial);
    trial.level = 1 + (uint32_t)random_below(arch_host_vector_level());
    trial.cache.cases = trial.cases;
    trial.cache.count = count;
    trial.cache.is_called = random_one_in(2);
    if (trial.cache.is_called && random_one_in(3))
        trial.cache.miss_target = stub_function(STUBS - 1);
    make_world();
}

static int rounds(void) { return support_is_emulated() ? ROUNDS_EMULATED : ROUNDS; }

START_TEST(random_caches_have_the_results_of_the_model)
{
    for (int round = 0; round < rounds(); round++) {
        begin_cache(random_below(random_one_in(8) ? ARCH_CACHE_CASES_MAX + 1 : 5));
        for (size_t i = 0; i < trial.cache.count; i++)
            make_case(i);
        make_table();
        make_registers();
        write_code();
        run();
    }
}
END_TEST

START_TEST(random_first_cases_in_the_bytes_of_the_site_have_the_results_of_the_model)
{
    int run_count = 0;
    for (int round = 0; round < 2 * rounds(); round++) {
        begin_cache(1 + random_below(random_one_in(8) ? ARCH_CACHE_CASES_MAX : 3));
        trial.cache.is_called = false;
        trial.cache.miss_target = 0;
        for (size_t i = 0; i < trial.cache.count; i++)
            make_case(i);
        make_registers();
        if (!write_inline_code((4 + random_below(29)) * sizeof(uint32_t)))
            continue;
        run();
        run_count++;
    }
    ck_assert_int_gt(run_count, rounds() / 4);
}
END_TEST

/* ---- Cases that differ only in key and offset ---- */

static void make_alike(void)
{
    struct arch_cache_case *first = &trial.cases[0];
    make_guard(first);
    first->key_width = random_one_in(2) ? 4 : 8;
    first->mask = all_bits(first->key_width);
    first->value = random_one_in(8) ? random_vector(trial.level) : random_general();
    first->action = ARCH_CACHE_LOAD;
    make_field(first);
    bool is_short = random_one_in(2);
    for (size_t i = 0; i < trial.cache.count; i++) {
        struct arch_cache_case *of = &trial.cases[i];
        *of = *first;
        of->key = is_short ? sign_extended(random_number() & UINT32_MAX, 4)
                           : random_number() << (random_one_in(4) ? 32 : 0) | random_below(4);
        of->key &= of->mask;
        if (random_one_in(8))
            of->key = first->key;
    }
}

/* Moves the fields to random places in the object that has the first case's field. */
static void move_fields(void)
{
    const struct arch_cache_case *first = &trial.cases[0];
    size_t receiver = receiver_of(first);
    int32_t pointer_at = first->field.pointer_offset - receiver_origins[receiver] + MIDDLE;
    int32_t origin = first->field.is_out_of_line
                         ? pointer_origins[receiver][(pointer_at - POINTERS_AT) / 8]
                         : receiver_origins[receiver];
    for (size_t i = 0; i < trial.cache.count; i++)
        trial.cases[i].field.offset = offset_of(origin, random_below(LAST_WORD + 1));
}

static void make_other_pointer(struct arch_cache_case *of)
{
    size_t receiver = receiver_of(of);
    size_t pointer = random_below(POINTERS);
    of->field.pointer_offset = offset_of(receiver_origins[receiver], POINTERS_AT + 8 * pointer);
    if (of->field.is_out_of_line)
        of->field.offset = offset_of(pointer_origins[receiver][pointer], MIDDLE);
}

/* Changes which word is compared, so that the case hits. */
static void make_other_word(struct arch_cache_case *of)
{
    size_t receiver = receiver_of(of);
    bool may_be_other = receiver_origins[0] == receiver_origins[1] && !of->field.is_out_of_line;
    if (may_be_other && random_one_in(2))
        of->receiver = receiver_registers[1 - receiver];
    else if (of->key_width == 8)
        of->key_width = 4;
    else
        of->key_offset = offset_of(receiver_origins[receiver], random_below(POINTERS_AT - 7));
    of->mask = all_bits(of->key_width);
    of->key = load(place_of(of, of->key_offset), of->key_width);
}

/* Makes one case differ in another property. */
static void make_one_differ(void)
{
    size_t index = random_below(trial.cache.count);
    struct arch_cache_case *of = &trial.cases[index];
    switch (random_below(11)) {
    case 0:
        make_other_pointer(of);
        break;
    case 1:
        of->field.width = is_vector(of->value) ? 4 : random_width();
        break;
    case 2:
        of->field.is_signed = !is_vector(of->value) && !of->field.is_signed;
        break;
    case 3:
        of->value = is_vector(of->value) ? random_vector(trial.level) : random_general();
        break;
    case 4:
        of->counter = (uintptr_t)&world.counters[index];
        break;
    case 5:
        of->mask &= random_number();
        of->key &= of->mask;
        break;
    case 6:
        of->action = ARCH_CACHE_STORE;
        break;
    case 7:
        make_other_word(of);
        break;
    case 8:
        make_second(of);
        break;
    case 9:
        make_elements(of, index);
        break;
    default:
        make_guard(of);
        make_field(of);
    }
}

/* Stores one of the keys, or a word that differs from it in one bit or in its lower half. */
static void choose_word(void)
{
    const struct arch_cache_case *of = &trial.cases[random_below(trial.cache.count)];
    uint64_t word = of->key;
    if (random_one_in(4))
        word ^= UINT64_C(1) << random_below(8U * of->key_width);
    if (random_one_in(4))
        word = (word & ~(uint64_t)UINT32_MAX) | random_below(4);
    if (random_one_in(8)) /* a word that the code may compute from one that hits */
        word = random_below(THING_BYTES) << 32 | random_below(4);
    store(place_of(of, of->key_offset), word, of->key_width);
}

START_TEST(random_caches_of_similar_cases_have_the_results_of_the_model)
{
    for (int round = 0; round < rounds(); round++) {
        begin_cache(2 + random_below(ARCH_CACHE_CASES_MAX - 1));
        make_alike();
        move_fields();
        if (random_one_in(2))
            make_one_differ();
        make_registers();
        write_code();
        for (int again = 0; again < 4; again++) {
            choose_word();
            run();
        }
    }
}
END_TEST

int main(void)
{
    if (!find_machine() || arch_host_vector_level() == 0) {
        puts("this host has no inline caches");
        return SKIPPED;
    }
    Suite *suite = suite_create("cache execute");
    TCase *tests = tcase_create("cache execute");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, random_caches_have_the_results_of_the_model);
    tcase_add_test(tests,
                   random_first_cases_in_the_bytes_of_the_site_have_the_results_of_the_model);
    tcase_add_test(tests, random_caches_of_similar_cases_have_the_results_of_the_model);
    suite_add_tcase(suite, tests);
    return support_main(suite);
}
