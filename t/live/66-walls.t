# A file that takes the reader over makes system calls behind the walls: each is denied, the error log
# names it, and the server goes on.  The reader is build/pdf/attack: vlm-pdf whose poppler makes the calls
# that the file's last line asks for.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Temp ();
use Test::More;
use VLM;

my $attack = Cwd::getcwd() . '/build/pdf/attack';

die "make pdf-tests builds $attack\n" unless -x $attack;

# A kernel without Landlock needs the other sandbox, which forbids only the rights that a file has.
my $landlock = syscall(444, 0, 0, 1) > 0;
my $sandbox = $landlock ? 'landlock' : 'seccomp';
my $s = VLM->new(name => 'walls', engine => "documents on helper=$attack sandbox=$sandbox; thinking off; context 4k;")
    ->start->ready;
my $pid = $s->designated;
my $file = VLM::slurp('t/documents/files/latin.pdf');

# Adds a document that asks for this to a session of its own, and waits until it was read.
my $sessions = 0;

sub add {
    my ($line) = @_;
    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" }
                            ['session_id', ++$sessions], ['file"; filename="a.pdf', "$file%$line\n"];
    my $r = $s->begin('POST', '/api/documents', "$body--xxxx--\r\n", { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })
        ->end;
    my $id = $r->{json}{id} or die "$line: $r->{code} $r->{body}";
    my $doc;

    VLM::wait_for(sub { ($doc = $s->get("/api/documents/$id")->{json})->{state} =~ /^(ready|failed)$/ })
        or die "$line is not read";
    $s->log_has(qr/document \Q$id\E: .* (?:in|after) \d+ ms/) or die "$line is not in the log";

    return $doc;
}

# The line of the log about a document, or a page: level and sentence, without the time.
sub logged {
    my ($doc, $page) = @_;
    my $of = "document $doc->{id}" . ($page ? ", page $page" : '');

    return [map { s/ (?:in|after) \d+ ms$//r } $s->log =~ /(\[\w+\] (?=.*\Q$of\E: ).*)/g]
        ->@*;
}

sub is_logged {
    my ($doc, $wanted, $what, $page) = @_;
    my @said = map { /^\[(\w+)\] .*?: (?:document \S+?(?:, page \d+)?): (.*?)(?:, client: .*)?$/ ? "$1: $2" : $_ } logged($doc, $page);

    is_deeply(\@said, $wanted, $what) or diag(explain(\@said));
}

# Processes of the reader anywhere, for a worker's children may have left it.
sub readers { grep { (readlink("/proc/$_/exe") // '') eq $attack } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*' }

# ---- calls that no file needs ----------------------------------------------------------------

for my $case (['socket', 'socket()'], ['execve', 'execve()'], ['kill', 'kill()'], ['fork', 'clone()'], ['ptrace', 'ptrace()'],
              ['code', 'mmap()'], ['writing', 'openat()'])
{
    my ($name, $call) = @$case;
    my $doc = add("$name hides");
    my $why = "the reader tried a forbidden system call, $call";

    is("$doc->{state}: $doc->{error}", "failed: $why", "$name: $why");
    is_logged($doc, ["warn: $why,"], "$name: the log has it as a warning");
}

# ---- files -----------------------------------------------------------------------------------

SKIP: {
    skip 'this kernel has no Landlock', 1 unless $landlock;

    my $denied = 'warn: the reader was not let open';
    my $read = 'info: 1 pages were read';
    my $doc = add('open says /etc/passwd');

    is($doc->{error}, 'damaged: open: Permission denied', '/etc/passwd cannot be opened');
    is_logged($doc, ["$denied \"/etc/passwd\"", 'info: damaged: open: Permission denied,'], 'and the log names it');

    $doc = add('openat says /etc/passwd');
    is($doc->{error}, 'damaged: openat: Permission denied', 'nor by the system call itself');
    is_logged($doc, ["$denied \"/etc/passwd\"", 'info: damaged: openat: Permission denied,'], 'and the log names it');

    $doc = add('open hides /etc/passwd');
    is("$doc->{state}: $doc->{pages_read}", 'ready: 1', 'a reader that goes on reads the document');
    is_logged($doc, ["$denied \"/etc/passwd\"", $read], 'and the log names the file all the same');

    $doc = add('flood hides /etc/passwd');
    is_logged($doc, ["$denied " . join(', ', ('"/etc/passwd"') x 3) . ' and 99997 more', $read], 'a flood is one line');

    my $dir = File::Temp->newdir;
    my $odd = "$dir/\"a\\\033[31m\377" . 'x' x 200;

    chmod 0755, $dir;
    VLM::spew($odd, '');
    chmod 0644, $odd;
    $doc = add("open hides $odd");
    is_logged($doc, ["$denied \"$dir/\\\"a\\\\\\x1b[31m\\xff" . 'x' x (92 - 17 - length "$dir/") . '..."', $read],
              'a name is escaped and cut');

    $doc = add('nothing says');
    is($doc->{error}, 'damaged: nothing: Bad address', 'a name that cannot be read is only an error');
    is_logged($doc, ['info: damaged: nothing: Bad address,'], 'without a line of its own');

    # ---- the picture of a page -------------------------------------------------------------------

    $doc = add('open hides /etc/group');
    is($s->get("/api/documents/$doc->{id}/pages/1.png")->{code}, 200, 'a page is drawn');
    is_logged($doc, ["$denied \"/etc/group\""], 'and the log names the file that its reader was denied', 1);

    $doc = add('open hides /etc/hosts');
    my $r = $s->post('/api/ask', { session_id => "$sessions", question => 'Which belt?', max_tokens => 1,
                                   pages => 'pictures' });
    is($r->{code}, 200, 'so is that of a question') or diag($r->{body});
    is_logged($doc, ["$denied \"/etc/hosts\""], 'and the log names the file', 1);
}

# ---- the server ------------------------------------------------------------------------------

is($s->designated, $pid, 'the worker lives');
ok(VLM::wait_for(sub { !readers() }), 'no reader is left');
$s->check_log;
ok($s->stop, 'the server ends');

done_testing();
