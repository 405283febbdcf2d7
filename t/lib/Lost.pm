package Lost;

# Judges requests of t/scale that had no right answer: which of them a node's end explains, and which are lost.

use strict;
use warnings;


# A node that ends takes with it what it had then: a request without a key that began before the node was
# gone, had no answer when its end began, and was with this node.  The front has said so, or has cut the
# answer.  Returns the end that explains the request, or undef.
#
#     request  tag, keyed, begun, at (when it failed), code, body, whole
#     node     the last one that had it, by the front's log
#     ends     node, from, gone: when its end began, and when it took no more requests
sub explained {
    my ($r, $node, @ends) = @_;

    my $told = $r->{code} == 502 && $r->{body} =~ /"The node ended during this request"/;
    my $cut = $r->{code} == 200 && !$r->{whole};

    return undef if $r->{keyed} || !defined $node || !($told || $cut);

    return (grep { $_->{node} eq $node && $r->{begun} < $_->{gone} && $r->{at} >= $_->{from} } @ends)[0];
}


# Returns the requests that are lost.  A client has one request at a time, so that an end explains
# $clients of them at most, the number of clients without a key.  nodes: of each request, by its tag.
sub among {
    my ($failed, $nodes, $ends, $clients) = @_;

    my %explained;

    return grep {
        my $end = explained($_, $nodes->{$_->{tag}}, @$ends);
        !$end || ++$explained{$end} > $clients;
    } @$failed;
}

1;
