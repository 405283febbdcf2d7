package Emulated;

# Starts servers whose GPU is the emulator of cuda/emu.  cuda/emu/outside.cpp lists
# the settings of the emulated device and of its failures.
#
#     my $s = Emulated::server(name => 'lost', words => 'driver=12040');
#     Emulated::tell($s, 'fail=700@40');

use strict;
use warnings;

use Cwd ();
use VLM;

my $ROOT = Cwd::getcwd();

# The directory with the module and the emulated library, which `make test-cuda`
# builds; the sanitizers have a directory of their own.
my $BUILD = $ENV{VLM_EMULATED} || "$ROOT/build/cuda";

$ENV{TEST_NGINX_LOAD_MODULES} = "$BUILD/ngx_http_vlm_module.so";

our $TINY = "$ROOT/build/fidelity/tiny-a";

# Pictures have at most 16 patches, because the emulator is slow.
our $ENGINE = 'thinking off; max_pixels 3136; context 1k; slots 2; max_tokens 32;'
              . ' threads 1; sampling temperature=0 repetition_penalty=1;';


# device, words  "cuda"; the emulator's settings at the start
sub server {
    my (%conf) = @_;

    my $device = delete $conf{device} || 'cuda';
    my $words = delete $conf{words} || '';
    my $s = VLM->new(model => $TINY, server => 'location = /metrics { vlm_status live; }', %conf,
                     engine => "device $device; $ENGINE " . ($conf{engine} || ''));
    my $own = "file=$s->{dir}/tell note=$s->{dir}/loaded";

    # nginx removes its workers' environment except for the variables in "env".
    $s->{main} .= "env \"VLM_EMULATOR=$own $words\";\n";
    $s->{environment} = "$own $words";

    return $s;
}


# Changes the emulator's settings at the driver's next call.
sub tell {
    my ($s, $words) = @_;

    VLM::spew("$s->{dir}/tell.new", $words);
    rename "$s->{dir}/tell.new", "$s->{dir}/tell" or die "tell: $!";
}


# Returns the status and the output of `nginx -t`, which keeps its environment.
sub check {
    my ($s) = @_;

    local $ENV{VLM_EMULATOR} = $s->{environment};
    my $binary = $ENV{TEST_NGINX_BINARY} || 'nginx';

    $s->write_conf;

    my $text = `$binary -t -p $s->{dir}/ -c $s->{dir}/nginx.conf 2>&1`;

    return ($? >> 8, $text);
}


# Returns the processes that have loaded the library.
sub loaders { return split /\n/, VLM::slurp("$_[0]{dir}/loaded") }


sub ask {
    my ($s, $text, %more) = @_;

    return $s->begin('POST', '/v1/chat/completions',
                     { max_tokens => 8, messages => [{ role => 'user', content => $text }], %more });
}


# Returns the value of a metric, with or without a label.
sub metric {
    my ($s, $name) = @_;

    return $s->get('/metrics')->{body} =~ /^\Q$name\E ([\d.]+)$/m ? $1 : undef;
}


1;
