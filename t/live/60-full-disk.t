# Tests a start on a file system that is full or as good as full: a server whose quantised
# cache or store does not fit has this in its log, answers, and leaves nothing behind.

use strict;
use warnings;

use lib 't/lib';
use File::Path ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

# A file system of this size, which the server alone sees: its mount namespace ends with it.  A user
# other than root mounts it as root of a user namespace, and is itself again in one within that.
sub small_disk {
    my ($dir, $size) = @_;

    my @root = $> == 0 ? () : '--map-root-user';
    my $self = $> == 0 ? '' : "unshare --map-user=$> --map-group=" . (split ' ', $))[0];

    return ('unshare', '--mount', @root, 'sh', '-ec',
            "mount -t tmpfs -o size=$size none $dir; chmod 1777 $dir; exec $self \"\$@\"", 'sh');
}

# The same directory as the server sees it.
sub within {
    my ($s, $dir) = @_;

    return '/proc/' . $s->pid . "/root$dir";
}

sub hello { $_[0]->chat('s' . rand, 'hello') }

# Asks about a picture that comes with the request.
sub seen {
    my ($s) = @_;

    my $url = 'data:image/png;base64,' . encode_base64(VLM::slurp('demo/pictures/table-01.png'), '');

    return $s->begin('POST', '/v1/chat/completions',
                     { max_tokens => 2,
                       messages => [{ role => 'user',
                                      content => [{ type => 'image_url', image_url => { url => $url } },
                                                  { type => 'text', text => 'hi' }] }] })->end;
}


# ---- the quantised cache -------------------------------------------------------------------

{
    my $cache = "$VLM::LIVE/small-cache";

    File::Path::make_path($cache);

    my $s = VLM->new(name => 'full-cache', under => [small_disk($cache, '1m')],
                     engine => "thinking off; max_tokens 4; cache $cache;")->start->ready;

    ok($s->log_has(qr/\[warn\] .*the quantised cache cannot be used, so that this start quantises the weights itself: \S+vlm-int8-\S+: No space left on device, \d+ bytes are needed/),
       'the log says that the cache does not fit, and its size') or diag($s->log);
    is(hello($s)->{code}, 200, 'the server answers');
    is(join(' ', glob within($s, $cache) . '/*'), '', 'no part of the cache is left');
    ok(-e "/proc/" . $s->pid . '/root' . $cache, 'the directory is on the disk that the server sees');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- the store -----------------------------------------------------------------------------

{
    my $store = "$VLM::LIVE/small-store";

    File::Path::make_path($store);

    my $fill = "dd if=/dev/zero of=$store/other bs=4k 2>/dev/null || :";
    my @under = small_disk($store, '4m');

    $under[-2] =~ s/exec/$fill; exec/;

    my $s = VLM->new(name => 'full-store', under => \@under, store_dir => $store,
                     engine => 'thinking off; max_tokens 4;')->start->ready;

    my $r = $s->begin('POST', '/v1/chat/completions',
                      { max_tokens => 2, messages => [{ role => 'user', content => 'hi' }] })->end;

    is($r->{code}, 200, 'a request without a session is answered') or diag($s->log);

    $r = seen($s);
    is($r->{code}, 507, 'a request whose picture has to wait on the disk is not') or diag($r->{body});
    is($r->{json}{error}{code}, 'storage_full', 'the error has its code');
    is($r->{json}{error}{message}, 'The image cannot be kept while it waits: No space left on device',
       'the sentence has the reason');

    $r = hello($s);
    is($r->{code}, 507, 'a session is not') or diag($r->{body});
    is($r->{json}{error}, 'The store is full', 'the answer has the reason');
    ok($s->log_has(qr/\[warn\] .*store \Q$store\E: the disk is full: sessions and uploads are refused, other chats are answered/),
       'the log says at the start what is refused and what is not');

    unlink within($s, $store) . '/other' or die "other: $!";
    ok(VLM::wait_for(sub { hello($s)->{code} == 200 }), 'sessions are answered when there is room again');
    is(seen($s)->{code}, 200, 'pictures are answered, too');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
