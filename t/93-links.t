# Tests that each link of the documentation leads to a file that there is, and to a heading in it, that
# no page has a conflict of a merge, and that sentences of pages and comments have a subject at their
# beginning, where the project once wrote Who, Whoever, Nobody or What.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use Test::More;
use VLM;

my @pages = split /\n/, `git ls-files '*.md'`;

@pages = (glob('*.md'), glob('docs/*.md docs/dev/*.md bench/*.md t/*.md demo/*.md')) unless @pages;


# Returns the text of a page without blocks of code.
sub text { return VLM::slurp($_[0]) =~ s/^```.*?^```//msgr }


# Returns the names of a page's headings, as the web pages of forges make them.
sub anchors {
    my ($page) = @_;
    my %seen;

    return map {
        my $name = lc s/\[([^\]]*)\]\([^)]*\)/$1/gr;

        $name =~ s/[^\w\- ]//g;
        $name =~ tr/ /-/;
        $seen{$name}++ ? "$name-" . ($seen{$name} - 1) : $name;
    } text($page) =~ /^#+ +(.*?)\s*$/mg;
}

my ($n, %anchors, @broken) = (0);
my @conflicts = grep { VLM::slurp($_) =~ /^(?:<{7}|>{7}) /m } @pages;

for my $page (@pages) {
    my ($dir, $text) = (dirname($page), text($page));

    while ($text =~ /\]\(([^)\s]+)\)/g) {
        my ($path, $anchor) = split /#/, $1, 2;

        next if $path =~ /^\w+:/;
        $n++;

        my $to = $path eq '' ? $page : $dir eq '.' ? $path : "$dir/$path";

        1 while $to =~ s{[^/.][^/]*/\.\./}{};

        if (!-e $to) {
            push @broken, "$page: $1";

        } elsif (defined $anchor && $to =~ /\.md$/) {
            $anchors{$to} ||= { map { $_ => 1 } anchors($to) };
            push @broken, "$page: #$anchor of $to" unless $anchors{$to}{$anchor};
        }
    }
}

cmp_ok($n, '>', 300, 'the pages have links');
is(join("\n", @broken), '', 'each leads to a file and a heading');
is(join("\n", @conflicts), '', 'no page has a conflict of a merge');

# Code between backticks and in blocks is no sentence; a comment begins with its mark.
my @sources = split /\n/, `git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.js' '*.conf'`;
my @bare;

@sources = glob('http/*.[ch] http/*/*.[ch] http/*/*/*.[ch] engine/*.h engine/*/*.[ch] lib/*/*.[ch] cuda/*.c* pdf/*.[ch] conf/*.conf')
    unless @sources;
cmp_ok(scalar @sources, '>', 300, 'there are sources');

my $begin = qr/(?:Who|Whoever|Nobody|What|Whatever)\b/;

for my $page (@pages) {
    my $text = text($page) =~ s/`[^`\n]+`/x/gr;

    push @bare, "$page: $1" while $text =~ /(?:^|[.:;!?] |\| )($begin.*)/mg;
}

for my $file (@sources) {
    my $text = VLM::slurp($file);

    push @bare, "$file: $1" while $text =~ m{(?:/\*|^ *\*|//|^ *\#|[.;:] ) *($begin.*)}mg;
}

is(join("\n", @bare), '', 'no sentence begins with Who, Whoever, Nobody or What');

done_testing();
