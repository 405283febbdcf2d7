# Runs the commands of bench/README.md, docs/speed.md and docs/memory.md with a tiny model of random
# weights, and t/tools/same-bits.  Other engines, and PyPI's packages for them, are stand-ins that
# take the same arguments and answer in the same form; they measure nothing.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Path qw(make_path remove_tree);
use JSON::PP qw(decode_json encode_json);
use Test::More;
use VLM;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL SAN ENGINE_BUILD)};

my $TOP = getcwd() . "/build/small-bench";

remove_tree($TOP);
make_path("$TOP/v/bin", "$TOP/ov/bin", "$TOP/packages");


# ---- stand-ins -----------------------------------------------------------------

sub program {
    my ($name, $text) = @_;

    VLM::spew("$TOP/$name", $text);
    chmod 0755, "$TOP/$name";
}

symlink `python3 -c 'import sys; print(sys.executable, end="")'`, "$TOP/$_/bin/python" or die "symlink: $!\n" for qw(v ov);

program('llama-bench', <<'_EOC_');
#!/bin/sh
[ -e "$2" ] && echo '[{"n_prompt": 512, "avg_ts": 30}, {"n_prompt": 0, "avg_ts": 5}]'
_EOC_

program('llama-server', <<'_EOC_');
#!/usr/bin/env python3
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "ok", "media_marker": "<media>"}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
_EOC_

# It is given a directory with the files that a checkpoint of random weights lacks.
program('ov/bin/optimum-cli', <<'_EOC_');
#!/bin/sh
[ "$1 $2 $3" = "export openvino --model" ] && [ -s "$4/config.json" ] && [ -s "$4/tokenizer_config.json" ] &&
    for dir; do :; done && mkdir "$dir"
_EOC_

VLM::spew("$TOP/packages/numpy.py", <<'_EOC_');
from unittest.mock import MagicMock
def __getattr__(name):
    return MagicMock()
_EOC_

VLM::spew("$TOP/packages/openvino.py", "Tensor = list\n");

VLM::spew("$TOP/packages/gguf.py", <<'_EOC_');
from unittest.mock import MagicMock

class GGUFWriter(MagicMock):
    def __init__(self, path=None, *_, **more):
        super().__init__(**more)
        path and open(path, "wb").close()

def __getattr__(name):
    return MagicMock()
_EOC_

VLM::spew("$TOP/packages/openvino_genai.py", <<'_EOC_');
from unittest.mock import MagicMock

class ContinuousBatchingPipeline:
    def __init__(self, path, scheduler, device, settings):
        open(path).close() if device != "CPU" else None

    def generate(self, prompts, generation_config, images=None):
        metrics = MagicMock()
        metrics.get_num_input_tokens.return_value = 512
        metrics.get_tpot.return_value.mean = 100
        return [MagicMock(perf_metrics=metrics) for _ in prompts]

__version__ = "of the test"
GenerationConfig = SchedulerConfig = MagicMock
_EOC_


# ---- the commands --------------------------------------------------------------
#
# t/98-commands.t finds those that stand whole in a call of runs(), figures() or prints().

# bench-adapters measures an adapter of 60 MB, whose rank is too large for fewer layers.
my $shape = decode_json(VLM::slurp('bench/shapes/tiny-f.json'));

$shape->{num_hidden_layers} = 36;
VLM::spew("$TOP/four.json", encode_json($shape));

# A set of operations that this processor has, in place of one that it may not have.
my $also = VLM::slurp('/proc/cpuinfo') =~ /\bavx2\b/ ? 'avx2' : 'plain';


# The command with the test's directories in place of those of the page.
sub here {
    my ($command) = @_;

    $command =~ s{bench/shapes/3-2b\.json}{bench/shapes/tiny-f.json};
    $command =~ s{build/four\.json}{$TOP/four.json} if $command =~ /^build/;
    $command =~ s{build/qwen-tokenizer/json}{t/fidelity/tokenizer};
    $command =~ s{build/bench/four|(?<=adapters )build/bench/3b}{$TOP/four};
    $command =~ s{build/bench/(?:3-2b|3b)|/models/Qwen2\.5-VL-3B|/tmp/3b|(?<=bench-model |lookup\.py )DIR}{$TOP/model};
    $command =~ s{(?<=bench )FILE}{$TOP/llama-bench}g;
    $command =~ s{(?<=server )FILE}{$TOP/llama-server};
    $command =~ s{ IR\b}{ $TOP/ir}g;
    $command =~ s{ GGUF\b}{ $TOP/gguf}g;
    $command =~ s{(?<![\w/])(o?v)/bin/}{$TOP/$1/bin/}g;
    $command =~ s{(--ops|--also) avx512}{$1 $also};

    return $command;
}


sub runs {
    my ($command) = @_;

    is(system(here($command)), 0, $command);
}


# Returns the figures, by their names, that a command prints.
sub figures {
    my ($command, $more) = (@_, '');
    my $said = `${\ here($command)} $more 2>$TOP/errors`;

    is($?, 0, $command) or diag(substr "$said\n" . VLM::slurp("$TOP/errors"), -2000);

    return $said =~ /^(?:\{"name": ")?([a-z][\w-]*)"?,? /mg;
}


# Runs a command, with more words, and looks for figures of it, whose names are patterns.
sub prints {
    my ($command, $more, @wanted) = @_;
    my @figures = figures($command, $more);
    my @missing = grep { my $name = $_; !grep { /^$name$/ } @figures } @wanted;

    is("@missing", '', 'prints its figures') or diag("@figures");
}


is(system('make -s bench-programs >/dev/null 2>&1'), 0, 'the programs of make bench compile');

runs(q{python3 -c 'import json; c = json.load(open("bench/shapes/3b.json")); c["num_hidden_layers"] = 4; json.dump(c, open("build/four.json", "w"))'});
is(decode_json(VLM::slurp('build/four.json'))->{num_hidden_layers}, 4, 'writes a shape of four layers');

runs('build/random-checkpoint bench/shapes/3-2b.json build/bench/3-2b --seed 1 --type bf16 --shards 2 --gain trivial --tokenizer build/qwen-tokenizer/json');
runs('build/random-checkpoint build/four.json build/bench/four --seed 1 --type bf16 --gain trivial --tokenizer build/qwen-tokenizer/json');

# A developer's figures stay in build/bench.json and build/compare.json.
my ($one, $json) = ('--rounds 1', "BENCH_JSON=$TOP/bench.json");
my ($core, $page, $again) = ('decode8k_int8_3b_core', 'adapters_decode_one_int8_3b', 'again_same_demo');

prints('build/bench-model build/bench/3-2b --what decode,prefill --label 3-2b', $one, qw(decode8k_int8_3-2b prefill512_int8_3-2b));
prints('bench/lookup.py DIR', '--pictures 3', qw(lookup_tokens_first lookup_two_second_100));
prints('build/bench-model DIR --threads 1 --kv int8 --what decode', $one, 'decode8k_int8_3b');
prints('build/bench-model DIR --weights int8,int4 --what decode,prefill,together', $one, 'prefill512_int4_over_int8_3b');
prints('build/bench-model DIR --threads 1 --weights int8,int4 --what together', $one, 'together8_int4_over_int8_3b');
prints('build/bench-kernels --threads 1 --what attention', $one, qw(kernel_attend_1_of_4096_\w+ kernel_attend_int8_256_of_512_\w+));
prints('build/bench-kernels --ops avx512 --threads 1 --rounds 5 --what attention', $one, "kernel_attend_1_of_4096_$also");
prints('build/bench-kernels --threads 1 --what int4', $one, 'int4_\w+_\d+_\w+');
prints('build/bench-adapters build/bench/four --threads 1 --rounds 4', $one, $page, 'adapters_read_3b');
prints('build/bench-adapters build/bench/3b --threads 2 --rounds 2', $one, $page);
prints('bench/resident.py /tmp/3b', '--requests 2', 'resident_int8_3b');
prints('make bench PARTS=core', "$json BENCH_MODEL=$TOP/model", $core, 'encode448_int8_3b_core');
prints('make bench PARTS="kernels serve"', "$json BRIEF=1", 'kernel_qkv_1_\w+', 'demo_rate');
prints('make bench BENCH_MODEL=/models/Qwen2.5-VL-3B', "$json PARTS='again memory'", $again, 'resident_int8_3b');

my $made = decode_json(VLM::slurp("$TOP/bench.json"));

is(scalar(grep { $_->{name} =~ /^(?:\Q$core\E|\Q$again\E|demo_rate)$/ } @$made), 3, 'make bench adds the figures of its runs');

for my $words ('--whats int4', '--what nothing', '--threads') {
    is(system("build/bench-kernels $words 2>/dev/null") >> 8, 2, "bench-kernels $words is refused");
}


# ---- beside other engines ------------------------------------------------------

$ENV{PYTHONPATH} = "$TOP/packages";
figures('v/bin/python t/tools/random_gguf.py bench/shapes/3b.json GGUF');
ok(-e "$TOP/gguf/$_", "it makes its directory, with $_") for qw(text-q8_0.gguf mmproj-f16.gguf);

figures('ov/bin/python bench/openvino_model.py build/bench/3b IR');
ok(-d "$TOP/ir", 'the checkpoint had what the other engine needs');
prints('ov/bin/python bench/openvino_bench.py IR --ops amx', '', qw(prefill512 decode ttft448 ttft896x672 again448 four));

prints('bench/compare --model build/bench/3b --gguf GGUF --llama-bench FILE --llama-server FILE --ik-bench FILE --openvino ov/bin/python --openvino-model IR --also avx512',
       "$one --gguf4 $TOP/gguf/text-q8_0.gguf --json $TOP/compare.json",
       qw(decode_over_llama_q4_int4 decode_over_ik_q4_int4 prefill512_over_llama_q4_int4), map { ($_, "${_}_$also") }
       qw(decode_over_llama decode_over_ik prefill512_over_llama ttft448_over_llama four_over_llama));


# ---- bits of two builds ----------------------------------------------------------

make_path("$TOP/$_") for qw(same other);
program('same/vlm', "#!/bin/sh\nexec build/vlm \"\$@\"\n");
program('other/vlm', "#!/bin/sh\nfor word; do shift; [ \"\$word\" != f32 ] || word=int8; set -- \"\$@\" \"\$word\"; done\nexec build/vlm \"\$@\"\n");

for (['same', qr/^0 differ$/m, 0], ['other', qr/^[1-9]\d* differ$/m, 256]) {
    my ($name, $says, $status) = @$_;

    local @ENV{qw(MODELS OPS BEFORE)} = ("$TOP/model", 'plain', "$TOP/$name");
    my $said = shell('t/tools/same-bits ../before/build/vlm build/vlm f32 bf16');

    like($said, $says, "same-bits: $name build");
    is($?, $status, 'and its status');
}


sub shell {
    my ($command) = @_;

    return `${\ ($command =~ s{\.\./before/build}{$ENV{BEFORE}}r)} 2>&1`;
}

done_testing();
