package Encoder;

# Writes a text encoder in the published form, whose vectors say which groups of words a text has:
# the words of a group have one vector, and all others none.  Its layers are zeros, so that they
# change nothing, and take their time.
#
#     Encoder::make("$dir/encoder", groups => [[qw(car automobile)], [qw(halts stop)]]);

use strict;
use warnings;

use File::Path ();
use JSON::PP ();
use VLM;

# groups   words with one meaning
# seed     another one gives other vectors
# layers, hidden   what a text costs
sub make {
    my ($dir, %conf) = ($_[0], layers => 1, hidden => 64, seed => 1, groups => [], @_[1 .. $#_]);
    my ($D, $F) = ($conf{hidden}, 4 * $conf{hidden});
    my @special = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]');
    my @words = map { @$_ } @{ $conf{groups} };
    my $tokens = 256;

    my @tensors = (
        ['embeddings.word_embeddings.weight', [@special + @words, $D],
         zeros(@special * $D) . join '', map { row($conf{groups}[$_], $conf{seed} * 100 + $_, $D) } 0 .. $#{ $conf{groups} }],
        ['embeddings.position_embeddings.weight', [$tokens, $D]],
        ['embeddings.token_type_embeddings.weight', [2, $D]],
        norm('embeddings.LayerNorm', $D),
        map {
            my $layer = "encoder.layer.$_";

            ((map { linear("$layer.attention.self.$_", $D, $D) } qw(query key value)),
             linear("$layer.attention.output.dense", $D, $D), norm("$layer.attention.output.LayerNorm", $D),
             linear("$layer.intermediate.dense", $F, $D), linear("$layer.output.dense", $D, $F),
             norm("$layer.output.LayerNorm", $D));
        } 0 .. $conf{layers} - 1,
    );

    my $n = 0;
    my $json = JSON::PP->new->utf8->canonical;
    my %vocab = map { $_ => $n++ } @special, @words;

    File::Path::make_path($dir);

    VLM::spew("$dir/config.json", $json->encode({
        model_type => 'bert', hidden_size => $D, num_hidden_layers => $conf{layers}, num_attention_heads => 4,
        intermediate_size => $F, vocab_size => $n, max_position_embeddings => $tokens, type_vocab_size => 2,
        hidden_act => 'gelu', layer_norm_eps => 1e-12,
    }));
    VLM::spew("$dir/tokenizer.json", $json->encode({
        version => '1.0',
        added_tokens => [map { { id => $_, content => $special[$_], special => JSON::PP::true } } 0 .. $#special],
        normalizer => { type => 'BertNormalizer', clean_text => JSON::PP::true, handle_chinese_chars => JSON::PP::true,
                        strip_accents => undef, lowercase => JSON::PP::true },
        pre_tokenizer => { type => 'BertPreTokenizer' },
        model => { type => 'WordPiece', unk_token => '[UNK]', continuing_subword_prefix => '##',
                   max_input_chars_per_word => 100, vocab => \%vocab },
    }));
    VLM::spew("$dir/model.safetensors", safetensors($json, @tensors));

    return $dir;
}

# Numbers in f16, of which -1, 0 and 1 are enough.
sub zeros { return "\0\0" x $_[0] }
sub ones  { return pack('v', 0x3c00) x $_[0] }

# The same vector for each word of a group.
sub row {
    my ($words, $seed, $n) = @_;
    my $state = $seed;
    my $one = join '', map {
        $state = ($state * 1103515245 + 12345) % 2147483648;
        pack 'v', $state > 1 << 30 ? 0x3c00 : 0xbc00;
    } 1 .. $n;

    return $one x @$words;
}

sub linear {
    my ($name, $out, $in) = @_;

    return (["$name.weight", [$out, $in]], ["$name.bias", [$out]]);
}

sub norm {
    my ($name, $n) = @_;

    return (["$name.weight", [$n], ones($n)], ["$name.bias", [$n]]);
}

sub safetensors {
    my ($json, @tensors) = @_;
    my ($data, %head) = ('');

    for my $tensor (@tensors) {
        my ($name, $shape, $values) = @$tensor;
        my $from = length $data;
        my $n = 1;

        $n *= $_ for @$shape;
        $data .= $values // zeros($n);
        $head{$name} = { dtype => 'F16', shape => $shape, data_offsets => [$from, length $data] };
    }

    my $head = $json->encode(\%head);

    return pack('Q<', length $head) . $head . $data;
}

1;
