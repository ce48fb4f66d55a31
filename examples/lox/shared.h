/*
 * Parts of the program that are shared objects, in its folder, because most programs are done
 * before they would be loaded: lox-jit.so, which needs Cairn, and lox-emitter.so, which needs LLVM.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOX_SHARED_H
#define LOX_SHARED_H

enum { SHARED_PATH_SIZE = 4096 };

/* Writes the path of a shared object. */
void shared_path(const char *file_name, char path[SHARED_PATH_SIZE]);

/* Opens a shared object for the rest of the process, and returns what the symbol is in it, or NULL
 * after an error, which was printed. Other shared objects find its functions. */
const void *shared_open(const char *file_name, const char *symbol);

#endif
