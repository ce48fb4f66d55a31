/*
 * tools/profile/profile.h - the forms in which a profile is written. Their size depends on the
 * blocks that have samples, and on the files that were sampled, not on the number of samples.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOLS_PROFILE_PROFILE_H
#define TOOLS_PROFILE_PROFILE_H

#include "tools/samples/samples.h"

void write_profile_text(struct output *output, const struct profile *profile,
                        const struct ranking *ranking, size_t limit);
void write_profile_json(struct json *json, const struct profile *profile,
                        const struct ranking *ranking, size_t limit);
/* Writes a picture of one function's blocks, with their samples. False without memory, after an
 * error message. */
bool write_profile_svg(struct output *output, const struct profile *profile, uint32_t function);

/* ---- For other tools ---- */

/* Writes the stacks for pprof and what reads its format: profile.proto, compressed with gzip. It
 * has a location for each block in which samples were taken, for each function that called others,
 * and for each other file. The profile must have stacks. False after an error message; a file at
 * `path` is then unchanged. */
bool save_pprof(const char *path, const struct profile *profile);

/* Writes lines for flame graphs, the most frequent stacks first: frames separated by semicolons,
 * which are the file, the functions and the block, a space, and the number of samples. The profile
 * must have stacks. False without memory, after an error message. */
bool write_collapsed(struct output *output, const struct profile *profile);

/* Writes a sample profile as text, which llvm-profdata and clang -fprofile-sample-use read. The
 * counts are those of pseudo probes, which the file must have. False after an error message. */
bool save_sample_profile(const char *path, const struct profile *profile);

#endif
