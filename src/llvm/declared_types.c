/* SPDX-License-Identifier: MIT */
#include "llvm/declared_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned kind_of(LLVMValueRef call)
{
    static const char name[] = "cairn.types";
    return LLVMGetMDKindIDInContext(LLVMGetTypeContext(LLVMTypeOf(call)), name, sizeof name - 1);
}

static LLVMValueRef width_string(LLVMContextRef context, unsigned width)
{
    char text[16] = "";
    if (width != 0)
        snprintf(text, sizeof text, "i%u", width);
    return LLVMMDStringInContext(context, text, (unsigned)strlen(text));
}

void declared_types_write(LLVMValueRef call, const unsigned *widths, unsigned count)
{
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(call));
    LLVMValueRef *strings = calloc(count, sizeof *strings);
    if (strings == NULL)
        return; /* the operands' types describe the values then */
    for (unsigned i = 0; i < count; i++)
        strings[i] = width_string(context, widths[i]);
    LLVMSetMetadata(call, kind_of(call), LLVMMDNodeInContext(context, strings, count));
    free(strings);
}

/* Returns the width of an integer type such as "i8"; 0 for any other text. */
static uint32_t parse_width(LLVMValueRef string)
{
    unsigned length = 0;
    const char *text = LLVMGetMDString(string, &length);
    if (text == NULL || length < 2 || length > 3 || text[0] != 'i')
        return 0;
    uint32_t width = 0;
    for (unsigned i = 1; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        width = 10 * width + (uint32_t)(text[i] - '0');
    }
    return width;
}

static void read_strings(const LLVMValueRef *strings, unsigned count, struct cairn_type *types)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t width = strings[i] == NULL ? 0 : parse_width(strings[i]);
        bool narrower = types[i].kind == CAIRN_TYPE_INTEGER && types[i].element_count == 0 &&
                        width > 0 && width < types[i].bits;
        if (narrower)
            types[i].bits = width;
    }
}

void declared_types_read(const struct site_call *call, struct cairn_type *types)
{
    if (!LLVMHasMetadata(call->call)) /* avoids the lookup of the kind by its name */
        return;
    LLVMValueRef node = LLVMGetMetadata(call->call, kind_of(call->call));
    if (node == NULL || call->live_value_count == 0 ||
        LLVMGetMDNodeNumOperands(node) != call->live_value_count)
        return;
    LLVMValueRef *strings = calloc(call->live_value_count, sizeof *strings);
    if (strings == NULL)
        return;
    LLVMGetMDNodeOperands(node, strings);
    read_strings(strings, call->live_value_count, types);
    free(strings);
}
