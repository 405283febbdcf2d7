# Refusals of documents and of questions about them: too many that wait, a disk that is full, pages of
# other origins, methods that there are not.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Path ();
use File::Temp ();
use Test::More;
use VLM;

my $helper = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $helper\n" unless -x $helper;

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
my $on = "documents on helper=$helper sandbox=$sandbox;";
my $locations = 'location ~ ^/(upload|process-pdf|ask|summarize|compare)$ { vlm_pass live; }';
my $origin = 'https://robots.example';

# Each path, its methods, and a body that is right.
my @PATHS = (['/api/documents', 'POST'], ['/upload', 'POST'], ['/process-pdf', 'POST'],
             ['/api/documents/x', 'DELETE, GET, HEAD'], ['/api/documents/x/pages/1', 'GET, HEAD'],
             ['/api/documents/x/pages/1.png', 'GET, HEAD'], ['/api/session/s/documents', 'GET, HEAD'],
             ['/api/session/s/documents/x', 'DELETE, PUT'], map { [$_, 'POST'] } qw(/api/ask /ask /summarize /compare));

sub file { VLM::slurp("t/documents/files/$_[0].pdf") }

# A form with a file.
sub form {
    my ($data, $session) = @_;
    my @parts = (['file"; filename="a.pdf', $data]);

    push @parts, ['session_id', $session] if $session;

    return (join('', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" } @parts) . "--xxxx--\r\n",
            { 'Content-Type' => 'multipart/form-data; boundary=xxxx' });
}

sub add { my ($s, $path, @form) = @_; return $s->begin('POST', $path, form(@form)) }

sub state { ($_[0]->get("/api/documents/$_[1]")->{json} || {})->{state} || '' }

# A file that is new to the server.
my $files = 0;

sub fresh { return file('latin') . '% ' . ++$files }

# The answers of all paths that take a file, and of those that take a question, by path.
sub uploads {
    my ($s, $stored) = @_;

    return (['/api/documents', add($s, '/api/documents', fresh())->end], ['/upload', add($s, '/upload', fresh())->end],
            ['/process-pdf', $s->post('/process-pdf', { filePath => $stored, sessionId => 'p' })]);
}

sub questions {
    my ($s, $session) = @_;

    return (['/api/ask', $s->post('/api/ask', { question => 'q', session_id => $session })],
            ['/ask', $s->post('/ask', { question => 'q', sessionId => $session })],
            ['/summarize', $s->post('/summarize', { sessionId => $session })],
            ['/compare', $s->post('/compare', { question => 'q', session_id_1 => $session, session_id_2 => $session })]);
}

# The endpoints of the service behind the gateway have both words.
sub refused {
    my ($code, $text, @answers) = @_;

    for (@answers) {
        my ($path, $r) = @$_;

        is("$r->{code} " . ($r->{json}{error} // $r->{body}), "$code $text", "$path: $code $text");
        is($r->{json}{detail}, $path =~ m{^/(?:process-pdf|ask|summarize|compare)$} ? $text : undef, "$path: its detail");
        like($r->{headers}{'retry-after'} // '', qr/^[1-9]\d*$/, "$path: when to try again") if $code == 429;
    }
}


# ---- too many documents wait to be read ------------------------------------------------------

{
    my $dir = File::Temp->newdir;

    # A reader that waits for a file.
    VLM::spew("$dir/reader", "#!/bin/sh\nuntil [ -e $dir/go ]; do sleep 0.05; done\nexec $helper \"\$@\"\n");
    chmod 0755, "$dir/reader" or die "$dir/reader: $!";

    my $s = VLM->new(name => 'documents-wait', server => $locations,
                     engine => "documents on helper=$dir/reader sandbox=$sandbox; thinking off; queue 2;")->start->ready;

    my $stored = $s->begin('POST', '/api/upload', form(file('columns')))->end->{json}{filename};
    my @ids = add($s, '/api/documents', fresh())->end->{json}{id};

    ok(VLM::wait_for(sub { state($s, $ids[0]) eq 'reading' }), 'one document is being read');
    push @ids, map { add($s, '/api/documents', fresh())->end->{json}{id} } 1, 2;

    is($s->health->{documents}{waiting}, 2, 'two wait');
    refused(429, '2 documents wait to be read', uploads($s, $stored));
    is($s->health->{documents}{waiting}, 2, 'none of these was stored');

    VLM::spew("$dir/go", '');
    ok(VLM::wait_for(sub { (grep { state($s, $_) eq 'ready' } @ids) == 3 }), 'all that were stored are read');
    is($_->[1]{code}, $_->[0] eq '/api/documents' ? 202 : 200, "$_->[0]: the next is accepted") for uploads($s, $stored);

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- too many questions ----------------------------------------------------------------------

{
    my $s = VLM->new(VLM::slow(name => 'questions-wait', server => $locations, engine => "$on slots 1; queue 1;"))->start->ready;
    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my @chats = $s->begin_chat('endless-1', 'count', image => $picture);

    ok($s->busy(1, 0), 'one answer is made');
    push @chats, $s->begin_chat('endless-2', 'count', image => $picture);
    ok($s->busy(1, 1), 'one request waits');
    refused(429, 'The queue is full: 1 requests are waiting', questions($s, 's'));

    $_->leave for @chats;
    ok($s->busy(0, 0), 'both have left');
    is($_->[1]{code}, { '/compare' => 200 }->{$_->[0]} || 404, "$_->[0]: the next is looked at") for questions($s, 's');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- a disk that is full ---------------------------------------------------------------------

{
    # The store is made on a disk with room, with a document in it.
    my $s = VLM->new(name => 'documents-made', server => $locations, engine => "$on thinking off;")->start->ready;
    my $id = add($s, '/api/documents', file('latin'), 's')->end->{json}{id};
    my $stored = $s->begin('POST', '/api/upload', form(file('columns')))->end->{json}{filename};

    ok(VLM::wait_for(sub { state($s, $id) eq 'ready' }), 'a document is ready');
    ok($s->stop, 'the server stops in time');

    # A file system that the next server alone sees.
    my $store = "$VLM::LIVE/documents-full-store";
    my @root = $> == 0 ? () : '--map-root-user';
    my $self = $> == 0 ? '' : "unshare --map-user=$> --map-group=" . (split ' ', $))[0];

    File::Path::make_path($store);

    my @under = ('unshare', '--mount', @root, 'sh', '-ec',
                 "mount -t tmpfs -o size=8m none $store; chmod 1777 $store; cp -a " . $s->dir . "/store/. $store;"
                 . "dd if=/dev/zero of=$store/other bs=4k 2>/dev/null || :; exec $self \"\$@\"", 'sh');

    $s = VLM->new(name => 'documents-full', under => \@under, store_dir => $store, server => $locations,
                  engine => "$on thinking off; context 4k; max_tokens 4;")->start->ready;

    refused(507, 'The store is full', uploads($s, $stored), questions($s, 's'));
    is($s->get('/api/session/s/documents')->{code}, 507, 'a list is refused');
    is(state($s, $id), '', 'and so is a document');

    unlink '/proc/' . $s->pid . "/root$store/other" or die "other: $!";

    ok(VLM::wait_for(sub { state($s, $id) eq 'ready' }), 'the document is there when there is room again');

    for (uploads($s, $stored), questions($s, 's')) {
        is($_->[1]{code}, $_->[0] eq '/api/documents' ? 202 : 200, "$_->[0]: is answered then");
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- pages of other origins, and methods -----------------------------------------------------

{
    my $s = VLM->new(name => 'documents-cors', http => "vlm_cors $origin;", server => $locations,
                     engine => "$on thinking off;")->start->ready;

    for (@PATHS) {
        my ($path, $methods) = @$_;
        my ($method) = $methods =~ /^(\w+)/;
        my $allow = join ', ', sort split(/, /, $methods), 'OPTIONS';

        my $r = $s->begin('OPTIONS', $path)->end;
        is("$r->{code} $r->{headers}{allow}", "200 $allow", "OPTIONS $path");

        $r = $s->begin('OPTIONS', $path, '', { Origin => $origin, 'Access-Control-Request-Method' => $method,
                                               'Access-Control-Request-Headers' => 'content-type' })->end;
        is(join(' ', $r->{code}, map { $_ // '' } @{ $r->{headers} }{qw(access-control-allow-origin access-control-allow-headers)}),
           "200 $origin content-type", "a preflight of $path");
        like($r->{headers}{'access-control-allow-methods'}, qr/\b$method\b/, "allows $method");

        $r = $s->begin($method, $path, '', { Origin => $origin })->end;
        is($r->{headers}{'access-control-allow-origin'}, $origin, "$method $path may be read, with a status of $r->{code}");
        isnt($r->{code}, 403, "$path: is not refused");

        $r = $s->begin($method, $path, '', { Origin => 'https://other.example' })->end;
        is($r->{code}, 403, "$path: a page of another origin may not ask");
        is($r->{headers}{'access-control-allow-origin'}, undef, "$path: nor read");

        $r = $s->begin('PATCH', $path)->end;
        is("$r->{code} $r->{headers}{allow}", "405 $allow", "PATCH $path: no such method");
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
