# Documents: how they come in, are read and shown; hostile files, each of which ends in its sentence;
# and workers and readers that are killed while they read.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Copy ();
use File::Temp ();
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $built = Cwd::getcwd() . '/build/vlm-pdf';

die "make documents builds $built\n" unless -x $built;

# A copy, by whose path the processes of this test are known.
my $bin = File::Temp->newdir;
my $helper = "$bin/vlm-pdf";

File::Copy::copy($built, $helper) && chmod 0755, $helper or die "$helper: $!";

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
my $on = "documents on helper=$helper sandbox=$sandbox";
my ($seconds, $megabytes) = (3, 128);

sub file { VLM::slurp("t/documents/files/$_[0].pdf") }

# A form with a file, and a session or none.
sub send_file {
    my ($s, $path, $name, $data, $session, $field, $tenant) = @_;
    my @parts = ([($field || 'file') . "\"; filename=\"$name", $data]);

    push @parts, ['session_id', $session] if defined $session;

    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" } @parts;

    return $s->begin('POST', $path, "$body--xxxx--\r\n",
                     { 'Content-Type' => 'multipart/form-data; boundary=xxxx', $tenant ? ('X-Tenant' => $tenant) : () });
}

sub add { return send_file($_[0], '/api/documents', @_[1 .. $#_])->end }

# The document once it was read.
sub read_one {
    my ($s, $id) = @_;
    my $doc;

    VLM::wait_for(sub {
        $doc = $s->get("/api/documents/$id")->{json};
        return ($doc->{state} || '') =~ /^(?:ready|failed)$/;
    });

    return $doc;
}

sub said { my ($doc) = @_; return $doc->{error} // ($doc->{pages_read} == 1 ? 'a page' : 'nothing') }

# Processes of vlm-pdf whose parent is one of these.
sub children {
    my %parents = map { $_ => 1 } @_;

    return grep {
        my $stat = VLM::slurp("/proc/$_/stat") // '';
        my ($parent) = $stat =~ /^\d+ \(vlm-pdf\) \S (\d+)/;
        $parent && $parents{$parent};
    } map { m{/proc/(\d+)/} } glob '/proc/[0-9]*/stat';
}

# Readers that the workers of this server have started.
sub readers { return children($_[0]->workers) }

# Processes of vlm-pdf anywhere: the one behind the walls has another parent once its own was killed.
sub left { grep { (VLM::slurp("/proc/$_/cmdline") // '') =~ /^\Q$helper\E\0/ } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*' }

# A reading's time by the log: milliseconds from the reader's spawn to its last frame.
sub reading_ms {
    my ($s, $id) = @_;

    return VLM::wait_for(sub { $s->log =~ /document \Q$id\E: .* (?:in|after) (\d+) ms/ && $1 });
}

sub resident {
    my ($pid) = @_;
    my ($kb) = VLM::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m;

    return $kb;
}

my $s = VLM->new(name => 'documents', workers => 2, server => 'location ~ ^/(upload|process-pdf)$ { vlm_pass live; }',
                 engine => "$on time=${seconds}s memory=${megabytes}m file=30m; thinking off; context 4k; queue 100;")->start->ready;

# ---- a document: from the upload to the picture of a page ------------------------------------

{
    my $r = add($s, 'my columns.pdf', file('columns'), 'one');

    is($r->{code}, 202, 'an upload is accepted before it was read');
    is($r->{json}{session_id}, 'one', 'in its session');
    is($r->{json}{bytes}, length file('columns'), 'with its size');

    my $id = $r->{json}{id};
    my $doc = read_one($s, $id);

    is_deeply([@$doc{qw(state name pages pages_read pages_to_read scans error)}],
              ['ready', undef, 1, 1, 1, 0, undef], 'it is read');
    is($s->get("/api/documents/$id?session_id=%6fne")->{json}{name}, 'my columns.pdf', 'and has the name that its session has');

    my $page = $s->get("/api/documents/$id/pages/1")->{json};

    like($page->{text}, qr/^Line 1 of the left column\n/, 'a page has its text');
    is($page->{words}[0]{text}, 'Line', 'and its words');
    is(scalar @{ $page->{words}[0]{box} }, 4, 'with boxes');

    my $picture = $s->get("/api/documents/$id/pages/1.png");

    is($picture->{headers}{'content-type'}, 'image/png', 'a page has a picture');
    like($picture->{body}, qr/^\x89PNG/, 'which is a PNG');

    $r = $s->get("/api/documents/$id/pages/2");
    is("$r->{code} $r->{json}{error}", '404 The document has 1 pages that were read: there is no page "2"',
       'there is no page after the last');

    is($s->get("/api/documents/$id/pages/$_")->{code}, 404, "nor a page \"$_\"") for qw(0 -1 x 1.jpg 99999999999);

    is($s->get('/api/session/one/documents')->{json}{documents}[0]{id}, $id, 'the session lists it');

    my $again = add($s, 'other.pdf', file('columns'))->{json};

    is($again->{id}, $id, 'the same file is the same document');
    is($again->{state}, 'ready', 'and is not read again');
    isnt($again->{session_id}, 'one', 'in a new session');

    is($s->begin('DELETE', "/api/session/$again->{session_id}/documents/$id")->end->{json}{status}, 'removed',
       'a session gives it up');
    is($s->begin('PUT', "/api/session/$again->{session_id}/documents/$id")->end->{json}{status}, 'added', 'and takes it');
    is($s->begin('PUT', '/api/session/one/documents/none')->end->{code}, 404, 'but not one that there is not');
    is($s->begin('DELETE', "/api/session/$again->{session_id}/documents/$id")->end->{json}{status}, 'removed', 'gives it up again');
    is($s->begin('DELETE', "/api/documents/$id?session_id=one")->end->{json}{status}, 'deleted', 'it can be deleted');
    is($s->get("/api/documents/$id")->{code}, 404, 'and is gone');
    is_deeply($s->get('/api/session/one/documents')->{json}{documents}, [], 'from its session, too');
}

# ---- one document of two sessions ------------------------------------------------------------

{
    my $id = add($s, 'Alice Secret.pdf', file('latin'), 'alice')->{json}{id};
    my $names = sub { join ' ', map { $_->{name} } @{ $s->get("/api/session/$_[0]/documents")->{json}{documents} } };
    my $says = sub { "$_[0]{code} " . ($_[0]{json}{status} // $_[0]{json}{error} // '') };
    my $delete = sub { $says->($s->begin('DELETE', "/api/documents/$id$_[0]")->end) };
    my $put = sub {
        my ($session, $body) = @_;
        return $says->($s->begin('PUT', "/api/session/$session/documents/$id", $body, { 'Content-Type' => 'application/json' })->end);
    };

    read_one($s, $id);

    is(add($s, 'bob.pdf', file('latin'), 'bob')->{json}{id}, $id, 'two sessions have a document');
    unlike($s->get("/api/documents/$id$_")->{body}, qr/Secret/, "no name of the other is in \"$_\"") for '', '?session_id=bob';
    is($s->get("/api/documents/$id?session_id=bob")->{json}{name}, 'bob.pdf', 'but the own one');

    my $r = send_file($s, '/upload', 'carol.pdf', file('latin'))->end;
    is($r->{json}{filename}, 'carol.pdf', 'nor is it in the answer to an upload that waits');
    $s->begin('DELETE', "/api/session/$r->{json}{sessionId}")->end;

    is($says->($s->get("/api/documents/$id?session_id=$_")), '404 Session not found', "there is no session of " . length . ' bytes')
        for 'none', 'x' x 1000, '%00', '';

    is($put->('bob', ''), '200 added', 'a session that has it takes it');
    is($names->('bob'), 'bob.pdf', 'and keeps its name');
    is($put->('bob', '{"name": "dir/two.pdf"}'), '200 added', 'unless it gives another');
    is($names->('bob'), 'two.pdf', 'which it has then');
    is($put->('bob', '{"name": 2}'), '400 The body must be an object whose "name" is a string', 'a name is a string');
    like($put->('bob', '{"name'), qr/^400 /, 'a body is JSON');
    is($put->('bob', '{"name": "' . 'x' x 5000 . '"}'), '413 The request body has 5012 bytes, it may have 4096', 'and is short');

    my $other = '409 1 other session has this document: it can be removed from this one, but not deleted';

    is($delete->('?session_id=bob'), $other, 'neither session deletes it');
    is($delete->(''), '409 2 sessions have this document: session_id must name the only one', 'nor does a client without one');
    $s->begin('DELETE', "/api/session/bob/documents/$id")->end;
    is($delete->('?session_id=bob'), '404 The session does not have this document', 'nor one that has given it up');
    is($names->('alice'), 'Alice Secret.pdf', 'the other has it still');
    is($put->('bob', ''), '200 added', 'one that has its id may take it');
    is($names->('bob'), 'document.pdf', 'but gets no name with it');
    $s->begin('DELETE', "/api/session/bob/documents/$id")->end;
    is($delete->('?session_id=alice'), '200 deleted', 'the last one deletes it');
}

# ---- damaged pages ---------------------------------------------------------------------------

{
    # Annotations that are a number make page 2 unreadable, and poppler goes no further.
    my @objects = ('<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Count 3/Kids[4 0 R 6 0 R 8 0 R]>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>');

    for my $page (1 .. 3) {
        my $content = "BT /F 12 Tf 60 700 Td (Page $page is about valves.) Tj ET";

        push @objects, '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]' . ($page == 2 ? '/Annots 5' : '')
                       . '/Resources<</Font<</F 3 0 R>>>>/Contents ' . (@objects + 2) . ' 0 R>>',
                       '<</Length ' . length($content) . ">>stream\n$content\nendstream";
    }

    my $id = add($s, 'damaged.pdf', "%PDF-1.4\n" . join('', map { $_ + 1 . " 0 obj$objects[$_]endobj\n" } 0 .. $#objects)
                                    . "trailer<</Root 1 0 R>>\n%%EOF\n", 'damaged')->{json}{id};
    my $doc = read_one($s, $id);

    is_deeply([@$doc{qw(state pages_read error)}], ['ready', 3, 'pages 2 and 3 are damaged'], 'damaged pages are named');
    is($s->get("/api/documents/$id/pages/$_->[0]")->{json}{text}, $_->[1], "page $_->[0] is there")
        for [1, 'Page 1 is about valves.'], [2, ''], [3, ''];

    my $r = $s->get("/api/documents/$id/pages/2.png");
    is("$r->{code} $r->{json}{error}", '422 The page cannot be drawn: the page cannot be read', 'it cannot be drawn');

    for my $pages (qw(auto text pictures)) {
        $r = $s->post('/api/ask', { session_id => 'damaged', question => 'What is page 1 about?', pages => $pages, max_tokens => 2 });
        is($r->{code}, 200, "a question is answered, pages $pages") or diag($r->{body});
        is_deeply([map { $_->{page} } @{ $r->{json}{sources} }], [1], 'from the page that can be read');
    }
}

# ---- what is refused -------------------------------------------------------------------------

{
    my @refused = ([400, 'Not a PDF', 'text.pdf', 'text', 'one'],
                   [400, 'No file part', 'columns.pdf', file('columns'), 'one', 'picture'],
                   [413, 'The file is larger than 31457280 bytes', 'large.pdf', '%PDF-' . 'x' x (30 << 20), 'one']);

    for my $case (@refused) {
        my ($code, $text, @more) = @$case;
        my $r = add($s, @more);

        is("$r->{code} " . ($r->{json}{error} // ''), "$code $text", $text);
    }

    my $id = add($s, 'locked.pdf', file('locked'), 'locked')->{json}{id};

    is(read_one($s, $id)->{error}, 'a password is needed', 'a password is asked for');

    my $r = $s->get("/api/documents/$id/pages/1");
    is("$r->{code} $r->{json}{error}", '409 The document could not be read: a password is needed', 'its pages are not there');

    my @ids = map { add($s, "$_.pdf", file('latin') . "% $_", 'many') } 1 .. 20;

    is(scalar(grep { $_->{code} == 202 } @ids), 20, 'a session takes 20 documents');

    $r = add($s, '21.pdf', file('latin') . '% 21', 'many');
    is($r->{code}, 409, 'and no more');
    like($r->{json}{error}, qr/20/, 'with the number');

    read_one($s, $_->{json}{id}) for @ids;
}

# ---- the PDF service -------------------------------------------------------------------------

{
    my $r = send_file($s, '/upload', 'Handbook.pdf', file('latin'))->end;

    is($r->{code}, 200, 'an upload waits for the reading');
    is_deeply([@{ $r->{json} }{qw(message filename)}], ['PDF uploaded & processed successfully!', 'Handbook.pdf'],
              'and answers as that service');
    is($s->get("/api/session/$r->{json}{sessionId}/documents")->{json}{documents}[0]{state}, 'ready', 'in a session');

    $r = send_file($s, '/upload', 'Handbook.pdf', file('latin'), undef, 'pdf')->end;
    is("$r->{code} $r->{json}{error}", "400 No file uploaded. Use form field name 'file'.", 'a wrong field');

    $r = send_file($s, '/upload', 'a.pdf', 'no PDF')->end;
    is("$r->{code} $r->{json}{error}", '500 PDF processing failed', 'a file that cannot be read');
    like($r->{json}{details}, qr/^damaged: /, 'with the reason');

    my $up = send_file($s, '/api/upload', 'latin.pdf', file('latin'))->end->{json};

    $r = $s->post('/process-pdf', { filePath => $up->{path}, sessionId => 'p' });
    is_deeply($r->{json}, { message => 'PDF processed successfully', sessionId => 'p' }, 'a file that was uploaded');

    $up = send_file($s, '/api/upload', 'empty.pdf', file('empty'))->end->{json};
    $r = $s->post('/process-pdf', { filePath => $up->{filename}, sessionId => 'e' });
    is("$r->{code} $r->{json}{error}", '200 No text chunks generated from the PDF. Please check your file.', 'a file without text');

    for my $path ('/etc/passwd', '../vlm.db', $s->dir . '/nginx.conf', '') {
        is($s->post('/process-pdf', { filePath => $path, sessionId => 'p' })->{code}, 404, "\"$path\" is not opened");
    }

    my $missing = { type => 'missing', loc => ['body', 'filePath'], msg => 'Field required', input => { sessionId => 'p' } };

    $r = $s->post('/process-pdf', { sessionId => 'p' });
    is($r->{code}, 422, 'a path is needed');
    is_deeply($r->{json}, { detail => [$missing], error => 'filePath: Field required' }, 'as FastAPI says it');

    $r = $s->post('/process-pdf', { filePath => 5, sessionId => [] });
    is($r->{code}, 422, 'both are strings');
    is_deeply([map { "$_->{type} $_->{loc}[1]" } @{ $r->{json}{detail} }], ['string_type filePath', 'string_type sessionId'],
              'each that is wrong is listed');

    for my $case (['[', 'json_invalid'], ['[]', 'model_attributes_type'], ['', 'missing']) {
        $r = $s->begin('POST', '/process-pdf', $case->[0], { 'Content-Type' => 'application/json' })->end;
        is("$r->{code} $r->{json}{detail}[0]{type}", "422 $case->[1]", "the body \"$case->[0]\"");
    }

    $r = $s->post('/process-pdf', { other => 'x' x 100_000 });
    is("$r->{code} $r->{json}{detail}", '422 A field is missing, or is not a string', 'a long body is not sent back');
}

# No reading takes all of its time here, on a busy machine either.
my $patient = VLM->new(name => 'documents-patient', workers => 2,
                       engine => "$on time=10m memory=${megabytes}m file=30m; thinking off; context 4k;")->start->ready;

# ---- hostile files ---------------------------------------------------------------------------

{
    my $dir = File::Temp->newdir;

    system('python3', '-B', '-c', <<'_EOC_', "$dir", $seconds, $megabytes) == 0 or die 'hostile.py';
import json, sys
sys.path.insert(0, "t/documents")
import hostile
folder, seconds, megabytes = sys.argv[1:]
for function in hostile.ATTACKS:
    with open(f"{folder}/{function.__name__}.pdf", "wb") as out:
        out.write(function())
    with open(f"{folder}/{function.__name__}.json", "w") as out:
        json.dump(hostile.answers(function, int(seconds), megabytes), out)
_EOC_

    my $pid = $s->designated;
    my @files = glob "$dir/*.pdf";

    is(scalar @files, 18, scalar(@files) . ' hostile files');

    # The allocator keeps what the largest of the files needed.
    send_file($s, '/upload', 'warm.pdf', VLM::slurp($files[$_]))->end for 0, -1;

    my $before = resident($pid);
    my $late = 0;

    for my $path (@files) {
        my ($name) = $path =~ m{([^/]+)\.pdf$};
        my $wanted = JSON::PP::decode_json(VLM::slurp("$dir/$name.json"));

        my $r = add($s, "$name.pdf", VLM::slurp($path), "hostile-$name");

        if ($name =~ /^(?:no_pdf|nothing)$/) {
            is("$r->{code} $r->{json}{error}", '400 Not a PDF', "$name: refused");
            next;
        }

        my $id = $r->{json}{id};
        my $doc = read_one($s, $id);
        my $ms = reading_ms($s, $id);
        my $said = said($doc);

        # A busy machine takes more of a processor for the same work.
        if ($said =~ /^reading took longer/ && !grep { $said eq $_ } @$wanted) {
            $doc = read_one($patient, add($patient, "$name.pdf", VLM::slurp($path), "hostile-$name")->{json}{id});
            $said = said($doc);
        }

        if ($said =~ /^reading took longer/) {
            my $again = add($s, "$name.pdf", VLM::slurp($path), "hostile-$name")->{json};
            is("$again->{state}: $again->{error}", "failed: $said", "$name: is not read again when it is sent again");
            $late++;
        }

        ok((grep { $said eq $_ } @$wanted), "$name: $said") or diag("wanted: @$wanted");
        is($doc->{state}, $doc->{error} ? 'failed' : 'ready', "$name: its state");

        # The limit is of processor time, of which a busy machine gives a tenth at least.
        cmp_ok($ms, '<=', 1000 * (11 * $seconds + 1), "$name: in $ms ms");

        $s->get("/api/documents/$id/pages/1.png") if $doc->{state} eq 'ready';
    }

    cmp_ok($late, '>', 0, "$late files have taken all of their time");
    is($s->designated, $pid, 'the worker lives');

    my $grown = resident($pid) - $before;

    cmp_ok($grown, '<=', 8192, "its memory has grown by $grown kB") unless $ENV{VLM_REPORTS};
    ok(VLM::wait_for(sub { !left() }), 'no reader is left');
    unlike($s->log, qr/\[(?:alert|emerg|crit)\]/, 'and the log has no alert');
}

ok($s->stop, 'the server ends');

# ---- killed while it reads -------------------------------------------------------------------

$s = $patient;

my $rounds = $ENV{VLM_ROUNDS} || 6;

{
    # 200 pages take long enough to be met in the middle.
    my @kids = map { 4 + 2 * $_ } 0 .. 199;
    my @objects = ('<</Type/Catalog/Pages 2 0 R>>',
                   '<</Type/Pages/Count 200/Kids[' . join(' ', map { "$_ 0 R" } @kids) . ']>>',
                   '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>');

    for my $page (1 .. 200) {
        my $content = join "\n", 'BT /F 9 Tf 11 TL 40 800 Td',
                           (map { "(Page $page, line $_: the valve of hall $page opens at ${_}0 bar.) Tj T*" } 1 .. 30), 'ET';

        push @objects, '<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents '
                       . (@objects + 2) . ' 0 R>>', '<</Length ' . length($content) . ">>stream\n$content\nendstream";
    }

    my $long = "%PDF-1.4\n" . join('', map { $_ + 1 . " 0 obj$objects[$_]endobj\n" } 0 .. $#objects)
               . "trailer<</Root 1 0 R>>\n%%EOF\n";
    my ($wrong, $failed, $killed) = (0, 0, 0);

    for my $round (1 .. $rounds) {
        my $id = add($s, "long-$round.pdf", "$long% $round\n", "long-$round")->{json}{id};
        my $died;

        VLM::wait_for(sub {
            my $doc = $s->get("/api/documents/$id")->{json};
            my @readers = readers($s);

            # a document that is not ready shows no page
            $wrong++ if ($doc->{state} // '') ne 'ready' && $s->get("/api/documents/$id/pages/1")->{code} == 200
                        && $s->get("/api/documents/$id")->{json}{state} ne 'ready';

            return 1 if ($doc->{state} // '') eq 'ready';
            return 0 unless @readers;

            # the worker, the reader, and the process that the reader has behind its walls
            my ($pid) = ($s->designated, $readers[0], children($readers[0]))[$round % 3];

            return $died = $pid && kill 'KILL', $pid;
        });

        $killed++ if $died;
        $s->ready;

        my $doc = read_one($s, $id);

        $failed++ unless $doc->{state} eq 'ready' && $doc->{pages_read} == 200
                         && $s->get("/api/documents/$id/pages/200")->{json}{text} =~ /^Page 200, line 1:/;
        $s->begin('DELETE', "/api/documents/$id?session_id=long-$round")->end;
    }

    is($failed, 0, "$rounds times a worker or a reader was killed: the document becomes ready by itself");
    cmp_ok($killed, '>=', $rounds / 2, "$killed of them were reading");
    is($wrong, 0, 'and no half of it is shown');
    ok(VLM::wait_for(sub { !left() }), 'no reader is left');
}

ok($s->stop, 'the server ends');

# ---- tenants ---------------------------------------------------------------------------------

{
    my $s = VLM->new(name => 'documents-tenants', engine => "$on; thinking off; cache_salt \$http_x_tenant;",
                     server => 'location ~ ^/(ask|compare|summarize)$ { vlm_pass live; }')->start->ready;
    my $id = add($s, 'a.pdf', file('latin'), 'alice', undef, 'a')->{json}{id};
    my $as = sub {
        my ($tenant, $verb, $path, $body) = @_;
        my $r = $s->begin($verb, $path, $body // '', { 'X-Tenant' => $tenant })->end;
        return "$r->{code} " . ($r->{json}{error} // '');
    };

    ok(VLM::wait_for(sub { $s->health->{documents}{ready} == 1 }), 'a document of a tenant is read');
    isnt(add($s, 'b.pdf', file('latin'), 'bob', undef, 'b')->{json}{id}, $id, 'another tenant has another');

    my @wants = (['GET', "/api/documents/$id"], ['GET', "/api/documents/$id?session_id=alice"],
                 ['GET', "/api/documents/$id/pages/1"], ['GET', "/api/documents/$id/pages/1.png"],
                 ['DELETE', "/api/documents/$id?session_id=alice"]);

    for my $want (@wants) {
        is($as->('b', @$want), '404 Document not found', "@$want finds none of the other tenant");
        is($as->('', @$want), '404 Document not found', 'nor does a client without a tenant');
    }

    is($as->('b', 'PUT', "/api/session/bob/documents/$id"), '404 Document not found', 'nor can it be added to another session');

    # A session's id is of no use to another tenant.
    my ($list, $own) = ('/api/session/alice/documents', "/api/session/alice/documents/$id");
    my $ask = '{"session_id": "alice", "question": "What is this?"}';

    for my $want (['GET', $list], ['PUT', $own], ['DELETE', $own], ['DELETE', '/api/session/alice'], ['POST', '/api/session/alice/reset'],
                  ['GET', '/api/history/alice'], ['POST', '/api/ask', $ask])
    {
        is($as->($_, @$want), '404 Session not found', "@$want finds no session of another tenant") for 'b', '';
    }

    my $known = '{"sessionId": "alice", "question": "What is this?"}';
    like($as->($_, 'POST', '/ask', $known), qr/^404/, 'nor do the endpoints of a PDF service') for 'b', '';

    for ('b', '', 'a') {
        my $r = $s->begin('POST', '/compare', '{"session_id_1": "alice", "session_id_2": "alice", "question": "x"}', { 'X-Tenant' => $_ })->end;

        is($r->{body} =~ /sessions do not have a PDF/, $_ ne 'a', "/compare of '$_'");
    }

    is(add($s, 'b2.pdf', file('latin'), 'alice', undef, 'b')->{json}{session_id}, 'alice', 'another tenant may have a session of the same id');
    is_deeply([map { $_->{name} } @{ $s->begin('GET', $list, '', { 'X-Tenant' => $_ })->end->{json}{documents} }], [$_ eq 'a' ? 'a.pdf' : 'b2.pdf'],
              "the session of $_ has its own document") for 'a', 'b';

    is($as->('a', @$_), '200 ', "its own client may @$_") for (grep { $_->[0] eq 'GET' } @wants), ['POST', '/api/ask', $ask], ['POST', '/ask', $known], ['DELETE', $own];
    ok($s->stop, 'the server ends');
}

# ---- a reader that something kills each time -------------------------------------------------

{
    my $dir = File::Temp->newdir;
    my $reader = "$dir/reader";

    # The first so many runs are killed; the next is vlm-pdf.
    my $script = sub { "#!/bin/sh\necho >>$dir/runs\n[ `wc -l <$dir/runs` -gt $_[0] ] || kill -9 \$\$\nexec $helper \"\$@\"\n" };
    my $runs = sub { my $lines = () = VLM::slurp("$dir/runs") =~ /\n/g; $lines };

    VLM::spew($reader, $script->(2));
    chmod 0755, $reader or die "$reader: $!";

    my $s = VLM->new(name => 'killed-readers', server => 'location = /metrics { vlm_status live; }',
                     engine => "documents on helper=$reader sandbox=$sandbox; thinking off;")->start->ready;
    my $doc = read_one($s, add($s, 'latin.pdf', file('latin'), 's')->{json}{id});

    is("$doc->{state}, $doc->{pages_read}", 'ready, 1', 'a document whose reader is killed twice becomes ready');
    is($runs->(), 3, 'at the third attempt');
    ok($s->log_has(qr/\[warn\] .*document \Q$doc->{id}\E: the PDF reader ended before its answer, at attempt 2 of 3/),
       'the log has each attempt');

    VLM::spew($reader, $script->(100));
    unlink "$dir/runs";

    my $id = add($s, 'columns.pdf', file('columns'), 's')->{json}{id};

    $doc = read_one($s, $id);
    is("$doc->{state}: $doc->{error}", 'failed: the PDF reader ended before its answer, and this was attempt 3 of 3',
       'one whose reader is killed each time has failed');
    is($runs->(), 3, 'after three attempts');
    like($s->get('/metrics')->{body}, qr/^vlm_document_failures_total 1$/m, 'it counts as one failure');

    VLM::spew($reader, $script->(0));
    add($s, 'columns.pdf', file('columns'), 's');
    is(read_one($s, $id)->{state}, 'ready', 'and is read when it comes again');

    # Pictures of pages
    VLM::spew($reader, $script->(2));
    unlink "$dir/runs";
    is($s->get("/api/documents/$id/pages/1.png")->{code}, 200, 'a page whose reader is killed twice is drawn');

    ok($s->stop, 'the server ends');
}

done_testing();
