# Tests the quantised cache.  The first start makes it, the next start maps it until
# the worker has copied it to its own memory, and a damaged cache is made again.
# The answers are the same.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use File::Path ();
use File::Temp ();
use Test::More;
use VLM;

my $cache = "$VLM::LIVE/int8";

File::Path::remove_tree($cache);
File::Path::make_path($cache);

my $s = VLM->new(name => 'cache', workers => 2,
                 engine => "thinking off; sampling temperature=0; cache $cache;");

sub kept { glob "$cache/*" }

sub answer {
    my $picture = $s->upload('demo/pictures/table-01.png');

    my $r = $s->chat('s' . rand, 'How many objects are on the table?', image => $picture);

    return $r->{json}{answer} // "$r->{code} $r->{body}";
}

# Returns the lines of the log since the last call.
my $seen = 0;

sub news {
    my $log = substr $s->log, $seen;
    $seen += length $log;
    return $log;
}

$s->start->ready;

my $first = answer();
my @kept = kept();

is(scalar @kept, 1, 'the first start makes one file');
like($kept[0], qr{/vlm-int8-[0-9a-f]{16}\.bin$}, 'the file has the name of a cache');
like(news(), qr/the quantised cache is written: there is no .*vlm-int8-\S+ yet/, 'the log has the making of the cache');

my $made = (stat $kept[0])[9];

ok($s->reload, 'a reload');
$s->ready;
like(news(), qr/weights come from \Q$kept[0]\E/, 'the next start reads the cache');
is((stat $kept[0])[9], $made, 'the file is unchanged');
is(answer(), $first, 'the answer is the same');

# Soon after the file was read, the worker does not need it.
ok(VLM::wait_for(sub { VLM::slurp('/proc/' . $s->designated . '/maps') !~ /vlm-int8/ }),
   'its pages become memory of the worker');
is(answer(), $first, 'the answer is the same');

# Only the checksums of the matrices can detect a changed byte in the middle.
my $size = -s $kept[0];

open my $file, '+<:raw', $kept[0] or die;
seek $file, $size / 2, 0;
read $file, my $byte, 1;
seek $file, $size / 2, 0;
print $file chr(ord($byte) ^ 1);
close $file;

ok($s->reload, 'another reload');
$s->ready;
like(news(), qr/the quantised cache is written: \Q$kept[0]\E is damaged in matrix \d+ of \d+/,
     'notices a byte that was changed');
is(answer(), $first, 'the answer is the same');

truncate $kept[0], $size - 1;
ok($s->reload, 'another reload');
$s->ready;
like(news(), qr/the quantised cache is written: \Q$kept[0]\E has \d+ bytes of \d+/, 'a truncated cache is made again');

ok($s->reload, 'another reload');
$s->ready;
like(news(), qr/weights come from/, 'the start reads the new cache');
is(answer(), $first, 'the answer is the same');
is(join(' ', kept()), $kept[0], 'no other file is left');

ok($s->stop, 'the server stops in time');

$s->check_log;

# ---- the directory -------------------------------------------------------------------------

# A new one is the workers', who could not make it.
SKIP: {
    skip 'only root can give it to another user', 7 if $> != 0;

    my $top = File::Temp->newdir;               # other users may be unable to reach the checkout
    my $nobody = getpwnam 'nobody';

    chmod 0755, $top;
    mkdir "$top/model" or die "$top/model: $!";
    copy($_, "$top/model") or die "$_: $!" for glob 'demo/model/*';

    my $s = VLM->new(name => 'cache-user', user => 'nobody nogroup', model => "$top/model", store_dir => "$top/store",
                     engine => "thinking off; cache $top/cache/;");

    (my $quiet = join ' ', $s->command('-t')) .= ' 2>&1';
    $s->write_conf;
    unlike(scalar `$quiet`, qr/is not a directory/, 'nginx -t does not warn of a directory that a start will make');
    ok(!-e "$top/cache", 'and makes none');

    $s->start->ready;
    is_deeply([ (stat "$top/cache")[4], (stat _)[2] & 07777 ], [ $nobody, 0700 ], "the new directory is the workers' alone");
    is(scalar(my @files = glob "$top/cache/vlm-int8-*.bin"), 1, 'they write into it');

    chown 0, 0, "$top/cache";
    chmod 0755, "$top/cache";
    ok($s->reload, 'a reload');
    $s->ready;
    is((stat "$top/cache")[4], 0, 'one that is there keeps its owner');
    ok($s->stop, 'the server stops in time');
}

# In a directory that cannot be written the server runs without a cache.
$s = VLM->new(name => 'cache-none', engine => "thinking off; sampling temperature=0;"
                                              . " cache /proc/nowhere;");
$s->start->ready;
is(answer(), $first, 'a directory that is none: the answer is the same');
$seen = 0;
like(news(), qr/\[warn\] .*the quantised cache cannot be used, so that this start quantises the weights itself: .*No such file/, 'the log has the reason');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
