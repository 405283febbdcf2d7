# Tests vlm_status: it has the counters in Prometheus' format and as JSON, at any
# worker and across a reload, and refuses clients of other machines.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $s = VLM->new(name => 'metrics', workers => 2,
                 engine => 'thinking off; slots 1; queue 2 timeout=20s; max_tokens 64;'
                           . ' sampling temperature=0;',
                 server => 'set_real_ip_from 127.0.0.1;'
                           . ' location = /metrics { vlm_status live; }'
                           . ' location = /open { vlm_status live from=any; }');

$s->start->ready;

sub metrics { JSON::PP->new->decode($s->get('/metrics?format=json')->{body}) }

my $picture = $s->upload('demo/pictures/table-01.png');

# ---- counting ----------------------------------------------------------------

my $m = metrics();
is($m->{vlm_ready}, 1, 'the engine is ready');
is($m->{vlm_state}{ready}, 1, 'the state is ready');
is($m->{vlm_requests_answered_total}{stop}, 0, 'no request was answered yet');
cmp_ok($m->{vlm_memory_bytes}{total}, '>', 1e6, 'the plan has its metrics');
cmp_ok($m->{vlm_model_load_seconds}, '>=', 0, 'the metrics have the time of the load');
cmp_ok($m->{vlm_loop_heartbeat_age_seconds}, '<', 2, 'the loop has a heartbeat');
is($m->{vlm_queue_size}, 2, 'the queue has its length');

is($s->chat('a', 'How many cups are there?', image => $picture)->{code}, 200, 'a question is answered');
is($s->post('/v1/chat/completions', { max_tokens => 1, messages => [
    { role => 'user', content => 'hello' }] })->{code}, 200, 'an answer ends at max_tokens');
is($s->post('/v1/chat/completions', { messages => [] })->{code}, 400, 'an invalid request is refused');
is($s->chat('b', 'x' x 60000, image => $picture)->{code}, 400, 'a prompt that is too long is refused');

# A refusal is counted after it was sent, which can be shortly after it has arrived.
VLM::wait_for(sub { metrics()->{vlm_requests_rejected_total}{limit} });

$m = metrics();
is($m->{vlm_requests_answered_total}{stop}, 1, 'an answer that ended is counted');
is($m->{vlm_requests_answered_total}{length}, 1, 'an answer that was cut is counted');
is($m->{vlm_requests_rejected_total}{input}, 1, 'an invalid request is counted');
is($m->{vlm_requests_rejected_total}{limit}, 1, 'a request that does not fit is counted');
is($m->{vlm_images_total}, 1, 'a prompt that cannot fit is refused before its picture is encoded');
cmp_ok($m->{vlm_image_tokens_total}, '>', 10, 'the tokens of pictures are counted');
cmp_ok($m->{vlm_prompt_tokens_total}, '>', $m->{vlm_image_tokens_total} / 2, 'the tokens of prompts are counted');
cmp_ok($m->{vlm_generation_tokens_total}, '>=', 2, 'the tokens of answers are counted');
is($m->{vlm_request_seconds}{count}, 2, 'two requests have a time');
is($m->{vlm_time_to_first_token_seconds}{count}, 2, 'two requests have a first token');
is($m->{vlm_vision_seconds}{count}, 1, 'one request had a picture');
cmp_ok($m->{vlm_prefill_seconds}{sum}, '<', $m->{vlm_request_seconds}{sum} + 0.01,
       'a part is no more than the whole');

# ---- the format --------------------------------------------------------------

my $r = $s->get('/metrics');
like($r->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4}, 'Prometheus\' type');

my (%type, %help, @odd, %seen);

for my $line (split /\n/, $r->{body}) {
    if ($line =~ /^# HELP (vlm_\w+) \S/) {
        $help{$1}++;

    } elsif ($line =~ /^# TYPE (vlm_\w+) (gauge|counter|histogram)$/) {
        $type{$1} = $2;

    } elsif ($line =~ /^(vlm_\w+?)(_bucket|_sum|_count)?(?:\{((?:\w+="[^"\\]*",?)+)\})? (\d+(?:\.\d+)?)$/) {
        my ($name, $part, $which) = ($1, $2 // '', $3 // '');
        $name .= $part, $part = '' unless $type{$name};
        push @odd, $line unless $type{$name} && $help{$name} == 1;
        push @odd, $line if ($type{$name} || '') eq 'histogram' xor $part;
        push @odd, $line if $seen{"$name$part$which"}++;
        push @odd, $line if ($type{$name} || '') eq 'counter' xor $name =~ /_total$/;

    } else {
        push @odd, $line;
    }
}

is(scalar @odd, 0, 'every line is of the format') or diag(join "\n", @odd);
cmp_ok(scalar keys %type, '>=', 30, 'the page has enough metrics');
is_deeply([sort keys %type], [sort keys %$m], 'both forms have the same');

my @buckets = $r->{body} =~ /^vlm_request_seconds_bucket\{le="[^"]+"\} (\d+)$/mg;
is_deeply(\@buckets, [sort { $a <=> $b } @buckets], 'buckets grow');
is($buckets[-1], 2, 'the last bucket is the count');

my %told = map { $_ => 1 } map { s/_(?:bucket|sum|count)$//r }
           map { VLM::slurp($_) =~ /\b(vlm_\w+)/g } glob 'conf/grafana/* conf/prometheus/*';
is_deeply([grep { !$type{$_} } sort keys %told], [],
          'the dashboard and the alerts know no others');

my ($table) = VLM::slurp('docs/metrics.md') =~ /^\| metric \|(.*?)^Buckets/ms;
my %page = map { $_ => 1 } $table =~ /\b(vlm_\w+)/g;
is_deeply([sort keys %page], [sort keys %type], 'the page has all of them');

$r = $s->begin('GET', '/metrics', undef, { Accept => 'application/json' })->end;
is(ref $r->{json}, 'HASH', 'a client that accepts JSON receives it');
is($s->post('/metrics')->{code}, 405, 'nothing can be posted there');

# ---- access ------------------------------------------------------------------

my $far = { 'X-Real-IP' => '192.0.2.7' };
is($s->begin('GET', '/metrics', undef, $far)->end->{code}, 403, 'a client from elsewhere is refused');
is($s->begin('GET', '/open', undef, $far)->end->{code}, 200, 'from=any allows other machines');
is($s->begin('GET', '/metrics', undef, { 'X-Real-IP' => '127.9.9.9' })->end->{code}, 200,
   'loopback has more than one address');
is($s->begin('GET', '/metrics', undef, { 'X-Forwarded-For' => '127.0.0.1', %$far })->end->{code},
   403, 'the headers of a client have no effect');

# ---- refusals, and clients that leave ----------------------------------------

ok($s->reload, 'the server reloads');
$s->ready;
is(metrics()->{vlm_requests_answered_total}{stop}, 1, 'the reload loses no count');

ok($s->stop, 'the server stops in time');

$s = VLM->new(VLM::slow(name => 'metrics-slow', workers => 2,
                        engine => 'slots 1; queue 1 timeout=3s; timeout 8s;',
                        server => ' location = /metrics { vlm_status live; }'));
$s->start->ready;
$picture = $s->upload('t/fidelity/pictures/40x30.png');

my $one = $s->begin_chat('a', 'count', image => $picture);
ok($s->busy(1, 0), 'one runs');
my $two = $s->begin_chat('b', 'count', image => $picture);
ok($s->busy(1, 1), 'one waits');
is($s->chat('c', 'count', image => $picture)->{code}, 429, 'one is refused');
is($two->end->{code}, 503, 'the one that waits gives up');
is($one->end->{code}, 504, 'the one that runs takes too long');

my $three = $s->begin_chat('d', 'count', image => $picture);
ok($s->busy(1, 0), 'another runs');
$three->leave;
ok($s->busy(0, 0), 'its client leaves');

$m = metrics();
is($m->{vlm_requests_rejected_total}{queue_full}, 1, 'the queue was full once');
is($m->{vlm_requests_rejected_total}{queue_timeout}, 1, 'one waited too long');
is($m->{vlm_requests_rejected_total}{timeout}, 1, 'one answer took too long');

# The request may end before the engine has reported that its slot is taken.
my $left = $m->{vlm_requests_cancelled_total};
is($left->{prepare} + $left->{queue} + $left->{prompt} + $left->{decode}, 1, 'one left');

for my $why (qr/queue_full: The queue is full: 1 requests are waiting; 1 waiting, 1 running/,
             qr/queue_timeout: No slot became free within 3 seconds; /,
             qr/timeout: The answer took longer than 8 seconds; /) {
    my @lines = $s->log() =~ /(vlm_engine "live" refused, $why)/g;
    is(scalar @lines, 1, "one line says \"$why\"");
}

# The last request took 8 s in the only slot, which is the estimate for the next.
$one = $s->begin_chat('e', 'count', image => $picture);
ok($s->busy(1, 0), 'one runs');
$two = $s->begin_chat('f', 'count', image => $picture);
ok($s->busy(1, 1), 'one waits');
$r = $s->chat('g', 'count', image => $picture);
my $mean = ($s->get('/metrics')->{body} =~ /^vlm_service_seconds ([\d.]+)$/m)[0];
cmp_ok($mean, '>', 0, 'the running mean of the service is known');
is($r->{headers}{'retry-after'}, POSIX::ceil($mean), 'Retry-After is the estimated time');

$_->leave for $one, $two;

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
