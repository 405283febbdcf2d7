# Tests adapters that come and go under load: eight clients ask all the time, of the base and of adapters,
# while others load and unload them and replace one under its name.  No request fails, and each
# answer is the whole answer of one version that was loaded while it was made.
#
# VLM_ROUNDS=1000 makes it long; from 200 rounds on the worker's memory must stay the same, too.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use List::Util qw(max);
use Test::More;
use VLM;

my $ROUNDS = $ENV{VLM_ROUNDS} || 24;
my $CLIENTS = 8;
my $ROOT = Cwd::getcwd();
my $DIR = "$VLM::LIVE/adapters-dir";

system("rm -rf $DIR && mkdir -p $DIR && cp -r t/fidelity/lora/lora-a-list $DIR/one"
       . " && cp -r t/fidelity/lora/lora-a-attention $DIR/two") == 0 or die "no adapters in $DIR";

# A copy that has not come to its weights yet, and an adapter of another model.
system("mkdir $DIR/half && cp t/fidelity/lora/lora-a-list/adapter_config.json $DIR/half"
       . " && cp -r t/fidelity/lora/lora-b-head $DIR/odd") == 0 or die "no adapters in $DIR";

# There are places for the versions of "name" that answers still use.
my $s = VLM->new(name => 'adapters', model => "$ROOT/build/fidelity/tiny-a", workers => 2,
                 engine => "weights f32; context 1k; slots 3; queue 64 timeout=1h; timeout 1h; max_tokens 16;"
                           . " sampling temperature=0; lora $DIR rank=4 max=12 load=on;",
                 server => 'location = /metrics { vlm_status live; } location /adapter/ { vlm_pass live; }');
$s->start->ready;

sub question {
    my ($adapter) = @_;

    return ('POST', '/v1/chat/completions',
            { messages => [{ role => 'user', content => 'Where is the cup?' }],
              $adapter ? (model => $adapter) : () });
}

sub text { $_[0]{json} && $_[0]{json}{choices} && $_[0]{json}{choices}[0]{message}{content} }

sub memory {
    return VLM::slurp('/proc/' . $s->designated . '/status') =~ /^RssAnon:\s+(\d+) kB/m ? $1 : 0;
}

# ---- adapters that are left out ------------------------------------------------------------------

sub left_out { return { map { $_->{name} => $_->{reason} } @{ $s->health->{adapters_left_out} || [] } } }

my $out = left_out();
is_deeply([sort keys %$out], ['half', 'odd'], 'the model is ready without two adapters');
like($out->{half}, qr{half has no adapter_model\.safetensors}, 'health says why: the weights are missing');
like($out->{odd}, qr/5 tensors of no matrix of this model/, 'or of another model');
is_deeply([sort @{ $s->health->{adapters} }], ['one', 'two'], 'the others are there');
is_deeply([sort map { $_->{name} } @{ $s->get('/adapter/list')->{json}{left_out} }], ['half', 'odd'],
          'the list of adapters has them, too');

my $r = $s->begin(question('half'))->end;
is($r->{code}, 503, 'a request that names one is refused');
like($r->{body}, qr{Adapter \\"half\\" cannot be loaded at the moment: GET /api/health says why}, 'with a sentence');
is($s->get('/v1/models/half')->{code}, 503, 'it is no model');
is($s->post('/api/show', { model => 'half' })->{code}, 503, 'of Ollama neither');
is($s->begin(question(''))->end->{code}, 200, 'the base answers');

system("rm -r $DIR/odd && cp t/fidelity/lora/lora-a-list/adapter_model.safetensors $DIR/half") == 0 or die;
ok(VLM::wait_for(sub { !$s->health->{adapters_left_out} }), 'once it is whole it is loaded, and one that is gone is forgotten');
is($s->begin(question('half'))->end->{code}, 200, 'and answers');
is(scalar(grep { /left out until it can be loaded/ } split /\n/, $s->log), 2, 'the log has one line for each');
is($s->post('/v1/unload_lora_adapter', { lora_name => 'half' })->{code}, 200, 'it can be unloaded');

# ---- adapters that come and go -------------------------------------------------------------------

my %answer = map { $_ => text($s->begin(question($_ eq 'base' ? '' : $_))->end) } qw(base one two);
is(scalar(keys %{{ reverse %answer }}), 3, 'the base and each adapter have an answer of their own');

is($s->post('/v1/load_lora_adapter', { lora_name => 'name', lora_path => 'one' })->{code}, 200,
   'an adapter is loaded under another name');

my @names = ('base', 'one', 'two', ('name') x 5);
my $asked = 0;
my (@open, @failed, @odd, %done, $before);
my %may = (base => ['base'], one => ['one'], two => ['two'], name => ['one']);

# Takes the answers that are there.
sub take {
    my ($op) = @_;

    $s->drain(map({ $_->{request} } @open), $op || ());

    for my $client (grep { $_->{request}->done } @open) {
        my $r = $client->{request}->response;

        if ($r->{code} ne '200') {
            push @failed, "$client->{name}: $r->{code} $r->{body}";

        } elsif (!grep { text($r) eq $answer{$_} } keys %{ $client->{may} }) {
            push @odd, "$client->{name}: not the answer of " . join ' or ', sort keys %{ $client->{may} };
        }

        $done{$client->{name}}++;
    }

    @open = grep { !$_->{request}->done } @open;
}

# Takes answers, and asks again for each.
sub turn {
    take(@_);

    while (@open < $CLIENTS) {
        my $name = $names[$asked++ % @names];

        push @open, { name => $name, may => { map { $_ => 1 } @{ $may{$name} } },
                      request => $s->begin(question($name eq 'base' ? '' : $name)) };
    }
}

# Does something with an adapter beside the clients' requests, and says what its status is.
sub beside {
    my ($path, $body) = @_;

    my $op = $s->begin('POST', $path, $body);
    my $ok = VLM::wait_for(sub { turn($op); $op->done });

    return $ok ? $op->response->{code} : 0;
}

my %codes;

for my $round (1 .. $ROUNDS) {
    my $next = $round % 2 ? 'two' : 'one';

    # Until the answer, both versions may be the current one.
    push @{ $may{name} }, $next;
    $_->{may}{$next} = 1 for grep { $_->{name} eq 'name' } @open;
    $codes{beside('/v1/load_lora_adapter', { lora_name => 'name', lora_path => $next,
                                             load_inplace => JSON::PP::true })}++;
    $may{name} = [$next];

    $codes{beside('/v1/load_lora_adapter', { lora_name => 'other', lora_path => $next })}++;
    $codes{beside('/v1/unload_lora_adapter', { lora_name => 'other' })}++;

    $before = memory() if $round == int($ROUNDS / 5);
}

my $after = memory();

VLM::wait_for(sub { take(); !@open });

is_deeply([sort keys %codes], ['200'], "$ROUNDS replacements, loads and unloads succeed");
is_deeply(\@failed, [], 'no request fails');
is_deeply(\@odd, [], 'each answer is the whole answer of one version');
ok(!(grep { !$done{$_} } qw(base one two name)), 'the base and each adapter were asked meanwhile');
diag(join ', ', map { "$_: $done{$_}" } sort keys %done) if $ENV{VLM_ROUNDS};

my $m = $s->get('/metrics?format=json')->{json};
is($m->{vlm_adapter_requests_total}{two}, $done{two} + 1, 'the metrics have the requests of an adapter');
cmp_ok($m->{vlm_memory_bytes}{lora}, '>', 0, 'and the memory of all places');

my @listed = sort map { $_->{id} } @{ $s->get('/v1/models')->{json}{data} };
is_deeply(\@listed, [sort 'live', 'name', 'one', 'two'], 'the list is as it was before');

# Each version has left its place: all of the others can be taken.
is(scalar(grep { $s->post('/v1/load_lora_adapter', { lora_name => "free$_", lora_path => 'one' })->{code} eq '200' }
          1 .. 9), 9, 'all other places are free');
is($s->post('/v1/load_lora_adapter', { lora_name => 'full', lora_path => 'one' })->{code}, 409, 'and no more');

# The allocator's arenas settle in some 2,000 rounds, 3 % above a fifth of 1,000.
if ($ROUNDS >= 200) {
    cmp_ok($after, '<', $before * 1.05, "memory is flat: $before kB after a fifth of the rounds, $after kB at the end");
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
