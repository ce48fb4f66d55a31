/*
 * Decodes x86-64 instructions with Zydis.
 *
 * SPDX-License-Identifier: MIT
 */
#include "site/boundaries.h"

#include <Zydis/Zydis.h>

static bool decode(const uint8_t *bytes, size_t size, ZydisDecodedInstruction *instruction)
{
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, instruction));
}

size_t x86_instruction_length(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction instruction;
    return decode(bytes, size, &instruction) ? instruction.length : 0;
}

/* True for instructions that note their progress in registers, so that they can be resumed after an
 * interrupt or a fault. Source: Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, REP, VPGATHERDD, VPSCATTERDD, TILELOADD. */
bool x86_may_stop_inside(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction instruction;
    if (!decode(bytes, size, &instruction))
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
