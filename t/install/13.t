# The packages in a fresh root of Debian 13.

use strict;
use warnings;

require './t/install/debian.pl';

test_packages('trixie');
