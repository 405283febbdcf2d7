# Pages that are slow to draw do not hold up other requests: their prompts get the text, or are refused
# with the reason, after a few seconds; a page is not tried again and again; and nothing is drawn for a
# client that has left.  A reader that is caught by its walls, or crashes, is in the log as a warning.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Temp ();
use PDF;
use Test::More;
use VLM;

my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
my $dir = File::Temp->newdir;
my $reader = "$dir/reader";

# A reader that notes the arguments of each run; the workers' user runs it, too.
chmod 0755, $dir;
VLM::spew("$dir/runs", '');
chmod 0666, "$dir/runs";

sub write_reader {
    my ($what) = @_;

    VLM::spew("$reader.new", "#!/bin/sh\necho \"\$*\" >>$dir/runs\n$what\nexec $helper \"\$@\"\n");
    chmod 0755, "$reader.new" or die "$reader: $!";
    rename "$reader.new", $reader or die "$reader: $!";
}

# A reader that ends with an error: its kind, its length, and a sentence.
sub says {
    my $frame = pack 'L L a*', 4, length $_[0], $_[0];

    return "printf '" . join('', map { sprintf '\\%03o', $_ } unpack 'C*', $frame) . "'; exit";
}

sub drawings { scalar(() = VLM::slurp("$dir/runs") =~ /\bpicture=/g) }

# A PDF file whose page is covered so many times by a gradient; 1000 times are 20 s of work with a million
# pixels, and 2 s until it was read.  Its title has a number, so that no two files are the same.
my $files = 0;

sub slow_pdf {
    my ($times, $text) = @_;
    my $content = "/S sh\n" x $times . ($text ? "BT /F 12 Tf 60 780 Td ($text) Tj ET\n" : '');

    $files++;

    my @objects = ('<</Type/Catalog/Pages 2 0 R>>',
                   '<</Type/Pages/Kids[7 0 R]/Count 1>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
                   '<</ShadingType 3/ColorSpace/DeviceRGB/Coords[300 400 0 300 400 600]/Extend[true true]'
                   . '/Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1.3>>>>',
                   '<</Length ' . length($content) . ">>stream\n$content\nendstream",
                   "<</Title(File $files)>>",
                   '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R'
                    . '/Resources<</Font<</F 3 0 R>>/Shading<</S 4 0 R>>>>>>');

    return PDF::file(\@objects, '/Info 6 0 R');
}

sub form {
    my %part = @_;

    return join('', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_\"\r\n\r\n$part{$_}\r\n" } sort keys %part)
           . "--xxxx--\r\n";
}

my $form = { 'Content-Type' => 'multipart/form-data; boundary=xxxx' };

# Adds a document to a session, and waits until it was read.
sub add {
    my ($s, $session, $data) = @_;
    my $r = $s->begin('POST', '/api/documents', form(session_id => $session, 'file"; filename="a.pdf' => $data), $form)->end;
    my $id = $r->{json}{id} or die "$session: $r->{code} $r->{body}";
    my $doc;

    VLM::wait_for(sub { ($doc = $s->get("/api/documents/$id")->{json})->{state} =~ /^(ready|failed)$/ })
        or die "$session is not read";

    return $doc;
}

sub begin_ask {
    my ($s, $session) = @_;

    return $s->begin('POST', '/api/ask', { session_id => $session, question => 'Which pump?', max_tokens => 1,
                                           pages => 'pictures' });
}

sub ask { begin_ask(@_)->end }

# Processes of vlm-pdf that the workers have started.
sub readers {
    my ($s) = @_;
    my %parents = map { $_ => 1 } $s->workers;

    return grep {
        my ($parent) = VLM::slurp("/proc/$_/stat") =~ /^\d+ \(vlm-pdf\) \S (\d+)/;
        $parent && $parents{$parent};
    } map { m{/proc/(\d+)/} } glob '/proc/[0-9]*/stat';
}

my $late = 'it was not drawn within the 5 s that the pages of a question have';

write_reader('');

my $s = VLM->new(name => 'drawing', server => 'location ~ ^/(upload|process-pdf)$ { vlm_pass live; }',
                 engine => "documents on helper=$reader sandbox=$sandbox time=60s; thinking off; context 4k; slots 2;")
    ->start->ready;

# ---- a page that is too slow for a prompt ----------------------------------------------------

# This reader draws only when it is told so.
write_reader("case \"\$*\" in *picture=*) while [ ! -e $dir/go ]; do sleep 0.1; done;; esac");

my $doc = add($s, 'text', slow_pdf(1, 'The pump of hall 7 is green.'));
my $r = ask($s, 'text');
is($r->{code}, 200, 'a page that is too slow to draw is read as text') or diag($r->{body});
is_deeply($r->{json}{not_drawn}, [{ document => $doc->{id}, page => 1, why => $late }], 'and the answer says so');
is_deeply([map { $_->{picture} ? 1 : 0 } @{ $r->{json}{pages_read} }], [0], 'in pages_read, too');
is($r->{json}{sources}[0]{text}, 'The pump of hall 7 is green.', 'its text is in the prompt');
ok($s->log_has(qr/\[info\] .*document \Q$doc->{id}\E, page 1: $late/), 'the log has it');

my $before = drawings();
is(ask($s, 'text')->{json}{not_drawn}[0]{why}, $late, 'the next question has the same answer');
is(drawings(), $before, 'without another try');

write_reader(says('reading needed more than 512 MB of memory'));
VLM::spew("$dir/go", '');

for (1, 2) {
    $r = $s->get("/api/documents/$doc->{id}/pages/1.png");
    is("$r->{code} $r->{json}{error}", '422 The page cannot be drawn: reading needed more than 512 MB of memory',
       'a request for the picture may take longer, and is told why it fails');
    is(drawings(), $before + 1, 'after one try');
}

write_reader('');

# ---- a client that leaves --------------------------------------------------------------------

# One page is drawn at a time, and another question waits for that for 1 s: it is drawn if the first ends by
# then, as the first of three tries shows on a machine that is not too busy.
$doc = add($s, 'left', slow_pdf(1000));
add($s, 'next', slow_pdf(1000));

for (1 .. 3) {
    my $ask = begin_ask($s, 'left');
    VLM::wait_for(sub { readers($s) }) or die 'no page is drawn';
    $ask->leave;

    $r = ask($s, 'next');
    last if $r->{code} eq '400';
    VLM::wait_for(sub { !readers($s) });
}

is("$r->{code} $r->{json}{error}", "400 The document could not be read: $late",
   'a page is not drawn for a client that has left, so that the next is');
ok(VLM::wait_for(sub { !readers($s) }), 'no reader is left');

# ---- others are not held up ------------------------------------------------------------------

# A picture's question ends while both others wait; once in five, as this machine may be busy.
my $picture = $s->upload('html/sample-1.png');
my ($early, $busy, $codes) = (0, 0, '');

for my $round (1 .. 5) {
    add($s, "$_$round", slow_pdf(1000)) for qw(one two);

    my @asks = begin_ask($s, "one$round");
    VLM::wait_for(sub { readers($s) }) or die 'no page is drawn';
    push @asks, begin_ask($s, "two$round");

    $r = $s->chat("other$round", 'How many balls are there?', image => $picture);
    $codes .= $r->{code};
    $early ||= readers($s) && !grep { $_->more(0) } $asks[0];

    my @ends = map { $_->end } @asks;
    $busy ||= $ends[1]{code} eq '503' && $ends[1]{json}{error} eq 'Too many pages are being drawn'
              && $ends[1]{headers}{'retry-after'};
    last if $early && $busy;
}

like($codes, qr/^(?:200)+$/, 'a question about another picture is answered');
ok($early, 'while two pages that are slow to draw are wanted');
ok($busy, 'one is drawn at once, and the other is refused with the reason');

# ---- a reader that its walls have caught -----------------------------------------------------

for my $case (['warn', 'the reader tried a forbidden system call, socket()'], ['warn', 'the reader died (signal 11)'],
              ['info', 'reading needed more than 512 MB of memory'])
{
    my ($level, $why) = @$case;

    write_reader(says($why));
    my $bad = add($s, "bad $why", slow_pdf(1, 'x'));
    is($bad->{error}, $why, $why);
    ok($s->log_has(qr/\[$level\] .*document \Q$bad->{id}: $why\E, after/), "the log has it as $level");
}

write_reader('');
$doc = add($s, 'wall', slow_pdf(1, 'The pump is red.'));
write_reader(says('the reader tried a forbidden system call, socket()'));
is(ask($s, 'wall')->{json}{not_drawn}[0]{why}, 'the reader tried a forbidden system call, socket()', 'also a page');
ok($s->log_has(qr/\[warn\] .*document \Q$doc->{id}, page 1: the reader tried a forbidden system call, socket()\E/),
   'is in the log as a warning');

$s->check_log;
ok($s->stop, 'the server ends');

# ---- the PDF service: uploads that take long -------------------------------------------------

# Documents before it take all of their time, so that it is not read in its own.
$s = VLM->new(name => 'drawing-late', server => 'location ~ ^/(upload|process-pdf)$ { vlm_pass live; }',
              engine => "documents on helper=$reader sandbox=$sandbox time=1s; queue 10 timeout=1s; thinking off;")
    ->start->ready;

unlink "$dir/go";
write_reader("while [ ! -e $dir/go ]; do sleep 0.1; done");

is($s->begin('POST', '/api/documents', form('file"; filename="a.pdf' => slow_pdf($_)), $form)->end->{code}, 202, 'a document')
    for 1 .. 3;

$r = $s->begin('POST', '/upload', form('file"; filename="b.pdf' => slow_pdf(4)), $form)->end;
is($r->{code}, 504, 'an upload that is not read in time is answered with 504') or diag($r->{body});
is("$r->{json}{error}: $r->{json}{details}", 'PDF processing takes longer: it is still being read', 'and the reason');

my $session = $r->{json}{sessionId};
is($s->get("/api/session/$session/documents")->{json}{documents}[0]{name}, 'b.pdf', 'its session is in the answer');

VLM::spew("$dir/go", '');
ok($s->stop, 'the server ends');

done_testing();
