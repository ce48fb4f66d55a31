# Tests `cairn report`: what the text, the JSON and the page say of generated event logs; the page in a browser
# (headless Chromium), which sorts and filters; logs that are cut off, hostile, damaged at random, or of other
# versions; time and memory.
#
# Runs in the build folder.
#
# SPDX-License-Identifier: MIT
use strict;
use warnings;
no warnings qw(portable); # addresses have 64 bits
use FindBin;
use JSON::PP;
use Test::More;
use lib $FindBin::Bin;
use CommandTest;
use EventLog;

skip_test 'reads the same bytes on every host' if ($ENV{CAIRN_TEST_RUNNER} // '') ne '';
skip_test 'the command is not built' if !defined $cairn;
skip_test 'the first build has it' if ($ENV{CAIRN_TEST_REPEATED} // '') ne '';

sub report { return run_with('/dev/null', $cairn, 'report', @_) }

# Returns the decoded JSON for a log without damage.
sub decoded {
    my ($log, @options) = @_;
    my ($status, $out, $err) = report('--json', @options, spit('log', $log->bytes));
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    return decode_json($out);
}

# Returns the page for the log; its exit status must be `$status`, and its messages must match.
sub page {
    my ($bytes, $status, $messages, @options) = @_;
    unlink "$folder/page.html";
    my ($got, $out, $err) = report(@options, '-o', "$folder/page.html", spit('log', $bytes));
    is $got, $status // 0, 'exit status';
    is $out, '', 'nothing on standard output';
    like $err, $messages // qr/\A\z/, 'standard error';
    return slurp("$folder/page.html");
}

# Returns the text of the rows of a table of a page, with cells separated by bars.
sub rows {
    my ($page, $table) = @_;
    my ($body) = $page =~ m{<table data-table="$table".*?<tbody>(.*?)</tbody>}s;
    return map {
        my $row = $_;
        join '|', map { s/<[^>]*>//gr } $row =~ m{<t[hd][^>]*>(.*?)</t[hd]>}gs
    } ($body // '') =~ m{<tr[^>]*>(.*?)</tr>}gs;
}

my $example = EventLog::example();

# ---- What is said ----

subtest 'functions are sorted by deopts' => sub {
    my $said = decoded($example);
    is_deeply [map { "$_->{function} $_->{deopts} $_->{exits}" } @{$said->{functions}}], ['fib 5 5', 'main 1 1', 'add 0 0'],
        'functions';
    is $said->{functions}[0]{reason}, 'not a number', 'the most frequent reason';
    is $said->{functions}[0]{actions}, 'resume 5', 'what handlers chose';
};

subtest 'deopts have reason, site and interpreter position' => sub {
    my ($deopt, $other) = @{decoded($example)->{deopts}};
    is_deeply [@$deopt{qw(function deopts reason site position address mean_ns)}],
        ['fib', 5, 'not a number', 42, 17, 0x2020, 1500], 'the most frequent one';
    is_deeply [@$other{qw(function reason site position)}], ['main', 'assumption broken', 77, undef], 'the other';
};

subtest 'deopts of one site are separated by position and reason' => sub {
    my $log = EventLog->new;
    $log->event('deopt', name => 'f', id => 1, a => 3 | ($_->[0] + 1) << 32, text => $_->[1])
        for [4, 'shape'], [4, 'shape'], [9, 'shape'], [4, 'overflow'];
    is_deeply [map { "$_->{position} $_->{reason} $_->{deopts}" } @{decoded($log)->{deopts}}],
        ['4 shape 2', '9 shape 1', '4 overflow 1'], 'rows';
};

subtest 'deopts have the position in the host\'s source' => sub {
    my $log = EventLog->new;
    for ([1, 4, 'a.lox:3'], [1, 9, 'a.lox:7'], [2, 4, undef]) {
        my ($id, $position, $source) = @$_;
        $log->event('exit', name => 'f', id => $id, a => $position, text => $source);
        $log->event('deopt', name => 'f', id => $id, a => 3 | ($position + 1) << 32);
    }
    $log->event('exit', name => 'f', id => 3, a => 1, text => 'a.lox:9');
    is_deeply [map { [@$_{qw(site position source)}] } @{decoded($log)->{deopts}}],
        [[1, 4, 'a.lox:3'], [1, 9, 'a.lox:7'], [2, 4, undef], [3, 1, 'a.lox:9']], 'rows';
};

subtest 'an exit whose handler did not end is listed' => sub {
    my $log = EventLog->new;
    $log->event('exit', name => 'f', id => 8, a => 3);
    my ($row) = @{decoded($log)->{deopts}};
    is_deeply [@$row{qw(function deopts site position actions)}], ['f', 0, 8, 3, 'the handler did not end'], 'row';
};

subtest 'caches have their history and keys' => sub {
    my ($cache, $other) = @{decoded($example)->{caches}};
    is_deeply $cache->{history}, ['empty', 'monomorphic', "polymorphic \xd72", 'megamorphic'], 'history';
    is_deeply $cache->{keys}, ['0xa0', '0xa1', '0xa2'], 'keys';
    is_deeply [@$cache{qw(function site state changes)}], ['add', 90, 'megamorphic', 4], 'cache';
    is_deeply $other->{history}, ['empty', 'monomorphic'], 'history of the other';
    my $log = EventLog->new;
    $log->event('cache', address => 1, a => 0, b => 0);
    $log->event('cache', address => 2, a => $_, b => $_) for 0, 1;
    my @created = @{decoded($log)->{caches}};
    is_deeply [map { $_->{history} } @created], [['empty', 'monomorphic'], ['empty']], 'created caches are empty once';
};

subtest 'keys have the names that the host gave them' => sub {
    my $log = EventLog->new;
    $log->event('cache', address => 1, a => 1, b => 0xa0, text => 'Point <2>');
    $log->event('cache', address => 1, a => 1 << 32 | 2, b => 0xa1);
    is_deeply decoded($log)->{caches}[0]{keys}, ['Point <2> (0xa0)', '0xa1'], 'in JSON';
    like +(rows(page($log->bytes), 'caches'))[0], qr/\|Point &lt;2&gt; \(0xa0\), 0xa1\|/, 'on the page';
    my (undef, $out) = report("$folder/log");
    like $out, qr/ Point <2> \(0xa0\), 0xa1 /, 'in the text';
};

subtest 'a destroyed cache is called that' => sub {
    my $log = EventLog->new;
    $log->event('cache', address => 1, a => 1 << 32 | 4, b => 0);
    is_deeply decoded($log)->{caches}[0]{history}, ['monomorphic', 'destroyed'], 'history';
};

subtest 'invalidations list what they hit' => sub {
    my ($invalidation) = @{decoded($example)->{invalidations}};
    is_deeply [@$invalidation{qw(number reason sites hit_count)}], [1, 'assumption', 2, 2], 'invalidation';
    is_deeply [map { "$_->{function} $_->{module}" } @{$invalidation->{hits}}], ['fib 2', 'main 3'], 'hits';
};

subtest 'hits of an invalidation whose own event is missing are kept' => sub {
    my $log = EventLog->new;
    $log->event('invalidated', a => 9, name => 'f', module => 1);
    my ($row) = @{decoded($log)->{invalidations}};
    is_deeply [@$row{qw(number reason sites hit_count)}], [9, undef, undef, 1], 'row';
};

subtest 'modules, versions, compilations, sites, grace periods and messages' => sub {
    my $said = decoded($example);
    is_deeply [map { [@$_{qw(module name code_bytes functions loaded retired)}] } $said->{modules}[1]],
        [[2, 'module_fib', 400, 1, 20_000_000, 81_000_000]], 'module';
    is_deeply [map { [@$_{qw(function version kind)}] } $said->{versions}[3]], [['fib', 4, 'interpreter']], 'version';
    is_deeply [map { [@$_{qw(function tier start duration_ns)}] } $said->{compilations}[0]],
        [['add', 'optimised', 5_000_000, 5_000_000]], 'compilation';
    is_deeply [map { [@$_{qw(function site state target changes)}] } $said->{sites}[0]], [['fib', 42, 'call', 0x9000, 1]],
        'site, named by its address';
    is_deeply [map { [@$_{qw(begun ended freed)}] } $said->{grace_periods}[0]], [[82_000_000, 85_000_000, 1]],
        'grace period, by its token';
    is_deeply [map { [@$_{qw(text a b)}] } $said->{messages}[0]], [['collected the garbage', 12, 34]], 'message';
};

subtest 'the summary' => sub {
    my $said = decoded($example);
    is_deeply [@$said{qw(process architecture cairn version events threads duration_ns)}],
        [4711, 'x86-64', '0.8.1', 1, 38, 2, 90_000_000], 'in JSON';
    my (undef, $out) = report(spit('log', $example->bytes));
    like $out, qr/: process 4711, x86-64, from 2026-09-21 14:13:20 UTC for 90.00 ms, by cairn 0.8.1/, 'first line of the text';
    like $out, qr/^  fib +5 +5 +resume 5 +not a number/m, 'functions of the text';
    like $out, qr/ empty \xe2\x86\x92 monomorphic \xe2\x86\x92 polymorphic /, 'caches of the text';
};

subtest 'a target that is called is named by the function that begins there' => sub {
    my $log = EventLog->new;
    my @functions = ([1, 'f', 0x1000], [2, 'g', 0x2000], [3, 'g', 0x2000], [4, 'h', 0x1000], [5, 'i', 0x3000]);
    $log->event('function', module => $_->[0], name => $_->[1], address => $_->[2], a => 64) for @functions;
    $log->event('patched', id => $_, address => 0x9000 + $_, a => 1, b => (0x1000, 0x2000, 0x2010, 0x3000)[$_]) for 0 .. 3;
    is_deeply [map { $_->{target_function} } @{decoded($log)->{sites}}], [undef, 'g', undef, 'i'],
        'unless others began there, too';
};

subtest 'the text and the page count the same events' => sub {
    my (undef, $out) = report(spit('log', $example->bytes));
    my %said = map { /^(\D+): (\d+)$/ ? ($1 => $2) : () } map { split /, |^ +/ } grep { /^  \D+: \d+/ } split /\n/, $out;
    is_deeply [@said{'exits', 'deopts', 'cache changes', 'modules loaded', 'modules retired'}], [6, 6, 5, 3, 1], 'of the text';
    my %shown = page($example->bytes) =~ m{<dt>([^<]*)</dt><dd>(\d+)</dd>}g;
    is_deeply \%said, {map { $_ => $shown{$_} } keys %said}, 'of the page';
};

subtest 'the other byte order' => sub {
    my ($mine, $other) = map { decoded(EventLog::example(big => $_)) } 0, 1;
    is_deeply $other, $mine, 'says the same';
};

subtest 'a clock of another frequency' => sub {
    my $log = EventLog->new(clock_hz => 2_500_000_000);
    $log->event('host', at => 5_000_000_000);
    is decoded($log)->{messages}[0]{time}, 2_000_000_000, 'nanoseconds';
};

subtest 'a log from standard input' => sub {
    my ($status, $out, $err) = run_with(spit('log', $example->bytes), $cairn, 'report', '-');
    is_deeply [$status, $err], [0, ''], 'exit status and standard error';
    like $out, qr/\Astandard input: process 4711/, 'text';
};

subtest 'a log without events' => sub {
    like page(EventLog->new->bytes), qr/The log has no events/, 'the page says so';
};

subtest '--limit' => sub {
    my $log = EventLog->new;
    $log->event('host', text => "message $_") for 1 .. 30;
    is @{decoded($log, '--limit', 3)->{messages}}, 3, 'rows of JSON';
    my $page = page($log->bytes, 0, undef, '--limit', 4);
    is rows($page, 'messages'), 4, 'rows of the page';
    like $page, qr/The first 4 of 30/, 'the page names the number of all';
};

# ---- The page ----

subtest 'the page refers to nothing outside itself' => sub {
    my $page = page($example->bytes);
    unlike $page, qr/<(?:link|img|iframe|object|embed|base)\b|\bsrc=|url\(|\@import/i, 'no resources';
    is join(' ', $page =~ /\bhref="([^#][^"]*)"/g), '', 'links are to sections';
    unlike $page, qr{\bhttps?://}, 'no addresses';
    like $page, qr/Content-Security-Policy" content="default-src 'none';/, 'and the page forbids them';
};

subtest 'the page has its tables without scripts' => sub {
    my $page = page($example->bytes) =~ s{<script>.*?</script>}{}gsr;
    is join("\n", rows($page, 'functions')) =~ s/\|.*//gmr, "fib\nmain\nadd", 'functions';
    like +(rows($page, 'deopts'))[0], qr/\Afib\|5\|not a number\|42\|0x2020\|17\|\|resume 5\|/, 'deopts';
    like +(rows($page, 'caches'))[0], qr/empty \xe2\x86\x92 monomorphic \xe2\x86\x92 polymorphic \xc3\x972 \xe2\x86\x92 megamorphic/,
        'caches';
    like +(rows($page, 'invalidations'))[0], qr/fib \(module 2\), main \(module 3\)/, 'invalidations';
};

subtest 'the timeline has compilations, versions and code size' => sub {
    my ($svg) = page($example->bytes) =~ m{(<svg.*?</svg>)}s;
    like $svg, qr{<rect class="compile"[^>]*><title>fib, optimised: 5.00 ms from 15.00 ms on</title>}, 'compilation';
    like $svg, qr{<rect class="version"[^>]*><title>fib: 1 compiled version at}, 'version';
    like $svg, qr{<title>Code of loaded modules: at most 1200 bytes</title>}, 'code size';
    is scalar(() = $svg =~ /<rect class="deopt"/g), 6, 'deopts';
};

subtest 'the timeline ends with the last event' => sub {
    my $log = EventLog::example(end_clock => $EventLog::start + 90_000_000_000);
    my ($svg) = page($log->bytes) =~ m{(<svg.*?</svg>)}s;
    like $svg, qr/data-end="90000000"/, 'and not when the log is closed';
    like $svg, qr{<text [^>]*>80.00 ms</text>}, 'as its times say';
};

subtest 'totals of 0 are marked, so that small screens hide them' => sub {
    my $page = page(EventLog->new->event('host', text => 'x')->bytes);
    like $page, qr{<div class="zero"><dt>deopts</dt><dd>0</dd></div>}, 'a total of 0';
    like $page, qr{<div><dt>events</dt><dd>1</dd></div>}, 'another';
};

subtest 'the page is accessible' => sub {
    my $page = page($example->bytes);
    my @tables = $page =~ /<table /g;
    is scalar(() = $page =~ /<caption>[^<]+/g), @tables, 'each table has a caption';
    is scalar(() = $page =~ /<th(?! scope="(?:col|row)")[ >]/g), 0, 'each heading has a scope';
    like $page, qr/<html lang="en">/, 'language';
    like $page, qr/<svg [^>]*role="img" aria-label="[^"]+"/, 'the picture has a description';
};

my @hostile = ('</script><script>alert(1)</script>', '"onmouseover="alert(1)', "<img src=x>&amp;'", "\xff\xfe\xc3(\xed\xa0\x80",
    "zero\0byte", "line\nbreak\tand\e[31mcolour", '</title></style>]]><!--', 'x' x 1000);

subtest 'names are escaped in the page' => sub {
    my $log = EventLog->new(cairn_version => '<b>0.8</b>', architecture => '"><script>');
    $log->event('deopt', at => $_, name => $hostile[$_], text => $hostile[$_], id => $_, a => 3) for 0 .. $#hostile;
    $log->event('compilation', name => $_, text => $_, a => $EventLog::start, b => $EventLog::start + 9) for @hostile;
    $log->event($_, name => $hostile[0], text => $hostile[0], module => 4, a => 1) for qw(loaded cache invalidated host);
    my $page = page($log->bytes);
    is scalar(() = $page =~ /<script/g), 1, 'one script';
    is scalar(() = $page =~ m{</script}g), 1, 'which ends once';
    unlike $page, qr/<img|<b>|\balert\(1\)"?>?<\/script|"onmouseover/, 'no elements and attributes of names';
    like $page, qr{&lt;/script&gt;&lt;script&gt;alert}, 'they are text';
    ok utf8::decode(my $copy = $page), 'the page is UTF-8';
    like $page, qr/zero\xef\xbf\xbdbyte/, 'zero bytes become U+FFFD';
    unlike $page, qr/[\x00-\x09\x0b-\x1f\x7f]/, 'no control characters';
};

subtest 'names are escaped in the text' => sub {
    my $log = EventLog->new;
    $log->event('deopt', name => $hostile[$_], text => $hostile[$_], id => $_) for 0 .. $#hostile;
    my ($status, $out) = report(spit('log', $log->bytes));
    is $status, 0, 'exit status';
    unlike $out, qr/[\x00-\x09\x0b-\x1f\x7f]/, 'no control characters';
    ok utf8::decode($out), 'UTF-8';
};

# ---- The page in a browser ----

my $browser = find_in_path('chromium') // find_in_path('chromium-browser');
my $has_timeout = defined find_in_path('timeout');

# Returns the page after its script ran.
sub browsed {
    my ($fragment) = @_;
    my ($status, $out) = run_with('/dev/null', find_in_path('timeout'), '-k', 5, 60, $browser, qw(--headless --no-sandbox
        --disable-gpu --no-first-run --disable-extensions --dump-dom), "--user-data-dir=$folder/browser",
        "file://$folder/page.html$fragment");
    return $status == 0 && $out =~ /<html/ ? $out : undef;
}

sub shown { return rows($_[0] =~ s{<tr hidden="">.*?</tr>}{}gsr, $_[1]) }

SKIP: {
    skip 'Chromium is not installed', 1 if !defined $browser || !$has_timeout;
    page($example->bytes);
    skip 'Chromium does not start here', 1 if !defined browsed('');
    my $ascending = browsed('#sort.functions=deopts&sort.deopts=position&filter.caches=MEGA');
    my $descending = browsed('#sort.functions=-function&sort.deopts=-position&sort.caches=-changes');
    my $filtered = browsed('#filter=main%20broken');
    my $seen = sub { my ($page, $table) = @_; return join ' ', map { s/\|.*//r } shown($page, $table) };

    subtest 'in a browser: sorting by numbers' => sub {
        is $seen->($ascending, 'functions'), 'add main fib', 'ascending';
        is $seen->($descending, 'caches'), 'add fib', 'descending';
    };
    subtest 'in a browser: sorting by texts' => sub {
        is $seen->($descending, 'functions'), 'main fib add', 'descending';
        like $descending, qr/<th [^>]*data-key="function"[^>]*aria-sort="descending"/, 'announced';
    };
    subtest 'in a browser: cells without a value are last' => sub {
        is $seen->($ascending, 'deopts'), 'fib main', 'ascending';
        is $seen->($descending, 'deopts'), 'fib main', 'descending';
    };
    subtest 'in a browser: filtering a table' => sub {
        is $seen->($ascending, 'caches'), 'add', 'rows that match';
        is $seen->($ascending, 'modules'), '1 2 3', 'other tables are complete';
        like $ascending, qr/1 of 2 rows match/, 'the number of rows is said';
    };
    subtest 'in a browser: filtering all tables' => sub {
        is $seen->($filtered, 'deopts'), 'main', 'rows that have all words';
        is $seen->($filtered, 'caches'), '', 'none of another table';
        is $seen->($filtered, 'functions'), 'main', 'the order is that of the report';
    };
    subtest 'in a browser: the timeline is zoomed' => sub {
        page($example->bytes);
        my $zoomed = browsed('#time=15000000-25000000');
        my %x = map { m{ x="([\d.]+)"[^>]*><title>(\w+), } ? ($2 => $1) : () } grep { !/display: none/ } $zoomed =~ /<rect class="compile".*?<\/rect>/gs;
        my %width = map { m{ width="([\d.]+)"[^>]*><title>(\w+), } ? ($2 => $1) : () } $zoomed =~ /<rect class="compile".*?<\/rect>/gs;
        cmp_ok abs($x{fib} - 110), '<', 2, 'the compilation from 15 ms on is at the left';
        cmp_ok abs($width{fib} - 480), '<', 4, 'and takes half of the width';
        is $x{add}, undef, 'an earlier one is not shown';
        like $zoomed, qr{<text class="faint tick"[^>]*>20 ms</text>}, 'the times are those of the part';
        unlike $zoomed, qr{<text class="faint tick"[^>]*>40 ms</text>}, 'and no others';
        like $zoomed, qr{<button type="button">Zoom out</button>}, 'there are buttons';
    };
    subtest 'in a browser: hostile names do nothing' => sub {
        my $log = EventLog->new;
        $log->event('host', text => '</script><script>document.title="taken"</script><img src=x onerror="document.title=\'taken\'">');
        page($log->bytes);
        my $page = browsed('#filter=<img src=x onerror=alert(1)>');
        unlike $page, qr/<title>taken/, 'the title is unchanged';
        unlike $page, qr/<img/, 'there is no element';
    };
}

# ---- Logs with something missing ----

subtest 'other versions are refused, with both versions named' => sub {
    fails(1, qr/log: the event log has version 2 of the format; this cairn reads version 1$/, 'report',
        spit('log', EventLog::example(version => 2)->bytes));
    fails(1, qr/version 7 .* version 1$/, 'report', spit('log', EventLog::example(version => 7, big => 1)->bytes));
    my ($status, undef, $err) = report('-o', "$folder/never.html", "$folder/log");
    is $status, 1, 'exit status with -o';
    ok !-e "$folder/never.html", 'no page';
};

subtest 'what is not a log' => sub {
    fails(1, qr/log: the file is empty/, 'report', spit('log', ''));
    fails(1, qr/log: this is not an event log: it does not begin with CAIRNLOG$/, 'report', spit('log', "\x7fELF" . "\0" x 200));
    fails(1, qr/the event log is cut off in its header: 100 of 128 bytes are left/, 'report',
        spit('log', substr $example->bytes, 0, 100));
    fails(1, qr/byte-order mark 0x0a0b0c0d at offset 8/, 'report', spit('log', EventLog::example(byte_order => 0x0a0b0c0d)->bytes));
    fails(1, qr/missing: cannot be opened: No such file/, 'report', "$folder/missing");
    fails(1, qr/cannot be read: Is a directory/, 'report', $folder);
};

subtest 'a log that is cut off' => sub {
    my $bytes = $example->bytes;
    my $slots = @{$example->{slots}};
    for my $kept ($slots - 1, int $slots / 2, 0) {
        my $message = sprintf 'the log is cut off: %d of the %d slots in use are missing, from byte %d of the file on',
            $slots - $kept, $slots, 128 + 64 * $kept + 5 * ($kept > 0);
        my $page = page(substr($bytes, 0, 128 + 64 * $kept + 5 * ($kept > 0)), 1, qr/\Acairn: [^\n]*: \Q$message\E\n\z/);
        like $page, qr/What is missing.*<li>\Q$message\E/s, "the page says so with $kept slots";
        like $page, qr/<h1>Event log of process 4711/, 'and shows the rest';
    }
};

subtest 'a log that was full' => sub {
    my $log = EventLog->new;
    $log->event('host', text => 'first');
    $log->{fields} = {slot_count => 2, next => 12};
    my $page = page($log->bytes, 0, qr/: the log was full: 10 later events were not recorded, because it has space for 2 slots$/);
    like $page, qr/<li>the log was full: 10 later events/, 'in the page';
    $log->{fields}{lost} = 7;
    page($log->bytes, 0, qr/: the log was full: 7 later events were/);
};

subtest 'slots that were never completed are counted' => sub {
    my $log = EventLog->new;
    $log->event('host', text => 'first');
    push @{$log->{slots}}, "\0" x 64, pack('V2', 0, 7) . "\1" x 56;
    $log->event('host', text => 'last');
    my $page = page($log->bytes, 0, qr/: 2 slots were reserved but never completed/);
    is rows($page, 'messages'), 2, 'the others are shown';
};

subtest 'unknown kinds are counted' => sub {
    my $log = EventLog::example();
    $log->event($_) for 15, 1000, 0xffffffff;
    my $page = page($log->bytes, 0, qr/\A[^\n]*: 3 slots of a kind that this cairn does not know were skipped\n\z/);
    is rows($page, 'functions'), 3, 'the others are shown';
};

subtest 'references to strings that are not there' => sub {
    my $log = EventLog->new;
    my $string = $log->text('x' x 300);
    $log->event('host', text => 'found');
    my $event = @{$log->{slots}};
    $log->event('host', text_slot => $_) for $event, $event + 1, $event + 2, $string + 1, 0xffffffff, 0x7fffffff, 1000;
    my $page = page($log->bytes, 1, qr/: 7 names or reasons of events were not found/);
    is rows($page, 'messages'), 8, 'the events are shown';
};

subtest 'strings that are too long' => sub {
    my $log = EventLog->new;
    $log->string(1001, 'too long');
    $log->string(0xffffffff, 'far too long');
    $log->event('host', text => 'found');
    $log->string(900, 'longer than the log');
    my $page = page($log->bytes, 1, qr/: 3 strings were skipped: longer than 1000 bytes, or than the log/);
    like +(rows($page, 'messages'))[0], qr/\|found\|/, 'the others are shown';
};

subtest 'slots after those in use' => sub {
    page(EventLog::example(next => 5)->bytes, 1, qr/: \d+ slots are not empty after the 5 that are in use/);
};

subtest 'a header with impossible numbers' => sub {
    page(EventLog::example(header_bytes => 4096, slot_bytes => 0)->bytes, 1, qr/gives its size as 4096 bytes and that of a slot as 0/);
    page(EventLog::example(clock_hz => 0)->bytes, 1, qr/does not have the frequency of its clock/);
    page(EventLog::example(slot_count => ~0, next => ~0)->bytes, 1, qr/of the 18446744073709551615 slots in use are missing/);
    page(EventLog::example(start_clock => ~0, start_time_ns => ~0)->bytes, 0, qr/before the start of the log/);
};

subtest 'logs that are damaged at random' => sub {
    my @names;
    for my $i (1 .. $ENV{CAIRN_TEST_ROUNDS} // 120) {
        my $bytes = EventLog::example(big => $i % 2)->bytes;
        for (0 .. int rand 12) {
            my $at = int rand(rand() < 0.2 ? 128 : length $bytes);
            substr($bytes, $at, 1) = chr(rand() < 0.5 ? int rand 256 : (0, 1, 0x7f, 0x80, 0xff)[rand 5]);
        }
        $bytes = substr $bytes, 0, int rand length $bytes if rand() < 0.2;
        push @names, spit("damaged$i", $bytes);
    }
    my @kinds = (['--json'], ['-o', "$folder/damaged.html"], []);
    my $number = 0;
    for (run_all(map { ['/dev/null', $cairn, 'report', @{$kinds[$number++ % 3]}, $_] } @names)) {
        my ($status, $out, $err) = @$_;
        my $has_other_lines = grep { !/^cairn: / } split /\n/, $err;
        next if $status =~ /^[01]$/ && !$has_other_lines && ($status == 0 || $err ne '');
        fail "status $status: $err (seed $seed)";
    }
    pass 'each ends with status 0 or 1, and a sentence';
};

# ---- Writing ----

subtest 'the page replaces a file when it is complete' => sub {
    spit('page.html', 'old');
    my $before = (stat "$folder/page.html")[1];
    link "$folder/page.html", "$folder/old.html" or die;
    report('-o', "$folder/page.html", spit('log', $example->bytes));
    is slurp("$folder/old.html"), 'old', 'the old file was not written to';
    isnt +(stat "$folder/page.html")[1], $before, 'the new one is another file';
    is_deeply [glob "$folder/page.html.*"], [], 'no temporary file is left';
};

subtest 'a page that cannot be written' => sub {
    my $log = spit('log', $example->bytes);
    fails(1, qr/cannot be written: No such file/, 'report', '-o', "$folder/no/page.html", $log);
    is system("$cairn report $log > /dev/full 2> $folder/stderr") >> 8, 1, 'full disk';
    is system("$cairn report -o /dev/full $log 2> $folder/stderr") >> 8, 1, 'full disk, a page';
};

subtest 'invalid usage' => sub {
    fails(2, qr/report: no file is given/, 'report');
    fails(2, qr/report: --limit needs a number, not 'x'/, 'report', '--limit', 'x', 'log');
    fails(2, qr/report: --json and -o, which writes a page, exclude each other/, 'report', '--json', '-o', 'page', 'log');
    fails(2, qr/report: unknown option '--debug-file'/, 'report', '--debug-file', 'x', 'log');
    fails(1, qr/more than the 1024 bytes that --memory allows/, 'report', '--memory', '1K', spit('log', $example->bytes));
};

# ---- Time and memory ----

# Logs of several megabytes, each of which makes something grow: limited to five seconds and 600 MB. Sanitizers
# reserve terabytes of address space.
subtest 'time and memory are linear' => sub {
    my $memory = system("ulimit -v 600000; $cairn --version > /dev/null 2>&1") == 0 ? 'ulimit -v 600000;' : '';
    my $seconds = $memory eq '' ? 30 : 5;
    my $count = 60_000;
    my %logs = map { $_ => EventLog->new } qw(one distinct);
    for my $i (1 .. $count) {
        my $kind = (qw(loaded function patched cache exit deopt invalidation invalidated grace version compilation))[$i % 11];
        $logs{one}->event($kind, name => 'f', text => 'r', a => $i % 5 << 32 | $i % 4, b => $i);
        $logs{distinct}->event($kind, name_slot => 0, at => $i, id => $i, module => $i, address => $i << 12, a => $i, b => $i);
    }
    $logs{names} = EventLog->new;
    my $long = $logs{names}->text('&' x 1000);
    $logs{names}->event('invalidated', name_slot => $long, a => 1, id => $_) for 1 .. $count;
    for my $name (sort keys %logs) {
        my $log = spit('log', $logs{$name}->bytes);
        for my $option ('--json', "-o $folder/page.html") {
            my $status = system "ulimit -t $seconds; $memory exec $cairn report $option $log > $folder/stdout 2> $folder/stderr";
            is $status >> 8, 0, "$name $option" or diag slurp("$folder/stderr");
        }
        cmp_ok -s "$folder/page.html", '<', 40 << 20, "$name: the page's size";
    }
};

done_testing;
