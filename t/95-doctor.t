# Tests "vlm doctor": what would stop a checkpoint on this machine.  engine/cli/doctor_test.c has the
# findings about other machines.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Basename qw(basename dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;
use VLM;

my ($MODULE) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || getcwd() . '/build/ngx_http_vlm_module.so';
my $VLM = dirname($MODULE) . '/vlm';
my $TOP = tempdir(CLEANUP => 1);
my @BINARY = $ENV{TEST_NGINX_BINARY} ? ('--nginx', $ENV{TEST_NGINX_BINARY}) : ();
my @NGINX = (@BINARY, '--module', $MODULE);

chmod 0755, $TOP;


# Returns the exit status and the lines of output.
sub doctor {
    my @args = map { "'$_'" } @_;
    my @lines = `$VLM doctor @args 2>$TOP/stderr`;

    return ($? >> 8, @lines);
}

# Returns all findings, and those that stop or warn.
sub said {
    my ($rc, @lines) = doctor(@_);

    return join '', @lines;
}

sub bad {
    return join '', grep { !/^ok: / } split /^/, said(@_);
}

# A copy of the demo, but for these files.
sub model {
    my ($name, %files) = @_;

    my $dir = "$TOP/$name";
    mkdir $dir or die "$dir: $!\n";

    for my $from (glob 'demo/model/*') {
        my $file = basename($from);

        copy($from, "$dir/$file") or die "$file: $!\n" unless exists $files{$file};
    }

    VLM::spew("$dir/$_", $files{$_}) for grep { defined $files{$_} } keys %files;

    return $dir;
}

# The demo's config.json with something replaced.
sub config {
    my ($from, $to) = @_;

    my $text = VLM::slurp('demo/model/config.json');
    $text =~ s/$from/$to/ or die "no $from in config.json\n";

    return ('config.json' => $text);
}


# ---- a whole checkpoint ----------------------------------------------------

my $whole = model('whole');
my ($rc, @lines) = doctor($whole, @NGINX);

is($rc, 0, 'nothing stops the demo');
is(join('', grep { !/^(?:ok: [^;]*(?:; the engine locks [^;]*)?|warn: [^;]+; .+)$/ } @lines), '',
   'a finding is one line, with a remedy unless all is well');
is(VLM::slurp("$TOP/stderr"), '', 'and nothing else is said');
like("@lines", $_, "it says $_") for qr/ok: the configuration is that of a Qwen2\.5-VL with 5 layers and 6 in its vision/,
    qr/ok: every tensor of the model is in its files: 6914240 parameters/, qr/ok: the plan has \d+m, and \w.* \d+m$/m,
    qr/ok: the processor runs plain.*: the engine takes \w+, \d+ threads?$/m, qr{ok: nginx/[\d.]+ loads \Q$MODULE\E}m;

($rc, @lines) = doctor($whole, @NGINX, '--ops', 'plain', '--threads', '3');
is($rc, 0, 'slower operations stop nothing');
like("@lines", qr/: the engine takes plain, 3 threads$/m, 'the finding has the operations that were asked for');
like(bad($whole, @NGINX, '--ops', 'mmx'), qr/^stop: ops=mmx is not what this processor runs: plain.*; leave --ops out/m,
     'operations that the processor has not stop it');


# ---- the model's files -----------------------------------------------------

my $LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";

for (['a directory that is not there', "$TOP/none", qr{^stop: \Q$TOP\E/none/config\.json: No such file.*; take a whole}m],
     ['a directory of GGUF files', 't/fixtures/gguf', qr{^stop: .*gguf" is a GGUF file: give the file itself}m],
     ['weights that are missing', model('bare', 'model.safetensors' => undef),
      qr{^stop: .*: neither model\.safetensors.*; download the model's files again}m],
     ['weights that are an LFS pointer', model('lfs', 'model.safetensors' => $LFS),
      qr{^stop: .*model\.safetensors: a Git LFS pointer, .*run "git lfs pull"}m],
     ['weights that were cut', model('cut', 'model.safetensors' => substr(VLM::slurp('demo/model/model.safetensors'), 0, 1e6)),
      qr{^stop: .*model\.safetensors.*; download the model's files again}m],
     ['a tokenizer that is missing', model('mute', map { $_ => undef } qw(tokenizer.json vocab.json merges.txt)),
      qr{^stop: .*: neither tokenizer\.json nor .*; download the model's files again}m],
     ['another architecture', model('llava', config('qwen2_5_vl', 'llava')), qr{^stop: .*llava.*; take a whole checkpoint of a family}m],
     ['another kind of rope', model('rope', config('"type": "mrope"', '"type": "yarn"')), qr{^stop: .*yarn.*; take a whole}m],
     ['a quantisation that is not read', model('gguf-in-json', config('^\{', '{ "quantization_config": { "quant_method": "aqlm" },')),
      qr{^stop: .*aqlm.*; take a whole}m],
     ['settings out of their bounds', $whole, qr{^stop: slots is 4096, expected 1 to \d+; correct the option}m, '--slots', 4096])
{
    my ($name, $dir, $says, @options) = @$_;

    ($rc, @lines) = doctor($dir, @NGINX, @options);
    is($rc, 1, "$name: the exit status is 1");
    like(join('', @lines), $says, 'the finding has cause and remedy');
    is(scalar grep(/^stop: /, @lines), 1, 'one finding is enough for it');
    like(VLM::slurp("$TOP/stderr"), qr/^vlm doctor: \d+ of \d+ findings stops? this checkpoint$/, 'the last line counts');
}

like(bad($whole, @NGINX, '--context', '8k'), qr/^warn: context is 8192, and the model was made for 4096; lower context$/m,
     'a context beyond the model\'s is a warning');
like(bad(model('plain', 'preprocessor_config.json' => undef), @NGINX),
     qr/^warn: no file says how pictures are resized: .*; download preprocessor_config\.json$/m,
     'a checkpoint without its settings of pictures gets a warning');

my @gguf = map { "t/fixtures/gguf/$_" } 'bf16.gguf', 'mmproj-bf16.gguf';
is((doctor($gguf[0], '--mmproj', $gguf[1], @NGINX))[0], 0, 'two GGUF files are a model');


# ---- memory ----------------------------------------------------------------

like(bad($whole, @NGINX, '--memory', '30m'),
     qr/^stop: memory is set to 30m, and the plan has \d+m \(weights \d+m, vision \d+m, kv \d+m\); \S/m,
     'a plan beyond the configured memory stops it');

# Terabytes, as a sparse file.
system(dirname($VLM) . '/random-checkpoint', 'bench/shapes/72b.json', "$TOP/72b", qw(--values none)) == 0 or die "random-checkpoint failed\n";
like(bad("$TOP/72b", @NGINX, '--weights', 'f32', '--context', '1m', '--slots', '200'),
     qr/^stop: [\w. ]+(?: has| may use) \d+m, and the plan has \d{7,}m \(.*\); \S/m, 'a plan beyond the machine stops it');


# ---- the cache -------------------------------------------------------------

mkdir "$TOP/cache";
($rc, @lines) = doctor($whole, @NGINX, '--cache', "$TOP/cache");
like("@lines", qr/ok: there is none yet: the first start writes the quantised cache of at most \d+m into "\Q$TOP\E\/cache", which has room for \d+m/,
     'a directory with room is found');
like(bad($whole, @NGINX, '--cache', '/proc'),
     qr/^warn: the quantised cache needs \d+m, and "\/proc" has room for 0m, so that .*; free the rest, or name another/m,
     'one without room is a warning with both sizes');
like(bad($whole, @NGINX, '--cache', "$TOP/none/none"), qr/^warn: the quantised cache cannot be in .*No such file.*; make the/m,
     'a directory that no server would make is a warning');
like(said($whole, @NGINX, '--cache', "$TOP/none"), qr/^ok: there is none yet: .* into "\Q$TOP\E\/none", which nginx makes and has room for \d+m$/m,
     'one that it makes is not');

`$VLM chat $whole --cache $TOP/cache --prompt 'x' --max-tokens 1`;
like(said($whole, @NGINX, '--cache', "$TOP/cache"), qr{^ok: the quantised cache is there: "\Q$TOP\E/cache/vlm-int8-}m,
     'a cache that is there is found');

my ($cache) = glob "$TOP/cache/vlm-int8-*";
VLM::spew($cache, 'damaged');
like(said($whole, @NGINX, '--cache', "$TOP/cache"), qr/^ok: what is there is not this model's: the first start writes/m,
     'a damaged one will be written again');


# ---- the workers' user -----------------------------------------------------

if ($> == 0) {
    my $closed = model('closed');

    chmod 0700, $closed;
    like(bad($closed, @NGINX, '--user', 'nobody'),
         qr{^stop: nobody, the user of nginx's workers, cannot read the model: .*Permission denied.*; let that user read}m,
         'a model that the workers cannot read stops it');
    like(bad($whole, @NGINX, '--user', 'nobody', '--cache', "$TOP/cache"),
         qr/^warn: nobody cannot write the quantised cache into "\Q$TOP\E\/cache", .*; let that user write there/m,
         'a cache that they cannot write is a warning');
    unlike(bad($whole, @NGINX, '--user', 'nobody', '--cache', "$TOP/none"), qr/nobody cannot write/,
           'one that nginx makes is theirs');
    chmod 0777, "$TOP/cache";
    is(bad($whole, @NGINX, '--user', 'nobody', '--cache', "$TOP/cache") =~ /nobody/ ? 1 : 0, 0, 'which goes once they can');

} else {
    like(bad($whole, @NGINX, '--user', 'root'), qr/^warn: it was not tried whether root, .*; run this command as root/m,
         'another user is not tried');
}

like(bad($whole, @NGINX, '--user', 'no-such-user'), qr/^stop: there is no user no-such-user, .*; add the user/m,
     'a user that is not there stops it');


# ---- nginx -----------------------------------------------------------------

like(bad($whole, '--nginx', '/no/nginx'), qr/^stop: no nginx runs there; apt install nginx/m, 'a program that is not there stops it');
like(bad($whole, @BINARY, '--module', "$TOP/none.so"), qr{^stop: nginx/[\d.]+ has no \Q$TOP\E/none\.so; apt install libnginx-mod-http-vlm}m,
     'so does a module that is not there');

copy('README.md', "$TOP/bad.so") or die "bad.so: $!\n";
like(bad($whole, @BINARY, '--module', "$TOP/bad.so"), qr{^stop: nginx/[\d.]+ does not load its module: .*; build the module for this nginx}m,
     'and one that does not load');

# An nginx elsewhere, as "nginx -V" describes it.
VLM::spew("$TOP/nginx.conf", "# user root;\nuser no-such-user;\n");
VLM::spew("$TOP/nginx", <<"_EOC_");
#!/bin/sh
echo 'nginx version: nginx/9.9.9' >&2
echo 'configure arguments: --prefix=$TOP --modules-path=$TOP/m --conf-path=$TOP/nginx.conf' >&2
[ "\$1" = -V ] || { echo 'nginx: [emerg] unknown directive "vlm_engine" in /proc/self/fd/3:3' >&2; exit 1; }
_EOC_
chmod 0755, "$TOP/nginx";

my $other = bad($whole, '--nginx', "$TOP/nginx");
like($other, qr{^stop: nginx/9\.9\.9 has no \Q$TOP\E/m/ngx_http_vlm_module\.so; }m, 'its modules are where it was built for');
like($other, qr/^stop: there is no user no-such-user/m, 'the user is that of its nginx.conf');

VLM::spew("$TOP/nginx", VLM::slurp("$TOP/nginx") =~ s/unknown directive "vlm_engine"/"model" is missing in vlm_engine/r);
like(said($whole, '--nginx', "$TOP/nginx", '--user', scalar getpwuid $>), qr{ok: nginx/9\.9\.9 has the module inside}m,
     'a module that is linked in is found');


# ---- the GPU's library -------------------------------------------------------

make_path(map { "$TOP/usr/$_" } 'bin', 'lib/nginx/modules');
copy($VLM, "$TOP/usr/bin/vlm") or die "vlm: $!\n";
chmod 0755, "$TOP/usr/bin/vlm";
VLM::spew("$TOP/usr/lib/nginx/modules/libvlm_cuda.so", 'no library');
like(scalar `$TOP/usr/bin/vlm doctor $whole --module $MODULE --device cuda 2>&1`,
     qr{^stop: device cuda:0: \Q$TOP\E/usr/lib/nginx/modules/libvlm_cuda\.so: .*; device auto takes the cpu then}m,
     "a program in bin/ takes the library that packages put among nginx's modules");
unlink "$TOP/usr/lib/nginx/modules/libvlm_cuda.so";
like(scalar `$TOP/usr/bin/vlm doctor $whole --module $TOP/none.so --device cuda 2>&1`,
     qr/^stop: device cuda needs libvlm_cuda\.so beside the module.*; install nginx-vlm-cuda/m,
     'device cuda without the library stops it');

done_testing();
