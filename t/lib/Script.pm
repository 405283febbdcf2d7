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
# head computes the next token.

use strict;
use warnings;

use Cwd ();
use File::Path ();
use JSON::PP ();

my $ROOT = Cwd::getcwd();
my $JSON = JSON::PP->new->canonical;

my $HEAD = 128;             # numbers of an attention head
my $VISION = 32;            # numbers of a picture's patch

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

    # The demo model takes pictures of one size, a scripted model those of any.
    my $pixels = $JSON->decode(read_file("$ROOT/demo/model/preprocessor_config.json"));

    @$pixels{qw(min_pixels max_pixels)} = (3136, 401408);
    write_file("$dir/preprocessor_config.json", $JSON->encode($pixels));

    return placed($dir, $place);
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

    return {
        architectures => ['Qwen2_5_VLForConditionalGeneration'],
        model_type => 'qwen2_5_vl',
        hidden_act => 'silu',
        hidden_size => $heads * $HEAD,
        intermediate_size => $MLP,
        num_hidden_layers => 1,
        num_attention_heads => $heads,
        num_key_value_heads => $heads,
        max_position_embeddings => 32768,
        rms_norm_eps => 1e-6,
        rope_theta => 10000,
        rope_scaling => { type => 'mrope', mrope_section => [16, 24, 24] },
        tie_word_embeddings => JSON::PP::false,
        use_sliding_window => JSON::PP::false,
        vocab_size => $n + @CONTROL,
        bos_token_id => $id{'<|endoftext|>'},
        eos_token_id => $id{'<|im_end|>'},
        vision_start_token_id => $id{'<|vision_start|>'},
        vision_end_token_id => $id{'<|vision_end|>'},
        vision_token_id => $id{'<|vision_pad|>'},
        image_token_id => $id{'<|image_pad|>'},
        video_token_id => $id{'<|video_pad|>'},
        vision_config => {
            depth => 1,
            hidden_act => 'silu',
            hidden_size => $VISION,
            intermediate_size => 16,
            num_heads => 1,
            in_chans => 3,
            out_hidden_size => $heads * $HEAD,
            patch_size => 14,
            spatial_merge_size => 2,
            temporal_patch_size => 2,
            window_size => 112,
            fullatt_block_indexes => [0],
            tokens_per_second => 2,
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

    my $D = $config->{hidden_size};
    my $E = $VISION;
    my $V = $config->{vocab_size};
    my $l = 'model.layers.0';
    my $v = 'visual.blocks.0';

    my @ones = map { [$_, $_, 1] } grep { $_ < $s->{next} } 1 .. $D - 1;
    my @mean = map { [$_->[0], $_->[1], 100] } @ones;

    return (
        ['model.embed_tokens.weight', [$V, $D], table($s->{rows})],
        ['lm_head.weight', [$V, $D], table($s->{head})],
        ['model.norm.weight', [$D], 'ones'],
        ["$l.input_layernorm.weight", [$D], 'ones'],
        ["$l.post_attention_layernorm.weight", [$D], 'ones'],
        (map { ["$l.self_attn.${_}_proj.weight", [$D, $D], []],
               ["$l.self_attn.${_}_proj.bias", [$D], []] } 'q', 'k'),
        ["$l.self_attn.v_proj.weight", [$D, $D], \@ones],
        ["$l.self_attn.v_proj.bias", [$D], []],
        ["$l.self_attn.o_proj.weight", [$D, $D], \@mean],
        ["$l.mlp.gate_proj.weight", [$MLP, $D], []],
        ["$l.mlp.up_proj.weight", [$MLP, $D], []],
        ["$l.mlp.down_proj.weight", [$D, $MLP], []],

        ['visual.patch_embed.proj.weight', [$E, 3, 2, 14, 14], []],
        ["$v.norm1.weight", [$E], 'ones'],
        ["$v.norm2.weight", [$E], 'ones'],
        ["$v.attn.qkv.weight", [3 * $E, $E], []],
        ["$v.attn.qkv.bias", [3 * $E], []],
        ["$v.attn.proj.weight", [$E, $E], []],
        ["$v.attn.proj.bias", [$E], []],
        (map { ["$v.mlp.${_}_proj.weight", [16, $E], []],
               ["$v.mlp.${_}_proj.bias", [16], []] } 'gate', 'up'),
        ["$v.mlp.down_proj.weight", [$E, 16], []],
        ["$v.mlp.down_proj.bias", [$E], []],
        ['visual.merger.ln_q.weight', [$E], 'ones'],
        ['visual.merger.mlp.0.weight', [4 * $E, 4 * $E], []],
        ['visual.merger.mlp.0.bias', [4 * $E], []],
        ['visual.merger.mlp.2.weight', [$D, 4 * $E], []],
        ['visual.merger.mlp.2.bias', [$D], []],
    );
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
