package Script;

# Makes a checkpoint with scripted answers, so that a test knows every word of an
# answer and the borders of its tokens.  The demo model's answers may change with
# its training.
#
#     $dir = Script::model('plan',
#         Break    => ['[{"step": 1, "task": "grounding", ...}]'],
#         bounding => ['[10, 20, ', '60, 50]'],
#         ''       => ['I see', ' a mug.']);
#
# A key is a word, and a prompt with this word is answered with its list of
# tokens.  Of several words the first in the list counts; '' is for prompts
# without any.  A word with a capital is at the beginning of a line, any other
# after a space.  A last element of undef repeats the answer from its second
# token, endlessly.
#
# The model has one layer.  Queries and keys are zero, so attention is the mean
# of all values, and only the words have values: the mean shows which words the
# prompt has.  Each token of an answer has a dimension of its own, from which the
# head computes the next token.  Its numbers are of sizes from 1 to 1e30, which int8
# keeps row by row but not turned: so the width is one that is not turned, twice an
# odd number above 64.

use strict;
use warnings;

use Cwd ();
use File::Path ();
use JSON::PP ();

my $ROOT = Cwd::getcwd();
my $JSON = JSON::PP->new->canonical;

my $HEAD = 128;             # numbers of an attention head
my $VISION = 32;            # numbers of a picture's patch

# The family, by its model_type: qwen2_5_vl or qwen3_vl.
our $FAMILY = 'qwen2_5_vl';

# Rows of the MLP, whose output is zero: some thousand of them make a token take
# one or two milliseconds, and an eighth of them under a sanitizer.
our $MLP = 16;


sub model {
    my ($name, @answers) = @_;

    local $MLP = $ENV{VLM_REPORTS} && $MLP > 1000 ? $MLP / 8 : $MLP;

    my $place = "$ROOT/" . ($ENV{HTTP_BUILD} || 'build') . "/script/$name";
    my $dir = "$place.$$";

    File::Path::make_path($dir);

    my $s = { next => 1, ids => {}, merges => [], rows => [], head => [] };

    bytes($s);

    my @words;

    while (@answers) {
        my ($word, $tokens) = splice @answers, 0, 2;
        push @words, { word => $word, tokens => $tokens };
    }

    $_->{dim} = $s->{next}++ for grep { length $_->{word} } @words;
    words($s, @words);
    answers($s, @words);

    my $config = config($s);

    write_json("$dir/config.json", $config);
    write_json("$dir/generation_config.json",
               { do_sample => JSON::PP::true, temperature => 0.7,
                 eos_token_id => [@$config{qw(eos_token_id bos_token_id)}] });
    write_json("$dir/tokenizer.json", tokenizer($s));
    write_tensors("$dir/model.safetensors", tensors($s, $config));

    write_file("$dir/chat_template.json", read_file("$ROOT/demo/model/chat_template.json"));

    write_json("$dir/preprocessor_config.json", pixels());

    return placed($dir, $place);
}

# The demo model takes pictures of one size, a scripted model those of any.
sub pixels {
    my $pixels = $JSON->decode(read_file("$ROOT/demo/model/preprocessor_config.json"));

    if ($FAMILY eq 'qwen3_vl') {
        delete @$pixels{qw(min_pixels max_pixels)};
        $pixels->{size} = { shortest_edge => 4096, longest_edge => 401408 };
        $pixels->{patch_size} = 16;
        $pixels->{$_} = [0.5, 0.5, 0.5] for qw(image_mean image_std);
        $pixels->{processor_class} = 'Qwen3VLProcessor';

    } else {
        @$pixels{qw(min_pixels max_pixels)} = (3136, 401408);
    }

    return $pixels;
}

# The directory appears complete by a rename, also if another program makes the
# same one.
sub placed {
    my ($dir, $place) = @_;

    rename $place, "$dir.old";
    rename $dir, $place or -d $place or die "$place: $!";
    File::Path::remove_tree("$dir.old", $dir);

    return $place;
}


# ---- tokens ----------------------------------------------------------------

# Returns the character of a byte in a vocabulary, as in GPT-2's.
my @CHAR;
my $above = 256;

for my $byte (0 .. 255) {
    $CHAR[$byte] = $byte >= 33 && $byte <= 126 || $byte >= 161 && $byte <= 172
                   || $byte >= 174 ? chr $byte : chr $above++;
}

sub spelled {
    my ($text) = @_;

    utf8::encode($text) if utf8::is_utf8($text);

    return join '', map { $CHAR[ord] } split //, $text;
}


sub token {
    my ($s, $spelled) = @_;

    $s->{ids}{$spelled} = keys %{ $s->{ids} }
        unless exists $s->{ids}{$spelled};

    return $s->{ids}{$spelled};
}


# One token for each byte, of which every other text consists.
sub bytes {
    my ($s) = @_;

    for my $byte (0 .. 255) {
        $s->{rows}[token($s, $CHAR[$byte])] = { 0 => 1 };
    }
}


# A word is merged from its left, one letter after the other; the complete word has
# a dimension.  Its first letters occur within no other word.
sub words {
    my ($s, @words) = @_;

    for my $word (grep { length $_->{word} } @words) {
        my $text = $word->{word} =~ /^[A-Z]/ ? $word->{word} : " $word->{word}";
        my ($have, @letters) = split //, spelled($text);

        for my $letter (@letters) {
            push @{ $s->{merges} }, "$have $letter"
                unless exists $s->{ids}{"$have$letter"};
            $have .= $letter;
            $s->{rows}[token($s, $have)] ||= { 0 => 1 };
        }

        $s->{rows}[token($s, $have)] = { $word->{dim} => 1 };
    }
}


# The first token of an answer follows from its word, where an earlier word
# counts a hundred times as much as a later one; the others follow from the token
# before.  Two tokens cannot have the same text.
sub answers {
    my ($s, @words) = @_;

    my $n = grep { length $_->{word} } @words;

    for my $word (@words) {
        my @tokens = @{ $word->{tokens} };
        my $loop = @tokens && !defined $tokens[-1];
        my (@ids, @dims);

        pop @tokens if $loop;

        for my $text (@tokens) {
            my $spelled = spelled($text);

            die "two tokens \"$text\": cut one of the answers elsewhere\n"
                if exists $s->{ids}{$spelled};

            my $id = token($s, $spelled);

            $s->{rows}[$id] = { $s->{next} => 1000 };

            push @ids, $id;
            push @dims, $s->{next}++;
        }

        my $first = length $word->{word} ? 1e6 * 100 ** --$n : 1e3;
        my $dim = length $word->{word} ? $word->{dim} : 0;

        follow($s, @ids ? $ids[0] : 'nothing', $dim, $first);
        follow($s, $ids[$_], $dims[$_ - 1], 1e30) for 1 .. $#ids;
        follow($s, $loop ? $ids[1] : 'end', $dims[-1], 1e30) if @ids;
    }
}


sub follow {
    my ($s, $id, $dim, $weight) = @_;

    if ($id eq 'end' || $id eq 'nothing') {
        $s->{$id}{$dim} = $weight;

    } else {
        $s->{head}[$id]{$dim} = $weight;
    }
}


# ---- files -----------------------------------------------------------------

my @CONTROL = qw(<|endoftext|> <|im_start|> <|im_end|> <|vision_start|>
                 <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>);

sub config {
    my ($s) = @_;

    my $n = keys %{ $s->{ids} };
    my %id = map { $CONTROL[$_] => $n + $_ } 0 .. $#CONTROL;
    my $heads = int(($s->{next} + $HEAD - 1) / $HEAD);

    $s->{rows}[$_] = { 0 => 1 } for values %id;
    $s->{head}[$id{'<|im_end|>'}] = $s->{end};
    $s->{head}[$id{'<|endoftext|>'}] = $s->{nothing};

    my %text = (
        hidden_act => 'silu',
        hidden_size => $heads * $HEAD + 2,
        head_dim => $HEAD,
        intermediate_size => $MLP,
        num_hidden_layers => 1,
        num_attention_heads => $heads,
        num_key_value_heads => $heads,
        max_position_embeddings => 32768,
        rms_norm_eps => 1e-6,
        rope_theta => 10000,
        rope_scaling => { type => 'mrope', mrope_section => [16, 24, 24] },
        tie_word_embeddings => JSON::PP::false,
        vocab_size => $n + @CONTROL,
        bos_token_id => $id{'<|endoftext|>'},
        eos_token_id => $id{'<|im_end|>'},
    );

    my %vision = (
        depth => 1,
        hidden_size => $VISION,
        intermediate_size => 16,
        num_heads => 1,
        out_hidden_size => $heads * $HEAD + 2,
        spatial_merge_size => 2,
        temporal_patch_size => 2,
    );

    my %top = (
        model_type => $FAMILY,
        vision_start_token_id => $id{'<|vision_start|>'},
        vision_end_token_id => $id{'<|vision_end|>'},
        image_token_id => $id{'<|image_pad|>'},
        video_token_id => $id{'<|video_pad|>'},
    );

    return {
        %top,
        architectures => ['Qwen3VLForConditionalGeneration'],
        text_config => {
            %text, model_type => 'qwen3_vl_text',
            rope_scaling => { rope_type => 'default', mrope_interleaved => JSON::PP::true,
                              mrope_section => [24, 20, 20] },
        },
        vision_config => {
            %vision, model_type => 'qwen3_vl', hidden_act => 'gelu_pytorch_tanh', in_channels => 3,
            patch_size => 16, num_position_embeddings => 16, deepstack_visual_indexes => [0],
        },
        map { $_ => $text{$_} } qw(tie_word_embeddings bos_token_id eos_token_id vocab_size),
    } if $FAMILY eq 'qwen3_vl';

    return {
        %top,
        %text,
        architectures => ['Qwen2_5_VLForConditionalGeneration'],
        use_sliding_window => JSON::PP::false,
        vision_token_id => $id{'<|vision_pad|>'},
        vision_config => {
            %vision, hidden_act => 'silu', in_chans => 3, patch_size => 14,
            window_size => 112, fullatt_block_indexes => [0], tokens_per_second => 2,
        },
    };
}


sub tokenizer {
    my ($s) = @_;

    my $t = $JSON->decode(read_file("$ROOT/demo/model/tokenizer.json"));
    my $n = keys %{ $s->{ids} };

    my @added = map { { id => $n + $_, content => $CONTROL[$_],
                        single_word => JSON::PP::false,
                        lstrip => JSON::PP::false, rstrip => JSON::PP::false,
                        normalized => JSON::PP::false,
                        special => JSON::PP::true } } 0 .. $#CONTROL;

    $t->{added_tokens} = \@added;
    $t->{model}{vocab} = $s->{ids};
    $t->{model}{merges} = $s->{merges};

    return $t;
}


# Each tensor is a shape and the few numbers in it that are not zero.
sub tensors {
    my ($s, $config) = @_;

    my $text = $config->{text_config} || $config;
    my $D = $text->{hidden_size};
    my $Q = $text->{num_attention_heads} * $HEAD;
    my $V = $text->{vocab_size};
    my $qwen3 = $FAMILY eq 'qwen3_vl';
    my $m = $qwen3 ? 'model.language_model' : 'model';
    my $l = "$m.layers.0";

    my @ones = map { [$_, $_, 1] } grep { $_ < $s->{next} } 1 .. $Q - 1;
    my @mean = map { [$_->[0], $_->[1], 100] } @ones;

    return (
        ["$m.embed_tokens.weight", [$V, $D], table($s->{rows})],
        ['lm_head.weight', [$V, $D], table($s->{head})],
        ["$m.norm.weight", [$D], 'ones'],
        ["$l.input_layernorm.weight", [$D], 'ones'],
        ["$l.post_attention_layernorm.weight", [$D], 'ones'],
        (map { ["$l.self_attn.${_}_proj.weight", [$Q, $D], []] } 'q', 'k'),
        ["$l.self_attn.v_proj.weight", [$Q, $D], \@ones],
        ["$l.self_attn.o_proj.weight", [$D, $Q], \@mean],
        ($qwen3 ? map { ["$l.self_attn.${_}_norm.weight", [$HEAD], 'ones'] } 'q', 'k'
                : map { ["$l.self_attn.${_}_proj.bias", [$Q], []] } 'q', 'k', 'v'),
        ["$l.mlp.gate_proj.weight", [$MLP, $D], []],
        ["$l.mlp.up_proj.weight", [$MLP, $D], []],
        ["$l.mlp.down_proj.weight", [$D, $MLP], []],
        $qwen3 ? qwen3_vision($D) : qwen2_5_vision($D),
    );
}


sub qwen2_5_vision {
    my ($D) = @_;

    my $E = $VISION;
    my $v = 'visual.blocks.0';

    return (
        ['visual.patch_embed.proj.weight', [$E, 3, 2, 14, 14], []],
        ["$v.norm1.weight", [$E], 'ones'],
        ["$v.norm2.weight", [$E], 'ones'],
        linear("$v.attn.qkv", 3 * $E, $E),
        linear("$v.attn.proj", $E, $E),
        linear("$v.mlp.gate_proj", 16, $E),
        linear("$v.mlp.up_proj", 16, $E),
        linear("$v.mlp.down_proj", $E, 16),
        ['visual.merger.ln_q.weight', [$E], 'ones'],
        linear('visual.merger.mlp.0', 4 * $E, 4 * $E),
        linear('visual.merger.mlp.2', $D, 4 * $E),
    );
}


sub qwen3_vision {
    my ($D) = @_;

    my $E = $VISION;
    my $v = 'model.visual.blocks.0';

    return (
        ['model.visual.patch_embed.proj.weight', [$E, 3, 2, 16, 16], []],
        ['model.visual.patch_embed.proj.bias', [$E], []],
        ['model.visual.pos_embed.weight', [16, $E], []],
        norm("$v.norm1", $E),
        norm("$v.norm2", $E),
        linear("$v.attn.qkv", 3 * $E, $E),
        linear("$v.attn.proj", $E, $E),
        linear("$v.mlp.linear_fc1", 16, $E),
        linear("$v.mlp.linear_fc2", $E, 16),
        map({ my ($m, $width) = @$_;
              norm("$m.norm", $width),
              linear("$m.linear_fc1", 4 * $E, 4 * $E),
              linear("$m.linear_fc2", $D, 4 * $E) }
            ['model.visual.merger', $E], ['model.visual.deepstack_merger_list.0', 4 * $E]),
    );
}


# A matrix of zeros with a bias, and a norm with one.
sub linear {
    my ($name, $rows, $columns) = @_;

    return ["$name.weight", [$rows, $columns], []], ["$name.bias", [$rows], []];
}

sub norm {
    my ($name, $n) = @_;

    return ["$name.weight", [$n], 'ones'], ["$name.bias", [$n], []];
}


sub table {
    my ($rows) = @_;

    my @numbers;

    for my $i (0 .. $#$rows) {
        push @numbers, [$i, $_, $rows->[$i]{$_}] for keys %{ $rows->[$i] || {} };
    }

    return \@numbers;
}


sub write_tensors {
    my ($file, @tensors) = @_;

    my (%header, $at);
    my $data = '';

    for my $t (@tensors) {
        my ($name, $shape, $numbers) = @$t;
        my $n = 1;

        $n *= $_ for @$shape;
        $at = length $data;

        if ($numbers eq 'ones') {
            $data .= pack('f<', 1) x $n;

        } else {
            my $columns = $n / $shape->[0];

            $data .= "\0" x (4 * $n);
            substr $data, $at + 4 * ($_->[0] * $columns + $_->[1]), 4,
                   pack('f<', $_->[2]) for @$numbers;
        }

        $header{$name} = { dtype => 'F32', shape => $shape,
                           data_offsets => [$at, length $data] };
    }

    my $json = $JSON->encode(\%header);

    $json .= ' ' x (-length($json) % 8);

    write_file($file, pack('Q<', length $json) . $json . $data);
}


sub write_json {
    my ($file, $value) = @_;

    my $text = $JSON->encode($value);

    utf8::encode($text);
    write_file($file, $text);
}


sub write_file {
    my ($file, $bytes) = @_;

    open my $out, '>:raw', $file or die "$file: $!";
    print $out $bytes;
    close $out or die "$file: $!";
}


sub read_file {
    my ($file) = @_;

    open my $in, '<:raw', $file or die "$file: $!";
    local $/;

    return scalar <$in>;
}


1;
