# Tests `make fuzz`: each *_fuzz.c runs for a second, under AddressSanitizer and UBSan, from its seeds.

use strict;
use warnings;

use Test::More;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL SAN ENGINE_BUILD)};

my $said = `make -s fuzz FUZZ_SECONDS=1 2>&1`;

is($?, 0, 'make fuzz finds nothing') or diag(substr $said, -4000);

my %units = $said =~ /^---- (\w+), 1 s\nstat::number_of_executed_units: *(\d+)$/mg;
my %seeds = map { my ($name) = m{(\w+)\.c$}; $name => scalar(() = glob "t/fixtures/fuzz/$name/*") } glob '{engine,lib}/*/*_fuzz.c http/*_fuzz.c';

is(join(' ', sort keys %units), join(' ', sort keys %seeds), 'it runs every target');
# libFuzzer runs the seeds and an empty input before it looks at the clock.
is(join(' ', grep { $units{$_} <= $seeds{$_} } sort keys %units), '', 'each has run its seeds');

done_testing();
