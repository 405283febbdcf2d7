# Tests what a server says of a model whose files are quantised: two GGUF files.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use Test::More;
use VLM;

my $FILES = getcwd() . '/t/fixtures/gguf';

sub server {
    my ($name, $form, $weights) = @_;

    return VLM->new(name => "files-$name", model => "$FILES/$form.gguf mmproj=$FILES/mmproj-$form.gguf",
                    engine => "thinking off; weights $weights; max_tokens 4;")->start->ready;
}

my $s = server('rounded', 'q8_0', 'int8');

like($s->log, qr/\[notice\] .*the files of the model have \d+ quantised matrices \(GGUF Q8_0\): answers are those of the rounded values, of which weights int8 rounds \d+ again$/m,
     'the log has what quantised files mean for answers, and that int8 rounds again');
is(scalar(() = $s->log =~ /quantised matrices/g), 1, 'the log has this once');
is($s->chat('a', 'What is it?', text_only => JSON::PP::true)->{code}, 200, 'the model answers');
ok($s->stop, 'the server stops in time');
$s->check_log;

$s = server('once', 'q8_0', 'bf16');
like($s->log, qr/\[notice\] .*\(GGUF Q8_0\): answers are those of the rounded values$/m,
     'weights bf16 rounds no more');
ok($s->stop, 'the server stops in time');

$s = server('plain', 'bf16', 'bf16');
unlike($s->log, qr/quantised matrices/, 'files that are not quantised have no such line');
ok($s->stop, 'the server stops in time');

done_testing();
