# Reads a public header for the reference manual: its comments, functions, types and macros, in order.
# It relies on the layout that clang-format gives headers: what is declared begins in column 0.
# SPDX-License-Identifier: MIT
package Reference;
use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(dirname);
our @EXPORT_OK = qw(read_header first_sentence paragraphs parts library_of);

my %library_of; # by header, for all but those of libcairn

# The text of a comment without its stars; indentation of examples and lists stays.
sub comment_text {
    my ($comment) = @_;
    $comment =~ s{^/\*+[ \t]*}{};
    $comment =~ s{[ \t]*\*+/\s*$}{};
    my @lines = split /\n/, $comment;
    s/^[ \t]*\* ?// for @lines[1 .. $#lines];
    s/^ (?! )// for @lines[1 .. $#lines];
    my $text = join "\n", @lines;
    $text =~ s/^\n+//;
    $text =~ s/\s+$//;
    return $text;
}

# The library that has the functions of a header: the one whose package has the header.
sub library_of {
    my ($header) = @_;
    if (!%library_of) {
        # For all versions of LLVM, in libcairn-dev.
        $library_of{'llvm.h'} = 'cairn-llvm';
        for my $library (qw(cairn-file cairn-sanmd)) {
            my $path = dirname(__FILE__) . "/../debian/lib$library-dev.install";
            open my $file, '<', $path or die "$path: $!";
            while (my $line = <$file>) {
                $library_of{$1} = $library if $line =~ m{^usr/include/cairn/(.*)};
            }
        }
    }
    return $library_of{$header} // 'cairn';
}

# Cuts what is declared off the text: up to a semicolon or to the end of a function's body.
sub take_declaration {
    my ($text) = @_;
    my $depth = 0;
    pos($$text) = 0;
    while ($$text =~ m{\G(?:/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|.)}gs) {
        my $token = $&;
        $depth++ if $token eq '{';
        $depth-- if $token eq '}';
        next if $depth != 0;
        last if $token eq ';';
        last if $token eq '}' && $$text =~ /\G\n/ && $` =~ /^(?:static )?inline/;
        last if $token eq '}' && $$text =~ /\G\n/;
    }
    my $end = pos($$text) // length $$text;
    my $declaration = substr $$text, 0, $end, '';
    # A comment on the same line belongs to it.
    $declaration .= $& if $$text =~ s{^[ \t]*/\*\*<.*?\*/}{}s;
    return $declaration;
}

# What kind of thing is declared, its name, and the code that is shown.
sub classify {
    my ($code) = @_;
    if ($code =~ /^(?:CAIRN_API|CAIRN_INLINE)\b/) {
        my $shown = $code;
        $shown =~ s/\n\{.*//s;
        $shown =~ s/;\s*$//;
        $shown =~ s/^CAIRN_(?:API|INLINE)\s+//;
        $shown =~ s/^CAIRN_MUST_CHECK\s+//;
        $shown =~ s/\s+/ /g;
        my ($name) = $shown =~ /(\w+)\s*\(/;
        return ('function', $name, "$shown;");
    }
    return ('type', $1, $code) if $code =~ /^((?:struct|enum|union) \w+)\s*(?:\{|;)/;
    return ('type', $1, $code) if $code =~ /^typedef .*?\(\*?\s*(\w+)\)\s*\(/s;
    return ('type', $1, $code) if $code =~ /^typedef .*?(\w+)\(.*\);\s*$/s;
    return ('type', $1, $code) if $code =~ /^typedef .*\b(\w+);\s*$/s;
    return ('constant', $1, $code) if $code =~ /^enum \{\s*(?:\/\*.*?\*\/\s*)*(\w+)/s;
    return ('macro', $1, $code) if $code =~ /^#define (\w+)/;
    return ('other', '', $code);
}

# read_header(PATH): {file, brief, text, items}. Each item has: kind (section, note, function, type,
# constant, macro), name, doc, code, section.
sub read_header {
    my ($path) = @_;
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n";
    local $/;
    my $text = <$in>;
    close $in;
    my %header = (file => $path =~ s{.*/}{}r, items => [], brief => '', text => '');
    my ($doc, $section, $is_first) = ('', '', 1);
    while (length $text) {
        if ($text =~ s/^[ \t]*\n//) {
            $doc = '';
        } elsif ($text =~ s{^/\*.*?\*/[ \t]*\n?}{}s) {
            my $comment = $&;
            my $said = comment_text($comment);
            if ($is_first) {
                $is_first = 0;
                $said =~ s/\n*SPDX-License-Identifier: \S+//;
                # The sentence may take several lines, up to the empty one.
                my ($head, $rest) = split /\n\s*\n/, $said, 2;
                $head =~ s{^cairn/\w+\.h - }{};
                $header{brief} = $head =~ s/\s+/ /gr;
                $header{text} = $rest // '';
            } elsif ($said =~ /^---- (.*?) ----\s*(.*)$/s) {
                ($section, my $note) = ($1, $2);
                $section =~ s/\s+/ /g;
                push @{$header{items}}, {kind => 'section', name => $section, doc => ''};
                push @{$header{items}}, {kind => 'note', name => '', doc => $note, section => $section}
                    if $note =~ /\S/;
            } elsif ($comment =~ m{^/\*\*}) {
                $doc = $said;
            } elsif ($comment =~ /\n/ || $said !~ /^NOLINT/) {
                push @{$header{items}}, {kind => 'note', name => '', doc => $said, section => $section}
                    if $said !~ /NOLINT/;
            }
        } elsif ($text =~ s/^(#(?:[^\n]*\\\n)*[^\n]*\n)//) {
            my $line = $1;
            my ($name) = $line =~ /^#define (\w+)/;
            next if !defined $name || $name =~ /_H$/ || $doc eq '';
            next if grep { $_->{name} eq $name } @{$header{items}};
            push @{$header{items}},
                {kind => 'macro', name => $name, doc => $doc, code => $line =~ s/\s+$//r, section => $section};
        } elsif ($text =~ s/^(?:extern "C" \{|\})[ \t]*\n//) {
            $doc = '';
        } else {
            my $code = take_declaration(\$text);
            last if $code eq '';
            $text =~ s/^[ \t]*\n//;
            my ($kind, $name, $shown) = classify($code);
            next if $kind eq 'other' || !defined $name;
            push @{$header{items}},
                {kind => $kind, name => $name, doc => $doc, code => $shown, section => $section};
        }
    }
    return \%header;
}

# The first sentence of a comment, on one line, without its full stop.
sub first_sentence {
    my ($text) = @_;
    my ($paragraph) = split /\n\s*\n/, $text;
    $paragraph = ($paragraph // '') =~ s/\s+/ /gr;
    # A full stop ends a sentence if a capital letter follows; semicolons and colons shorten it.
    $paragraph =~ s/([a-z0-9_)"'>\]`])\.(?: (?=[A-Z`'"*]|$).*|$)/$1/s;
    $paragraph =~ s/[.:]$//;
    return $paragraph;
}

# parts(COMMENT): what a comment says, by the sections of a manual page: said, returns, errors and threads.
#
# "Errors:" begins the errors, and "Threads:" what holds for threads and signals; each ends with its paragraph.
# Paragraphs that begin with the name of an error continue the errors. A sentence that begins with
# "Thread-safe" or "Async-signal-safe" is about threads, and "Returns" begins what is returned.
sub parts {
    my ($text) = @_;
    my %part = map { $_ => [] } qw(said returns errors threads);
    my $is_first = 1;
    for my $paragraph (split /\n[ \t]*\n/, $text) {
        if ($paragraph =~ /^Errors\b|^[A-Z_]{4,}(?::| after | \()/) {
            push @{$part{errors}}, $paragraph;
        } elsif ($paragraph =~ s/^Threads:\s+//) {
            push @{$part{threads}}, ucfirst $paragraph;
        } elsif ($paragraph =~ /^ +\S/m) {
            push @{$part{said}}, $paragraph;
        } else {
            my %found = sorted_sentences($paragraph, $is_first);
            push @{$part{$_}}, join ' ', @{$found{$_}} for keys %found;
        }
        $is_first = 0;
    }
    return map { $_ => join "\n\n", @{$part{$_}} } keys %part;
}

# The sentences of a paragraph by their parts. The first sentence of a comment is always part of what is said.
sub sorted_sentences {
    my ($paragraph, $is_first) = @_;
    my (%found, $has_errors);
    for my $sentence (sentences($paragraph)) {
        $has_errors ||= $sentence =~ /^Errors\b/;
        my $part = $has_errors ? 'errors'
            : $sentence =~ /^(?:Thread-safe|Async-signal-safe)\b/ ? 'threads'
            : $sentence =~ /^(?:Returns|It returns|Otherwise returns|Always returns) / ? 'returns' : 'said';
        push @{$found{$part}}, $sentence;
        push @{$found{said}}, $sentence if $is_first && $part eq 'returns';
        $is_first = 0;
    }
    return %found;
}

# A full stop ends a sentence if a capital letter or code follows.
sub sentences {
    my ($paragraph) = @_;
    return split /(?<=[a-z0-9_)"'>\]A-Z`]\.) (?=[A-Z`'"*])/, $paragraph =~ s/\s+/ /gr;
}

# paragraphs(TEXT): a list of [kind, text]: text, code (with its indentation), or item (mark, text).
sub paragraphs {
    my ($text) = @_;
    my $item_start = qr/^ {0,2}(-|\(\w\)|\d+\.) +(.*)/;
    my @found;
    for my $block (split /\n[ \t]*\n/, $text) {
        my @lines = split /\n/, $block;
        while (@lines) {
            if ($lines[0] =~ /^ {4}/) {
                my @code;
                push @code, shift @lines while @lines && $lines[0] =~ /^ {3}/;
                if (@found && $found[-1][0] eq 'code') {
                    $found[-1][1] .= "\n\n" . join "\n", @code;
                } else {
                    push @found, ['code', join "\n", @code];
                }
            } elsif ($lines[0] =~ $item_start) {
                my ($mark, @item) = ($1, $2);
                shift @lines;
                while (@lines && $lines[0] !~ $item_start && $lines[0] =~ /^ /) {
                    push @item, shift(@lines) =~ s/^ +//r;
                }
                push @found, ['item', join(' ', @item), $mark];
            } else {
                my @prose = shift @lines;
                while (@lines && $lines[0] !~ /^ {4}/ && $lines[0] !~ /^ {0,2}- +\S/) {
                    push @prose, shift(@lines) =~ s/^ +//r;
                }
                push @found, ['text', join ' ', map { s/^ +//r } @prose];
            }
        }
    }
    return @found;
}

1;
