/* SPDX-License-Identifier: MIT */
#include "tools/cli/xml.h"

#include "base/utf8.h"

#include <string.h>

size_t xml_character(struct output *output, const char *text)
{
    size_t length = utf8_sequence_length(text);
    if (length == 0 || utf8_visible_length(text) == 0 ||
        memcmp(text, "\xef\xbf\xbe", length) == 0 || memcmp(text, "\xef\xbf\xbf", length) == 0)
        output_text(output, "\xef\xbf\xbd");
    else if (*text == '&')
        output_text(output, "&amp;");
    else if (*text == '<')
        output_text(output, "&lt;");
    else if (*text == '>')
        output_text(output, "&gt;");
    else if (*text == '"')
        output_text(output, "&quot;");
    else
        output_bytes(output, text, length);
    return length == 0 ? 1 : length;
}

void xml_text(struct output *output, const char *text)
{
    while (*text != '\0')
        text += xml_character(output, text);
}
