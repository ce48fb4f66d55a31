/* SPDX-License-Identifier: MIT */
#include <cairn/type.h>

#include <stdio.h>

size_t cairn_type_size(struct cairn_type type)
{
    bool has_bits = type.kind != CAIRN_TYPE_VOID && type.kind != CAIRN_TYPE_OTHER;
    uint64_t element_size = has_bits ? ((uint64_t)type.bits + 7) / 8 : 0;
    uint64_t size = element_size * (type.element_count == 0 ? 1 : type.element_count);
    return size <= CAIRN_VALUE_BYTES_MAX ? (size_t)size : 0;
}

static const char *const names[] = {
    [CAIRN_TYPE_VOID] = "void",     [CAIRN_TYPE_INTEGER] = "i",
    [CAIRN_TYPE_POINTER] = "ptr",   [CAIRN_TYPE_HALF] = "half",
    [CAIRN_TYPE_BFLOAT] = "bfloat", [CAIRN_TYPE_FLOAT] = "float",
    [CAIRN_TYPE_DOUBLE] = "double", [CAIRN_TYPE_X86_FP80] = "x86_fp80",
    [CAIRN_TYPE_FP128] = "fp128",   [CAIRN_TYPE_PPC_FP128] = "ppc_fp128",
    [CAIRN_TYPE_OTHER] = "other",
};
_Static_assert(sizeof names / sizeof *names == CAIRN_TYPE_OTHER + 1, "one name for each kind");

size_t cairn_type_format(struct cairn_type type, char *text, size_t size)
{
    char scalar[48];
    const char *name = (unsigned)type.kind > CAIRN_TYPE_OTHER ? "?" : names[type.kind];
    if (type.kind == CAIRN_TYPE_INTEGER)
        snprintf(scalar, sizeof scalar, "i%u", type.bits);
    else if (type.kind == CAIRN_TYPE_POINTER && type.address_space != 0)
        snprintf(scalar, sizeof scalar, "ptr addrspace(%u)", type.address_space);
    else
        snprintf(scalar, sizeof scalar, "%s", name);
    int length = type.element_count == 0
                     ? snprintf(text, size, "%s", scalar)
                     : snprintf(text, size, "<%u x %s>", type.element_count, scalar);
    return (size_t)length;
}
