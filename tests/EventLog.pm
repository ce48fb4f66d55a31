# Makes event logs for tests, in either byte order, as <cairn/log.h> describes them.
# SPDX-License-Identifier: MIT
package EventLog;

use strict;
use warnings;

our %kind = (
    string => 1, loaded => 2, retired => 3, function => 4, patched => 5, cache => 6, exit => 7, deopt => 8,
    invalidation => 9, invalidated => 10, grace => 11, version => 12, host => 13, compilation => 14);
our $start = 1_000_000;

# Fields: big (byte order), slot_count, and fields of the header to replace.
sub new {
    my ($class, %fields) = @_;
    my $big = delete $fields{big} // 0;
    return bless {u32 => $big ? 'N' : 'V', u64 => $big ? 'Q>' : 'Q<', slots => [], strings => {}, fields => \%fields}, $class;
}

# Adds a string, unless it is there, and returns what events refer to it by.
sub text {
    my ($log, $text) = @_;
    return 0 if !defined $text;
    return $log->{strings}{$text} //= $log->string(length $text, $text);
}

# Adds the slots of a string, with any length in the first one.
sub string {
    my ($log, $length, $text) = @_;
    my $bytes = pack("$log->{u32}2", $kind{string}, $length) . $text;
    $bytes .= "\0" x (-length($bytes) % 64);
    push @{$log->{slots}}, unpack '(a64)*', $bytes;
    return @{$log->{slots}} - length($bytes) / 64 + 1;
}

# Adds an event. Fields: thread, at (ns since the start), address, id, a, b, module; name and text as texts,
# name_slot and text_slot as references.
sub event {
    my ($log, $kind, %event) = @_;
    my $name = $event{name_slot} // $log->text($event{name});
    my $text = $event{text_slot} // $log->text($event{text});
    push @{$log->{slots}}, pack "$log->{u32}2 $log->{u64}5 $log->{u32}2 $log->{u64}", $kind{$kind} // $kind,
        $event{thread} // 7, $start + ($event{at} // 0), map({ $event{$_} // 0 } qw(address id a b)), $name, $text,
        $event{module} // 0;
    return $log;
}

# Returns the bytes of the file.
sub bytes {
    my ($log) = @_;
    my $used = @{$log->{slots}};
    my %header = (
        magic => 'CAIRNLOG', byte_order => 0x01020304, version => 1, header_bytes => 128, slot_bytes => 64,
        slot_count => $used + 16, start_time_ns => 1_790_000_000 * 1_000_000_000, start_clock => $start,
        clock_hz => 1_000_000_000, process => 4711, cairn_version => '0.8.1', next => $used,
        architecture => 'x86-64', lost => 0, end_clock => 0, %{$log->{fields}});
    my $bytes = pack "a8 $log->{u32}4 $log->{u64}5 a16 $log->{u64} a16 $log->{u64}3", @header{qw(magic byte_order
        version header_bytes slot_bytes slot_count start_time_ns start_clock clock_hz process cairn_version next
        architecture lost end_clock)}, 0;
    my $empty = $header{slot_count} > $used ? $header{slot_count} - $used : 0;
    return $bytes . join('', @{$log->{slots}}) . "\0" x (64 * ($empty < 1000 ? $empty : 0));
}

# Returns a log with events of every kind.
sub example {
    my (%fields) = @_;
    my $log = EventLog->new(%fields);
    my $ms = 1_000_000;
    for my $module (1 .. 3) {
        my $name = qw(add fib main)[$module - 1];
        my $at = $module * 10 * $ms;
        $log->event('compilation', at => $at, name => $name, a => $start + $at - 5 * $ms, b => $start + $at,
            text => 'optimised', module => $module);
        $log->event('loaded', at => $at, name => "module_$name", address => 0x1000 * $module, a => 200 * $module,
            b => 5 * $ms, module => $module);
        $log->event('function', at => $at, name => $name, address => 0x1000 * $module, a => 100, module => $module);
        $log->event('version', at => $at + 1000, name => $name, a => $module, address => 0x1000 * $module, b => 1);
    }
    $log->event('version', at => 33 * $ms, name => 'fib', a => 4, address => 0x7000);
    $log->event('patched', at => 34 * $ms, address => 0x2010, id => 42, module => 2, a => 1, b => 0x9000);
    for my $i (1 .. 5) {
        my %at = (address => 0x2020, id => 42, module => 2, name => 'fib');
        $log->event('exit', at => (40 + $i) * $ms, %at, a => 17);
        $log->event('deopt', at => (40 + $i) * $ms + 1500, %at, a => 3 | 18 << 32, b => 1500, text => 'not a number');
    }
    $log->event('exit', at => 50 * $ms, address => 0x3020, id => 77, module => 3, name => 'main', a => ~0);
    $log->event('deopt', at => 50 * $ms + 500, address => 0x3020, id => 77, module => 3, name => 'main', a => 1, b => 500,
        text => 'assumption broken');
    my ($state, $key) = (0, 0xa0);
    for my $next (1, 2, 2, 3) {
        $log->event('cache', at => (60 + $key - 0xa0) * $ms, address => 0x1040, id => 90, module => 1, name => 'add',
            a => $state << 32 | $next, b => $next == 3 ? 0 : $key++);
        $state = $next;
    }
    $log->event('cache', at => 70 * $ms, address => 0x2040, id => 91, module => 2, name => 'fib', a => 1, b => 0xbeef);
    $log->event('invalidation', at => 80 * $ms, a => 1, b => 2, text => 'assumption');
    $log->event('invalidated', at => 80 * $ms, a => 1, b => 1, name => 'fib', module => 2, address => 0x2000);
    $log->event('invalidated', at => 80 * $ms, a => 1, b => 1, name => 'main', module => 3, address => 0x3000);
    $log->event('retired', at => 81 * $ms, module => 2);
    $log->event('grace', at => 82 * $ms, a => 0, id => 5);
    $log->event('grace', at => 85 * $ms, a => 1, b => 1, id => 5, thread => 8);
    $log->event('host', at => 90 * $ms, text => 'collected the garbage', a => 12, b => 34);
    return $log;
}

1;
