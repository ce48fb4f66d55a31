# What the scripts that make manual pages have in common: text as roff.
# SPDX-License-Identifier: MIT
package Roff;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(escape fill code_block references);

# Escapes what roff would interpret. With `$is_code`, hyphens are printed as minus signs, to be copied.
sub escape {
    my ($text, $is_code) = @_;
    $text =~ s/\\/\\e/g;
    $text =~ s/-/\\-/g if $is_code;
    $text =~ s/([^\x00-\x7f])/sprintf '\\[u%04X]', ord $1/ge;
    $text =~ s/^([.'])/\\&$1/;
    return $text;
}

# Breaks roff text into lines, none of which begins with a control character.
sub fill {
    my ($roff) = @_;
    my @lines = ('');
    for my $word (split ' ', $roff) {
        push @lines, '' if $lines[-1] ne '' && length($lines[-1]) + length($word) > 76;
        $lines[-1] .= ($lines[-1] eq '' ? '' : ' ') . $word;
    }
    return join '', map { s/^(?=[.'])/\\&/r . "\n" } @lines;
}

sub code_block {
    my ($code) = @_;
    my @lines = map { escape($_, 1) } split /\n/, $code;
    $_ = '\&' eq $_ || $_ eq '' ? '\&' : $_ for @lines;
    return join "\n", '.nf', @lines, ".fi\n";
}

# The names that "See also" lists, each with its section.
sub references {
    my @pages = @_;
    my $out = '';
    for my $i (0 .. $#pages) {
        my ($name, $section) = @{$pages[$i]};
        $out .= ".BR $name ($section)" . ($i < $#pages ? ",\n" : "\n");
    }
    return $out;
}

1;
