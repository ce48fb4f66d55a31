/*
 * tools/cli/xml.h - writing text of any kind into XML and HTML.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_CLI_XML_H
#define TOOLS_CLI_XML_H

#include "tools/cli/output.h"

/* Writes one character of a text that ends with a zero byte, escaped so that it may be in an
 * element or in an attribute in quotes. Bytes that are not UTF-8, control characters, U+FFFE and
 * U+FFFF become U+FFFD. Returns how many bytes of `text` the character has. */
size_t xml_character(struct output *output, const char *text);

/* Writes a text in this way. */
void xml_text(struct output *output, const char *text);

#endif
