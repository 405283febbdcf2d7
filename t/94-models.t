# Tests that the tables of docs/models.md have the numbers of "vlm plan" for the shapes in bench/shapes.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
my $vlm = dirname($module) . '/vlm';
my $top = tempdir(CLEANUP => 1);
my $page = VLM::slurp('docs/models.md');
my ($n, %shape, %plan, @wrong) = (0);


# Returns the plan of a model with these options.
sub planned {
    my ($name, $options) = @_;

    return $plan{"$name $options"} ||= do {
        make_path("$top/$shape{$name}");
        copy("bench/shapes/$shape{$name}.json", "$top/$shape{$name}/config.json") or die "$shape{$name}: $!\n";

        my $said = `$vlm plan $top/$shape{$name} --device cpu --ops plain --threads 2 $options --json`;

        $? == 0 or die "vlm plan $name $options failed\n";
        decode_json($said);
    };
}


sub GB { return sprintf '%.2f', $_[0] / 1e9 }
sub MiB { return int(($_[0] + 1048575) / 1048576) . 'm' }

# Bytes of a token: those of a second slot.
sub token {
    my ($name, $options) = @_;
    my ($one, $two) = map { planned($name, "$options --context 4k --slots $_")->{kv} } 1, 2;

    return (($two - $one) / 4096) =~ s/(?<=\d)(?=(?:\d{3})+$)/,/gr;
}


# Compares the rows of a table with what its columns compute.
sub compare {
    my ($head, @columns) = @_;
    my ($rows) = $page =~ /^\| model \| \Q$head\E.*\n\|[-:|]+\n((?:\|.*\n)+)/m;

    ok($rows, "the page has the table with \"$head\"") or return;

    for my $row (split /\n/, $rows) {
        my (undef, $name, @cells) = split / *\| */, $row;

        ($name, $shape{$1}) = ($1, $2) if $name =~ m{^\[(.*)\]\(\.\./bench/shapes/(.*)\.json\)$};

        for my $i (grep { $columns[$_] } 0 .. $#columns) {
            my $right = $columns[$i]->($name);

            $n++;
            push @wrong, "$name: $cells[$i], computed $right" if $cells[$i] ne $right;
        }
    }
}


compare('of RoboBrain', undef, (map { my $w = $_; sub { GB(planned($_[0], "--weights $w")->{weights}) } } qw(bf16 int8 int4)),
        sub { GB(planned($_[0], '--weights int8')->{vision}) });
compare('`weights int8` |', map { my $o = $_; sub { token($_[0], $o) } }
        '--weights int8', '--weights int8 --kv int8', '--weights bf16');

my @heads = $page =~ /^\| model \| (`slots.*)$/mg;
is(scalar @heads, 2, 'the page has two tables of whole plans');
is($heads[0], $heads[1], 'with the same columns');

for my $weights (qw(int8 int4)) {
    my @columns = map { my ($s, $c) = @$_; sub { MiB(planned($_[0], "--weights $weights --slots $s --context $c")->{total}) } }
                  map { [/slots (\d+); context (\w+)/] } $heads[0] =~ /`(.*?)`/g;

    compare($heads[0], @columns);
    $page =~ s/^\| model \| \Q$heads[0]\E//m;           # the second table is that of int4
}

cmp_ok($n, '>=', 8 * (4 + 3 + 10), 'the tables have rows for eight models');
is(join("\n", @wrong), '', 'each number is that of vlm plan');

done_testing();
