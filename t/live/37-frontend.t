# Tests the requests of RoboBrain's own front end, a React app, in its order, with
# the headers of axios and a browser for a page of another port: to a server of this
# test, and to one with conf/robobrain.conf.  The form of the answers is checked, and
# not the demo model's words.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use File::Path ();
use JSON::PP ();
use Script;
use Shipped;
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $PICTURE = 'demo/pictures/table-01.png';

# The page's origin, the shipped configuration or none, the server and its session.
my ($ORIGIN, $SHIPPED, $s, $session);

for (['http://localhost:3000'], ['http://127.0.0.1:3000', 'robobrain.conf']) {
    ($ORIGIN, $SHIPPED) = @$_;

    note($SHIPPED ? "conf/$SHIPPED" : 'a server of this test');
    simple_mode();
    complex_mode();
    not_ready();
}

done_testing();


# ---- parts of the sequence ----------------------------------------------------

sub simple_mode {
    $s = server('thinking off; sampling temperature=0;');

    # This test holds the lock, so the model is not loaded until it releases it.
    my ($engine) = $SHIPPED ? $s->{conf} =~ /vlm_engine (\w+)/ : 'live';
    File::Path::make_path("$s->{dir}/store");
    open my $lock, '>', "$s->{dir}/store/$engine.lock" or die "$engine.lock: $!";
    flock $lock, LOCK_EX or die "$engine.lock: $!";

    $s->start;

    my $r = ask('GET', '/api/health');
    is($r->{code}, 200, 'the page looks for the server');
    is($r->{json}{status}, 'healthy', 'the server is online while the model loads');
    ok(!$r->{json}{model_loaded}, 'the server still loads');

    $r = ask('GET', '/api/tasks');
    is(join(' ', map { $_->{id} } @{ $r->{json}{tasks} }),
       'auto general grounding affordance trajectory pointing', 'the page lists the tasks');
    is(scalar(grep { length $_->{name} } @{ $r->{json}{tasks} }), 6, 'each task has a name');

    # In a development build each effect runs twice.
    ($session, my $unused) = map { ask('POST', '/api/session') } 1, 2;
    is($session->{code}, 200, 'the page has a session before the model is loaded');
    isnt($session->{json}{session_id}, $unused->{json}{session_id}, 'twice, two of them');
    $session = $session->{json}{session_id};

    my $file = upload($PICTURE);
    my $early = begin('POST', '/api/chat', question('general', 'How many objects are on the table?', $file));
    ok($s->busy(0, 1), 'a question waits for the model');
    ok(!$early->more(2.2), 'the page receives no events');

    close $lock;

    $r = answered($early, 30);
    is($r->{code}, 200, 'the question is answered once the model is loaded');
    like($r->{json}{answer}, qr/\S/, 'the answer has words');
    ok($s->health->{model_loaded}, 'the model is loaded');

    # Each task is asked for.
    my $n = 2;

    for my $try (['general', 'What colour is the left bowl?'],
                 ['grounding', 'Find the red one'],
                 ['affordance', 'grasp the item closest to us'],
                 ['trajectory', 'move the red ball to the white bowl'],
                 ['pointing', 'identify the red items'],
                 ['auto', 'Where is the red ball?'])
    {
        my ($task, $message) = @$try;

        # The same picture again with every message, as the page does.
        my $file = upload($PICTURE);
        my $r = ask('POST', '/api/chat', question($task, $message, $file));

        check_answer($r, $task, $n += 2);

        if ($task eq 'general') {
            my $title = ask('POST', '/api/generate-title', { message => $message });

            is($title->{code}, 200, 'the conversation has a title');
            like($title->{json}{title}, qr/^.{1,50}$/s, 'the title fits into a list');
        }
    }

    # The page scales a phone's picture down, to a JPEG with the old name.
    {
        my $file = upload('t/fidelity/pictures/118x62.png', "IMG 0017 \xc3\xa4.heic");
        like($file, qr/^[0-9a-f-]{36}_IMG_0017_a\.heic$/, 'a picture by another name');

        my $r = ask('POST', '/api/chat', question('grounding', 'the cup', $file));
        check_answer($r, 'grounding', $n += 2);
    }

    $r = ask('POST', '/api/chat', question('general', 'And now?', undef));
    check_answer($r, 'general', $n += 2);
    ok($r->{json}{context_used}, 'the session has its picture and its turns in mind');

    # The page displays the errors.
    $r = ask('POST', '/api/chat', question('general', 'hi', 'never-uploaded.jpg'));
    is($r->{code}, 400, 'a picture that was never uploaded');
    is($r->{json}{error}, 'Image not found: never-uploaded.jpg', 'the error names the picture');

    {
        my $file = upload('t/README.md', 'holiday.jpg');

        $r = ask('POST', '/api/chat', question('general', 'hi', $file));
        is($r->{code}, 400, 'an invalid picture is refused');
        like($r->{json}{error}, qr/^not a supported picture/, 'the message names the fault');
    }

    $r = ask('POST', '/api/session');
    is($r->{code}, 200, 'a new chat');

    {
        my $new = { %{ question('grounding', 'the cup', undef) },
                    session_id => $r->{json}{session_id} };

        $r = ask('POST', '/api/chat', $new);
        is($r->{code}, 200, 'the session has no picture yet');
        like($r->{json}{answer}, qr/^No image set\./, 'the error is in the member that the page shows');

        # The browser's storage has a session that is unknown to the server.
        $new->{session_id} = 'b1946ac9-2492-4d23-a4d3-0c7bb8a0c1e5';
        $new->{image} = upload($PICTURE);
        check_answer(ask('POST', '/api/chat', $new), 'grounding', 2);
    }

    $r = ask('GET', "/api/history/$session");
    is(scalar @{ $r->{json} }, $n, 'all turns of the first are there');

    $r = ask('POST', "/api/session/$session/reset");
    is($r->{json}{status}, 'reset', 'a reset');
    $r = ask('DELETE', "/api/session/$session");
    is($r->{json}{status}, 'deleted', 'the session is deleted');

    $r = ask('GET', '/api/nothing');
    is($r->{code}, 404, 'an unknown path is refused');
    ok(length $r->{json}{error}, 'the error has a message');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


sub complex_mode {
    my @plan = map { { step => $_->[0], task => $_->[1], prompt => $_->[2],
                       description => "Do $_->[2]",
                       use_previous => $_->[3] ? JSON::PP::true : JSON::PP::false } }
               [1, 'grounding', 'find the mug'], [2, 'affordance', 'hold it', 1];

    my $model = Script::model('frontend',
        twofold    => [JSON::PP->new->canonical->encode(\@plan)],
        bounding   => ['[10, 20, 60, 50]'],
        possible   => ['[12, 22, ', '30, 40]'],
        Choose     => ['general'],
        ''         => ['I see', ' a mug.']);

    $s = server('thinking off;', model => $model)->start->ready;
    $session = ask('POST', '/api/session')->{json}{session_id};

    # The older page lets the server run the steps.
    {
        my $file = upload($PICTURE);
        my $r = ask('POST', '/api/pipeline', { session_id => $session,
                                               message => 'a twofold task',
                                               image => $file });

        is($r->{code}, 200, 'a pipeline is answered');
        is_deeply($r->{json}{pipeline}, \@plan, 'the answer has a plan');
        is(join(' ', map { $_->{success} ? "$_->{step}" : 'no' } @{ $r->{json}{steps} }),
           '1 2', 'the steps were run');
        is($r->{json}{final_answer},
           "Step 1 (grounding): [10, 20, 60, 50]\n\nStep 2 (affordance): [12, 22, 30, 40]",
           'the pipeline has an answer');
        check_picture($r->{json}{final_image});
    }

    # The newer page runs them itself, with its own text around the second.
    {
        my $r = ask('POST', '/api/decompose', { query => 'a twofold task' },
                    Accept => '*/*');

        is($r->{code}, 200, 'a plan without its steps is answered');
        is_deeply($r->{json}, { pipeline => \@plan, success => JSON::PP::true }, 'the answer has a plan alone');

        my $image = upload($PICTURE);
        my $before = '';
        my $turn = 4;

        for my $step (@{ $r->{json}{pipeline} }) {
            my $message = $step->{prompt};

            $message = "[Previous conversation context]\nUser (Step 1 - grounding): "
                       . "find the mug\nAssistant: $before\n(Coordinates detected: $before)\n\n"
                       . "[Current query]\n$message"
                if $step->{use_previous};

            my $r = ask('POST', '/api/chat', question($step->{task}, $message, $image));

            check_answer($r, $step->{task}, $turn += 2);
            ($before, $image) = ($r->{json}{answer}, undef);
        }

        is($before, '[12, 22, 30, 40]', 'the last step has an answer');
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


sub not_ready {
    my $broken = Script::model('frontend-broken', '' => ['words']);

    $s = server('', model => $broken)->start_broken;

    is($s->health->{state}, 'failed', 'a model that cannot be loaded');

    my $r = ask('GET', '/api/health');
    isnt($r->{json}{status}, 'healthy', 'the start of the page has the error');
    $r = ask('POST', '/api/session');
    is($r->{code}, 503, 'the page has no session');
    is($r->{json}{error}, 'Model not initialized', 'the page has the reason');

    for my $path (qw(/api/chat /api/pipeline)) {
        $r = ask('POST', $path, question('general', 'hi', undef));
        is($r->{code}, 503, "an older tab has no session, at $path");
        is($r->{json}{error}, 'Model not initialized', 'the older tab has the reason');
    }

    ok($s->stop, 'the server stops in time');
}


# ---- the server -----------------------------------------------------------------

# Returns a server, perhaps with a model of its own, and with these directives if its configuration
# is not a shipped one.
sub server {
    my ($engine, @model) = @_;

    my $s = VLM->new(name => $SHIPPED ? 'frontend-shipped' : 'frontend', server => "vlm_cors $ORIGIN;",
                     workers => 2, engine => $engine, @model);

    if ($SHIPPED) {
        $s->{conf} = Shipped::placed(VLM::slurp("conf/$SHIPPED"), $s->dir, $s->port);
        $s->{conf} =~ s{^( +model +)[^;]+;}{$1$s->{model};}m or die "$SHIPPED: no model" if @model;
    }

    return $s;
}


# ---- requests of the page ----------------------------------------------------

sub browser {
    return (
        'Connection'      => 'keep-alive',
        'Origin'          => $ORIGIN,
        'Referer'         => "$ORIGIN/",
        'Accept'          => 'application/json, text/plain, */*',
        'Accept-Encoding' => 'gzip, deflate, br, zstd',
        'Accept-Language' => 'en-GB,en;q=0.9',
        'Sec-Fetch-Dest'  => 'empty',
        'Sec-Fetch-Mode'  => 'cors',
        'Sec-Fetch-Site'  => 'same-site',
        'User-Agent'      => 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 '
                             . '(KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
    );
}

sub question {
    my ($task, $message, $image) = @_;

    return { session_id => $session, message => $message, image => $image,
             task => $task, enable_thinking => JSON::PP::false };
}


# Sends a request as a browser does: with a preflight if it needs one, on one
# connection.
sub begin {
    my ($method, $path, $body, %more) = @_;

    my %headers = (browser(), %more);
    my $c;

    # axios sends the type of a body only if there is one.
    $headers{'Content-Type'} ||= 'application/json' if ref $body;

    if ($method eq 'DELETE' || ($headers{'Content-Type'} || '') =~ /json/) {
        $c = $s->begin('OPTIONS', $path, undef, {
            browser(), Accept => '*/*',
            'Access-Control-Request-Method' => $method,
            ref $body ? ('Access-Control-Request-Headers' => 'content-type') : () });

        check_preflight(answered($c, 10), $method, ref $body);
    }

    my $request = VLM::request_text($method, $path, $body, \%headers);

    if ($c) {
        $c->{raw} = '';
        $c->{begun} = time;
        $c->send($request);
        return $c;
    }

    return $s->begin($method, $path, $body, \%headers);
}

sub ask {
    my ($method, $path, @rest) = @_;

    my $r = answered(begin($method, $path, @rest), 30);
    my $h = $r->{headers};

    my @wrong = grep { defined } (
        ($h->{'access-control-allow-origin'} || '') eq $ORIGIN ? undef : 'the origin',
        ($h->{vary} || '') =~ /\bOrigin\b/ ? undef : 'what it varies with',
        ($h->{'content-type'} || '') eq 'application/json' ? undef : 'its type',
        defined $r->{json} ? undef : 'JSON',
        $r->{json} && $r->{code} >= 400 && !$r->{json}{error} ? 'an error' : undef,
    );

    ok(!@wrong, "$method $path is for the page to read") or diag("without: @wrong");

    return $r;
}

# The connection of a browser is persistent.
sub answered {
    my ($c, $seconds) = @_;

    my $end = time + $seconds;

    $c->more($end - time) until $c->done || $c->response->{whole} || time >= $end;

    my $r = $c->response;

    ok($r->{whole}, 'an answer is whole') or diag($r->{raw});

    return $r;
}

# The file picker of the chat sends every file as image/jpeg.
sub upload {
    my ($path, $name) = @_;

    my $boundary = '----WebKitFormBoundary7MA4YWxkTrZu0gW';
    my $data = Script::read_file($path);

    ($name) = $path =~ m{([^/]+)$} unless defined $name;

    my $r = ask('POST', '/api/upload',
                "--$boundary\r\nContent-Disposition: form-data; name=\"file\"; "
                . "filename=\"$name\"\r\nContent-Type: image/jpeg\r\n\r\n"
                . "$data\r\n--$boundary--\r\n",
                'Content-Type' => "multipart/form-data; boundary=$boundary");

    is($r->{code}, 200, 'an upload');

    return $r->{json}{filename};
}


# ---- responses ---------------------------------------------------------------

sub check_preflight {
    my ($r, $method, $body) = @_;

    my $h = $r->{headers};

    ok($r->{code} eq '200' && $r->{body} eq ''
       && ($h->{'access-control-allow-origin'} || '') eq $ORIGIN
       && ($h->{'access-control-allow-methods'} || '') =~ /\b$method\b/
       && (!$body || ($h->{'access-control-allow-headers'} || '') =~ /content-type/i),
       "a preflight of a $method") or diag($r->{raw});
}

sub check_answer {
    my ($r, $task, $turn) = @_;

    my $json = $r->{json} || {};
    my $auto = $task eq 'auto';

    is($r->{code}, 200, "$task: an answer");
    ok(defined $json->{answer} && !ref $json->{answer}
       && defined $json->{thinking} && !ref $json->{thinking}, "$task: the answer and the thinking are texts");
    is($json->{turn_number}, $turn, "$task: the answer has its turn number");
    is($json->{task_source}, $auto ? 'auto' : undef, 'the answer has its task');

    if ($auto) {
        $task = $json->{task};
        like($task, qr/^(?:general|grounding|affordance|trajectory|pointing)$/, 'the task is one of five');

    } else {
        is($json->{task}, $task, 'the task is the requested one');
    }

    if ($task eq 'general') {
        is($json->{output_image}, undef, 'a general answer has no picture');

    } else {
        check_picture($json->{output_image});
    }
}

# <img src> sends no Origin.
sub check_picture {
    my ($url) = @_;

    like($url, qr{^/result/[^/]+$}, 'a visual answer has a picture');

    my $r = answered($s->begin('GET', $url, undef,
                               { Connection => 'keep-alive',
                                 Accept => 'image/avif,image/webp,*/*;q=0.8',
                                 'Referer' => "$ORIGIN/",
                                 'Sec-Fetch-Dest' => 'image',
                                 'Sec-Fetch-Mode' => 'no-cors',
                                 'Sec-Fetch-Site' => 'same-site' }), 10);

    is($r->{code}, 200, 'the picture exists');
    like($r->{headers}{'content-type'}, qr{^image/}, 'its type is a picture\'s');
}
