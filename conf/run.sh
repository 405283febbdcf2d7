#!/bin/sh
#
# `make run` calls this script.  It runs Debian's nginx in the foreground with
# the module of this build, and writes all files below run/PORT, so that servers
# on several ports run beside each other.  PORT, MODEL and MMPROJ come from the
# environment; the default model is the demo's.  A model of two GGUF files is
# MODEL=FILE.gguf MMPROJ=FILE.gguf, or both in MODEL as the directive has them:
# MODEL="FILE.gguf mmproj=FILE.gguf".  LORA is a directory of adapters;
# demo/model-bloom has the demo's.  Ctrl-C stops the server, as does SIGTERM.

set -eu

cd "$(dirname "$0")/.."

# In a checkout of another user root would write where that user may put links, so that the server
# runs as that user.
owner=$(stat -c %u .)

if [ "$(id -u)" -eq 0 ] && [ "$owner" -ne 0 ]; then
    groups=--clear-groups
    ! getent passwd "$owner" >/dev/null || groups=--init-groups
    exec setpriv --reuid "$owner" --regid "$(stat -c %g .)" "$groups" "$PWD/conf/run.sh"
fi

root=$PWD
port=${PORT:-5001}
dir=run/$port
model=${MODEL:-}
mmproj=${MMPROJ:-}
lora=${LORA:-}
alias=
thinking=auto
tools=call
user=
url=http://127.0.0.1:$port

if [ -z "$model" ]; then
    model=$root/demo/model
    thinking=off
fi

case $model in *" mmproj="*)
    mmproj=${model#* mmproj=}
    model=${model%% mmproj=*}
esac

case $model in *.gguf) gguf=1 ;; *) gguf=$mmproj ;; esac

for file in ${gguf:+"$model"} ${mmproj:+"$mmproj"}; do
    [ -f "$file" ] || {
        echo "make run: there is no file $file" >&2
        exit 1
    }
done

[ -n "$gguf" ] || [ -f "$model/config.json" ] || {
    echo "make run: no checkpoint at $model: there is no config.json" >&2
    exit 1
}

# On a port in use nginx would retry for some seconds and log each attempt.
# Any exit status but 7, "could not connect", means that the port is in use.
rc=0
curl -s -m 2 -o /dev/null "$url/" || rc=$?

[ "$rc" -eq 7 ] || {
    echo "make run: port $port is in use; \"make run PORT=$((port + 1))\" takes another" >&2
    exit 1
}

case $model in /*) ;; *) model=$root/$model ;; esac
case $mmproj in /*|'') ;; *) mmproj=$root/$mmproj ;; esac

# The demo's models were not trained to call tools.  Chat programs send tools with
# every message, which these models' context has no room for.
case $model in "$root"/demo/*) tools=ignore ;; esac

# Clients of the LoRA service, whose endpoint this demo serves, send this name.
if [ "${model%/}" = "$root/demo/model-bloom" ]; then
    lora=${lora:-demo/adapters}
    alias="alias bigscience/bloomz-560m;"
fi

# "make documents" builds the program that reads PDF files.
documents=off
[ ! -x build/vlm-pdf ] || documents=on

case $lora in '') lora=off ;; /*) ;; *) lora=$root/$lora ;; esac

mkdir -p "$dir/store" "$dir/tmp"
rm -f "$dir/nginx.conf"

# Root's workers run by default as a user that may be unable to read this checkout.
[ "$(id -u)" -ne 0 ] || user="user root root;"

sed -e "s|@ROOT@|$root|" -e "s|@PORT@|$port|" -e "s|@MODEL@|$model${mmproj:+ mmproj=$mmproj}|" \
    -e "s|@THINKING@|$thinking|" -e "s|@LORA@|$lora|" -e "s|@DOCUMENTS@|$documents|" -e "s|@ALIAS@|$alias|" -e "s|@TOOLS@|$tools|" -e "s|@USER@|$user|" \
    conf/run.conf.in > "$dir/nginx.conf"

nginx=$(command -v nginx || echo /usr/sbin/nginx)

ask() {
    curl -s -m 5 "$@"
}

# Waits beside nginx, which replaces this process below, until the model is
# loaded; then prints an example request.
hint() {
    until [ "$(cat "$dir/nginx.pid" 2>/dev/null)" = "$1" ] &&
          health=$(ask "$url/api/health") &&
          echo "$health" | grep -q '"model_loaded": *true'
    do
        kill -0 "$1" 2>/dev/null || return
        case ${health:-} in *'"state":"failed"'*) return ;; esac
        sleep 0.2
    done

    echo
    echo "Ready: $url (Ctrl-C stops it)."

    case $health in *'"chat":true'*'"vision":false'*)
        echo "Paste this line to ask it, or open the page at the same address:"
        echo
        echo "    curl -s $url/v1/chat/completions -H 'Content-Type: application/json' -d" \
             "'{\"messages\":[{\"role\":\"user\",\"content\":\"What is a robot?\"}]}'"
        echo
        return ;;
    *'"vision":false'*)
        echo "Paste this line to have its text go on:"
        echo
        echo "    curl -s $url/generate-lite -H 'Content-Type: application/json' -d" \
             "'{\"prompt\":\"Translate to Hindi: Hello friend, how are you?\",\"max_new_tokens\":25," \
             "\"adapter_path\":\"$([ -z "$alias" ] || echo adapters/gurukul_lite)\"}'"
        echo
        return
    esac

    for picture in demo/pictures/*.png; do break; done

    file=$(ask -F "file=@$picture" "$url/api/upload" |
           sed -n 's/.*"filename": *"\([^"]*\)".*/\1/p')

    [ -n "$file" ] || {
        echo "There is no picture in demo/pictures to upload as an example."
        return
    }

    echo "$picture was uploaded; paste this line to ask about it:"
    echo
    echo "    curl -s $url/api/chat -H 'Content-Type: application/json' -d" \
         "'{\"session_id\":\"me\",\"image\":\"$file\",\"message\":\"How many objects are on the table?\",\"task\":\"general\"}'"
    echo
}

check() {
    said=$("$nginx" -t -q -p "$root/$dir" -c "$root/$dir/nginx.conf" -e stderr 2>&1)
}

check || {
    case $said in *"this kernel has no Landlock"*)
        echo "make run: without documents, since this kernel has no Landlock"
        sed -i 's/documents on;/documents off;/' "$dir/nginx.conf"
    esac

    check || {
        echo "$said" >&2
        exit 1
    }
}

# The hint runs detached, because nginx logs the exit of a child that it did not
# start.
(hint $$ &)

exec "$nginx" -p "$root/$dir" -c "$root/$dir/nginx.conf" -e stderr \
     -g 'daemon off;'
