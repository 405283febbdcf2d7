/*
 * Functions that the other scripts share, the colours, and the handlers of keys, files and drops.
 *
 * The scripts are loaded before the body, so that the chosen colours apply to the first paint.
 * Everything else starts when the document is parsed, and only then do scripts call each other.
 * Texts from outside become text nodes only.
 */
'use strict';

const $ = (id) => document.getElementById(id);

// The page has one column; page.css has the same condition.
const narrow = matchMedia('(max-width: 819px) and '
                          + '(not ((orientation: landscape) and (min-width: 560px)))');


/* ---- storage of the browser ------------------------------------------------------------------ */

// A browser may refuse storage.  The page then stores nothing, and everything else works.
function recall(key, store = 'localStorage') {
    try {
        return window[store].getItem('vlm.' + key);
    } catch {
        return null;
    }
}

function remember(key, value, store = 'localStorage') {
    try {
        if (value === null || value === '') {
            window[store].removeItem('vlm.' + key);
        } else {
            window[store].setItem('vlm.' + key, value);
        }
    } catch {
        // the storage is full or refused
    }
}

// A question that was typed but not answered survives a reload of the page.
function keepDraft(text) {
    remember('draft', text, 'sessionStorage');
}

// The sizes at which the model saw pictures; the history does not contain them.
function seenSizes() {
    try {
        return JSON.parse(recall('sizes')) || {};
    } catch {
        return {};
    }
}

const systemDark = matchMedia('(prefers-color-scheme: dark)');

function isDark() {
    const chosen = recall('theme');

    return chosen ? chosen === 'dark' : systemDark.matches;
}

function showTheme() {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
    $('theme')?.setAttribute('aria-pressed', String(isDark()));
}

function switchTheme() {
    const dark = !isDark();

    remember('theme', dark === systemDark.matches ? null : dark ? 'dark' : 'light');
    showTheme();
}

showTheme();


/* ---- helpers --------------------------------------------------------------------------------- */

function el(name, props, ...children) {
    const node = Object.assign(document.createElement(name), props);

    node.append(...children.filter((c) => c !== null && c !== undefined));

    return node;
}

function svg(name, attributes) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);

    for (const [key, value] of Object.entries(attributes)) {
        node.setAttribute(key, value);
    }

    return node;
}

function iconButton(icon, text, action) {
    const picture = svg('svg', { 'aria-hidden': 'true' });

    picture.append(svg('use', { href: '#' + icon }));

    const button = el('button', { type: 'button', className: 'link' }, picture, text);

    button.addEventListener('click', action);

    return button;
}

// Makes a path relative to the page, whatever prefix the server gives it.
const address = (path) => new URL(path.replace(/^\/+/, ''), document.baseURI).href;
const baseName = (path) => String(path).split(/[/\\]/).pop();
const plural = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;
const round = (n) => (n >= 10 ? Math.round(n) : Math.round(n * 10) / 10);
const seconds = (ms) => `${ms < 10000 ? (ms / 1000).toFixed(1) : Math.round(ms / 1000)} s`;

function bytes(n) {
    const m = n / 1048576;

    return m >= 1024 ? `${(m / 1024).toFixed(1)} GiB` : `${round(m)} MiB`;
}

function millions(n) {
    return n >= 1e9 ? `${(n / 1e9).toFixed(1)} billion` : `${(n / 1e6).toFixed(1)} million`;
}

// Announces a text to screen readers.
function say(text) {
    $('say').textContent = text;
}

function sentence(text) {
    const trimmed = String(text).trim();

    return /[.!?]$/.test(trimmed) ? trimmed : trimmed + '.';
}


/* ---- handlers -------------------------------------------------------------------------------- */

function grow() {
    const box = $('message');

    box.style.height = 'auto';
    box.style.height = Math.min(box.scrollHeight, 180) + 'px';
    showSend();
}

function showHint() {
    const task = document.querySelector('input[name=task]:checked').value;

    $('message').placeholder = asksDocuments() ? 'Ask about the documents'
        : stage.picture || !plain(task) ? TASKS[task][1] : 'Ask a question';
}

function listenToForm() {
    $('ask').addEventListener('submit', (e) => {
        e.preventDefault();
        if (talk.busy) {
            stop();
        } else {
            submit();
        }
    });

    $('message').addEventListener('keydown', (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            submit();
        }
    });

    $('message').addEventListener('input', () => {
        grow();
        if (!talk.busy) {
            keepDraft($('message').value);
        }
    });

    $('ask').addEventListener('change', showHint);
    document.addEventListener('keydown', (e) => {
        if (e.key === 'Escape' && talk.busy && !document.querySelector(':popover-open')) {
            stop();
        }
    });
}

function listenToPictures() {
    const opens = { choose: 'file', change: 'file', photo: 'camera', rephoto: 'camera' };

    for (const [button, input] of Object.entries(opens)) {
        $(button).addEventListener('click', () => $(input).click());
    }

    for (const input of [$('file'), $('camera')]) {
        input.addEventListener('change', () => {
            takeFirst(input.files);
            input.value = '';
        });
    }

    $('remove').addEventListener('click', removePicture);
    document.addEventListener('paste', paste);

    $('image').addEventListener('load', imageLoaded);
    $('image').addEventListener('error', imageFailed);
    new ResizeObserver(fit).observe($('area'));
    addEventListener('resize', fit);
}

function listenToDocuments() {
    for (const button of [$('choose-pdf'), $('add-pdf')]) {
        button.addEventListener('click', () => $('pdf').click());
    }

    $('pdf').addEventListener('change', () => {
        takeDocuments([...$('pdf').files]);
        $('pdf').value = '';
    });

    $('reading').value = recall('pages') || 'auto';
    $('reading').addEventListener('change', () => {
        remember('pages', pagesToAsk() === 'auto' ? null : pagesToAsk());
    });

    $('previous').addEventListener('click', () => turnPage(-1));
    $('next').addEventListener('click', () => turnPage(1));
    $('all').addEventListener('click', () => show(null, null));
}

// A copied table is on the clipboard as text and as a picture.  Pasting into the question takes the text.
function paste(event) {
    const { files, types } = event.clipboardData;

    if (files.length && !(event.target === $('message') && types.includes('text/plain'))) {
        event.preventDefault();
        takeFirst(files);
    }
}

// Files may be dropped anywhere on the page; without this handler the browser would open the file.
function listenToDrops() {
    const isFile = (e) => e.dataTransfer.types.includes('Files');

    addEventListener('dragover', (e) => {
        e.preventDefault();
        $('drop').hidden = !isFile(e);
    });
    addEventListener('dragleave', (e) => {
        $('drop').hidden = e.relatedTarget === null || $('drop').hidden;
    });
    addEventListener('drop', (e) => {
        e.preventDefault();
        $('drop').hidden = true;
        takeFirst(e.dataTransfer.files, [...e.dataTransfer.types]);
    });
}

function listenToMarks() {
    for (const node of [$('frame'), $('marks'), $('turns')]) {
        node.addEventListener('pointermove', hover);
        node.addEventListener('pointerleave', () => heat(stage.pinned));
        node.addEventListener('click', pin);
    }

    $('marks').addEventListener('focusin', (e) => heat(markUnder(e)));
    $('marks').addEventListener('focusout', () => heat(stage.pinned));
}

function begin() {
    listenToForm();
    listenToPictures();
    listenToDocuments();
    listenToDrops();
    listenToMarks();

    $('theme').addEventListener('click', switchTheme);
    systemDark.addEventListener('change', showTheme);
    $('new').addEventListener('click', newChat);
    $('delete').addEventListener('click', () => deleteChat(talk.session));
    $('talks').addEventListener('toggle', (e) => e.newState === 'open' && listTalks());
    $('think').checked = recall('think') === 'on';
    $('think').addEventListener('change', () => {
        remember('think', $('think').checked ? 'on' : null);
    });
    server.adapter = recall('adapter') || '';
    $('adapter').addEventListener('change', () => {
        server.adapter = $('adapter').value;
        remember('adapter', server.adapter);
        showAdapters();
    });
    $('server').addEventListener('toggle', (e) => e.newState === 'open' && poll());
    $('scroll').addEventListener('scroll', noteEnd);
    new ResizeObserver(followEnd).observe($('scroll'));

    addEventListener('online', poll);
    document.addEventListener('visibilitychange', () => document.hidden || poll());

    $('message').value = recall('draft', 'sessionStorage') || '';
    showTheme();
    showHint();
    grow();
    poll();
}

document.addEventListener('DOMContentLoaded', begin);
