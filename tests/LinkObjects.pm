# Shared by the tests that link objects with tests/link_objects.c.
# SPDX-License-Identifier: MIT
package LinkObjects;

use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(build_link_objects);

# build_link_objects(PROGRAM, COMPILER, OPTIONS...): compiles the program for the compiler's architecture,
# without a build folder. Returns false if that fails.
sub build_link_objects {
    my ($program, @compiler) = @_;
    my $source = $ENV{srcdir} // '.';
    my @files = (
        "$source/tests/link_objects.c",
        glob("$source/src/object/*.c"),
        (map { "$source/src/base/$_.c" } qw(error hash hash_set memory utf8)),
        (map { "$source/arch/$_.c" } qw(arch find host_none relocation words)),
        (map { glob("$source/arch/*/$_.c") } qw(features inline_cache registers relocation target)),
    );
    return system(@compiler, qw(-std=gnu11 -O1 -w -D_GNU_SOURCE), "-I$source/include", "-I$source/src",
        "-I$source", "-I$source/tests", '-o', $program, @files) == 0;
}

1;
