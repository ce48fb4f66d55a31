# Prints a random Lox program: classes that inherit, polymorphic calls, closures, loops. It ends, because each
# function has a share of a global budget of calls. About one in four ends with a run-time error.
#
# usage: perl random.pl SEED
# SPDX-License-Identifier: MIT
use strict;
use warnings;

my $seed = shift // time;
srand $seed;

my @fields = qw(a b c d e);
my @method_names = qw(m0 m1 m2 m3);
my $error_rate = rand() < 0.3 ? 0.01 : 0; # for each expression
my ($class_count, $function_count) = (2 + int rand 4, 2 + int rand 4);
my (@classes, $unit, $indent, $labels);

sub pick { return $_[rand @_] }
sub chance { return rand() < $_[0] }

# What an expression may refer to, where it stands: names of variables by type, the number of functions that
# may be called, whether there is `this`, and the class.
sub scope { return {numbers => [@_ ? @{$_[0]{numbers}} : ()], strings => [@_ ? @{$_[0]{strings}} : ()],
    objects => [@_ ? @{$_[0]{objects}} : ()], map { $_ => $_[0]{$_} } qw(functions this class)} }

sub object {
    my ($scope, $depth) = @_;
    return 'this' if $scope->{this} && chance(0.3);
    return pick(@{$scope->{objects}}) if @{$scope->{objects}} && chance(0.8);
    return "C" . int(rand $class_count) . '(' . number($scope, $depth - 1) . ')';
}

sub wrong { return pick('nil', '"s"', 'true', 'missing', 'C0', 'clock', 'C0(1).missing', 'C0(1).missing()', '1()') }

sub number {
    my ($scope, $depth) = @_;
    return wrong() if chance($error_rate);
    if ($depth <= 0 || chance(0.2)) {
        return pick(@{$scope->{numbers}}) if @{$scope->{numbers}} && chance(0.7);
        return pick(0, 1, 2, 3, 7, 0.5, 1000, 123456789);
    }
    my $kind = int rand 12;
    return '(' . number($scope, $depth - 1) . ' ' . pick(qw(+ - * + - /)) . ' ' . number($scope, $depth - 1) . ')'
        if $kind < 5;
    return '-' . number($scope, $depth - 1) if $kind == 5;
    return object($scope, $depth - 1) . '.' . pick(@fields) if $kind < 8;
    return object($scope, $depth - 1) . '.' . pick(@method_names) . '(' . number($scope, $depth - 2) . ')' if $kind < 10;
    return 'super.' . pick(@method_names) . '(' . number($scope, $depth - 2) . ')'
        if $kind == 10 && $scope->{class} && $scope->{this};
    return 'f' . int(rand $scope->{functions}) . '(' . number($scope, $depth - 2) . ', ' . object($scope, $depth - 2) . ')'
        if $scope->{functions};
    return '(' . pick(@{$scope->{numbers}}) . ' = ' . number($scope, $depth - 1) . ')' if @{$scope->{numbers}};
    return 4;
}

sub text {
    my ($scope, $depth) = @_;
    return pick('"x"', '"long text"', '""', @{$scope->{strings}}) if $depth <= 0 || chance(0.4);
    return '(' . pick('"p"', '"q"', @{$scope->{strings}}) . ' + ' . pick('"y"', '"z"', '"text"') . ')';
}

sub condition {
    my ($scope, $depth) = @_;
    my $kind = int rand 8;
    return number($scope, $depth - 1) . ' ' . pick('<', '<=', '>', '>=', '==', '!=') . ' ' . number($scope, $depth - 1)
        if $kind < 4;
    return text($scope, $depth) . ' ' . pick('==', '!=') . ' ' . text($scope, $depth) if $kind == 4;
    return '!(' . condition($scope, $depth - 1) . ')' if $kind == 5 && $depth > 0;
    return '(' . condition($scope, $depth - 1) . ' ' . pick('and', 'or') . ' ' . condition($scope, $depth - 1) . ')'
        if $depth > 0;
    return pick('true', 'false', 'nil', object($scope, 0) . ' == ' . object($scope, 0));
}

sub line { return '  ' x $indent . "$_[0]\n" }

sub block {
    my ($scope, $depth, $count) = @_;
    my $inner = scope($scope);
    $indent++;
    my $text = join '', map { statement($inner, $depth) } 1 .. $count;
    $indent--;
    return "{\n$text" . '  ' x $indent . '}';
}

sub loop {
    my ($scope, $depth) = @_;
    my $name = 'i' . $labels++;
    my $inner = scope($scope);
    push @{$inner->{numbers}}, "($name + 0)"; # which is not assigned to, so that the loop ends
    my $bound = 1 + int rand 6;
    return line("for (var $name = 0; $name < $bound; $name = $name + 1) " . plain_block($inner, $depth - 1)) if chance(0.6);
    return line("{ var $name = $bound; while ($name > 0) { $name = $name - 1;")
        . line(plain_block($inner, $depth - 1) . ' } }');
}

# A block in which loop variables are not assigned to.
sub plain_block {
    my ($scope, $depth) = @_;
    return block($scope, $depth, 1 + int rand 3) =~ s/\(\((i\d+) \+ 0\) = /(g0 = /gr =~ s/^(\s*)\((i\d+) \+ 0\) = /$1g0 = /mgr;
}

sub closure {
    my ($scope, $depth) = @_;
    my ($name, $variable) = ('k' . $labels++, 'v' . $labels++);
    my $text = line("var $variable = " . number($scope, 1) . ';');
    my $inner = scope($scope);
    push @{$inner->{numbers}}, $variable, 'p';
    $text .= line("fun $name(p) { $variable = $variable + 1; return " . number($inner, 2) . '; }');
    push @{$scope->{numbers}}, $variable;
    return $text . line("print $name(" . number($scope, 1) . ") + $name(2);");
}

sub statement {
    my ($scope, $depth) = @_;
    my $kind = int rand 14;
    if ($kind < 2) {
        my $name = 'n' . $labels++;
        my $text = line("var $name = " . number($scope, 3) . ';');
        push @{$scope->{numbers}}, $name;
        return $text;
    }
    return line('print ' . number($scope, 3) . ';') if $kind == 2;
    return line('print ' . text($scope, 2) . ';') if $kind == 3;
    return line(object($scope, 1) . '.' . pick(@fields) . ' = ' . number($scope, 3) . ';') if $kind < 6;
    return line(pick(@{$scope->{numbers}}) . ' = ' . number($scope, 3) . ';') if $kind < 8 && @{$scope->{numbers}};
    return line('s0 = ' . text($scope, 1) . ';') if $kind == 8;
    return line('o' . int(rand 3) . ' = ' . object($scope, 2) . ';') if $kind == 9;
    return line(condition($scope, 2) . ';') if $depth <= 0;
    return line('if (' . condition($scope, 2) . ') ' . block($scope, $depth - 1, 1 + int rand 2)
            . (chance(0.5) ? ' else ' . block($scope, $depth - 1, 1) : '')) if $kind < 12;
    return closure($scope, $depth) if $kind == 12;
    return loop($scope, $depth);
}

sub function {
    my ($head, $scope, $argument) = @_;
    my $inner = scope($scope);
    push @{$inner->{numbers}}, 'x';
    push @{$inner->{objects}}, 'y' if $argument;
    $indent = 1;
    my $body = join '', map { statement($inner, 2) } 1 .. int rand 4;
    return "$head {\n  budget = budget - 1;\n  if (budget < 0) return 0;\n$body  return " . number($inner, 3) . ";\n}\n";
}

sub class {
    my ($number) = @_;
    my $parent = $number > 0 && chance(0.6) ? int rand $number : undef;
    my $scope = {numbers => ['g0', 'g1'], strings => ['s0'], objects => ['o0', 'o1'], functions => 0, this => 1,
        class => defined $parent};
    my $text = "class C$number" . (defined $parent ? " < C$parent" : '') . " {\ninit(x) {\n";
    $text .= "  super.init(x);\n" if defined $parent;
    # All fields, in an order of the class; a subclass adds none.
    my @order = sort { rand() <=> 0.5 } @fields;
    $text .= join '', map { "  this.$_ = " . pick('x', 'x + 1', '0', '2') . ";\n" } @order;
    $text .= "}\n";
    my @names = defined $parent ? grep { chance(0.5) } @method_names : @method_names;
    $text .= function("$_(x)", $scope) for @names;
    return "$text}\n";
}

print "// seed $seed\nvar budget = 3000; var g0 = 1; var g1 = 2; var s0 = \"s\"; var o0; var o1; var o2;\n";
print class($_) for 0 .. $class_count - 1;
my $globals = {numbers => ['g0', 'g1'], strings => ['s0'], objects => ['o0', 'o1', 'o2'], functions => 0};
for my $number (0 .. $function_count - 1) {
    print function("fun f$number(x, y)", {%$globals, functions => $number}, 1);
}
print "o0 = C0(1); o1 = C1(2); o2 = C" . int(rand $class_count) . "(3);\n";
$globals->{functions} = $function_count;
$indent = 0;
print statement($globals, 3) for 1 .. 6;
print "for (var round = 0; round < 40; round = round + 1) {\n";
print "  g0 = round; var o = o0; o0 = o1; o1 = o2; o2 = o;\n";
$indent = 1;
print statement(scope($globals), 3) for 1 .. 6;
print "  if (budget < 0) budget = 100;\n}\nprint g0; print g1; print s0; print o0.a; print o1.b;\n";
