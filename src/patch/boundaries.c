/*
 * Instruction boundaries: Zydis knows x86's; elsewhere all instructions have one size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/boundaries.h"

#include <Zydis/Zydis.h>

static bool x86_decode(const uint8_t *bytes, size_t size, ZydisDecodedInstruction *instruction)
{
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, instruction));
}

static size_t x86_instruction_length(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction instruction;
    return x86_decode(bytes, size, &instruction) ? instruction.length : 0;
}

/* Those that note their progress in registers, to be resumed behind an interrupt or a fault.
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, REP, VPGATHERDD,
 * VPSCATTERDD, TILELOADD. */
static bool x86_may_stop_inside(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction instruction;
    if (!x86_decode(bytes, size, &instruction))
        return true;
    switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_STRINGOP:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_AVX2GATHER:
    case ZYDIS_CATEGORY_GATHER:
    case ZYDIS_CATEGORY_SCATTER:
    case ZYDIS_CATEGORY_AMX_TILE:
        return true;
    default:
        return false;
    }
}

size_t boundaries_instruction_length(const struct cairn_arch *arch, const uint8_t *bytes,
                                     size_t size)
{
    size_t fixed = arch->fixed_instruction_bytes;
    if (fixed != 0)
        return size >= fixed ? fixed : 0;
    return x86_instruction_length(bytes, size);
}

size_t boundaries_next(const struct cairn_arch *arch, const uint8_t *bytes, size_t size,
                       size_t offset)
{
    size_t boundary = 0;
    while (boundary < offset) {
        size_t length = boundaries_instruction_length(arch, bytes + boundary, size - boundary);
        if (length == 0)
            return 0;
        boundary += length;
    }
    return boundary;
}

bool boundaries_may_stop_inside(const struct cairn_arch *arch, const uint8_t *bytes, size_t size)
{
    return arch->architecture == CAIRN_ARCHITECTURE_X86_64 && x86_may_stop_inside(bytes, size);
}
