/*
 * Instruction boundaries: Zydis knows x86's; elsewhere all instructions have one size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch/boundaries.h"

#include <Zydis/Zydis.h>

static size_t x86_instruction_length(const uint8_t *bytes, size_t size)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return 0;
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &instruction)))
        return 0;
    return instruction.length;
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
