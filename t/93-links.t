# Tests that each link of the documentation leads to a file that there is, and to a heading in it, and
# that no page has a conflict of a merge.

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

done_testing();
