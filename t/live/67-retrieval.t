# Documents found by meaning: retrieval hybrid finds what has no word of the question, vectors are
# made behind the answers and once, of the encoder that is configured, and a server whose encoder is
# missing searches by words.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use Encoder;
use File::Path ();
use File::Temp ();
use List::Util qw(max);
use Test::More;
use VLM;

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;

my $common = "documents on helper=$helper sandbox=$sandbox; thinking off; context 4k; max_tokens 64;";
my $s = VLM->new(name => 'retrieval', workers => 2, engine => $common,
                 server => 'location = /metrics { vlm_status live; }');
my $dir = $s->dir;

# In the second one, what stops is a boat.
my %encoder = (
    first  => Encoder::make("$dir/first", groups => [[qw(car automobile)], [qw(stop halts)], [qw(boat)], [qw(crane)]]),
    second => Encoder::make("$dir/second", seed => 2, groups => [[qw(car boat)], [qw(stop halts)], [qw(automobile)], [qw(crane)]]),
    slow   => Encoder::make("$dir/slow", layers => 12, hidden => 384, groups => [[qw(car automobile)]]),
);

sub retrieval { $s->{engine} = "$common retrieval $_[0];" . ($_[1] // '') }
sub metrics   { $s->get('/metrics?format=json')->{json} }
sub encoder   { $s->health->{documents}{encoder} }

# A PDF file: each page a list of lines.
sub pdf {
    my @pages = @_;
    my @objects = ('<</Type/Catalog/Pages 2 0 R>>',
                   '<</Type/Pages/Kids[' . join(' ', map { 4 + 2 * $_ . ' 0 R' } 0 .. $#pages) . ']/Count ' . @pages . '>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>');

    for my $page (@pages) {
        my $content = join "\n", 'BT /F 9 Tf 11 TL 40 800 Td', (map { "($_) Tj T*" } @$page), 'ET';

        push @objects, '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents '
                       . (@objects + 2) . ' 0 R>>', '<</Length ' . length($content) . ">>stream\n$content\nendstream";
    }

    return "%PDF-1.4\n" . join('', map { $_ + 1 . " 0 obj$objects[$_]endobj\n" } 0 .. $#objects)
           . "trailer<</Root 1 0 R>>\n%%EOF\n";
}

# Adds a document to a session, and waits until it was read.
sub add {
    my ($session, $data) = @_;
    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" }
                        ['session_id', $session], ["file\"; filename=\"$session.pdf", $data];
    my $r = $s->begin('POST', '/api/documents', "$body--xxxx--\r\n",
                      { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;
    my $id = $r->{json}{id} or die "$session: $r->{code} $r->{body}";

    VLM::wait_for(sub { ($s->get("/api/documents/$id")->{json}{state} || '') eq 'ready' }) or die "$session is not read";

    return $id;
}

# The pages of the pieces that a question finds, the best first.
sub found {
    my ($session, $question) = @_;
    my $r = $s->post('/api/ask', { session_id => $session, question => $question, pages => 'text', max_tokens => 1 });

    die "$r->{code} $r->{body}" unless $r->{code} == 200;

    return map { $_->{page} } sort { $b->{score} <=> $a->{score} } @{ $r->{json}{sources} };
}

# Waits until so many pieces got a vector since the start, and none waits.
sub encoded {
    my ($n) = @_;
    my $m;

    return VLM::wait_for(sub {
        $m = metrics();
        $m->{vlm_encoder_ready} && $m->{vlm_document_pieces_encoded_total} >= $n && $m->{vlm_document_pieces_waiting} == 0;
    }) && $m->{vlm_document_pieces_encoded_total};
}

# ---- nginx -t --------------------------------------------------------------------------------

{
    File::Path::make_path("$dir/none");

    my @refused = (
        ['words', qr/retrieval "words" is not bm25 or hybrid in \S+nginx\.conf:\d+/],
        ['hybrid', qr/retrieval hybrid needs model=path in \S+nginx\.conf:\d+/],
        ["bm25 model=$encoder{first}", qr/retrieval bm25 takes no other value in /],
        ["hybrid path=$encoder{first}", qr/unknown value "path=\S+" in retrieval, which is bm25, or hybrid with model=path/],
    );

    # The model serves without its encoder.
    my @left_out = (
        ["hybrid model=$dir/missing", qr{retrieval: $dir/missing.*No such file.* in \S+nginx\.conf:\d+}],
        ["hybrid model=$dir/none", qr{retrieval: $dir/none/config\.json: No such file}],
        ['hybrid model=' . Cwd::getcwd() . '/demo/model', qr{config\.json: model_type is "\w+", an encoder of texts is "bert" in \S+nginx\.conf:\d+}],
    );

    for my $case (@refused) {
        my ($value, $wanted) = @$case;

        retrieval($value);
        my $said = $s->check_conf;
        like($said, $wanted, "retrieval $value") or diag($said);
        unlike($said, qr/test is successful/, 'is refused');
    }

    for my $case (@left_out) {
        my ($value, $wanted) = @$case;

        retrieval($value);
        my $said = $s->check_conf;
        like($said, qr/\[warn\] .*left out until it can be loaded: .*$wanted/, "retrieval $value") or diag($said);
        like($said, qr/test is successful/, 'is a warning');
    }

    retrieval("hybrid model=$encoder{first}");
    my $said = $s->check_conf;
    my ($with, $part) = $said =~ /(\d+)m planned \(.*encoder (\d+)m, device 0m\)/;

    like($said, qr/test is successful/, 'an encoder is taken');
    cmp_ok($part, '>', 0, 'and is in the plan');

    retrieval("hybrid model=$encoder{first}", 'memory ' . ($with - 1) . 'm;');
    like($s->check_conf, qr/${with}m needed \(.*encoder ${part}m, device 0m\), memory is/, 'which memory bounds');

    retrieval('bm25');
    $said = $s->check_conf;
    unlike($said, qr/encoder \d+m/, 'words need none');
    like($said, qr/test is successful/, 'and are taken');

    VLM::spew("$dir/none/$_", VLM::slurp("$encoder{first}/$_")) for qw(config.json model.safetensors);
    VLM::spew("$dir/none/tokenizer.json", '{}');
    retrieval("hybrid model=$dir/none");
    $said = $s->check_conf;
    like($said, qr{\[warn\] .*left out until it can be loaded: .*$dir/none/tokenizer\.json: .* in \S+nginx\.conf:\d+}, 'a damaged file is found');
    like($said, qr/test is successful/, 'and is a warning');
}

SKIP: {
    skip 'not root', 1 if $> != 0;

    my $closed = File::Temp->newdir;

    system('cp', '-r', $encoder{first}, "$closed/model") == 0 or die 'cp';
    chmod 0700, "$closed";
    retrieval("hybrid model=$closed/model");
    local $s->{user} = 'daemon';
    my $said = $s->check_conf;
    like($said, qr/Permission denied: .*the workers' user is "daemon" in \S+nginx\.conf:\d+/, 'a directory that the workers may not read')
        or diag($said);
}

# ---- what has no word of the question --------------------------------------------------------

my @pages = map { ["The crane number $_ lifts ten tons."] } 1 .. 12;

$pages[6] = ['The automobile halts at the yellow line.'];
$pages[9] = ['The boat halts at the pier.'];

retrieval('bm25');
$s->start->ready;
add('yard', pdf(@pages));

my $question = 'When does a car stop?';

is_deeply([grep { $_ == 7 } found('yard', $question)], [], 'words alone do not find a page in other words');
is($s->health->{documents}{encoder}, JSON::PP::false, 'health says that there is no encoder');

retrieval("hybrid model=$encoder{first}");
$s->write_conf;
ok($s->reload, 'a reload with an encoder');
is(encoded(12), 12, 'documents that were read before get their vectors');
is((found('yard', $question))[0], 7, 'hybrid finds it first');
is((found('yard', 'What number lifts: 5?'))[0], 5, 'a question without a meaning is searched by its words');
is_deeply(encoder(), { state => 'ready', waiting => 0 }, 'health has the encoder');
cmp_ok($s->health->{plan}{encoder}, '>', 0, 'and its memory');
is($s->health->{plan}{encoder}, metrics()->{vlm_memory_bytes}{encoder}, 'metrics, too');

add('second', pdf(['The automobile halts here, too.'], map { ["Drawing $_."] } 1 .. 5));
is(encoded(18), 18, 'a document that is added gets its own');
is((found('second', $question))[0], 1, 'and is found');

# ---- another worker, another server, another encoder -----------------------------------------

kill 'KILL', $s->designated;
ok(VLM::wait_for(sub { $s->get('/metrics?format=json')->{json}{vlm_engine_restarts_total} }), 'a worker is killed');
$s->ready;
is(encoded(18), 18, 'the next one encodes nothing again');
is((found('yard', $question))[0], 7, 'and finds the page');

ok($s->stop, 'the server ends');
$s->start->ready;
is(encoded(0), 0, 'another server encodes nothing, either');
is((found('yard', $question))[0], 7, 'and finds it');

retrieval("hybrid model=$encoder{second}");
$s->write_conf;
ok($s->reload, 'a reload with another encoder');
is(encoded(18), 18, 'encodes all again');
is((found('yard', $question))[0], 10, 'and its vectors are those that count');

retrieval("hybrid model=$encoder{first}", 'reload overlap;');
$s->write_conf;
ok($s->reload, 'the first one comes back');
is(encoded(36), 36, 'with its own vectors');
is((found('yard', $question))[0], 7, 'which find the page');

# ---- a long document -------------------------------------------------------------------------

my $lines = 40;
my $long = pdf(map {
    my $page = $_;
    [(map { "Part $_ of page $page: one valve, two pipes, three pumps and four fans." } 1 .. $lines),
     $page == 9 ? 'The zeppelin is kept here.' : ()];
} 1 .. 10);

{
    retrieval("hybrid model=$encoder{slow}");
    $s->write_conf;
    ok($s->reload, 'a slow encoder');
    ok(defined encoded(36 + 18), 'encodes the others');

    my $before = metrics()->{vlm_document_pieces_encoded_total};
    my $id = add('long', $long);
    my $n = $s->get("/api/documents/$id")->{json}{chunks};
    my $waiting;

    ok(VLM::wait_for(sub { ($waiting = encoder()->{waiting}) > 0 }), "$n pieces wait");
    is((found('long', 'Where is the zeppelin?'))[0], 9, 'meanwhile words find pages');

    ok(VLM::wait_for(sub { $waiting = encoder()->{waiting}; $waiting < $n }), 'some are kept while others wait');

    kill 'KILL', $s->designated;
    VLM::wait_for(sub { metrics()->{vlm_encoder_ready} == 0 });

    my $killed = metrics()->{vlm_document_pieces_encoded_total};

    $s->ready;

    my $all = encoded($before + $n) or die 'pieces wait';

    cmp_ok($waiting, '>', 0, "a worker is killed while $waiting of $n pieces wait");
    cmp_ok($all - $killed, '<=', $waiting, 'the next one encodes no others');
    is((found('long', 'Where is the zeppelin?'))[0], 9, 'and the page is found as before');
}

# ---- without its directory -------------------------------------------------------------------

{
    retrieval("hybrid model=$encoder{first}");
    $s->write_conf;
    ok($s->reload, 'the first encoder');
    ok(defined encoded(0), 'encodes all again');

    rename "$dir/first", "$dir/away" or die $!;

    like($s->check_conf, qr{\[warn\] .*retrieval: $dir/first.*No such file.* in \S+nginx\.conf:\d+}, 'its directory is removed: nginx -t warns');

    my $old = $s->designated;

    kill 'KILL', $old;
    ok(VLM::wait_for(sub { (encoder()->{state} // '') eq 'failed' }), 'the next worker has no encoder');
    like(encoder()->{reason}, qr{$dir/first.*No such file}, 'health says why');
    is(metrics()->{vlm_encoder_ready}, 0, 'and so do metrics');
    $s->ready;
    is((found('yard', 'Which crane has the number 5?'))[0], 5, 'questions are answered by words');
    like($s->log, qr/\[error\].*retrieval: $dir\/first.*words alone/, 'and the log has it');

    rename "$dir/away", "$dir/first" or die $!;
    ok(defined encoded(0), 'its directory is back: the encoder is loaded');
    is((found('yard', $question))[0], 7, 'and finds the page');
    is(scalar(() = $s->log =~ /retrieval: .*words alone/g), 1, 'the log has one line of all tries');

    # A start has neither the encoder nor its part of the plan.
    rename "$dir/first", "$dir/away" or die $!;
    $s->stop;
    $s->start->ready;
    is((found('yard', 'Which crane has the number 5?'))[0], 5, 'a start without it: questions are answered by words');
    ok(VLM::wait_for(sub { (encoder()->{state} // '') eq 'failed' }), 'and health says so');
    rename "$dir/away", "$dir/first" or die $!;
    ok(defined encoded(0), 'it is loaded later');
    is((found('yard', $question))[0], 7, 'and finds the page');
}

ok($s->stop, 'the server ends');
unlike($s->log, qr/\[crit\]|open socket/, 'and its log has nothing worse');

done_testing();
