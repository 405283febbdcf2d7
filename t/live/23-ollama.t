# Tests Ollama's API in long requests: while the model loads, in the queue, and
# with errors after the header.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $JSON = JSON::PP->new->utf8;

# The time suffices for a server under the sanitizers, too.
my $LIMIT = $ENV{VLM_REPORTS} ? 20 : 5;

sub lines { map { $JSON->decode($_) } split /\n/, $_[0]{body} }

my $s = VLM->new(VLM::slow(name => 'ollama', workers => 2,
                           engine => "slots 1; queue 8 timeout=1h; timeout ${LIMIT}s;"));

sub generate {
    my (%fields) = @_;

    return $s->begin('POST', '/api/generate', { model => 'live', %fields });
}

$s->start;

# A request to load is answered once the model is loaded.
my $load = $s->begin('POST', '/api/chat', { model => 'live', messages => [] });
my $tags = $s->get('/api/tags');
is($tags->{code}, 200, 'the model is listed while it loads');
is($tags->{json}{models}[0]{name}, 'live:latest', 'the list has the name of the model');

my $r = $load->end;
is($r->{code}, 200, 'a request to load during the load succeeds');
is($r->{json}{done_reason}, 'load', 'done_reason is load');
ok($s->health->{model_loaded}, 'the model is loaded after that answer');
is(scalar @{ $s->get('/api/ps')->{json}{models} }, 1, '/api/ps lists the model');

# A waiting client receives the header, and an error after it is the last line.
my $first = generate(prompt => 'hello', raw => JSON::PP::true());
ok($s->busy(1), 'a request runs');

my $start = time;
my $second = generate(prompt => 'hello', raw => JSON::PP::true());
ok($second->more, 'the next receives its header');
cmp_ok(time - $start, '>', 1.5, 'the header comes after two seconds');
like($second->{raw}, qr/^HTTP\/1\.1 200 .*application\/x-ndjson.*\r\n\r\n$/s,
     'the header comes without a line');

$r = $first->end($LIMIT + 30);
my @lines = lines($r);
is($r->{code}, 200, 'the first had begun');
like($lines[-1]{error}, qr/took longer than $LIMIT seconds/,
     'the error is the last line');
ok(!grep({ $_->{done} } @lines), 'no line has done');
cmp_ok(scalar @lines, '>', 1, 'lines with text come before');

$r = $second->end($LIMIT + 30);
like((lines($r))[-1]{error}, qr/took longer than $LIMIT seconds/, 'the other stream has the same error');

# An answer without a stream has the status of its error.
$r = generate(prompt => 'hello', stream => JSON::PP::false())->end($LIMIT + 30);
is($r->{code}, 504, 'an answer without a stream has the error as its status');
like($r->{json}{error}, qr/took longer/, 'the body has the error');

# A client that leaves during a stream frees the slot.
my $goes = generate(prompt => 'hello', raw => JSON::PP::true());
$goes->more until $goes->{raw} =~ /"done":false/ || $goes->done;
$goes->leave;
ok($s->busy(0), 'a client that leaves frees the slot');

$s->check_log;

done_testing();
