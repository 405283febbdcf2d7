# Tests that waiting threads do not delay others: a free slot is reserved for a request of
# higher priority whose prompt is almost ready; a request times out while it is prepared; a
# locked store delays neither requests without a session nor the work of nginx's own pool;
# the error log says if worker_cpu_affinity leaves the engine fewer processors than there are.

use strict;
use warnings;

use lib 't/lib';
use IPC::Open2;
use Script;
use Test::More;
use Time::HiRes qw(time);
use VLM;

# A token takes some milliseconds.
$Script::MLP = 16384;

my $model = Script::model('threads', '' => ['On', ' then', ' on', undef]);

sub server {
    my (%conf) = @_;

    return VLM->new(model => $model, main => 'thread_pool default threads=1;', %conf,
                    engine => 'thinking off; weights f32; threads 1; max_tokens 3000; context 4k; slots 1; '
                              . $conf{engine})->start->ready;
}

sub ask {
    my ($s, $key, $tokens) = @_;

    return $s->begin('POST', '/v1/chat/completions',
                     { max_tokens => $tokens, messages => [{ role => 'user', content => 'hi' }] },
                     { 'X-Key' => $key });
}

# Returns the threads that parse and make prompts, and the watchdog's, after the loop, the engine and
# the "default" pool.
sub makers {
    my ($pid) = @_;
    my (undef, undef, undef, @tids) = sort { $a <=> $b } map { m{/(\d+)$} } glob "/proc/$pid/task/*";

    return @tids;
}

# Stops these threads, which have nothing to do; the engine and the loop go on.
sub halt { VLM::halt(sub { !grep { !VLM::waits($_) } @_ }, @_) or die 'the threads do not rest' }

# ---- a slot, and a prompt that is almost ready ---------------------------------------

{
    my $s = server(name => 'threads-priority', http => 'map $http_x_key $how { default normal; gold high; }',
                   engine => 'priority $how age=1m;');
    my @threads = makers($s->designated);
    my ($gold, $normal, $took);

    # The reservation lasts a second; a machine that takes longer for these steps tries again.
    for my $try (1 .. 10) {
        my $first = ask($s, 'first', 3000);
        $s->busy(1, 0);

        $normal = ask($s, 'normal', 60);
        $s->busy(1, 1);
        $s->post('/v1/chat/completions', { messages => 1 }) for 1 .. 3;    # parsed behind it

        halt(@threads);
        $gold = ask($s, 'gold', 60);
        $s->busy(1, 2);
        $first->leave;

        VLM::wait_for(sub { $s->drain($normal); $normal->done || !$s->health->{queue}{running} });
        $took = time - $gold->{begun};

        VLM::resume(@threads);
        $s->end_all($gold, $normal);

        last if $took < 0.9;
    }

    is($gold->response->{code}, 200, 'the one of high priority is answered');
    is($normal->response->{code}, 200, 'the earlier request is answered');
    cmp_ok($gold->{ended}, '<', $normal->{ended}, 'a slot is not given away while a higher priority is a moment away')
        or diag("it took $took s");

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- a request in preparation ----------------------------------------------------------

{
    my $s = server(name => 'threads-clock', engine => 'queue 4 timeout=1s;');
    my @threads = makers($s->designated);

    halt(@threads);

    my $late = ask($s, '', 1);
    VLM::wait_for(sub { time - $late->{begun} > 1.5 });
    $s->health for 1 .. 3;              # the loop has handled its timers since
    ok(!$late->more(0), 'a request is in a thread that does not return');

    VLM::resume(@threads);
    $s->end_all($late);

    is($late->response->{code}, 503, 'the time in the queue goes on while a request is prepared');
    is($late->response->{json}{error}{code}, 'queue_timeout', 'the timeout ends the request');

    is(ask($s, '', 1)->end->{code}, 200, 'the next is answered');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- a locked store ------------------------------------------------------------------

{
    my $s = server(name => 'threads-store', engine => '');
    my $lock = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
               . "c.execute('BEGIN IMMEDIATE')\nprint('locked', flush=True)\nsys.stdin.read()\n";

    my $pid = open2(my $said, my $hold, 'python3', '-c', $lock, $s->dir . '/store/vlm.db');
    is(scalar <$said>, "locked\n", 'another process holds the store');

    my $name = $s->get('/v1/models')->{json}{data}[0]{id};
    # More than are prepared at once on any machine.
    my @chats = map { $s->begin_chat("s$_", 'hi') } 1 .. 10;
    my $text = ask($s, '', 1);
    my $show = $s->begin('POST', '/api/show', { model => $name });

    $s->end_all(@chats, $text, $show);

    is($text->response->{code}, 200, 'a question without a session is answered');
    is($show->response->{code}, 200, "a thread of nginx's pool works");

    my ($last) = sort { $b <=> $a } map { $_->{ended} } $text, $show;
    my ($refused) = sort { $a <=> $b } map { $_->{ended} } @chats;

    cmp_ok($last, '<', $refused, 'requests without a session are answered while turns of sessions wait for the store');
    is(join(' ', map { $_->response->{code} } @chats), join(' ', (503) x 10), 'the store is busy');

    close $hold;
    waitpid $pid, 0;

    ok(VLM::wait_for(sub { $s->chat('last', 'hi')->{code} == 200 }), 'the store is used again once it is unlocked');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- worker_cpu_affinity -----------------------------------------------------------------

{
    my ($wide) = VLM::slurp('docs/directives.md') =~ /`(worker_cpu_affinity 1+ 0+1;)`/;

    # The page's masks are those of four processors.
    $wide =~ s/\b1+\b/'1' x `nproc --all`/e;

    my ($free, $bound, $given) = map {
        my $s = VLM->new(name => 'threads-bound', model => $model, workers => 2, main => $_, engine => '')
                ->start->ready;
        my ($threads) = $s->health->{device} =~ /, (\d+) threads?$/;
        my @warned = $s->log =~ /\[warn\].*worker_cpu_affinity (leaves the engine \d+ of \d+ processors)/g;

        ok($s->stop, 'the server stops in time');
        { threads => $threads, warned => "@warned" }
    } '', 'worker_cpu_affinity auto;', $wide;

    my $all = $free->{threads};         # 1, where this test has one processor: then nothing is lost

    is($free->{warned}, '', 'no warning without worker_cpu_affinity');
    is($bound->{threads}, 1, 'the engine computes on the one processor that its worker is bound to');
    is($bound->{warned}, $all > 1 ? "leaves the engine 1 of $all processors" : '', 'the error log says so');
    is("$given->{threads} $given->{warned}", "$all ", "$wide leaves it all of them");
}

done_testing();
