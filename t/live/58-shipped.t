# Tests conf/*.conf and README.md's configuration as they are: each starts, answers a
# question, serves its page with the right types, logs that the model is loaded, and
# refuses requests without the key.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp ();
use JSON::PP qw(decode_json encode_json);
use Shipped;
use Test::More;
use VLM;

my %TYPES = (css => qr{^text/css}, js => qr{^(?:application|text)/javascript}, svg => qr{^image/svg},
             html => qr{^text/html});
my @ROUTES = VLM::slurp('http/api/route.c') =~ /(?:HANDLER|DIALECT|THREAD|DOCUMENT|ngx_string)\("(\/[^"]*)"/g;
my @ASKS = grep { !m{_lora_adapter$} }
           VLM::slurp('http/api/route.c') =~ /(?:DIALECT\(|\{ ngx_string\()"(\/[^"*]+)"\)?, \w*POST,[^}]*?&ngx_http/g;
my @UPLOADS = VLM::slurp('http/api/route.c') =~ /DOCUMENT\("(\/[^"*]+)", POST/g;
my $KEY = 'Bearer a-long-secret';

my %all = Shipped::all();

is(join(' ', sort keys %all), 'README.md full.conf minimal.conf public.conf robobrain.conf scale-out-node.conf several-models.conf', 'the list of shipped configurations');
cmp_ok(scalar @ROUTES, '>', 30, 'the table of routes is read');
cmp_ok(scalar @ASKS, '>', 10, 'the table of routes names those that ask the model');
is(scalar @UPLOADS, 3, 'the table of routes names those that take documents');


# Asks with curl, because one configuration has TLS; returns status, type and body.
sub ask {
    my ($s, $path, @options) = @_;

    my $tls = $s->{conf} =~ /listen .* ssl/ ? 's' : '';

    open my $curl, '-|', qw(curl -k -s -m 60 -w \n%{http_code}\n%{content_type}),
                         map({ ('-H', $_) } @{ $s->{headers} }), @options,
                         "http$tls://127.0.0.1:$s->{port}$path" or die "curl: $!";
    binmode $curl;
    my $said = do { local $/; <$curl> };
    close $curl;

    my ($body, $code, $type) = $said =~ /\A(.*)\n(\d+)\n(.*)\z/s;

    return { code => $code, type => $type, body => $body, json => scalar eval { decode_json($body) } };
}


sub started {
    my ($name, $text, @headers) = @_;

    (my $dir = "shipped-$name") =~ tr/./-/;

    my $s = VLM->new(name => $dir);

    $s->{headers} = \@headers;
    $s->{conf} = Shipped::placed($text, $s->dir, $s->port);
    certificate($s) if $text =~ /ssl_certificate/;
    $s->start;

    ok(VLM::wait_for(sub { ask($s, '/health')->{code} eq '200' }),
       "$name: /health says that it is ready") or diag($s->log);

    return $s;
}


sub certificate {
    my ($s) = @_;

    my $at = $s->dir . '/robobrain';

    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
           . " -keyout $at.key -out $at.pem 2>$at.log") == 0 or die VLM::slurp("$at.log");
}


# Uploads a picture and asks about it.
sub answers {
    my ($name, $s) = @_;

    my $upload = ask($s, '/api/upload', '-F', 'file=@demo/pictures/table-01.png');
    is($upload->{code}, 200, "$name: a picture is taken");

    my $chat = ask($s, '/api/chat', '-d', encode_json({
        session_id => 'a', image => $upload->{json}{filename}, task => 'general',
        message => 'How many objects are on the table?', enable_thinking => JSON::PP::false }));
    is($chat->{code}, 200, 'a question is accepted');
    ok(length $chat->{json}{answer}, 'the question has an answer') or diag($chat->{body});

    my $models = ask($s, '/v1/models');
    is($models->{json}{data}[0]{id}, 'robobrain', "OpenAI's clients find the model");

    like($s->log, qr/\[notice\] .*model loaded/, 'the log has the load of the model');
    is(ask($s, '/api/chat', '-d', '{}')->{code}, 400, 'an invalid request is refused');

    for my $model ($s->{conf} =~ /vlm_pass robobrain (\w+);/ ? ('robobrain', $1, 'gpt-4o-mini') : ()) {
        my $r = ask($s, '/v1/chat/completions', '-d', encode_json({
            model => $model, max_tokens => 8, messages => [{ role => 'user', content => 'Hello' }] }));
        ok(length($r->{json}{choices}[0]{message}{content}), "$name: $model answers") or diag($r->{body});
        ok((grep { $_->{id} eq $model } @{ $models->{json}{data} }), 'and is listed');
    }
}


# Loads the page and all files that it names.
sub page {
    my ($name, $s) = @_;

    my $page = ask($s, '/');

    like($page->{type}, $TYPES{html}, "$name: / is a page");
    like($page->{body}, qr{<script[^>]* src="page\.js"}, 'the page is the module\'s');

    my %parts = map { $_ => 1 } $page->{body} =~ /(?:src|href)="([\w.-]+\.\w+)"/g;

    cmp_ok(scalar keys %parts, '>=', 4, 'the page has parts');

    for my $part (sort keys %parts) {
        my $r = ask($s, "/$part");

        is($r->{code}, 200, "$name: $part is served");
        like($r->{type}, $TYPES{($part =~ /(\w+)$/)[0]} || qr/^$/, 'the type is right');
    }
}


# Returns every address that the port listens on.
sub addresses {
    my ($s) = @_;

    my $port = sprintf '%04X', $s->port;

    return map { VLM::slurp("/proc/net/$_") =~ /^ *\d+: (\w+):$port \w+:\w+ 0A/mg } qw(tcp tcp6);
}


# Tries all paths with their methods, without a key and with wrong keys.
sub key {
    my ($name, $s) = @_;

    for my $wrong ('', 'Bearer A-long-secret', 'Bearer a-long-secret2', 'a-long-secret') {
        my @open;

        local $s->{headers} = $wrong ? ["Authorization: $wrong"] : [];

        for my $route (grep { !m{^/health} } @ROUTES) {
            # "/lora-adaptersx" is a page's path, if there is one, and not the module's.
            for my $path ($route, $route =~ m{^/.*/} ? "${route}x" : (), "/$route") {
                for my $method (qw(GET POST DELETE)) {
                    my $r = ask($s, $path, '-X', $method);
                    push @open, "$method $path: $r->{code}" if $r->{code} ne '401';
                }
            }

            last if $wrong && $route eq '/api/chat';
        }

        ok(!@open, "$name: with \"$wrong\" nothing is answered") or diag(join "\n", @open);
    }

    local $s->{headers} = [];
    ok(ask($s, '/v1/models')->{json}{error}{code} eq 'invalid_api_key', 'the error has the form of the API');
    is(ask($s, '/health')->{code}, 200, 'probes need no key');
    is(ask($s, '/health/live')->{code}, 200, 'a liveness probe needs no key, either');
}


for my $name (sort keys %all) {
    my $keyed = $all{$name} =~ /a-long-secret/;
    my $s = started($name, $all{$name}, $keyed ? "Authorization: $KEY" : ());

    answers($name, $s);
    page($name, $s) if $all{$name} =~ m{root };

    if ($keyed) {
        key($name, $s);

    } else {
        is(join(' ', addresses($s)), '0100007F', "$name: it listens on this machine alone");
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- in the place of RoboBrain's script ----------------------------------------

{
    my %set = $all{'robobrain.conf'} =~ /^        (\w+) +([^;]*);/mg;
    my $vlm = dirname((split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so')[0]) . '/vlm';
    my $top = File::Temp->newdir;

    copy('bench/shapes/3b.json', "$top/config.json") or die "3b.json: $!";

    my $options = join ' ', map { '--' . tr/_/-/r . " $set{$_}" } qw(weights slots context max_pixels features);
    my ($few, $many) = map {
        decode_json(`$vlm plan $top --device cpu --ops plain --threads $_ $options --json`)->{total};
    } 2, 32;
    my ($memory) = $set{memory} =~ /^(\d+)m$/;

    cmp_ok($many, '<=', $memory << 20, 'robobrain.conf: a RoboBrain2.0-3B fits its memory');
    ok(index(VLM::slurp('docs/migrate.md'), sprintf 'its plan is %.1f GB with 2 threads, %.1f GB with 32', $few / 1e9, $many / 1e9) > 0,
       'with the numbers of docs/migrate.md') or diag("$few, $many");

    # The front end's largest picture, 2000x2000, is 71 x 71 tokens, and 28 pixels a token.
    cmp_ok($set{max_pixels}, '>=', 2000 * 2000, 'the largest picture of the front end is not scaled');
    cmp_ok(71 * 71 + $set{max_tokens}, '<', 1024 * ($set{context} =~ s/k$//r), 'such a picture and an answer fit the context');

    my $s = started('robobrain.conf', $all{'robobrain.conf'});

    for my $host (qw(localhost 127.0.0.1)) {
        like(ask($s, '/api/health', '-i', '-H', "Origin: http://$host:3000")->{body},
             qr/^Access-Control-Allow-Origin: http:\/\/\Q$host\E:3000\r$/m, "the front end's own server is let in, $host");
        is(ask($s, '/api/health', '-H', "Origin: http://$host:3001")->{code}, 403, 'and another page is not');
    }

    # The script has a model in "weights" think, unless the request says no, as the front end's do.
    my %tokens;

    for my $try (['nothing', undef, 'A mug', 'One.'], ['true', JSON::PP::true, 'A mug', 'One.'],
                 ['false', JSON::PP::false, '', 'A mug</think>One.'])
    {
        my ($name, $value, $thinking, $answer) = @$try;
        my $r = ask($s, '/api/chat', '-d', encode_json({
            session_id => $name, text_only => JSON::PP::true, message => 'a thought', timings => JSON::PP::true,
            defined $value ? (enable_thinking => $value) : () }));

        is($r->{json}{thinking}, $thinking, "enable_thinking $name: the thinking") or diag($r->{body});
        is($r->{json}{answer}, $answer, 'the answer');
        $tokens{$name} = $r->{json}{usage}{prompt_tokens};
    }

    is($tokens{nothing}, $tokens{true}, 'a request without the field thinks');
    is($tokens{false} - $tokens{true}, length('<think></think><answer>') - length '<think>',
       'the prompt of one that does not ends with an empty thinking');

    # The weights are root's, so that the kept ones lie elsewhere.
    my $cache = $s->dir . '/cache';

    is(scalar(my @kept = glob "$cache/vlm-int8-*.bin"), 1, 'its first start keeps the int8 weights');
    is(sprintf('%04o', (stat $cache)[2] & 07777), '0700', 'in a directory that nginx has made for the workers');
    ok($s->stop, 'the server stops in time');

    my ($seen, $made) = (length $s->log, join ' ', map { (stat)[1, 9] } @kept);

    $s->start;
    ok(VLM::wait_for(sub { ask($s, '/health')->{code} eq '200' }), 'the second start is ready');
    like(substr($s->log, $seen), qr/\[notice\] .*weights come from \Q$kept[0]\E/, 'it reads them');
    is(join(' ', map { (stat)[1, 9] } @kept), $made, 'and does not write them');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- limits -----------------------------------------------------------------

for my $name ('full.conf', 'public.conf') {
    my $s = started($name, $all{$name}, "Authorization: $KEY");
    my $head = $s->dir . '/head';

    for my $path (@ASKS, @UPLOADS) {
        ask($s, "$path?[1-60]", '-d', '{}', '-D', $head, '-o', '/dev/null');

        my @answers = split /\r\n\r\n/, VLM::slurp($head);
        my @limited = grep { m{^HTTP/\S+ 429}m } @answers;

        is(scalar @answers, 60, "$name: sixty requests at once, $path");
        cmp_ok(scalar @limited, '>', 20, 'most of them are too many');
        is(scalar(grep { /^Retry-After: \d+$/mi } map { s/\r//gr } @limited), scalar @limited,
           'the refusals have Retry-After');
    }

    for my $path ('/api/health', '/api/tasks') {
        ask($s, "$path?[1-60]", '-D', $head, '-o', '/dev/null');
        is(scalar(grep { m{^HTTP/\S+ 200}m } split /\r\n\r\n/, VLM::slurp($head)), 60,
           'requests without the model are not limited');
    }

    ask($s, '/api/documents/x?[1-60]', '-D', $head, '-o', '/dev/null');
    is(scalar(grep { m{^HTTP/\S+ 429}m } split /\r\n\r\n/, VLM::slurp($head)), 0,
       'neither are looks at a document');

    VLM::spew($s->dir . '/large', 'x' x (33 << 20));
    is(ask($s, '/api/upload', '--data-binary', '@' . $s->dir . '/large')->{code}, 413, 'a body of 33 MB is refused');
    unlink $s->dir . '/large';
    ok($s->stop, 'the server stops in time');
}


# ---- the key of docs/http-api.md, in README.md's configuration --------------

my ($snippet) = grep { /Bearer/ } Shipped::fences('docs/http-api.md');
my $text = $all{'README.md'};

ok($text =~ s/^ +location ~ .*?^        \}\n/$snippet/ms, 'the location with a key in place of the one without');

my $s = started('documented-key', $text, "Authorization: $KEY");

answers('documented key', $s);
key('documented key', $s);
ok($s->stop, 'the server stops in time');


# ---- as files beside Debian's nginx.conf ------------------------------------

SKIP: {
    my $debian = VLM::slurp('/etc/nginx/nginx.conf');

    skip 'this nginx.conf is not Debian\'s', 1
        unless $debian =~ m{include /etc/nginx/modules-enabled/} && $debian =~ m{include /etc/nginx/conf\.d/};

    my $s = VLM->new(name => 'shipped-debian');
    my $placed = Shipped::placed($all{'README.md'}, $s->dir, $s->port);
    my @main = $placed =~ /^((?:load_module|thread_pool) .*)$/mg;
    my @http = $placed =~ /^(    (?:vlm_engine|server) .*?^    \})$/msg;

    VLM::spew($s->dir . '/modules-enabled/60-vlm.conf', join "\n", @main, '');
    VLM::spew($s->dir . '/conf.d/vlm.conf', join "\n", @http, '');

    $debian =~ s{^pid .*}{}m;
    $debian =~ s{/etc/nginx/(modules-enabled|conf\.d)/}{$s->{dir}/$1/}g;
    $debian =~ s{^\s*include /etc/nginx/sites-enabled.*}{}m;
    $s->{conf} = Shipped::placed($debian, $s->dir, $s->port);

    $s->start->ready;
    page('beside Debian\'s nginx.conf', $s);
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
