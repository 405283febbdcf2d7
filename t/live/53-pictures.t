# Tests pictures of all kinds through the server: each has an answer or a 400 with a
# reason, with a wrong name, truncated anywhere, or with other data after it; and the
# memory of the worker does not grow.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

my $s = VLM->new(name => 'pictures', workers => 1,
                 engine => 'thinking off; slots 2; context 4k; queue 64 timeout=1h; max_tokens 1;'
                           . ' sampling temperature=0; max_pixels 50176; http_memory 200m;');

$s->start->ready;

sub ask {
    my ($bytes) = @_;

    return $s->post('/v1/chat/completions', { messages => [{ role => 'user', content => [
        { type => 'image_url',
          image_url => { url => 'data:image/png;base64,' . encode_base64($bytes, '') } },
        { type => 'text', text => '?' }] }] });
}

sub is_answered {
    my ($name, $bytes) = @_;

    my $r = ask($bytes);

    is($r->{code}, 200, "$name: an answer") or diag($r->{body});
}

sub is_refused {
    my ($name, $bytes, $why) = @_;

    my $r = ask($bytes);
    my $text = $r->{json}{error}{message} // '';

    is($r->{code}, 400, "$name: refused") or diag($r->{body});
    like($text, $why, "$name: $text");
}

sub chunk {
    my ($type, $data) = @_;

    return pack('N a4', length $data, $type) . $data
           . pack('N', Compress::Zlib::crc32($type . $data));
}

# bits: of a sample; colour: 0 grey, 2 RGB; more: chunks before the picture
sub png {
    my ($width, $height, %how) = @_;

    my ($bits, $colour) = ($how{bits} || 8, $how{colour} || 0);
    my $row = "\0" . "\x5a" x int(($width * $bits * ($colour ? 3 : 1) + 7) / 8);

    return "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack('NNCCCCC', $width, $height, $bits, $colour, 0, 0, 0))
           . ($how{more} // '') . chunk('IDAT', Compress::Zlib::compress($row x $height))
           . chunk('IEND', '');
}

sub memory { VLM::slurp('/proc/' . $s->designated . '/status') =~ /^$_[0]:\s+(\d+) kB/m ? $1 : 0 }

# ---- every supported format ----------------------------------------------------

my %file;

for my $path (sort glob 't/fixtures/image/files/*') {
    my ($name) = $path =~ m{([^/]+)$};
    $file{$name} = VLM::slurp($path);
}

my @good = grep { !/cut|^other|bmp-16\b/ } sort keys %file;

cmp_ok(scalar @good, '>', 60, 'there are pictures of every form');
is_answered($_, $file{$_}) for @good;

is_refused('a JPEG that breaks off', $file{'jpeg-cut.jpg'}, qr/^JPEG: /);
is_refused('a BMP that breaks off', $file{'bmp-cut.bmp'}, qr/^BMP: /);
is_refused('a PDF', $file{'other.pdf'}, qr/^not a supported picture/);
is_refused('a HEIC', $file{'other.heic'}, qr/^not a supported picture/);

# ---- sizes ---------------------------------------------------------------------

is_answered('1 x 1', png(1, 1));
is_answered('1 x 1 of 16 bits', png(1, 1, bits => 16, colour => 2));
is_answered("1 x $_", png(1, $_)) for 2, 199, 200;
is_answered("$_ x 1", png($_, 1)) for 2, 199, 200;
is_refused("1 x $_", png(1, $_), qr/200/) for 201, 10000;
is_refused("$_ x 1", png($_, 1), qr/200/) for 201, 10000;
is_refused('no pixels', png(0, 1), qr/^PNG/);
is_refused('20,000 x 20,000', png(20000, 20000, bits => 1), qr/^PNG of 20000x20000 pixels/);
is_refused('2^31 - 1 wide', "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack('NNCCCCC', 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0))
                            . chunk('IDAT', 'x') . chunk('IEND', ''), qr/^PNG/);

# ---- wrong names ---------------------------------------------------------------

my %names = ('jpeg-420.jpg' => 'a.png', 'png-rgb8.png' => 'b.jpg', 'gif-256.gif' => 'c.webp',
             'webp-lossy.webp' => 'd.bmp', 'bmp-24.bmp' => 'e.gif', 'png-rgb16.png' => 'f.jpeg');

for my $real (sort keys %names) {
    my $path = "$s->{dir}/$names{$real}";

    VLM::spew($path, $file{$real});
    is($s->chat("name-$real", '?', image => $s->upload($path))->{code}, 200,
       "$real that is called $names{$real}: an answer");
}

# ---- two things at once --------------------------------------------------------

my $photo = $file{'jpeg-420.jpg'};
my $script = '<script>alert(1)</script><?php system("id"); ?>';
my $zip = "PK\x03\x04" . "\0" x 26 . 'a.txt' . "PK\x05\x06" . "\0" x 18;

is_answered('a JPEG with a script as its comment',
            substr($photo, 0, 2) . "\xff\xfe" . pack('n', 2 + length $script) . $script . substr($photo, 2));
is_answered('a PNG with a page in a text chunk', png(40, 30, more => chunk('tEXt', "Comment\0$script")));
is_answered('a PNG that is a ZIP at its end', $file{'png-rgb8.png'} . $zip);
is_answered('a JPEG that is a ZIP at its end', $photo . $zip);
is_answered('a GIF whose first bytes are a script', $file{'gif-3.gif'} . "/*$script*/");
is_refused('a PDF that has a JPEG in it', "%PDF-1.4\n1 0 obj\n<<>>\nstream\n$photo", qr/^not a supported picture/);
is_refused('a ZIP that has a PNG in it', $zip . $file{'png-rgb8.png'}, qr/^not a supported picture/);
is_refused('a page', "<html>$script</html>", qr/^not a supported picture/);
is_refused('a PNG whose first bytes are a JPEG\'s', "\xff\xd8\xff\xe0" . substr($file{'png-rgb8.png'}, 4), qr/^JPEG/);

# An upload is returned with its own type, and never as a page.
VLM::spew("$s->{dir}/page.png", $photo . $script);
my $r = $s->get('/uploads/' . $s->upload("$s->{dir}/page.png"));
like($r->{headers}{'content-type'}, qr{^image/}, 'a picture with a script goes out as a picture');
is($r->{headers}{'x-content-type-options'}, 'nosniff', 'the answer has nosniff');

# ---- truncated and damaged everywhere ------------------------------------------

my ($answers, $refusals) = (0, 0);
my $before = memory('VmRSS');

for my $name (qw(jpeg-progressive.jpg png-palette8-trns.png gif-animated.gif webp-lossy-alpha.webp
                 bmp-8.bmp png-rgba16-adam7.png jpeg-cmyk.jpg)) {
    my $whole = $file{$name};
    my @bent = (map { substr $whole, 0, int(length($whole) * $_ / 13) } 0 .. 12);

    for my $i (0 .. 12) {
        my $copy = $whole;
        substr($copy, int(length($copy) * $i / 13), 1) ^= "\xff";
        push @bent, $copy;
    }

    for my $bytes (@bent) {
        my $r = ask($bytes);

        if ($r->{code} eq '200') {
            $answers++;

        } elsif ($r->{code} eq '400' && length($r->{json}{error}{message} // '')) {
            $refusals++;

        } else {
            diag("$name: $r->{code} $r->{body}");
        }
    }
}

is($answers + $refusals, 7 * 26, 'every cut and every bent byte is an answer or a 400 that says why');
cmp_ok($refusals, '>', 7 * 13 * 0.9, 'truncated pictures are refused');
cmp_ok(memory('VmRSS') - $before, '<', 8 * 1024 * VLM::slower(), 'memory does not grow');
cmp_ok(memory('VmHWM'), '<', 400 * 1024 * VLM::slower(), 'the memory in use never exceeds the limit');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
