/*
 * site/x86_instruction.h - one x86-64 instruction. Implemented once per build: with Zydis on
 * x86-64 hosts, and as stubs on other hosts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SITE_X86_INSTRUCTION_H
#define SITE_X86_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Implement boundaries_instruction_length and boundaries_may_stop_inside. */
size_t x86_instruction_length(const uint8_t *bytes, size_t size);
bool x86_may_stop_inside(const uint8_t *bytes, size_t size);

#endif
