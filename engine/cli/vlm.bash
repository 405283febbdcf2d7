# Completion of the command vlm in bash.  The commands and options come from "vlm --help" and
# "vlm COMMAND --help", so that none is missing here.

_vlm()
{
    local word=$2 before=$3 vlm=${COMP_WORDS[0]} command=${COMP_WORDS[1]} help value

    if [ "$COMP_CWORD" -eq 1 ]; then
        help=$("$vlm" --help 2>/dev/null)
        COMPREPLY=($(compgen -W "$(sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' <<<"$help") --help --version" \
                     -- "$word"))
        return
    fi

    help=$("$vlm" "$command" --help 2>/dev/null)

    if [[ $before == --* ]]; then
        value=$(sed -n "s/^  $before \([A-Z]\{1,\}\) .*/\1/p" <<<"$help")

        case $value in
            FILE)
                COMPREPLY=($(compgen -f -- "$word"))
                return ;;
            PATH)
                COMPREPLY=($(compgen -d -- "$word"))
                return ;;
            ?*)
                return ;;
        esac
    fi

    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$(sed -n 's/^  \(--[a-z-]*\) .*/\1/p' <<<"$help") --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}

complete -o filenames -F _vlm vlm
