#!/usr/bin/perl
# The manual: every public function and every header has a page in section 3, and every chapter one in section 7,
# without a complaint of groff or mandoc. Each page of section 3 has its sections, full names of errors, and an
# example from a program that is a test. The site has every document, header, function and example, with links that lead somewhere, and nothing
# that is loaded from elsewhere.
# SPDX-License-Identifier: MIT
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use CommandTest;
use File::Basename qw(dirname);
use File::Find qw(find);
use File::Spec;
use Test::More;

my $source = $ENV{srcdir} // '.';

# The functions that the headers declare, found in another way than by Reference.pm.
sub public_functions {
    my %header_of;
    for my $header (glob "$source/include/cairn/*.h") {
        my $text = slurp($header);
        my $name = $header =~ s{.*/}{}r;
        $header_of{$1} = $name while $text =~ /^CAIRN_API\b[^;]*?(\w+)\(/mg;
    }
    return %header_of;
}

my %header_of = public_functions();
cmp_ok(scalar keys %header_of, '>', 150, 'the headers have public functions');

# ---- Section 3 ----

mkdir "$folder/man" or die;
my @headers = glob "$source/include/cairn/*.h";
my @examples = (glob("$source/examples/*.c"), glob("$source/examples/lox/*.c"));
is(system("$source/scripts/make-man", "$folder/man", '1.2.3', '2026-01-01', @headers, @examples), 0, 'make-man succeeds');
my @without = grep { !-f "$folder/man/$_.3" } sort keys %header_of;
is("@without", '', 'every public function has a page');
my @headerless = grep { !-f "$folder/man/cairn_$_.3" } map { s{.*/}{}r } @headers;
is("@headerless", '', 'every header has a page');

my @thin;
for my $name (sort keys %header_of) {
    my $page = slurp("$folder/man/$name.3");
    push @thin, $name
        if $page !~ /^\.SH NAME\n\Q$name\E \\- \S+ \S/m || $page !~ /^#include <cairn\/\Q$header_of{$name}\E>$/m
        || $page !~ /^\.SH DESCRIPTION\n\S/m || $page !~ /\b\Q$name\E\(/;
}
is("@thin", '', 'every page has a name with a sentence, a synopsis and a description');

# The text of a section without roff; undefined if the page does not have it.
sub section_of {
    my ($page, $title) = @_;
    my ($roff) = $page =~ /^\.SH \Q$title\E\n(.*?)(?=^\.SH|\z)/ms;
    return defined $roff ? plain($roff) : undef;
}

sub plain {
    my ($roff) = @_;
    $roff =~ s/^\.(?:BR?|IR?|RI|SS) //mg;
    $roff =~ s/^\.\w+.*\n//mg;
    $roff =~ s/\\f[BIR]//g;
    $roff =~ s/\\[&%:]//g;
    return $roff =~ s/\\-/-/gr =~ s/\\e/\\/gr =~ s/\\\[u([0-9A-F]{4})\]/chr hex $1/ger;
}

my %page_of = map { m{([^/]+)\.3$} ? ($1 => slurp($_)) : () } glob "$folder/man/*.3";
my @sections = ('NAME', 'LIBRARY', 'SYNOPSIS', 'DESCRIPTION', 'RETURN VALUE', 'ERRORS', 'THREADS AND SIGNALS', 'EXAMPLES', 'SEE ALSO');
my (@incomplete, @silent, @disordered);
for my $name (sort keys %page_of) {
    my @expected = grep { $header_of{$name} || !/^(?:RETURN VALUE|ERRORS)$/ } @sections;
    push @incomplete, map { "$name: $_" } grep { (section_of($page_of{$name}, $_) // '') !~ /\w/ } @expected;
    my $said = join ' ', grep { my $title = $_; grep { $_ eq $title } @expected } $page_of{$name} =~ /^\.SH (.*)$/mg;
    push @disordered, "$name: $said" if $said ne join ' ', @expected;
    my $threads = section_of($page_of{$name}, 'THREADS AND SIGNALS') // '';
    push @silent, "$name: $threads" if $threads !~ /thread/i || $threads !~ /signal/i;
}
is(join("\n", @incomplete), '', 'every page has its sections');
is(join("\n", @disordered), '', '… in their order');
is(join("\n", @silent), '', 'every page tells what holds for threads and for signals');

# What the prototypes say must agree with the sections.
my (@wrong_returns, @wrong_errors);
for my $name (sort keys %header_of) {
    my $synopsis = section_of($page_of{$name}, 'SYNOPSIS') // '';
    my $returns = section_of($page_of{$name}, 'RETURN VALUE') // '';
    my $errors = section_of($page_of{$name}, 'ERRORS') // '';
    my $is_status = $synopsis =~ /^enum cairn_status cairn/m;
    push @wrong_returns, $name if ($synopsis =~ /^void \w/m) != ($returns eq "None.\n") || $is_status != ($returns =~ /^CAIRN_OK, or an error/);
    my $gets_error = (section_of($page_of{$name}, 'DESCRIPTION') // '') =~ /\*error gets/; # of something else
    my $can_fail = $is_status || ($synopsis =~ /struct cairn_error \*error\)|^LLVMErrorRef /m && !$gets_error);
    push @wrong_errors, "$name: $errors" if $can_fail != ($errors =~ /CAIRN_ERROR_|cairn_\w+\(3\)/);
}
is("@wrong_returns", '', 'functions with a result say what it is');
is(join("\n", @wrong_errors), '', 'functions that can fail name their errors');

# Names of enumerators without their prefix, also of fewer parts: "NOT_FOUND", "ENTRY_COUNT".
my %is_suffix;
for my $header (@headers) {
    for my $enumerator (slurp($header) =~ /^\s*(CAIRN_[A-Z0-9_]+)\s*(?:=|,|$)/mg) {
        my @parts = split /_/, $enumerator;
        shift @parts;
        $is_suffix{join '_', @parts[$_ .. $#parts]} = $enumerator for 0 .. $#parts;
    }
}
delete @is_suffix{qw(LLVM NULL PC SP C)};
my @bare;
for my $name (sort keys %page_of) {
    my $text = plain($page_of{$name} =~ s/^\.SH EXAMPLES\n.*?(?=^\.SH)|^\.(?:S[HS]|TH)[^\n]*//msgr);
    my %found = map { $_ => 1 } grep { $is_suffix{$_} } $text =~ /(?<![\w"'.\/-])([A-Z][A-Z0-9_]{2,})(?![\w"])/g;
    push @bare, map { "$name: $_ ($is_suffix{$_})" } sort keys %found;
}
is(join("\n", @bare), '', 'enumerators have their full names');

# Phrases that lead to another place of a header, which is not on the page.
my @elsewhere;
for my $name (sort keys %page_of) {
    my $text = plain($page_of{$name}) =~ s/\s+/ /gr;
    push @elsewhere, map { "$name: $_" } $text =~ /(.{0,30}(?:\(7\), [A-Z]|\b(?:functions under|following (?:functions|holds)|listed at the|as (?:above|below)|as there(?! (?:is|are))|(?:see|described|listed|given) (?:above|below)|same restriction|previous function|the same block)\b).{0,30})/g;
}
is(join("\n", @elsewhere), '', 'no page refers to a section of another page');

my ($listed_programs) = join ' ', slurp("$source/examples/Makefile.inc") =~ /^(?:llvm_examples|file_examples|TESTS) \+?= ?((?:.*\\\n)*.*)/mg;
sub is_tested {
    my ($program) = @_;
    my $test = "$source/tests/check_" . $program =~ s{.*/}{}r . '.pl';
    return $listed_programs =~ m{\b\Q$program\E(?!\w)} || -f $test;
}
my @without_example;
for my $name (sort keys %page_of) {
    my ($path, $block) = (section_of($page_of{$name}, 'EXAMPLES') // '') =~ /^From\n(\S+) :\n(.*)/s;
    my ($program) = ($path // '') =~ m{^(examples/(?:lox|\w+))(?:/\w+)?\.c$};
    my $code = defined $program && -f "$source/$path" ? slurp("$source/$path") : '';
    utf8::decode($code);
    $block = ($block // '') =~ s/\s+$//r =~ s/[ \t]+$//mgr;
    push @without_example, $name
        if $code eq '' || $block eq '' || index($code =~ s/[ \t]+$//mgr, $block) < 0
        || !is_tested($program)
        || ($header_of{$name} && $block !~ /(?<!struct )\b\Q$name\E\b/);
}
is("@without_example", '', 'every page has an example, from a program that is a test');

# What a comment lacks is reported.
mkdir "$folder/$_" or die for qw(lacking lacking-man);
for my $lack (['Threads:', 'Note:', 'fault.h: no comment says what holds for threads'],
    ['Returns', 'Tells', 'cairn_fault_is_null has no sentence that begins with "Returns"'],
    ['cairn_fault_is_null', 'cairn_fault_is_new', 'no example of at most 30 lines uses cairn_fault_is_new'])
{
    my ($word, $other, $message) = @$lack;
    spit('lacking/fault.h', slurp("$source/include/cairn/fault.h") =~ s/\b\Q$word\E/$other/gr);
    my ($status, $out, $err) = run_with('/dev/null', "$source/scripts/make-man", "$folder/lacking-man", '1.2.3', '2026-01-01',
        "$folder/lacking/fault.h", "$source/include/cairn/status.h", @examples);
    isnt($status, 0, "make-man fails without $word");
    like($err, qr/\Q$message\E/, '… and tells what is missing');
}

my @misplaced;
for my $library (qw(libcairn libcairn-file libcairn-llvm libcairn-sanmd)) {
    my @names = grep { exists $header_of{$_} } slurp("$source/src/$library.map") =~ /^\s*(cairn_\w+);/mg;
    push @misplaced, grep { slurp("$folder/man/$_.3") !~ /^\.SH LIBRARY\n\Q$library\E\n/m } @names;
}
is("@misplaced", '', 'every page names the library that exports the function');

# ---- Section 7 ----

my ($listed) = slurp("$source/doc/Makefile.inc") =~ /^chapters = ((?:.*\\\n)*.*)/m;
my @chapters = $listed =~ m{\bdoc/[a-z-]+\.md\b}g;
cmp_ok(scalar @chapters, '>', 0, 'there are chapters');
is(system("$source/scripts/make-chapters", "$folder/man", '1.2.3', '2026-01-01', map { "$source/$_" } @chapters), 0,
    'make-chapters succeeds');
my %is_chapter = map { 'cairn-' . s{.*/|\.md$}{}gr => 1 } @chapters;
my @chapterless = grep { !-s "$folder/man/$_.7" } sort keys %is_chapter;
is("@chapterless", '', 'every chapter has a page');

my $overview = slurp("$source/doc/cairn.7") =~ s/\\-/-/gr;
my @unlisted = grep { $overview !~ /^\.BR $_ \(7\)/m } sort keys %is_chapter;
is("@unlisted", '', 'cairn(7) lists every chapter');

my @wrong;
for my $path (@headers, map { "$source/$_" } @chapters) {
    my $text = slurp($path);
    push @wrong, map { "$path: $_" } grep { !$is_chapter{$_} } $text =~ /\b(cairn-[a-z-]+)\(7\)/g;
    while ($text =~ /\b(cairn-[a-z-]+)\(7\),[\s*]+([A-Z][\w*\s-]+?)(?=[),.:;])/g) {
        my ($chapter, $section) = ($1, $2);
        $section =~ s/[\s*]+/ /g;
        push @wrong, "$path: $chapter(7) has no section $section"
            if $is_chapter{$chapter} && slurp("$folder/man/$chapter.7") !~ /^\.S[HS] \Q$section\E$/m;
    }
}
is(join("\n", @wrong), '', 'references lead to chapters and their sections');

# ---- The command ----

my $command = slurp("$source/doc/cairn.1");
like(join(' ', $command =~ /^\.SH (.*)$/mg), qr/^NAME SYNOPSIS EXAMPLES DESCRIPTION /, 'examples come first in cairn(1)');
unlike($command, qr/^\.SH JSON/m, 'cairn(1) leaves the JSON to cairn-json(5)');
my $json = slurp("$source/doc/cairn-json.5");
my @undescribed = grep { $json !~ /^\.S[HS] cairn $_$/m } grep { $_ !~ /^(?:compile|run)$/ } $command =~ /^\.SS cairn (\w+)$/mg;
is("@undescribed", '', 'cairn-json(5) describes the JSON of each command');
like($command, qr/^\.BR cairn\\-json \(5\)/m, 'cairn(1) leads to cairn-json(5)');
like($overview, qr/^\.BR cairn-json \(5\)/m, '… and so does cairn(7)');

my @pages = (glob("$folder/man/*.[37]"), map { "$source/doc/$_" } qw(cairn.1 cairn-json.5 cairn.7));

sub is_there { return grep { -x "$_/$_[0]" } split /:/, $ENV{PATH} }

SKIP: {
    skip 'mandoc is not installed', 1 if !is_there('mandoc');
    open my $lint, '-|', 'mandoc', '-T', 'lint', '-W', 'warning', @pages or die;
    my @said = <$lint>;
    is(join('', @said[0 .. ($#said < 9 ? $#said : 9)]), '', 'mandoc has no warnings');
}
SKIP: {
    skip 'groff is not installed', 1 if !is_there('groff');
    my $said = '';
    for my $page (@pages) {
        $said .= `groff -t -man -ww -Tutf8 '$page' 2>&1 >'$folder/out'`;
    }
    is(substr($said, 0, 1000), '', 'groff has no warnings');
}

# ---- The site ----

SKIP: {
    skip 'cmark-gfm or mandoc is not installed', 1 if !is_there('cmark-gfm') || !is_there('mandoc');
    is(system("$source/scripts/make-site", $source, "$folder/html", '1.2.3'), 0, 'make-site succeeds');
    my (%page, %is_file);
    find({no_chdir => 1, wanted => sub {
        my $path = File::Spec->abs2rel($_, "$folder/html");
        $is_file{$path} = 1 if -f;
        $page{$path} = slurp($_) if /\.html$/;
    }}, "$folder/html");

    my (@broken, @loaded);
    for my $path (sort keys %page) {
        my $html = $page{$path};
        push @loaded, "$path: $1" while $html =~ /(<script\b[^>]*|<(?:link|img|iframe)\b[^>]*"(?:https?:)?\/\/[^>]*)>/g;
        while ($html =~ /\b(?:href|src)="([^"]*)"/g) {
            my $target = $1;
            next if $target =~ /^(?:https?|mailto):/;
            my ($file, $fragment) = split /#/, $target, 2;
            my $there = $file eq '' ? $path : File::Spec->canonpath(dirname($path) . "/$file");
            1 while $there =~ s{(^|/)(?!\.\.)[^/]+/\.\./}{$1};
            push @broken, "$path -> $target"
                if !$is_file{$there}
                || (defined $fragment && $page{$there} !~ /\bid="\Q$fragment\E"/);
        }
    }
    is(join("\n", @broken), '', 'all links lead to a page and a place in it');
    is(join("\n", @loaded), '', 'nothing is loaded from elsewhere, and there are no scripts');

    my @lacking = grep {
        ($page{"include/cairn/$header_of{$_}.html"} // '') !~ /<h3 id="\Q$_\E">/
    } sort keys %header_of;
    is("@lacking", '', 'every public function is on the page of its header');
    my @examples = map { substr $_, length "$source/" } glob "$source/examples/*.c";
    is(join(' ', grep { !$page{"$_.html"} } @examples), '', 'every example has a page');
    like($page{'doc/tutorial.html'} // '', qr/<h1/, 'the tutorial is there');
    like($page{'index.html'}, qr/href="doc\/tutorial.html"/, 'the first page leads to it');
    is(join(' ', grep { $page{'index.html'} !~ /href="\Q@{[s{md$}{html}r]}\E"/ } @chapters), '', '… and to every chapter');
}
done_testing();
