# Tests the picture of an answer: it has the size of the picture that was sent, and
# its marks are at the right places for every size that the model saw, in pixels or in
# shares of the sides.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Script;
use Test::More;
use VLM;

my $model = Script::model('result',
    bounding   => ['There: [20, 30, 90, 80]'],
    possible   => ['[{"bbox_2d": [40, 40, 100, ', '90], "label": "x"}]'],
    satisfying => ['[(30, 40), ', '(100, 70)]'],
    key        => ['[[20, 90], ', '[100, 20]]'],
    ''         => ['nothing at all']);

my $s = VLM->new(name => 'result', server => 'vlm_cors http://localhost:3000;', model => $model, workers => 2,
                 engine => 'thinking off; max_pixels 50176;')->start->ready;

# Models see pictures whose sides are multiples of 28.
my $small = VLM::bmp(168, 112);
my $large = VLM::bmp(1200, 900);


# ---- as large as it was sent -----------------------------------------------------

my %small = map { $_ => drawn($_, $small) } qw(grounding affordance pointing trajectory);

for my $task (sort keys %small) {
    is("$small{$task}{width}x$small{$task}{height}", '168x112', "$task: of the same size");
    is($small{$task}{resized}, undef, 'the model saw the picture at its size');
    ok(dark($small{$task}, 163, 107), 'a corner without a mark is unchanged');
}

green($small{grounding}, "a box's", [20, 55], [90, 55], [55, 80]);
ok(!bright($small{grounding}, 110, 55), 'no pixel beside the box is marked');
green($small{affordance}, "a box's", [40, 65], [100, 65], [70, 90]);
red($small{pointing}, [30, 40], [100, 70]);
ok(dark($small{pointing}, 65, 55), 'no pixel between the points is marked');
ok(bright($small{trajectory}, 60, 55), 'a path goes through the middle');


# ---- larger than the model saw it ------------------------------------------------

for my $task (qw(grounding pointing)) {
    my $p = drawn($task, $large);

    is("$p->{width}x$p->{height}", '1200x900', "$task: at its full size");

    my ($w, $h) = @{ $p->{resized} || [] };

    cmp_ok($w * $h, '<=', 50176, 'the model saw a smaller one');

    my $at = sub { map { [$_->[0] * 1200 / $w, $_->[1] * 900 / $h] } @_ };

    if ($task eq 'grounding') {
        green($p, "a box's", $at->([20, 55], [90, 55], [55, 80]));
        ok(!bright($p, 20, 55), 'the box is not at the model\'s coordinates');

    } else {
        red($p, $at->([30, 40], [100, 70]));
        ok(!bright($p, 30, 40), 'the points are not at the model\'s coordinates');
    }
}


# ---- shares of the picture's sides ------------------------------------------------

{
    local $Script::FAMILY = 'qwen3_vl';

    my @plan = map { { step => 1, task => $_, prompt => 'it', description => '' } }
               qw(grounding affordance trajectory);
    my $shares = Script::model('shares',
        errand     => [JSON::PP->new->encode(\@plan)],
        bounding   => ['[250, ', '500, 750, 1000]'],
        waypoints  => ['[(100, 800, 1.25), ', '(900, 200, 0.5)]'],
        satisfying => ['[(500, ', '250)]'],
        ''         => ['nothing at all']);
    my $other = VLM->new(name => 'shares', model => $shares,
                         engine => 'thinking off; max_pixels 131072;')->start->ready;

    is($other->get('/api/health')->{json}{coordinates}, 1000, 'the model writes shares of 1000');

    # The model sees the first as it is, and the second as a smaller one.
    for my $size ([640, 160], [1600, 400]) {
        my ($w, $h) = @$size;
        my $file = VLM::bmp($w, $h);
        my $at = sub { map { [$_->[0] * $w / 1000, $_->[1] * $h / 1000] } @_ };
        my %p = map { $_ => drawn($_, $file, $other) } qw(grounding affordance pointing trajectory);

        is("$p{$_}{width}x$p{$_}{height}", "${w}x$h", "$_: of the size that was sent"),
        is($p{$_}{resized}, undef, 'no other size is that of its coordinates') for sort keys %p;

        green($p{grounding}, "a box's", $at->([250, 750], [750, 750], [500, 500]));
        ok(!bright($p{grounding}, 0.2 * $w, 0.75 * $h), 'no pixel beside the box is marked');
        red($p{pointing}, $at->([500, 250]));
        red($p{affordance}, $at->([500, 250]));
        ok(bright($p{trajectory}, $w / 2, $h / 2), 'a path goes through the middle');
        ok(dark($p{trajectory}, 0.25 * $w, 0.25 * $h), 'the path leaves the rest of the picture as it was');

        is_deeply($p{grounding}{marks}, [{ type => 'box', xy => [$w / 4, $h / 2, $w * 3 / 4, $h], label => undef }],
                  'the box in pixels of the picture that was sent');
        is_deeply($p{pointing}{marks}, [{ type => 'point', xy => [$w / 2, $h / 4], label => undef }], 'the point');
        is_deeply($p{trajectory}{marks},
                  [{ type => 'path', xy => [$w / 10, $h * 4 / 5, $w * 9 / 10, $h / 5], label => undef,
                     depth => [1.25, 0.5] }],
                  'the path with its depths');
        is($p{affordance}{task}, 'pointing', 'affordance is done by pointing, and the answer has this task');

        my $steps = $other->post('/api/pipeline', { session_id => "errand $w", message => 'an errand',
                                                    image => $other->upload($file) })->{json}{steps};

        is_deeply([map { $_->{coordinates} } @$steps],
                  [[[$w / 4, $h / 2, $w * 3 / 4, $h]], [[$w / 2, $h / 4]],
                   [[$w / 10, $h * 4 / 5, 1.25], [$w * 9 / 10, $h / 5, 0.5]]],
                  'the coordinates of a pipeline are of the same pixels');
        is(join(' ', map { $_->{task} } @$steps), 'grounding pointing trajectory',
           'its steps say what was done');
    }

    ok($other->stop, 'the server stops in time');
    $other->check_log;
}


# ---- which files they are --------------------------------------------------------

my $picture = $s->upload($small);
my @names = map { $s->chat('names', 'it', task => 'grounding', image => $picture)
                  ->{json}{output_image} } 1, 2;

isnt($names[0], $names[1], 'each answer has a picture of its own');
is($s->chat('names', 'it', task => 'general')->{json}{output_image}, undef,
   'a general question has none');

my $turns = $s->get('/api/history/names')->{json};
is(join(' ', map { $_->{metadata}{output_image} =~ s{.*/}{}r } @$turns[1, 3]),
   join(' ', map { s{.*/}{}r } @names), 'the history has them');

{
    my $nothing = Script::model('nothing', '' => ['nothing at all']);
    my $other = VLM->new(name => 'nothing', model => $nothing,
                         engine => 'thinking off;')->start->ready;
    my $r = $other->chat('s', 'it', task => 'pointing', image => $other->upload($small));
    my $p = pixels($other->get($r->{json}{output_image})->{body});

    ok(!grep(/[^\0-\x10]/, $p->{data}), 'an answer without a shape has the unchanged picture');
    ok($other->stop, 'the server stops in time');
    $other->check_log;
}


# ---- how they are sent -----------------------------------------------------------

my $whole = $s->get($names[0], undef, { Origin => 'http://localhost:3000' });
my $h = $whole->{headers};

is($whole->{code}, 200, 'a picture');
is($h->{'content-type'}, 'image/jpeg', 'the picture is a JPEG');
is($h->{'access-control-allow-origin'}, 'http://localhost:3000', 'the page may read the picture');
is($h->{'cache-control'}, 'no-cache', 'a browser asks for the picture again');
is($s->get($names[0], undef, { 'If-None-Match' => $h->{etag} })->{code}, 304,
   'the picture is not sent again, by its ETag');
is($s->get($names[0], undef, { 'If-Modified-Since' => $h->{'last-modified'} })->{code}, 304,
   'the picture is not sent again, by its date');

my $part = $s->get($names[0], undef, { Range => 'bytes=10-29' });
is($part->{code}, 206, 'a range is answered');
is($part->{body}, substr($whole->{body}, 10, 20), 'the range has its bytes');
is($s->get($names[0], undef, { Range => 'bytes=99999999-' })->{code}, 416, 'a range beyond the file is refused');

my $head = $s->begin('HEAD', $names[0])->end;
is($head->{headers}{'content-length'}, length $whole->{body}, 'HEAD answers with the length alone');
is($s->get('/result/../vlm.db')->{code}, 404, 'no other file is served');
is($s->get('/result/nothing.jpg')->{code}, 404, 'a file that was never made is not found');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();


sub drawn {
    my ($task, $file, $server) = (@_, $s);

    my $r = $server->chat($task, 'it', task => $task, image => $server->upload($file));
    my $p = pixels($server->get($r->{json}{output_image})->{body});

    $p->{resized} = $r->{json}{image_resized};
    @$p{qw(marks task)} = @{ $r->{json} }{qw(marks task)};

    return $p;
}

# Returns a JPEG's size and pixels, three bytes each.
sub pixels {
    my ($jpeg) = @_;

    my $file = "$s->{dir}/picture";

    Script::write_file("$file.jpg", $jpeg);
    system("djpeg -pnm -outfile $file.ppm $file.jpg") == 0 or die "djpeg failed\n";

    my $ppm = Script::read_file("$file.ppm");
    my ($width, $height) = $ppm =~ s/^P6\s(\d+) (\d+)\s255\s// ? ($1, $2)
                           : die "djpeg says no picture\n";

    return { width => $width, height => $height, data => $ppm };
}

sub pixel {
    my ($p, $x, $y) = @_;

    return unpack 'C3', substr $p->{data}, 3 * (int($y + 0.5) * $p->{width} + int($x + 0.5)), 3;
}

sub dark   { !grep { $_ > 40 } pixel(@_) }
sub bright { !!grep { $_ > 120 } pixel(@_) }

sub green {
    my ($p, $whose, @spots) = @_;

    for my $spot (@spots) {
        my @found = grep { my ($r, $g, $b) = pixel($p, @$_); $g > $r + 60 && $g > $b + 60 }
                    map { [$spot->[0] + $_, $spot->[1]], [$spot->[0], $spot->[1] + $_] } -2 .. 2;

        ok(scalar @found, "$whose edge is green at @$spot");
    }
}

# A point has a number in its middle, so the check reads the pixels around it.
sub red {
    my ($p, @spots) = @_;

    for my $spot (@spots) {
        my $u = $p->{width} / 168;
        my @found = grep { my ($r, $g, $b) = pixel($p, @$_); $r > $g + 80 && $r > $b + 80 }
                    map { my $dx = $_; map { [$spot->[0] + $dx, $spot->[1] + $_] } -8 * $u .. 8 * $u }
                    -8 * $u .. 8 * $u;

        ok(@found > 8, "a point is red at @$spot");
    }
}
