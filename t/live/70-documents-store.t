# Many documents in a store with a limit: it ends at `store max=`, and what is evicted is gone whole.
# VLM_MB=1000 sends 1 GB and lets 200 MB stay; by default it is 24 MB.
#
# Documents of the last ten minutes are never evicted, so their last use is moved back by an hour.  It
# is that of their session, so those of one session, here two, go together.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Find ();
use Test::More;
use VLM;

my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';

my $total = $ENV{VLM_MB} || 25;                   # megabytes
my $max = int($total / 5);
my $each = $total < 200 ? 1 : 5;
my $rounds = 2;
my $count = int($total / $each / $rounds);        # documents of a round

my $s = VLM->new(name => 'documents-store', workers => 2, store => "max=${max}m",
                 engine => "documents on helper=$helper sandbox=$sandbox; thinking off;")->start->ready;

# A PDF file of so many megabytes: one page, which names its number, and a stream that no page uses.
sub pdf {
    my ($number) = @_;
    my $content = "BT /F 12 Tf 60 780 Td (Document number $number.) Tj ET";
    my @objects = ('<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Kids[3 0 R]/Count 1>>',
                   '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
                   '<</Length ' . length($content) . ">>stream\n$content\nendstream",
                   '<</Length ' . ($each << 20) . ">>stream\n" . 'x' x ($each << 20) . "\nendstream");
    my $file = "%PDF-1.4\n";
    my @at;

    for my $i (0 .. $#objects) {
        push @at, length $file;
        $file .= ($i + 1) . " 0 obj$objects[$i]endobj\n";
    }

    my $table = length $file;

    return $file . "xref\n0 " . (@at + 1) . "\n0000000000 65535 f \n" . join('', map { sprintf "%010d 00000 n \n", $_ } @at)
           . 'trailer<</Size ' . (@at + 1) . "/Root 1 0 R>>\nstartxref\n$table\n%%EOF\n";
}

sub add {
    my ($number) = @_;
    my $body = "--xxxx\r\nContent-Disposition: form-data; name=\"session_id\"\r\n\r\ns" . int($number / 2)
               . "\r\n--xxxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"$number.pdf\"\r\n\r\n"
               . pdf($number) . "\r\n--xxxx--\r\n";

    # A store that another worker holds for a moment answers 503, a full queue 429.
    my $r = VLM::wait_for(sub {
        my $r = $s->begin('POST', '/api/documents', $body, { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;
        return $r->{code} !~ /^(?:503|429)$/ && $r;
    });

    return $r->{json}{id} || die "$number: $r->{code} $r->{body}";
}

# Bytes of documents on the disk.
sub bytes {
    my $sum = 0;

    File::Find::find({ no_chdir => 1, wanted => sub { $sum += -s _ if -f $_ } }, $s->dir . '/store/documents');

    return $sum;
}

sub an_hour_passes {
    my $sql = 'UPDATE document SET used = used - 3600000000; UPDATE session SET used = used - 3600000000';

    system('python3', '-c', 'import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None).executescript(sys.argv[2])',
           $s->dir . '/store/vlm.db', $sql) == 0 or die 'vlm.db';
}

# A worker that starts evicts after ten seconds.
sub swept { my @lines = $s->log =~ /removed from the store: /g; return scalar @lines }

my @ids;

for my $round (1 .. $rounds) {
    push @ids, map { add($_) } @ids .. @ids + $count - 1;

    ok(VLM::wait_for(sub { my $d = $s->health->{documents}; $d->{waiting} + $d->{reading} == 0 }), "round $round: all are read");
    is($s->health->{documents}{failed}, 0, 'none has failed');

    my $before = bytes();

    cmp_ok($before, '>', $max << 20, sprintf('%.1f MB are more than the limit of %d', $before / (1 << 20), $max));
    an_hour_passes();
    ok($s->reload, 'the server reloads');
    ok(VLM::wait_for(sub { swept() == $round }), 'and evicts');

    # The sweep says its number when it is over.
    cmp_ok(bytes(), '<=', $max << 20, sprintf('%.1f MB stay', bytes() / (1 << 20)));
    cmp_ok(bytes(), '>', ($max - 2 * $each - 1) << 20, 'no more than necessary was evicted');
}

my $sent = @ids * $each;
my @stay = grep { $s->get("/api/documents/$_")->{code} == 200 } @ids;
my $newest = @ids - @stay;

is(join(' ', @stay), join(' ', @ids[$newest .. $#ids]), scalar(@stay) . " of " . @ids . " documents stay: those used last");
is(scalar(() = glob $s->dir . '/store/documents/*'), scalar @stay, 'the others have left no folder');
ok(VLM::wait_for(sub { $s->health->{documents}{ready} == @stay }), 'health has their number');

my %listed = map { $_->{id} => 1 } map { @{ ($s->get("/api/session/s$_/documents")->{json} || {})->{documents} || [] } } 0 .. $#ids / 2;

is(join(' ', sort keys %listed), join(' ', sort @stay), 'sessions list those that stay');

my @pages = map { $s->get("/api/documents/$stay[$_]/pages/1")->{json}{text} // '' } 0, -1;

is($pages[0], "Document number $newest.", 'the oldest of them is whole');
is($pages[1], "Document number $#ids.", 'and so is the newest');
is($s->get("/api/documents/$stay[0]/pages/1.png")->{code}, 200, 'a page can be drawn');

diag(sprintf '%d MB sent in %d documents: %d documents, %.1f MB stay of %d; vlm.db has %.1f MB', $sent, scalar @ids,
     scalar @stay, bytes() / (1 << 20), $max, (-s $s->dir . '/store/vlm.db') / (1 << 20));

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
