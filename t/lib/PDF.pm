# PDF files of objects that a test writes itself.

package PDF;

use strict;
use warnings;

# The bytes of a file whose objects are numbered from 1 on, of which the first one is its catalogue;
# $trailer: more of the trailer's entries.
sub file {
    my ($objects, $trailer) = @_;
    my $file = "%PDF-1.4\n";
    my @at;

    for my $i (0 .. $#$objects) {
        push @at, length $file;
        $file .= ($i + 1) . " 0 obj$objects->[$i]endobj\n";
    }

    my $table = length $file;

    return $file . "xref\n0 " . (@at + 1) . "\n0000000000 65535 f \n"
           . join('', map { sprintf "%010d 00000 n \n", $_ } @at)
           . 'trailer<</Size ' . (@at + 1) . '/Root 1 0 R' . ($trailer // '') . ">>\nstartxref\n$table\n%%EOF\n";
}

1;
