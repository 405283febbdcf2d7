# Tests /generate-lite and its companions with the demo of adapters: the ten prompts of the LoRA
# service's own script, one after the other and at once, and the bodies of errors.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $JSON = JSON::PP->new->utf8->canonical;
my @TASKS = @{ $JSON->decode(VLM::slurp('demo/translations.json')) };
my %SCRIPT = (max_new_tokens => 25, adapter_path => 'adapters/gurukul_lite',
              base_model => 'bigscience/bloomz-560m', temperature => 0.5, do_sample => JSON::PP::true,
              top_p => 0.9, repetition_penalty => 1.5);
my $ROOT = Cwd::getcwd();

my $s = VLM->new(name => 'lite', model => 'demo/model-bloom', workers => 2,
                 engine => "lora $ROOT/demo/adapters rank=8; alias bigscience/bloomz-560m; slots 4;",
                 server => 'location ~ ^/(health|generate-lite|cleanup-memory|adapter|rl)(/|$) { vlm_pass live; }');

$s->start->ready;


sub body { return { %SCRIPT, @_ } }

sub generate { return $s->post('/generate-lite', body(@_)) }

# The words of a translation, without marks of ASCII.
sub words { return join ' ', $_[0] =~ /[^\x00-\x7f]+/g }

sub texts { return join "\n", map { $_->{json}{generated_text} // "$_->{code} $_->{body}" } @_ }


# ---- the ten prompts -------------------------------------------------------

my $right = join "\n", map { words($_->{text}) } @TASKS;

is(scalar @TASKS, 10, 'there are ten prompts');

my @one = map { generate(prompt => $_->{prompt}) } @TASKS;

is(texts(@one), $right, 'with the adapter all ten are right');

my @ten = $s->end_all(map { $s->begin('POST', '/generate-lite', body(prompt => $_->{prompt})) } @TASKS);

is(texts(@ten), $right, 'ten at once have the same answers');

# The script's upper case and white space, and other fields of its clients, change nothing.
my $r = generate(prompt => $TASKS[0]{prompt}, min_new_tokens => 8, eos_token_id => 2);

is_deeply($r->{json}, { prompt => $TASKS[0]{prompt}, generated_text => words($TASKS[0]{text}),
                        adapter_path => 'adapters/gurukul_lite',
                        parameters => { max_new_tokens => 25, temperature => 0.5,
                                        base_model => 'bigscience/bloomz-560m' } },
          'the whole body of an answer');

for my $none ('none', 'NONE', '', undef) {
    my @base = map { generate(prompt => $_->{prompt}, adapter_path => $none) } @TASKS;

    is(scalar(grep { $base[$_]{code} == 200 } 0 .. 9), 10, 'the base answers, too');
    is(scalar(grep { index($base[$_]{json}{generated_text}, words($TASKS[$_]{text})) >= 0 } 0 .. 9), 0,
       'without the adapter none is right');
    is($base[0]{json}{adapter_path}, $none, 'the path is sent back as it came');
    last if $ENV{VLM_REPORTS};
}

$r = $s->post('/v1/completions', { model => 'gurukul_lite', prompt => $TASKS[1]{prompt}, temperature => 0,
                                   max_tokens => 30 });
is($r->{json}{choices}[0]{text}, " $TASKS[1]{text}", 'where an answer may end, it ends behind the translation');

$r = $s->post('/generate-lite', { prompt => 'Hello friend' });
is($r->{code}, 200, 'a prompt alone is enough');
is_deeply($r->{json}{parameters}, { max_new_tokens => 100, temperature => 0.7, base_model => 'gpt2' },
          'the defaults of the fields');


# ---- errors ----------------------------------------------------------------

sub wrong {
    my ($text, @expected) = @_;

    my $r = $s->post('/generate-lite', $text);

    is($r->{code}, 422, 'a wrong body is a 422');

    my @said = map { join ' | ', $_->{type}, join('.', @{ $_->{loc} }), $_->{msg}, $JSON->allow_nonref->encode($_->{input}),
                     $_->{ctx} ? $JSON->encode($_->{ctx}) : () } @{ $r->{json}{detail} };

    is(join("\n", @said), join("\n", @expected), "the errors of " . substr($JSON->encode(ref $text ? $text : [$text]), 0, 60));
}

wrong('', 'missing | body | Field required | null');
wrong('{"prompt":', 'json_invalid | body | JSON decode error | {} | {"error":"Not JSON at byte 9 of 10"}');
wrong([], 'model_attributes_type | body | Input should be a valid dictionary or object to extract fields from | []');
wrong({ top_k => 4 }, 'missing | body.prompt | Field required | {"top_k":4}');
wrong({ prompt => '' }, 'string_too_short | body.prompt | String should have at least 1 character | "" | {"min_length":1}');
wrong({ prompt => " \n" }, 'value_error | body.prompt | Value error, prompt must not be empty or whitespace only | " \n" | {"error":{}}');
wrong({ prompt => 'x', max_new_tokens => 0, temperature => 2.5, base_model => '', top_p => 1.5, top_k => -1,
        repetition_penalty => 11 },
      'greater_than_equal | body.max_new_tokens | Input should be greater than or equal to 1 | 0 | {"ge":1}',
      'less_than_equal | body.temperature | Input should be less than or equal to 2 | 2.5 | {"le":2}',
      'string_too_short | body.base_model | String should have at least 1 character | "" | {"min_length":1}',
      'less_than_equal | body.top_p | Input should be less than or equal to 1 | 1.5 | {"le":1}',
      'greater_than_equal | body.top_k | Input should be greater than or equal to 0 | -1 | {"ge":0}',
      'less_than_equal | body.repetition_penalty | Input should be less than or equal to 10 | 11 | {"le":10}');
wrong({ prompt => 1, max_new_tokens => 513, temperature => 'hot', adapter_path => 3, do_sample => 'maybe', top_k => 1.5 },
      'string_type | body.prompt | Input should be a valid string | 1',
      'less_than_equal | body.max_new_tokens | Input should be less than or equal to 512 | 513 | {"le":512}',
      'float_parsing | body.temperature | Input should be a valid number, unable to parse string as a number | "hot"',
      'string_type | body.adapter_path | Input should be a valid string | 3',
      'bool_parsing | body.do_sample | Input should be a valid boolean, unable to interpret input | "maybe"',
      'int_from_float | body.top_k | Input should be a valid integer, got a number with a fractional part | 1.5');
wrong({ prompt => 'x', max_new_tokens => undef, do_sample => undef, top_k => '1.5' },
      'int_type | body.max_new_tokens | Input should be a valid integer | null',
      'bool_type | body.do_sample | Input should be a valid boolean | null',
      'int_parsing | body.top_k | Input should be a valid integer, unable to parse string as an integer | "1.5"');
wrong({ prompt => 'x', max_new_tokens => '0x10', do_sample => 2.5, top_k => '1e2' },
      'int_parsing | body.max_new_tokens | Input should be a valid integer, unable to parse string as an integer | "0x10"',
      'bool_type | body.do_sample | Input should be a valid boolean | 2.5',
      'int_parsing | body.top_k | Input should be a valid integer, unable to parse string as an integer | "1e2"');
wrong({ prompt => 'x', max_new_tokens => 0, more => 'y' x 100_000 },
      'greater_than_equal | body.max_new_tokens | Input should be greater than or equal to 1 | 0 | {"ge":1}');

$r = $s->post('/generate-lite', { prompt => ['y' x 100_000] });
is("$r->{code} $r->{body}", qq(422 {"detail":"prompt: Input should be a valid string"}\n),
   'a value that is too long to be sent back is left out');

$r = generate(prompt => 'Hello', max_new_tokens => ' 16 ', do_sample => 'no', temperature => 0, top_p => 0, top_k => 0);
is($r->{code}, 200, 'texts are numbers and truth values where they are so') or diag($r->{body});

for my $path ('adapters/nothing', '../../etc', "$ROOT/demo", 'elsewhere/gurukul_lite') {
    $r = generate(prompt => 'Hello', adapter_path => $path);
    is("$r->{code} $r->{json}{detail}",
       "500 Generation failed: 404: Adapter not found at $path. Set adapter_path='none' to skip.",
       'the path of an adapter that there is not');
}

$r = generate(prompt => 'Hello', adapter_path => "$ROOT/demo/adapters/gurukul_lite");
is($r->{code}, 200, 'an adapter has a whole path, too');

$r = generate(prompt => 'Hello', base_model => 'facebook/opt-125m');
is("$r->{code} $r->{json}{detail}", '500 Generation failed: model "facebook/opt-125m" not found, the model here is "live"',
   'another model is never answered for');

$r = generate(prompt => 'Hello', repetition_penalty => 0);
is("$r->{code} $r->{json}{detail}", '400 repetition_penalty is 0, expected 0.01 to 10', 'a penalty that cannot be');

$r = generate(prompt => 'Hello ' x 5000);
like("$r->{code} $r->{json}{detail}", qr/^400 This model's maximum context length is/, 'a prompt that does not fit');


# ---- companions ------------------------------------------------------------

$r = $s->get('/health');
like($r->{json}{timestamp}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/, 'health has the time');
delete $r->{json}{timestamp};
is_deeply($r->{json}, { status => 'ok', active_jobs => 0, generation_in_progress => JSON::PP::false,
                        model_cached => JSON::PP::true, gpu_available => JSON::PP::false, gpu_memory => undef },
          'health has the fields of the service');

$r = $s->get('/api/health');
ok(!exists $r->{json}{model_cached}, 'RoboBrain\'s health has none of them');

$r = $s->post('/cleanup-memory?clear_cache=true');
is_deeply($r->{json}, { status => 'success', message => 'Memory cleaned up (CPU only) (cache preserved)',
                        model_cached => JSON::PP::true }, 'memory is planned: nothing is freed');

$r = $s->get('/adapter/list');
is_deeply($r->{json}, { adapters => [{ name => 'gurukul_lite', path => 'adapters/gurukul_lite' }] }, 'the list of adapters');

for (['POST', '/adapter/train-lite'], ['GET', '/adapter/status/x'], ['GET', '/adapter/logs/x'],
     ['GET', '/adapter/logs/x/tail?n=200'], ['POST', '/rl/collect'])
{
    $r = $s->begin(@$_)->end;
    like("$r->{code} $r->{json}{detail}", qr/^501 This server does not train/, "@$_");
}

$r = $s->get('/generate-lite');
is("$r->{code} $r->{json}{detail}", '405 Method not allowed', 'the path has one method');


# ---- a model without an encoder --------------------------------------------

$r = $s->get('/v1/models');
unlike($r->{body}, qr/vision|image|picture/, 'the list of models says nothing of pictures');

my $picture = 'data:image/png;base64,' . do { require MIME::Base64; MIME::Base64::encode_base64(VLM::slurp('t/fidelity/pictures/40x30.png'), '') };

$r = $s->post('/api/chat', { session_id => 'a', message => 'hi', image => $picture });
like("$r->{code} $r->{body}", qr/^400 .*BLOOM has no vision encoder: this model takes text alone/, 'a data URL is refused');
is(join(' ', glob $s->dir . '/store/uploads/*'), '', 'and was not stored');

ok($s->stop, 'the server stops in time');
$s->check_log;
done_testing();
