# Scans with OCR: their words are searched, shown and cited as those of a text are, and marked; where
# OCR is not there, nginx -t says what to install; where it fails, the document is read without.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Copy ();
use File::Temp ();
use Test::More;
use VLM;

my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;
die "make documents builds $helper-ocr.so where Tesseract is: make deps-test\n" unless -e "$helper-ocr.so";

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';

sub on { return "documents on helper=$_[0] sandbox=$sandbox $_[1]" }

sub server {
    my ($name, $documents) = @_;

    return VLM->new(name => $name, engine => "$documents; thinking off; context 4k; max_tokens 64;");
}

sub add {
    my ($s, $session, $name, $data) = @_;
    my @parts = (['session_id', $session], ["file\"; filename=\"$name", $data]);
    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" } @parts;
    my $id = $s->begin('POST', '/api/documents', "$body--xxxx--\r\n",
                       { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end->{json}{id};
    my $doc;

    VLM::wait_for(sub {
        $doc = $s->get("/api/documents/$id")->{json};
        return ($doc->{state} || '') =~ /^(?:ready|failed)$/;
    });

    return $doc;
}

sub file { return VLM::slurp("t/documents/files/$_[0].pdf") }

# The best source of a question about text, with an answer of these words.
sub best {
    my ($s, $session, $question, $answer) = @_;
    my $r = $s->post('/api/ask', { session_id => $session, question => $question, pages => 'text',
                                   format => { const => $answer } });
    my ($best) = sort { $b->{score} <=> $a->{score} } @{ $r->{json}{sources} };

    return $best;
}

# ---- a scan that lay upside down -------------------------------------------------------------

{
    my $s = server('ocr', on($helper, 'ocr=on'))->start->ready;
    my $scan = add($s, 'one', 'scan.pdf', file('scan180'));

    add($s, 'one', 'columns.pdf', file('columns'));

    is_deeply([@$scan{qw(state pages_read scans ocr_pages hidden_words)}], ['ready', 1, 1, 1, 0],
              'a scan is read by OCR, and counted');

    my $page = $s->get("/api/documents/$scan->{id}/pages/1")->{json};

    ok($page->{ocr} && $page->{scan}, 'its page is marked');
    like($page->{text}, qr/^Maintenance of the conveyor\n.*\nReplace the bearing/s, 'and has its text');
    is_deeply([map { $_->{text} } @{ $page->{words} }[0, 1, 2]], [qw(Maintenance of the)], 'and words');

    # the page shows them upside down: the first line is the lowest
    my ($first, $last) = map { $_->{box} } @{ $page->{words} }[0, -1];

    cmp_ok($first->[1], '>', $last->[3], 'whose boxes are where the page shows them');

    my $best = best($s, 'one', 'At which temperature is the bearing replaced?', 'Above 70.');

    is("$best->{name} $best->{page}", 'scan.pdf 1', 'a question finds the scan by its words');
    ok($best->{ocr} && $best->{cited}, 'as a source that is cited and marked');
    is(scalar @{ $best->{boxes} }, 1, 'with the box of the number');

    my ($seventy) = grep { $_->{text} eq '70' } @{ $page->{words} };
    my @share = map { $seventy->{box}[$_] / ($_ % 2 ? $page->{height} : $page->{width}) } 0 .. 3;

    cmp_ok(abs($best->{boxes}[0][$_] - $share[$_]), '<', 0.001, "side $_ of it") for 0 .. 3;

    $best = best($s, 'one', 'Which line of the left column?', 'Line 1.');
    is("$best->{name} " . ($best->{ocr} ? 'ocr' : 'text'), 'columns.pdf text', 'a text is not marked');

    my $latin = add($s, 'two', 'latin.pdf', file('latin'));

    is_deeply([@$latin{qw(state ocr_pages)}], ['ready', 0], 'a page with text is read as without OCR');
    unlike($s->log, qr/OCR|\[(?:alert|emerg|crit)\]/, 'the log says nothing of it');
    ok($s->stop, 'the server ends');
}

# ---- off, and where it fails -----------------------------------------------------------------

{
    my $s = server('ocr-off', on($helper, ''))->start->ready;
    my $scan = add($s, 'one', 'scan.pdf', file('scan180'));

    is_deeply([@$scan{qw(state scans ocr_pages chunks)}], ['ready', 1, 0, 0], 'OCR is off unless it is asked for');
    ok($s->stop, 'the server ends');

    $s = server('ocr-late', on($helper, 'ocr=on ocr_time=1 time=1'))->start->ready;

    open my $out, '-|', 'python3', '-B', '-c',
        'import sys; sys.path.insert(0, "t/documents"); import hostile; sys.stdout.buffer.write(hostile.speckled())'
        or die "python3: $!";
    binmode $out;

    my $speckled = do { local $/; <$out> };

    $scan = add($s, 'one', 'speckled.pdf', $speckled);
    is_deeply([@$scan{qw(state scans ocr_pages error)}], ['ready', 1, 0, undef], 'a scan on which OCR hangs is read without it');
    like($s->log, qr/\[warn\].* document $scan->{id} is read without OCR: OCR: page 1: reading took longer than 2 s/,
         'and the log says so');
    ok($s->stop, 'the server ends');
}

# ---- what nginx -t says ----------------------------------------------------------------------

{
    like(server('ocr-test', on($helper, 'ocr=eng'))->check_conf, qr/test is successful/, 'nginx -t tries a page');

    like(server('ocr-xyz', on($helper, 'ocr=eng+xyz'))->check_conf,
         qr/\[warn\].* left out until it can be loaded: documents ocr=eng\+xyz: there is no xyz\.traineddata in \S+: install tesseract-ocr-xyz/,
         'a language without data');

    my $dir = File::Temp->newdir;

    File::Copy::copy($helper, "$dir/vlm-pdf") or die "copy: $!";
    chmod 0755, "$dir", "$dir/vlm-pdf";

    like(server('ocr-less', on("$dir/vlm-pdf", 'ocr=on'))->check_conf,
         qr{documents ocr=eng: $dir/vlm-pdf-ocr\.so: cannot open .*: install libtesseract-dev, and run "make documents"},
         'a vlm-pdf that was built without it');

    like(server('ocr-none', on("$dir/vlm-pdf", ''))->check_conf, qr/test is successful/, 'which is enough without OCR');
}

# ---- without OCR -----------------------------------------------------------------------------

{
    my $s = server('ocr-start', on($helper, 'ocr=eng+xyz'));

    $s->start->ready;
    is($s->chat('c', 'Where is the cup?')->{code}, 200, 'without its data the model answers');
    is(add($s, 'a', 'latin.pdf', file('latin'))->{state}, 'ready', 'and a document with text is read');
    ok($s->stop, 'the server ends');
}

# ---- the PDF service waits for OCR -----------------------------------------------------------

# Here OCR takes 3 s, more than the queue's timeout and "time" together.
{
    my $dir = File::Temp->newdir;
    my $reader = "$dir/reader";
    my $write = sub {
        VLM::spew("$reader.new", "#!/bin/sh\n$_[0]\nexec $helper \"\$@\"\n");
        chmod 0755, $dir, "$reader.new";
        rename "$reader.new", $reader or die "$reader: $!";
    };

    symlink "$helper-ocr.so", "$dir/vlm-pdf-ocr.so";
    $write->('');

    my $s = VLM->new(name => 'ocr-upload', server => 'location = /upload { vlm_pass live; }',
                     engine => on($reader, 'time=1s ocr=on ocr_time=20s') . '; queue 10 timeout=1s; thinking off;')
        ->start->ready;

    $write->('sleep 3');

    my $body = "--xxxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n" . file('scan') . "\r\n--xxxx--\r\n";
    my $r = $s->begin('POST', '/upload', $body, { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;

    is($r->{code}, 200, 'an upload waits for OCR') or diag($r->{body});
    ok($s->stop, 'the server ends');
}

done_testing();
