# Tests the store with several workers: all workers see each change, an upload that
# is cut leaves no files, and unused entries are evicted.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep);
use VLM;

my $s = VLM->new(name => 'store', workers => 4, store => 'expires=1h max=1m',
                 listen => 'reuseport',
                 engine => 'thinking off; max_tokens 4;');

sub form {
    my ($name, $data) = @_;

    return ("--xxxx\r\nContent-Disposition: form-data; name=\"file\"; "
            . "filename=\"$name\"\r\n\r\n$data\r\n--xxxx--\r\n",
            { 'Content-Type' => 'multipart/form-data; boundary=xxxx' });
}

sub upload {
    my ($name, $data) = @_;

    return $s->begin('POST', '/api/upload', form($name, $data))->end->{json}
           || {};
}

sub files {
    my @files = glob "$s->{dir}/$_[0]";

    return scalar @files;
}

# Old files are made before the start, so that the server's first sweep finds them;
# a session refers to one of them.

$s->start;

my $old = upload('old.png', 'o' x 1000);
my $kept = $s->upload('t/fidelity/pictures/40x30.png');

utime time - 7200, time - 7200, "$s->{dir}/store/uploads/$_"
    for $old->{filename}, $kept;

is($s->chat('keeps', 'hi', image => $kept)->{code}, 200, 'a session has one');

# ---- any worker -------------------------------------------------------------

my (%made, %seen, %workers);

for (1 .. 40) {
    # A store that another worker holds for a moment answers 503.
    my $r = VLM::wait_for(sub { my $r = $s->post('/api/session'); $r->{code} ne '503' && $r });

    $made{$r->{json}{session_id}} = 1 if $r->{json}{session_id};
    $workers{$r->{headers}{'x-worker'} || 0} = 1;
}

is(scalar keys %made, 40, 'forty sessions have forty names');
cmp_ok(scalar keys %workers, '>', 1, 'more than one worker made them');

for my $id (keys %made) {
    # A store that another worker has locked answers 503.
    my $r = VLM::wait_for(sub { my $r = $s->get("/api/history/$id"); $r->{code} ne '503' && $r });

    $seen{$id} = 1 if $r->{code} eq '200' && $r->{body} eq "[]\n";
}

is(scalar keys %seen, 40, 'each is known to whichever worker is asked');
ok(VLM::wait_for(sub { ($s->health->{active_sessions} // 0) == 41 }), 'all are counted');

my %same = map { upload('same.png', 's' x 5000)->{filename} => 1 } 1 .. 20;

is(scalar keys %same, 1, 'the same file, sent to all of them, is kept once');

my @at_once = map {
    $s->begin('POST', '/api/upload', form('at-once.png', 'a' x 50_000))
} 1 .. 20;

is(scalar(grep { $_->{code} eq '200' } $s->end_all(@at_once)), 20,
   'twenty at once');

# ---- clients that leave -----------------------------------------------------

my @before = $s->workers;

for my $i (1 .. 150) {
    my ($body, $headers) = form("leaver-$i.png", 'l' x 100_000);

    # some while they send, some while a thread writes their file
    $body = substr $body, 0, $i * 900 if $i % 3 == 0;
    $headers->{'Content-Length'} = 100_100 if $i % 3 == 0;

    my $r = $i % 5 == 1 ? $s->begin('POST', '/api/session')
                        : $s->begin('POST', '/api/upload', $body, $headers);
    sleep 0.001 * ($i % 4);
    $r->leave;
}

is($s->post('/api/session')->{code}, 200, 'the next is served');

ok(VLM::wait_for(sub { !files("store/uploads/.*.tmp") }),
   'no half-written file is left');
is(join(' ', $s->workers), join(' ', @before), 'the workers are the same');
ok(VLM::wait_for(sub { !files("client_body/*") }),
   'no body is left');

# ---- eviction ---------------------------------------------------------------

ok($s->log_has(qr/removed from the store: 0 sessions, 1 files and 0 documents of 1000 bytes/), 'an upload that was unused for an hour is evicted');
is($s->get($old->{url})->{code}, 404, 'the evicted upload is not found');
is($s->get("/uploads/$kept")->{code}, 200, 'an upload of a session remains');

ok($s->stop, 'the server stops in time');
$s->check_log();


# ---- the default limit ------------------------------------------------------

# A sparse file has the size of the limit, and is old enough for eviction.
sub large {
    my ($server) = @_;

    my $file = "$server->{dir}/store/uploads/large.png";

    File::Path::make_path("$server->{dir}/store/uploads");
    open my $out, '>', $file or die "$file: $!";
    truncate $out, 11 * 1024 ** 3 or die "$file: $!";
    close $out;
    utime time - 7200, time - 7200, $file;

    return $file;
}

my $off = VLM->new(name => 'store-off', store => 'max=off');
my $ten = VLM->new(name => 'store-ten');
my ($stays, $goes) = map { large($_) } $off, $ten;

$off->start->ready;
$ten->start->ready;

ok($ten->log_has(qr/removed from the store: 0 sessions, 1 files and 0 documents of 11811160064 bytes/),
   'a store without max= has ten gigabytes');
ok(!-e $goes, 'files beyond the limits are evicted');
ok(-e $stays, 'max=off keeps all');

for ($off, $ten) {
    ok($_->stop, 'the server stops in time');
    $_->check_log;
}

done_testing();
