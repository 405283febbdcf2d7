# Tests every mistake that nginx -t detects, with its message.

use Test::Nginx::Socket;

use Cwd qw(cwd);
use File::Basename qw(basename);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);

log_level('notice');
no_shuffle();

require './t/lib/VLM.pm';

$ENV{TEST_NGINX_MODEL} ||= cwd() . '/demo/model';
$ENV{TEST_NGINX_SLOW_MODEL} = VLM::slow_model();
$ENV{TEST_NGINX_TINY} = cwd() . '/t/fixtures/gguf';
$ENV{TEST_NGINX_ROOT} = server_root();

# Models that nginx -t refuses or warns about.
my $MODELS = tempdir(CLEANUP => 1);
my $LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32"
          . "b1258daaa5e2ca24d17e2393\nsize 12345\n";

chmod 0755, $MODELS;

sub model {
    my ($name, %files) = @_;
    my $dir = "$MODELS/$name";

    make_path($dir);
    copy($_, $dir) for glob "$ENV{TEST_NGINX_MODEL}/*";

    for my $file (keys %files) {
        unlink "$dir/$file";
        VLM::spew("$dir/$file", $files{$file}) if defined $files{$file};
    }

    return $dir;
}

$ENV{TEST_NGINX_MODELS} = $MODELS;
$ENV{TEST_NGINX_GGUF} = "$MODELS/model.gguf";

VLM::spew($ENV{TEST_NGINX_GGUF}, "GGUF\3\0\0\0");
model('cut-tokenizer', 'tokenizer.json' => '{"version":"1.0",');
model('no-tokenizer', map { $_ => undef } qw(tokenizer.json vocab.json));
model('odd-preprocessor', 'preprocessor_config.json' => '{"do_resize":false}');
model('odd-generation', 'generation_config.json' => '{"top_p":7}');
model('no-preprocessor', 'preprocessor_config.json' => undef);
model('lfs-shard', 'model.safetensors' => $LFS);
model('lfs-config', 'config.json' => $LFS);
model('RoboBrain2.0-7B');
model('RoboBrain2.0-3B');
model('Qwen2.5-VL-7B-Instruct');

make_path("$MODELS/gguf");
VLM::spew("$MODELS/gguf/qwen-Q8_0.gguf", 'GGUF');

plan tests => repeat_each() * (blocks() * 2);

run_tests();

__DATA__

=== TEST 1: an unknown parameter is named
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slot 4;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown parameter "slot" in vlm_engine "demo"



=== TEST 2: a parameter may be there once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slots 2;
        slots 4;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
duplicate parameter "slots" in vlm_engine "demo"



=== TEST 3: the message has the number of values of a parameter
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slots 2 3;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
"slots" has 2 values, it takes 1



=== TEST 4: a parameter without a value
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slots;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
"slots" has 0 values, it takes 1



=== TEST 5: device is one of four
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device tpu;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
device "tpu" is not auto, cpu, cuda or cuda:N



=== TEST 6: a device number is a number
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cuda:x;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
device "cuda:x" is not auto, cpu, cuda or cuda:N



=== TEST 7: ops is one of seven
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cpu ops=sse;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
"ops=sse" is not ops=plain, ops=avx2, ops=avxvnni, ops=avx512, ops=amx, ops=neon or ops=i8mm



=== TEST 8: ops is for the CPU
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device auto ops=avx2;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
"ops=avx2" is for device cpu, not "auto"



=== TEST 9: weights is one of four
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        weights int3;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
weights "int3" is not one of int4, int8, bf16, f32



=== TEST 10: memory is a size
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        memory lots;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
memory "lots" is not a size of at least 1m



=== TEST 11: memory of 0 is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        memory 0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
memory "0" is not a size of at least 1m



=== TEST 12: a context has a smallest length
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        context 63;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
context "63" is not a number of tokens from 64 to 1m



=== TEST 13: a context is a number
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        context long;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
context "long" is not a number of tokens from 64 to 1m



=== TEST 14: slots has an upper bound
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slots 257;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
slots "257" is not a number from 1 to 256



=== TEST 15: no slots at all
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        slots 0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
slots "0" is not a number from 1 to 256



=== TEST 16: max_pixels holds a cell at least
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        max_pixels 783;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
max_pixels "783" is not a number from 784 to 67108864



=== TEST 17: max_tokens is a number
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        max_tokens -1;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
max_tokens "-1" is not a number from 1 to 1048575



=== TEST 18: an answer needs room for its prompt
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        context 64;
        max_tokens 64;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
max_tokens 64 leaves no room for a prompt in context 64



=== TEST 19: an unknown name of sampling is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling heat=1;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "heat=1" in sampling



=== TEST 20: sampling takes a name once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling top_p=1 top_p=0.5;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
duplicate value "top_p=0.5" in sampling



=== TEST 21: temperature has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling temperature=5.1;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
sampling temperature=5.1 is not from 0 to 5



=== TEST 22: top_k is a whole number
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling top_k=1.5;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
sampling top_k=1.5 is not a whole number from 0 to 1000



=== TEST 23: top_p has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling top_p=0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
sampling top_p=0 is not from 0.01 to 1



=== TEST 24: repetition_penalty has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling repetition_penalty=11;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
sampling repetition_penalty=11 is not from 0.1 to 10



=== TEST 25: thinking is one of three
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        thinking maybe;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
thinking "maybe" is not on, off or auto



=== TEST 26: threads has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        threads 0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
threads "0" is not a number from 1 to 256



=== TEST 27: the engine has a thread pool of its own
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        thread_pool default;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
thread_pool "default" is for files and pictures: the engine needs one of its own



=== TEST 28: a removed parameter is refused with a remedy
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        prepare 2;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{the parameter "prepare" was removed: the number is computed from the processors; delete this line in .*:\d+}]



=== TEST 29: queue has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        queue 0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
queue "0" is not a number from 1 to 100000



=== TEST 30: queue refuses unknown values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        queue 4 time=1s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "time=1s" in queue



=== TEST 31: queue timeout is a time
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        queue 4 timeout=soon;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
queue timeout "soon" is not a time from 1ms to 1d



=== TEST 32: timeout is a time
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        timeout 2d;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
timeout "2d" is not a time from 1ms to 1d



=== TEST 33: a socket has a longest path
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        socket /tmp/ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
a unix socket's path may have 107: set "socket"



=== TEST 34: memory that is too small says what is needed
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        memory 20m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr/vlm_engine "demo": \d+m needed \(weights \d+m, vision \d+m, kv \d+m, workspace \d+m, device \d+m\), memory is 20m/]



=== TEST 35: a remedy is named if the plan with it fits
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cpu;
        memory 62m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr/memory is 62m: context 2k needs 6\dm, slots 2 needs 6\dm, max_pixels 501760 needs \d\dm in /]



=== TEST 36: an engine needs a model
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
no "model" in vlm_engine "demo"



=== TEST 37: a missing model is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model /nowhere/at/all;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
/nowhere/at/all



=== TEST 38: a directory without a checkpoint is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model html;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
config.json



=== TEST 39: a name is a word
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine "a b" {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
vlm_engine name "a b" is not 1 to 32 letters, digits, "-" or "_"



=== TEST 40: a name is declared once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
duplicate vlm_engine "demo"



=== TEST 41: vlm_pass needs a known engine
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass robot; }
--- must_die
--- error_log
unknown vlm_engine "robot" in 



=== TEST 42: vlm_pass is unique in a location
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; vlm_pass demo; }
--- must_die
--- error_log
"vlm_pass" directive is duplicate



=== TEST 43: vlm_pass takes names
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass; }
--- must_die
--- error_log
invalid number of arguments in "vlm_pass" directive



=== TEST 44: vlm_inner is refused in a configuration
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    vlm_inner demo;
--- must_die
--- error_log
"vlm_inner" directive is written by vlm_engine only



=== TEST 45: the thread pool must be there
--- main_config
worker_rlimit_nofile 1024;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown thread pool "vlm" in vlm_engine "demo", add "thread_pool vlm threads=1;" in front of http \{ \}: .*nginx.conf:\d+}]



=== TEST 46: the plan is logged
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr/\[notice\] .*vlm_engine "demo": \d+m planned \(weights \d+m, vision \d+m, kv \d+m, workspace \d+m, device \d+m\), memory is not bounded/]



=== TEST 47: every parameter at once, and vlm_pass before vlm_engine
--- main_config
thread_pool engine threads=1;
--- http_config
    server {
        listen unix:$TEST_NGINX_ROOT/logs/other.sock;
        location / { vlm_pass full; }
    }

    vlm_engine full {
        model $TEST_NGINX_MODEL;
        device cpu ops=plain;
        weights f32;
        memory 2g;
        context 1k;
        slots 2;
        max_pixels 200704;
        max_tokens 128;
        sampling temperature=0.5 top_k=20 top_p=0.9 repetition_penalty=1.1;
        thinking off;
        threads 1;
        thread_pool engine;
        queue 8 timeout=10s;
        timeout 30s;
        store logs/vlm;
        socket logs/engine.sock;
    }
--- config
    location /api/ { vlm_pass full; }
--- request
GET /api/tasks
--- no_error_log
[error]



=== TEST 48: two engines, each with a pool of its own
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }

    vlm_engine Second-1 {
        model $TEST_NGINX_MODEL;
        store logs/second;
        thread_pool other;
        slots 1;
    }
--- config
    location /api/ { vlm_pass demo; }
    location /other/api/ { vlm_pass second-1; }
--- request
GET /api/tasks
--- no_error_log
[error]



=== TEST 49: store expires is a time
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm expires=10s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
store expires "10s" is not a time of at least 1m



=== TEST 50: store max is a size
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm max=1k;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
store max "1k" is not "off" or a size of at least 1m, such as 6g



=== TEST 51: an unknown parameter of store is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm age=7d;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "age=7d" in store



=== TEST 52: a store with bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm expires=30d max=10g;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- no_error_log
[error]



=== TEST 53: a plan beyond the machine's memory is a warning with both numbers
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_SLOW_MODEL;
        store logs/vlm;
        device cpu;
        context 1m;
        slots 256;
    }
--- config
    location /api/ { vlm_pass demo; }
    slots 256;
--- must_die
--- error_log eval
[qr/\[warn\] .*vlm_engine "demo": \d{6,}m planned, (?:this machine has|the control group may use) \d+m in /]



=== TEST 54: a plan within the machine's memory is no warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cpu;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- no_error_log
[warn]



=== TEST 55: a directive that vlm_pass has set is a duplicate after it
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; proxy_read_timeout 10s; }
--- must_die
--- error_log
"proxy_read_timeout" directive is duplicate in



=== TEST 56: a directive that vlm_pass has set is a duplicate before it
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { proxy_read_timeout 10s; vlm_pass demo; }
--- must_die
--- error_log
"proxy_read_timeout" directive is duplicate in (vlm_pass):



=== TEST 57: stall is a time of some heartbeats
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        stall 1s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
stall "1s" is not a time from 2s to 1d



=== TEST 58: vlm_status needs a known engine
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
    location /metrics { vlm_status nobody; }
--- must_die
--- error_log
unknown vlm_engine "nobody" in



=== TEST 59: vlm_status refuses unknown values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
    location /metrics { vlm_status demo to=all; }
--- must_die
--- error_log
"to=all" is not from=loopback or from=any



=== TEST 60: http_memory has a least
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        http_memory 1m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
http_memory "1m" is not a size of at least 16m



=== TEST 61: priority takes an age
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        priority $http_x_key after=1s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "after=1s" in priority, which takes age=time



=== TEST 62: fair takes variables that there are
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        fair $nobody_knows;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown "nobody_knows" variable



=== TEST 63: breaker counts failures
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        breaker failures=0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
breaker failures=0 is not a number from 1 to 1000



=== TEST 64: breaker refuses unknown values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        breaker on;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "on" in breaker



=== TEST 65: retry is for device auto
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cuda retry=10m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
"retry=10m" is for device auto, not "cuda"



=== TEST 66: retry is a time
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device auto retry=soon;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
device auto retry "soon" is not a time from 1ms to 1d



=== TEST 67: reload has two ways
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        reload twice;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
reload "twice" is not wait or overlap



=== TEST 68: thinking is on for RoboBrain
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/RoboBrain2.0-7B;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{planned .*, thinking on \(auto\)}]



=== TEST 69: thinking is off for RoboBrain2.0-3B
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/RoboBrain2.0-3B;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{planned .*, thinking off \(auto\)}]



=== TEST 70: thinking is off for other models
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/Qwen2.5-VL-7B-Instruct;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{planned .*, thinking off \(auto\)}]



=== TEST 71: an explicit thinking is not reported as auto
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        thinking on;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{planned .*, thinking on(?! \(auto\))}]



=== TEST 72: the message about an unknown engine lists the known ones
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/second;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass robot; }
--- must_die
--- error_log eval
[qr{unknown vlm_engine "robot" in .*:\d+; there is "demo", "second"}]



=== TEST 73: vlm_pass after another handler is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { proxy_pass http://127.0.0.1:1; vlm_pass demo; }
--- must_die
--- error_log eval
[qr{"vlm_pass" directive is refused: this location already has a handler; remove "proxy_pass", .* in .*:\d+}]



=== TEST 74: vlm_pass before another handler is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; fastcgi_pass 127.0.0.1:1; }
--- must_die
--- error_log eval
[qr{location "/api/" has "vlm_pass demo" and another handler behind it}]



=== TEST 75: the message about queue lists its values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        queue 64 60s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "60s" in queue, which takes a number and timeout=time in }]



=== TEST 76: the message about sampling lists its values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        sampling temp=0.5;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "temp=0.5" in sampling, which takes temperature=, top_k=, top_p= and repetition_penalty=}]



=== TEST 77: the message about breaker lists its values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        breaker on;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "on" in breaker, which is off or takes failures=number and pause=time}]



=== TEST 78: the message about store lists its values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm age=7d;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "age=7d" in store, which takes a directory, expires=time and max=size}]



=== TEST 79: a size is printed as a configuration has it
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        memory 6GB;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{memory "6GB" is not a size of at least 1m, such as 600m or 6g in }]



=== TEST 80: a store without its parent directory is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store /nowhere/at/all;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{store all cannot be made in /nowhere/at: No such file or directory in .*:\d+}]



=== TEST 81: a store that is a file is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store $TEST_NGINX_GGUF;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{store .*/model.gguf is no directory in .*:\d+}]



=== TEST 82: a store below a file is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store $TEST_NGINX_GGUF/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{store .*/model.gguf/vlm is no directory in .*:\d+}]



=== TEST 83: a context beyond max_position_embeddings is a warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        context 8k;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\] .*vlm_engine "demo": context 8192 is more than the 4096 that the model was made for \(max_position_embeddings\)}]



=== TEST 84: a priority that is no level is a warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        priority urgent;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\] .*priority "urgent" is not a variable, low, normal, high or a number from -10 to 10: every request has 0 in .*:\d+}]



=== TEST 85: a priority that is a level is no warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        device cpu;
        store logs/vlm;
        priority -3;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- no_error_log
[warn]



=== TEST 86: a missing cache directory is a warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        cache /nowhere/at/all;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\] .*vlm_engine "demo": cache "/nowhere/at/all" is not a directory}]



=== TEST 87: an engine without a location is a warning
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/second;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\] .*vlm_engine "second" in .*:\d+: no location has "vlm_pass second"}]



=== TEST 88: too little memory names max_pixels, too
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        device cpu; memory 40m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{memory is 40m: max_pixels \d+ needs \d\dm in }]



=== TEST 89: a GGUF file without its vision encoder is refused as a model
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_TINY/q8_0.gguf;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{q8_0.gguf: a model of "qwen2vl" has its vision encoder in a second file: give it as mmproj=FILE.gguf}]



=== TEST 90: a directory of GGUF files is refused as a model
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/gguf;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{gguf: no config.json; "qwen-Q8_0.gguf" is a GGUF file}]



=== TEST 91: a Git LFS pointer in place of weights is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/lfs-shard;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{model.safetensors: a Git LFS pointer, .*"git lfs pull"}]



=== TEST 92: a Git LFS pointer in place of a configuration is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/lfs-config;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{config.json: a Git LFS pointer, .*"git lfs pull"}]



=== TEST 93: a damaged tokenizer is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/cut-tokenizer;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{vlm_engine "demo": .*/tokenizer.json: not JSON at byte \d+ of 17 in .*:\d+}]



=== TEST 94: a missing tokenizer is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/no-tokenizer;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{neither tokenizer.json nor vocab.json with merges.txt in }]



=== TEST 95: a preprocessor that does something else is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/odd-preprocessor;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{preprocessor_config.json: do_resize is false}]



=== TEST 96: an invalid generation_config is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/odd-generation;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{generation_config.json: top_p is 7}]



=== TEST 97: a missing preprocessor file is a notice
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODELS/no-preprocessor;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[notice\] .*neither preprocessor_config.json nor processor_config.json has the settings of pictures: the defaults of Qwen2.5-VL are used}]



=== TEST 98: proxy_pass behind vlm_pass is a duplicate of its own
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; proxy_pass http://127.0.0.1:1; }
--- must_die
--- error_log eval
[qr{"proxy_pass" directive is duplicate in .*nginx.conf:\d+}]



=== TEST 99: breaker is off, or has values
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        breaker off pause=1s;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "off" in breaker, which is off or takes failures=number and pause=time}]



=== TEST 100: and off alone is one of them
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm max=off;
        breaker off;
        cache off;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- no_error_log
[error]



=== TEST 101: a value may be there once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm max=1g max=2g;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
duplicate value "max=2g" in store



=== TEST 102: nginx itself refuses vlm_pass before proxy_pass
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; proxy_pass http://127.0.0.1:1; }
--- must_die
--- error_log eval
[qr{"proxy_pass" directive is duplicate in .*:\d+}]



=== TEST 103: the priority normal is a level
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        device cpu;
        store logs/vlm;
        priority normal;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- no_error_log
[warn]



=== TEST 104: min_pixels is at most max_pixels
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        max_pixels 50176;
        min_pixels 50177;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
min_pixels is 50177, more than max_pixels 50176



=== TEST 105: a GGUF file with its vision encoder is a model
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_TINY/q8_0.gguf mmproj=$TEST_NGINX_TINY/mmproj-q8_0.gguf;
        device cpu;
        context 1k;
        max_pixels 65536;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tags
--- response_body_like: "format":"gguf","family":"qwen25vl"



=== TEST 106: a value of model is refused by its name
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL mmpro=x;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "mmpro=x" in model, which takes mmproj= in .*:\d+}]



=== TEST 107: mmproj is for a GGUF file
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL mmproj=$TEST_NGINX_TINY/mmproj-q8_0.gguf;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{not a GGUF file, and mmproj is for one in .*:\d+}]



=== TEST 108: lora takes at most 64 places
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL max=65;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{lora max=65 is not a number from 1 to 64 in .*:\d+}]



=== TEST 109: the highest rank has a bound
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL rank=0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{lora rank=0 is not a number from 1 to 256 in .*:\d+}]



=== TEST 110: tower is on or off
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL tower=yes;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{lora tower=yes is not on or off in .*:\d+}]



=== TEST 111: load is on or off
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL load=1;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{lora load=1 is not on or off in .*:\d+}]



=== TEST 112: lora off has no other value
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora off max=3;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{lora off takes no other value in .*:\d+}]



=== TEST 113: an unknown value of lora is refused
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL alpha=3;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{unknown value "alpha=3" in lora, which takes a directory, max=, rank=, tower= and load= in .*:\d+}]



=== TEST 114: adapters that cannot be read are a warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora /nowhere;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\].* adapters left out until they can be loaded: 1, the first: lora: /nowhere is not a directory that can be read in .*:\d+}]



=== TEST 115: places of adapters are planned for a GPU, too
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        lora $TEST_NGINX_MODEL; device cuda; memory 64m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{m needed \(weights \d+m, vision \d+m, lora [1-9]\d*m, kv \d+m, workspace \d+m, device 400m\), memory is 64m}]



=== TEST 116: kv is auto or int8
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        kv int4;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{kv "int4" is not auto or int8 in .*:\d+}]



=== TEST 117: a GPU has no kv int8
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        kv int8; device cuda;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{device is "cuda", and kv int8 needs the cpu: a GPU has keys and values in bf16 in .*:\d+}]



=== TEST 118: documents are on or off
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents maybe;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents "maybe" is not on or off



=== TEST 119: the size of a document has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on file=2g;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents file "2g" is not a size from 1k to 1g



=== TEST 120: its pages have bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on pages=0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents pages "0" is not a number from 1 to 10000



=== TEST 121: its characters have bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on characters=999;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents characters "999" is not a number from 1000 to 64m



=== TEST 122: the memory of its reader has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on memory=127m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents memory "127m" is not a size from 128m to 64g



=== TEST 123: the time of its reader has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on time=2h;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents time "2h" is not a time from 1s to 1h



=== TEST 124: so have the documents that are read at once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on jobs=17;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents jobs "17" is not a number from 1 to 16



=== TEST 125: legacy is on or off
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on legacy=1;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents legacy "1" is not on or off



=== TEST 126: the sandbox is landlock or seccomp
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on sandbox=none;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents sandbox "none" is not landlock or seccomp



=== TEST 127: documents take no other value
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on size=20m;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
unknown value "size=20m" in documents, which takes file=size, pages=number, characters=number, memory=size, time=time, ocr=on, ocr_time=time, jobs=number, helper=path, legacy=on and sandbox=seccomp



=== TEST 128: a value of documents is given once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on jobs=1 jobs=2;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
duplicate value "jobs=2" in documents



=== TEST 129: documents without the program that reads them are a warning
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on helper=/nowhere/vlm-pdf sandbox=seccomp;
    }
--- config
    location /api/ { vlm_pass demo; }
--- request
GET /api/tasks
--- error_log eval
[qr{\[warn\] .*vlm_engine "demo": "/nowhere/vlm-pdf" cannot be run, which reads the documents: "make documents" builds it, helper=path says where it is}]



=== TEST 130: documents take on, off or languages of OCR
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on ocr=../eng;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents ocr "../eng" is not on, off or languages as "eng" or "deu+eng"



=== TEST 131: the time of OCR has bounds
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        documents on ocr=on ocr_time=0;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
documents ocr_time "0" is not a time from 1s to 1h



=== TEST 132: each engine of vlm_pass is known
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo robot; }
--- must_die
--- error_log eval
[qr{unknown vlm_engine "robot" in .*:\d+; there is "demo"}]



=== TEST 133: vlm_pass has an engine once
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo Demo; }
--- must_die
--- error_log eval
[qr{"demo" would mean both vlm_engine "demo" and "demo" of vlm_pass in .*:\d+}]



=== TEST 134: a name means one engine of vlm_pass
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        alias robot;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        alias one ROBOT:latest;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass demo second; }
--- must_die
--- error_log
"robot" would mean both vlm_engine "demo" and "second" of vlm_pass in 



=== TEST 135: nor is it the directory of another
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine model {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass model demo; }
--- must_die
--- error_log
"model" would mean both vlm_engine "model" and "demo" of vlm_pass in 



=== TEST 136: one engine of vlm_pass has any name
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        alias *;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        alias *;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass demo second; }
--- must_die
--- error_log
"*" would mean both vlm_engine "demo" and "second" of vlm_pass in 



=== TEST 137: engines of one vlm_pass share a store
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/second;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass demo second; }
--- must_die
--- error_log eval
[qr{vlm_engine "demo" and "second" of vlm_pass in .*:\d+ have different stores: they share sessions and uploads}]



=== TEST 138: engines of one directory, in a location before they are defined
--- main_config
thread_pool vlm threads=1;
thread_pool other threads=1;
--- http_config
    server {
        listen unix:$TEST_NGINX_ROOT/models.sock;
        location / { vlm_pass second demo; }
    }
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
    vlm_engine second {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
        thread_pool other;
    }
--- config
    location /api/ { vlm_pass demo second; }
--- request
GET /api/tasks
--- no_error_log
[error]



=== TEST 139: vlm_pass has a bound
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass a b c d e f g h i j k l m n o p q; }
--- must_die
--- error_log
vlm_pass has 17 engines, it may have 16



=== TEST 140: an alias is no pattern
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        alias gpt-*;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
alias "gpt-*" in vlm_engine "demo" is neither "*" nor a name without it



=== TEST 141: an alias is not empty
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        alias "";
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log
alias "" in vlm_engine "demo" is neither "*" nor a name without it



=== TEST 142: a template has one of the names that there are
--- main_config
thread_pool vlm threads=1;
--- http_config
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        template chat;
        store logs/vlm;
    }
--- config
    location /api/ { vlm_pass demo; }
--- must_die
--- error_log eval
[qr{no chat template "chat", there are qwen2, qwen2\.5, .*, llama3 in .*:\d+}]
