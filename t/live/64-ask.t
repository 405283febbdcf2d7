# Questions about documents: sources are those of the session, the numbers of an answer are found
# on their page or listed as unsupported, a second question about the same pages finds them
# computed, and the PDF service's endpoints have its forms.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use List::Util qw(max min sum);
use PDF;
use Test::More;
use VLM;

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;

sub server {
    my ($name, %more) = @_;

    return VLM->new(name => $name, workers => 2,
                    server => 'location ~ ^/(ask|summarize|compare)$ { vlm_pass live; }',
                    engine => ($more{documents} // '') . ';'
                              . ' thinking off; context 4k; max_tokens 64; queue 64 timeout=1h;')->start->ready;
}

# A PDF file: each page a list of lines.
sub pdf {
    my @pages = @_;
    my @objects = ('<</Type/Catalog/Pages 2 0 R>>',
                   '<</Type/Pages/Kids[' . join(' ', map { 4 + 2 * $_ . ' 0 R' } 0 .. $#pages)
                   . ']/Count ' . @pages . '>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>');

    for my $page (@pages) {
        my $content = join "\n", 'BT /F 12 Tf 14 TL 60 780 Td', (map { "($_) Tj T*" } @$page), 'ET';

        push @objects, '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>'
                       . '/Contents ' . (@objects + 2) . ' 0 R>>',
                       '<</Length ' . length($content) . ">>stream\n$content\nendstream";
    }

    return PDF::file(\@objects);
}

# Adds a document to a session, and waits until it was read.
sub add {
    my ($s, $session, $name, $data) = @_;
    my %part = (session_id => $session, "file\"; filename=\"$name" => $data);

    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_\"\r\n\r\n$part{$_}\r\n" }
                        sort keys %part;

    my $r = $s->begin('POST', '/api/documents', "$body--xxxx--\r\n",
                      { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;
    my $id = $r->{json}{id} or die "$name: $r->{code} $r->{body}";

    VLM::wait_for(sub { ($s->get("/api/documents/$id")->{json}{state} || '') =~ /^(ready|failed)$/ })
        or die "$name is not read";

    return $id;
}

sub file { VLM::slurp("t/documents/files/$_[0]") }

sub ask {
    my ($s, $session, $question, %more) = @_;

    return $s->post('/api/ask', { session_id => $session, question => $question, %more });
}

# An answer of these words, as a JSON string.
sub says { return (format => { const => $_[0] }) }

sub names { return join ' ', map { "$_->{name}:$_->{page}" } @{ $_[0]{json}{sources} } }
sub cited { return join ' ', map { $_->{cited} ? "$_->{name}:$_->{page}" : () } @{ $_[0]{json}{sources} } }

my $on = "documents on helper=$helper sandbox=$sandbox";
my $s = server('ask', documents => "$on legacy=on");

# ---- no session sees another's documents -----------------------------------------------------

add($s, 'one', 'pump.pdf', pdf(map { ["The pump of hall $_ delivers ${_}0 litres.", 'It was painted green.'] } 1 .. 8));
add($s, 'two', 'fan.pdf', pdf(map { ["The fan of hall $_ moves ${_}5 cubic metres.", 'It was painted red.'] } 1 .. 8));

my (%wrong, %answers);

for my $round (1 .. 20) {
    my @asks = map {
        my $session = $_ % 2 ? 'one' : 'two';

        [$session, $s->begin('POST', '/api/ask', { session_id => $session, max_tokens => 1,
                                                   question => "What was painted in hall $_?" })]
    } 1 .. 10;

    for my $ask (@asks) {
        my $r = $ask->[1]->end;
        my $name = $ask->[0] eq 'one' ? 'pump.pdf' : 'fan.pdf';

        $answers{$r->{code}}++;
        $wrong{$_->{name}}++ for grep { $_->{name} ne $name } @{ $r->{json}{sources} };
        $wrong{none}++ unless @{ $r->{json}{sources} || [] };
    }
}

is_deeply(\%answers, { 200 => 200 }, '200 questions of two sessions at once are answered');
is_deeply(\%wrong, {}, 'no source is of the other session');

# ---- facts in three documents ----------------------------------------------------------------

my %name = (0 => 'north.pdf', 1 => 'south.pdf', 2 => 'west.pdf');
my @words = qw(anchor bottle candle dragon engine feather garden hammer island jacket
               kettle ladder magnet needle orange pencil quartz ribbon saddle timber);
my @lines = ([], [], []);

push @{ $lines[$_ % 3] }, "The $words[$_] is kept in drawer " . (3100 + 17 * $_) . '.' for 0 .. $#words;
add($s, 'three', $name{$_}, pdf(map { [$_] } @{ $lines[$_] })) for 0 .. 2;

my @right = grep {
    my $fact = 3100 + 17 * $_;
    my $page = $name{ $_ % 3 } . ':' . (int($_ / 3) + 1);
    my $r = ask($s, 'three', "In which drawer is the $words[$_]?", says("In drawer $fact."));
    my ($best) = sort { $b->{score} <=> $a->{score} } @{ $r->{json}{sources} };

    cited($r) eq $page && "$best->{name}:$best->{page}" eq $page && !@{ $r->{json}{unsupported} };
} 0 .. $#words;

is(@right, 20, 'of 20 facts in three documents each is cited from its page, which is found as the best');

my $north = add($s, 'three', 'north.pdf', pdf(map { [$_] } @{ $lines[0] }));
my $r = ask($s, 'three', 'Where is the bottle?', documents => [$north], max_tokens => 1);
is_deeply([grep { $_->{name} ne 'north.pdf' } @{ $r->{json}{sources} }], [],
          'a question about one document has sources of that one alone');

my $once = ask($s, 'three', 'Where is the bottle?', documents => [$north, $north, $north], max_tokens => 1);
is("$once->{code} " . names($once), "200 " . names($r), 'a document that is named three times counts once');

# ---- a second question -----------------------------------------------------------------------

add($s, 'again', 'latin.pdf', file('latin.pdf'));
ask($s, 'again', 'How fast is the belt?', max_tokens => 1);

$r = ask($s, 'again', 'How hot may the bearing be?', max_tokens => 1);
my $usage = $r->{json}{usage};
cmp_ok($usage->{cached_tokens}, '>=', 0.9 * $usage->{prompt_tokens},
       'a second question about the same pages finds 90 % of its prompt computed');
is($r->{json}{turn_number}, 4, 'turns are counted');

my $history = $s->get('/api/history/again')->{json};
is($history->[0]{content}, 'How fast is the belt?', 'questions are turns of the session');

# ---- numbers ---------------------------------------------------------------------------------

add($s, 'numbers', 'numbers.pdf', file('numbers.pdf'));

my $page = JSON::PP::decode_json(file('numbers.json'));
my @numbers = grep { $_->{text} =~ /^\d[\d.,]+\d$/ && !$_->{hidden} } @{ $page->{words} };
is(@numbers, 30, 'there are 30 numbers');

sub area { return max(0, $_[2] - $_[0]) * max(0, $_[3] - $_[1]) }

sub overlap {
    my ($a, $b) = @_;
    my $both = area(max($a->[0], $b->[0]), max($a->[1], $b->[1]), min($a->[2], $b->[2]), min($a->[3], $b->[3]));

    return $both / (area(@$a) + area(@$b) - $both);
}

my @near = grep {
    my $r = ask($s, 'numbers', 'What does it weigh?', says("It weighs $_->{text} kg [1]."));
    my $boxes = $r->{json}{sources}[0]{boxes};

    @$boxes == 1 && !@{ $r->{json}{unsupported} }
        && overlap([map { $boxes->[0][$_] * ($_ % 2 ? $page->{height} : $page->{width}) } 0 .. 3], $_->{box}) >= 0.9;
} @numbers;

is(@near, 30, '30 of 30 numbers have a box where the file has them');

my @listed = grep {
    (my $changed = $_->{text}) =~ s/(\d)(?=[.,]\d+$)/($1 + 1) % 10/e;
    my $r = ask($s, 'numbers', 'What does it weigh?', says("It weighs $changed kg [1]."));

    "@{ $r->{json}{unsupported} }" eq $changed;
} @numbers;

is(@listed, 30, '30 of 30 changed numbers are listed as unsupported');

$r = ask($s, 'numbers', 'What weighs 987654 kg?', says('987654 and 456789'));
is_deeply($r->{json}{unsupported}, ['987654', '456789'], 'white and covered numbers support nothing');
unlike(join(' ', map { $_->{text} } @{ $r->{json}{sources} }), qr/987654|456789/,
       'white and covered text is left out');

add($s, 'background', 'background.pdf', file('background.pdf'));

$r = ask($s, 'background', 'What is the total?', says('987654 and 456789 EUR, and [1350] [1]'));
is_deeply($r->{json}{unsupported}, ['987654', '456789', '1350'],
          'a background picture does not make white and invisible numbers visible, and brackets support none');
is_deeply([map { $_->{text} =~ s/\s+$//r } @{ $r->{json}{sources} }], ['The total is 4120 EUR.'],
          'before a background picture, white and invisible text is left out');

# ---- pictures --------------------------------------------------------------------------------

add($s, 'scan', 'scan.pdf', file('scan.pdf'));

$r = ask($s, 'scan', 'What does it say?', max_tokens => 1);
is_deeply([map { $_->{picture} ? 1 : 0 } @{ $r->{json}{pages_read} }], [1], 'a scan is shown');

$r = ask($s, 'again', 'What does the text say?', max_tokens => 1);
ok(!$r->{json}{pages_read}[0]{picture}, 'a page of text is read');

$r = ask($s, 'again', 'What does the figure show?', max_tokens => 1);
ok($r->{json}{pages_read}[0]{picture}, 'a page is shown if the question names a figure');

$r = ask($s, 'one', 'What does the table of hall 3 show?', max_tokens => 1);
is(sum(map { $_->{picture} ? 1 : 0 } @{ $r->{json}{pages_read} }), 1, 'on the CPU one page is shown');

$r = ask($s, 'one', 'Which hall?', pages => 'pictures', max_tokens => 1);
is_deeply([map { $_->{picture} ? 1 : 0 } @{ $r->{json}{pages_read} }], [1, 1, 1],
          'three pages are shown if they shall be');

$r = ask($s, 'one', 'Which hall?', pages => 'text', max_tokens => 1);
is_deeply([grep { $_->{picture} || $_->{whole} } @{ $r->{json}{pages_read} }], [], 'none with text alone');

# ---- more than fits --------------------------------------------------------------------------

add($s, 'long', 'long.pdf', pdf(map { my $p = $_; [map { "Line $_ of page $p tells of belts and bearings once more." } 1 .. 50] } 1 .. 12));

$r = ask($s, 'long', 'What is told of belts?', max_tokens => 1);
is($r->{code}, 200, 'of documents that do not fit a part is read');
cmp_ok($r->{json}{usage}{prompt_tokens}, '<', 4096, 'the prompt fits');

# ---- events ----------------------------------------------------------------------------------

$r = ask($s, 'again', 'How fast?', stream => JSON::PP::true, max_tokens => 8);
is($r->{headers}{'content-type'}, 'text/event-stream; charset=utf-8', 'events');
my @events = map { /^event: (\w+)\ndata: (.*)/ ? [$1, JSON::PP::decode_json($2)] : () } split /\n\n/, $r->{body};
is($events[0][0], 'sources', 'the first event has the sources');
is($events[-1][0], 'answer', 'the last has the answer');
is(join('', map { $_->[0] eq 'token' ? $_->[1]{text} // '' : () } @events), $events[-1][1]{answer}, 'tokens are its text');
is($events[0][1]{sources}[0]{name}, 'latin.pdf', 'a source has its name');

# ---- errors ----------------------------------------------------------------------------------

add($s, 'locked', 'locked.pdf', file('locked.pdf'));
$s->post('/api/chat', { session_id => 'empty', message => 'hi', text_only => JSON::PP::true });

sub fails {
    my ($code, $error, %body) = @_;
    my $r = $s->post('/api/ask', \%body);

    is("$r->{code} $r->{json}{error}", "$code $error", $error);
}

fails(400, 'Missing session ID', question => 'q');
fails(400, 'Question is required', session_id => 'again');
fails(400, 'Question is required', session_id => 'again', question => '');
fails(404, 'Session not found', session_id => 'nobody', question => 'q');
fails(400, 'No documents in this session', session_id => 'empty', question => 'q');
fails(400, 'The document could not be read: a password is needed', session_id => 'locked', question => 'q');
fails(404, 'This session has no such document', session_id => 'again', question => 'q', documents => [$north]);
fails(400, 'documents is not a list of up to 20 ids', session_id => 'again', question => 'q', documents => 'x');
fails(400, 'pages is not "auto", "text" or "pictures"', session_id => 'again', question => 'q', pages => 'all');
fails(400, 'The document could not be read: its pages have no text, and are not shown to the model',
      session_id => 'scan', question => 'q', pages => 'text');

# ---- the PDF service's -----------------------------------------------------------------------

sub five {
    my @five = map { $s->begin('POST', '/ask', { question => "Test $_", sessionId => 'again' }) } 1 .. 5;

    return join ' ', map { $_->end->{code} } @five;
}

sub resident { return VLM::slurp('/proc/' . $s->health->{heartbeat}{pid} . '/status') =~ /VmRSS:\s+(\d+)/ ? $1 : 0 }

five() for 1 .. 4;
my $before = resident();
is(five(), '200 200 200 200 200', 'five questions at once are answered');
five() for 1 .. 4;
cmp_ok(resident() - $before, '<', 4096, 'memory is as before, within 4 MB') unless $ENV{VLM_REPORTS};
diag('resident memory grew by ', resident() - $before, ' kB');

sub service {
    my ($path, $code, $body, $name, %in) = @_;
    my $r = $s->post($path, \%in);

    is($r->{code}, $code, "$name: $code");
    is_deeply($r->{json}, $body, $name) if ref $body eq 'HASH';
    is_deeply([keys %{ $r->{json} }], [$body], "$name has $body") unless ref $body;
}

my $unknown = 'Session not found. Please upload a PDF first.';

service('/ask', 200, 'answer', 'a question', question => 'How fast?', sessionId => 'again');
service('/ask', 200, 'answer', 'an empty question', question => '', sessionId => 'again');
service('/summarize', 200, 'summary', 'a summary', sessionId => 'again');
service('/compare', 200, 'comparison', 'a comparison', session_id_1 => 'one', session_id_2 => 'two', question => 'Colours?');
service('/compare', 200, { error => 'One or both sessions do not have a PDF loaded' }, 'a comparison with nothing',
        session_id_1 => 'one', session_id_2 => 'nobody', question => 'q');
service('/ask', 200, 'answer', 'without a session, the newest document', question => 'q');
service('/ask', 200, { answer => 'No relevant context found.' }, 'a scan', question => 'q', sessionId => 'scan');
service('/summarize', 200, { summary => 'No document context available to summarize.' }, 'a scan', sessionId => 'scan');
service('/ask', 404, { detail => $unknown, error => $unknown }, 'an unknown session', question => 'q', sessionId => 'x');
service('/summarize', 404, { detail => $unknown, error => $unknown }, 'an unknown session', sessionId => 'x');
service('/ask', 422, { detail => [{ type => 'missing', loc => ['body', 'question'], msg => 'Field required',
                                    input => { sessionId => 'again' } }],
                       error => 'question: Field required' }, 'no question', sessionId => 'again');
service('/ask', 422, { detail => [{ type => 'string_type', loc => ['body', 'question'],
                                    msg => 'Input should be a valid string', input => 5 }],
                       error => 'question: Input should be a valid string' }, 'a number', question => 5);
service('/summarize', 422, { detail => [{ type => 'string_type', loc => ['body', 'sessionId'],
                                          msg => 'Input should be a valid string', input => [] }],
                             error => 'sessionId: Input should be a valid string' }, 'a list', sessionId => []);
service('/compare', 422, { detail => [map({ { type => 'missing', loc => ['body', $_], msg => 'Field required', input => {} } }
                                          qw(session_id_1 session_id_2 question))],
                           error => 'session_id_1: Field required' }, 'nothing');

for my $path (qw(/ask /summarize /compare)) {
    for my $case (['{"a"', 'json_invalid'], ['5', 'model_attributes_type'], ['', 'missing']) {
        my $r = $s->begin('POST', $path, $case->[0], { 'Content-Type' => 'application/json' })->end;
        is("$r->{code} $r->{json}{detail}[0]{type}", "422 $case->[1]", "$path: the body \"$case->[0]\"");
    }
}

$s->check_log;
$s->stop;

$s = server('ask-strict', documents => $on);
add($s, 'again', 'latin.pdf', file('latin.pdf'));

for my $path ('/ask', '/summarize') {
    my $key = $path eq '/ask' ? 'answer' : 'summary';
    service($path, 200, { $key => 'Please upload a PDF first!' }, "$path without a session", question => 'q');
}

$s->check_log;
$s->stop;

$s = server('ask-off', documents => 'documents off');

for my $path (qw(/api/ask /ask /summarize /compare)) {
    is($s->post($path, { session_id => 'x', question => 'q' })->{code}, 404, "$path without documents");
}

done_testing;
