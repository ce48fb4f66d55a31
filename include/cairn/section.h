/*
 * cairn/section.h - the bytes of a section, and loading numbers from them.
 *
 * All decoders of Cairn read a section: bytes of the caller's, in either byte order, with any
 * alignment. Nothing is copied and nothing is written, so the bytes must stay valid and unchanged
 * as long as the views that a decoder returns.
 *
 * Threads: every function is thread-safe and async-signal-safe: it accesses only its arguments.
 *
 *     struct cairn_section section = {bytes, size, CAIRN_BYTE_ORDER_NATIVE};
 *     while (offset < section.size)
 *         status = cairn_stackmap_read(&section, &offset, &map, &error);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CAIRN_SECTION_H
#define CAIRN_SECTION_H

#include <cairn/architecture.h>
#include <cairn/status.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The bytes of a section. */
struct cairn_section {
    const uint8_t *bytes;
    size_t size;
    enum cairn_byte_order byte_order;
};

/** Returns a number of 16 bits that is loaded from bytes of any alignment. Nothing is checked. */
CAIRN_INLINE uint16_t cairn_load_u16(const uint8_t *bytes, enum cairn_byte_order byte_order)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    if (__builtin_expect(byte_order != CAIRN_BYTE_ORDER_NATIVE, 0))
        return __builtin_bswap16(value);
    return value;
}

/** Returns a number of 32 bits that is loaded from bytes of any alignment. Nothing is checked. */
CAIRN_INLINE uint32_t cairn_load_u32(const uint8_t *bytes, enum cairn_byte_order byte_order)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    if (__builtin_expect(byte_order != CAIRN_BYTE_ORDER_NATIVE, 0))
        return __builtin_bswap32(value);
    return value;
}

/** Returns a number of 64 bits that is loaded from bytes of any alignment. Nothing is checked. */
CAIRN_INLINE uint64_t cairn_load_u64(const uint8_t *bytes, enum cairn_byte_order byte_order)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    if (__builtin_expect(byte_order != CAIRN_BYTE_ORDER_NATIVE, 0))
        return __builtin_bswap64(value);
    return value;
}

#ifdef __cplusplus
}
#endif
#endif
