# Settings and functions of t/*.t.  A block without a configuration has the demo
# model's; its requests are JSON by default; a JSON answer is compared with sorted
# keys and without white space.  The file works under Test::Nginx, too.

use strict;
use warnings;

use Cwd ();
use JSON::PP ();

$ENV{TEST_NGINX_MODEL} ||= Cwd::getcwd() . '/demo/model';

our $Main = "thread_pool vlm threads=1;\n";

our $Http = <<'_EOC_';
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        thinking off;
        sampling temperature=0;
        max_tokens 48;
        store logs/vlm;
    }
_EOC_

our $Config = <<'_EOC_';
        location ~ ^/(api|v1|uploads|result)/ {
            vlm_pass demo;
        }
_EOC_

my $JSON = JSON::PP->new->utf8->canonical->allow_nonref;


sub canonical {
    my ($text) = @_;

    my $value = eval { $JSON->decode($text) };

    return $text if $@;
    return $JSON->encode($value) . "\n";
}


# Returns a picture of t/fidelity/pictures.
sub picture {
    my ($name) = @_;

    my $path = Cwd::getcwd() . "/t/fidelity/pictures/$name";

    open my $in, '<', $path or die "open $path: $!";
    binmode $in;
    local $/;

    return scalar <$in>;
}


sub base64 {
    require MIME::Base64;
    return MIME::Base64::encode_base64($_[0], '');
}


# Makes a multipart body of parts [name, file name or undef, data].
sub multipart {
    my (@parts) = @_;

    my $body = '';

    for my $part (@parts) {
        my ($name, $file, $data) = @$part;

        $body .= "--xxxx\r\nContent-Disposition: form-data; name=\"$name\"";
        $body .= "; filename=\"$file\"\r\nContent-Type: image/jpeg"
            if defined $file;
        $body .= "\r\n\r\n$data\r\n";
    }

    return $body . "--xxxx--\r\n";
}


# Makes a POST /api/chat with these fields.
sub chat {
    my (%fields) = @_;

    return "POST /api/chat\n"
           . $JSON->encode({ session_id => 's', message => 'hi',
                             enable_thinking => JSON::PP::false, %fields });
}


sub defaults {
    my ($block) = @_;

    my %values = (
        main_config           => $Main,
        http_config           => $Http,
        config                => $Config,
        more_headers          => 'Content-Type: application/json',
        response_body_filters => \&canonical,
        timeout               => $ENV{TEST_NGINX_TIMEOUT} || 240,
    );

    for my $name (keys %values) {
        $block->set_value($name, $values{$name})
            unless defined $block->$name;
    }

    return $block;
}

# On a busy machine a request may wait, and comments say its place in the queue.
sub unplaced {
    my ($body) = @_;

    $body =~ s/^: place \d+\n\n//mg;

    return $body;
}

1;
