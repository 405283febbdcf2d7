package Sentences;

# Finds in the sources the sentences that an administrator or a client may read: those of the
# error log, of nginx -t, and of the bodies of 4xx and 5xx answers.  t/92-sentences.t compares them
# with docs/troubleshooting.md.

use strict;
use warnings;

use File::Find ();
use VLM;

my $TEXT = qr/"(?:[^"\\\n]|\\.)*"/;

# Functions and macros that take a sentence, with what they write around it.  %s is the first of
# their arguments that has a text, or the one of this place.
my %SETTER = (
    vlm_fail                          => ['%s'],
    vlm_db_fail                       => ['%s'],
    vlm_schema_refuse                 => ["the schema's ... %s", 3],
    vlm_reader_refuse                 => ['%s'],
    ngx_log_error                     => ['%s'],
    ngx_conf_log_error                => ['%s'],
    ngx_http_vlm_log                  => ['vlm_engine "...": %s'],
    ngx_http_vlm_conf_error           => ['%s'],
    ngx_http_vlm_fail                 => ['%s'],
    ngx_http_vlm_fail_input           => ['%s'],
    ngx_http_vlm_fail_memory          => ['No memory for %s'],
    ngx_http_vlm_fail_code            => ['%s', 3],
    ngx_http_vlm_send_error           => ['%s'],
    ngx_http_vlm_sources_fail         => ['%s'],
    ngx_http_vlm_engine_fail          => ['%s'],
    ngx_http_vlm_refuse               => ['%s'],
    ngx_http_vlm_refuse_until         => ['%s', 4],
    vlm_document_fail                 => ['%s'],
);

# The same for the functions "fail", "refuse" and "warn" of one file.
my %OF_FILE = (
    'lib/api/constraint.c'            => { fail => ['... %s', 2] },
    'lib/api/responses.c'             => { refuse => ['... %s', 2] },
    'lib/base/multipart.c'            => { fail => ['%s'] },
    'lib/base/json.c'                 => { fail => ['%s'] },
    'engine/grammar/merge.c'          => { refuse => ["the schema's ... %s", 2] },
    'engine/load/quant/config.c'      => { refuse => ['...: the weights are quantised (...) with %s, which is not supported'] },
    'pdf/pages.c'                     => { write_error => ['%s'] },
    'pdf/ocr.c'                       => { snprintf => ['%s'] },
    'pdf/walls.c'                     => { fail => ['%s'] },
    'pdf/watch.c'                     => { snprintf => ['%s'] },
    'lib/store/redis_url.c'           => { fail => ['store redis: %s'] },
    'lib/store/redis.c'               => { fail_down => ['store ... %s'] },
    'engine/run/fill.c'               => { warn => ['%s'] },
);

# In these any other text of three words is a sentence, too, if it begins one.
my $LOOSE = qr{^http/|^lib/(?:api|base|document|store)/|^engine/run/(?:engine|plan|sched|weights)\.c$};

# Texts that neither a client nor an administrator reads as an error: prompts, answers of 200,
# SQL, configuration, help of metrics, and parts of the sentence around them.
my $OTHER_FILE = qr{^http/(?:api/robobrain/(?:ask_text\.h|session\.c)|status/status\.c|conf/text\.c)
                    |^lib/(?:document/(?:prompt\.h|pick\.c|frame\.c|reader_ocr\.c)|store/(?:sql|db|redis_lua)\.c|api/metrics\.c)}x;
my @OTHER = (
    qr/^(?:thread_pool [^ ]+ thr|upstream |server |proxy_pass )/,   # generated configuration
    qr/^(?:SELECT|INSERT|DELETE|UPDATE|CREATE|PRAGMA|BEGIN)\b/,
    qr/^(?:PDF processed|PDF uploaded|Memory cleaned up|No relevant context|No document context)/,
    qr/^(?:No memory for ?|no plain file|not a number)$/,         # parts of others
    qr/^encoder m/,                                             # a part of the plan
    qr/^Success: |^vlm: a thread works|^ERR Error running/,
    qr/^(?:Process as general query|Fallback to general|Execute the query as)/,
);

# Functions with a format that is no sentence: JSON, metrics, settings, generated text, the plan
# (whose texts are found as other texts are), the name of a field, and a kernel's launch.
my %FORMAT = map { $_ => 1 } qw(put put_line vlm_json_add_format ngx_http_vlm_text ngx_http_vlm_format
                                ngx_http_vlm_check_show ngx_http_vlm_fail_param VLM_LAUNCH);


# Returns the functions and macros with a format that this file does not know.
sub unknown {
    my %unknown;

    for my $file (files()) {
        my $code = code($file);
        my %known = (%SETTER, %FORMAT, %{$OF_FILE{$file} || {}});

        while ($code =~ /\b(\w+)\s*\([^()]*\bconst char \*\w+,\s*\.\.\.\)|#define\s+(\w+)\([^()]*\.\.\.\)/g) {
            my $name = $1 // $2;

            $unknown{"$file: $name"} = 1 unless $known{$name};
        }
    }

    return sort keys %unknown;
}


sub files {
    my @files;

    File::Find::find({ no_chdir => 1, wanted => sub {
        $File::Find::prune = 1 if -d && m{^engine/(?:build|cli)$|^cuda/(?:emu|test|build)$};
        push @files, s{^\./}{}r if -f && /\.(?:[ch]|cu)$/ && !/_(?:test|fuzz|fixture)\.[ch]$|fixture\.h$/;
    } }, qw(http lib engine cuda pdf ngx_http_vlm_module.c));

    return sort @files;
}


# Returns the code of a file without comments.
sub code {
    my $code = VLM::slurp($_[0]);

    $code =~ s{($TEXT|'(?:[^'\\\n]|\\.)+')|/\*.*?\*/}{$1 // ' '}gse;

    return $code;
}


# Returns the arguments of a call, from behind its bracket.
sub arguments {
    my ($code) = @_;
    my ($depth, @args) = (0, '');

    while ($code =~ /\G($TEXT|'(?:[^'\\\n]|\\.)+'|.)/gs) {
        my $one = $1;

        $depth++ if $one =~ /^[(\[{]$/;
        return @args if $one eq ')' && $depth == 0;
        $depth-- if $one =~ /^[)\]}]$/;

        if ($one eq ',' && $depth == 0) {
            push @args, '';
        } else {
            $args[-1] .= $one;
        }
    }

    return @args;
}


# Returns the texts of an argument: one, or one for each case of a condition.
sub texts {
    my ($arg) = @_;
    my @texts;

    for my $case (split /(?:$TEXT(*SKIP)(*FAIL))|[?:]/, $arg) {
        next unless $case =~ /$TEXT/;

        # A macro such as PRIu64 has the letters of a conversion; other names between texts are texts.
        $case =~ s/%"\s*\w+(\s*)/%d"$1/g;
        $case =~ s/"\s*(?:\b[A-Z]\w+\b|\b[A-Z]\w+\([^()]*\))(?=\s*(?:"|$))/..."/g;

        $case =~ s/^\s*[A-Z]\w+\s*(?=")/"..." /;

        my $text = join '', map { /^"(.*)"$/s ? $1 : '' } $case =~ /($TEXT)/g;

        push @texts, plain($text);
    }

    return @texts;
}


# Writes "..." for each value, and one for several that follow each other.
sub plain {
    my ($text) = @_;

    $text =~ s/\\n|%Z//g;
    $text =~ s/\\(.)/$1/g;
    $text =~ s/%%/\0/g;
    $text =~ s/%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:u[iAlLzXxdDT]|[lhz]*[diuxXcsfg]|V|P|T|O|L|z|A|D|M|\*s)?/.../g;
    $text =~ s/\0/%/g;

    return $text =~ s/\.{3}(?:\.{3})+/.../gr;
}


# Returns [sentence, file, level] of each; the level is "" where a client may read it.
sub all {
    my @found;

    for my $file (files()) {
        my $code = code($file);
        my %setter = (%SETTER, %{$OF_FILE{$file} || {}});
        my $names = join '|', sort { length $b <=> length $a } keys %setter;

        $code =~ s/^#\s*define\b(?:[^\n]*\\\n)*[^\n]*//mg;

        while ($code =~ /\b($names)\s*\(/g) {
            my ($form, $place) = @{$setter{$1}};
            my @args = arguments(substr $code, pos $code);
            my ($level) = $args[0] =~ /NGX_LOG_(\w+)/;

            next if ($level // '') =~ /^DEBUG/ || grep { /^\s*NGX_HTTP_OK$/ } @args;

            ($place) = grep { $args[$_] =~ /$TEXT/ } 0 .. $#args unless defined $place;

            for my $text (defined $place ? texts($args[$place] // '') : ()) {
                (my $sentence = $form) =~ s/%s/$text/;

                push @found, [$sentence, $file, lc($level // '')] if ($text =~ s/\.\.\.| in //gr) =~ /[a-z]{2}/i && $sentence !~ m{^\S+/\S+$};
            }
        }
    }

    return @found, loose(@found);
}


# Returns the other sentences of these files.
sub loose {
    my (%known, @found);

    $known{$_->[1]} .= "$_->[0]\n" for @_;

    for my $file (grep { /$LOOSE/ && !/$OTHER_FILE/ } files()) {
        my $code = code($file);

        while ($code =~ /($TEXT(?:\s*(?:\b[A-Z]\w+\b\s*)?$TEXT)*)/g) {
            my ($text) = texts($1);

            next unless $text =~ /^(?:[A-Za-z]|"?\.\.\.).*\b[a-z]+ [a-z]+ ?[a-z]+/i && index($known{$file} // '', $text) < 0
                        && !(grep { $text =~ $_ } @OTHER);
            push @found, [$text, $file, ''];
        }
    }

    return @found;
}

1;
