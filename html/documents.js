/*
 * Documents: PDF files of the conversation, the progress of their reading, their pages as pictures,
 * and what an answer says about them: its sources, and numbers that no source has.
 *
 * A question is about the documents if there are any and the stage has no picture of the user's.
 */
'use strict';

const READING_MS = 400;                 // between two looks at a document that is being read
const READING_LATE_MS = 3000;           // the same, while the server cannot be reached

const ASK = 'ask';                      // the task of such a question, as the history has it

const KEPT_ANSWERS = 60;                // whose sources the browser keeps, with
const KEPT_LENGTH = 1500000;            // characters at most

const docs = { list: [], timer: 0, loaded: null };

// A document as the page has it: the server's object, and how far its sending is.
function newDocument(values) {
    return {
        id: '', name: 'document.pdf', state: 'sending', pages: 0, pages_read: 0, pages_to_read: 0,
        error: '', part: 0, file: null, stop: null, node: null, ...values,
    };
}

const isPdf = (file) => file.type === 'application/pdf' || /\.pdf$/i.test(file.name);
const asksDocuments = () => docs.list.length > 0 && (!stage.picture || Boolean(stage.picture.page));
const pagesToAsk = () => $('reading').value || 'auto';
const isReading = (doc) => ['sending', 'waiting', 'reading'].includes(doc.state);


/* ---- adding and removing --------------------------------------------------------------------- */

function takeDocuments(files) {
    complain('');

    if (!server.data.documents) {
        complain('This server reads no PDF files. Its configuration needs “documents on” and a store, '
                 + 'and “make documents” builds the program that reads them.');
        return;
    }

    show(null, null);

    for (const file of files) {
        const doc = newDocument({ name: file.name || 'document.pdf', file });

        docs.list.push(doc);
        sendDocument(doc);
    }

    showDocuments();
    $('message').focus({ preventScroll: true });
}

async function sendDocument(doc) {
    doc.state = 'sending';
    doc.error = '';
    doc.stop = new AbortController();
    showDocuments();

    try {
        await openSession();

        const form = new FormData();

        form.append('session_id', talk.session);
        form.append('file', doc.file, doc.name);

        const made = await upload('api/documents', form, (part) => {
            doc.part = part;
            showDocuments();
        }, doc.stop.signal);

        adopt(doc, made);
        say(`${doc.name} is sent.`);

    } catch (error) {
        if (error.name !== 'AbortError') {
            doc.state = 'unsent';
            doc.error = error instanceof Failure ? error.message : broken().message;
        }
    }

    showDocuments();
    lookSoon();
}

// The server has one document for the same bytes, however often they are sent.
function adopt(doc, made) {
    Object.assign(doc, made, { file: null });
    docs.list = docs.list.filter((d) => d === doc || d.id !== doc.id);
}

async function removeDocument(doc) {
    doc.stop?.abort();
    docs.list = docs.list.filter((d) => d !== doc);

    if (stage.picture?.page?.id === doc.id) {
        show(null, null);
    }

    showDocuments();
    $('message').focus();
    say(`${doc.name} is removed.`);

    if (!doc.id) {
        return;
    }

    try {
        await request(`api/session/${encodeURIComponent(talk.session)}/documents/${doc.id}`,
                      { method: 'DELETE' });

    } catch (error) {
        if (error.status !== 404) {
            docs.list.push(doc);
            showDocuments();
            complain(`${doc.name} is not removed. ${error.message}`);
        }
    }
}

function forgetDocuments() {
    for (const doc of docs.list) {
        doc.stop?.abort();
    }

    clearTimeout(docs.timer);
    docs.list = [];
    showDocuments();
}


/* ---- the progress of the reading ------------------------------------------------------------- */

function lookSoon(ms = READING_MS) {
    clearTimeout(docs.timer);

    if (docs.list.some((d) => d.id && isReading(d))) {
        docs.timer = setTimeout(look, ms);
    }
}

async function look() {
    let pause = READING_MS;

    for (const doc of docs.list.filter((d) => d.id && isReading(d))) {
        try {
            noteProgress(doc, await (await request('api/documents/' + doc.id)).json());

        } catch (error) {
            if (error.status === 404) {
                noteGone(doc);
            } else {
                pause = READING_LATE_MS;
            }
        }
    }

    showDocuments();
    lookSoon(pause);
}

function noteProgress(doc, now) {
    const before = doc.state;

    // The name is this conversation's: an answer without a session has none.
    Object.assign(doc, now, { name: doc.name });

    if (doc.state !== before && doc.state === 'ready') {
        say(`${doc.name} is read, ${plural(doc.pages_read, 'page')}.`);
    } else if (doc.state !== before && doc.state === 'failed') {
        say(trouble(doc));
    }
}

function noteGone(doc) {
    Object.assign(doc, { state: 'gone', error: 'The server no longer has this document.' });
}

// The documents of a conversation that is opened, or all again after an error.
async function loadDocuments() {
    const { session } = talk;

    if (!server.data.documents || !session) {
        return;
    }

    try {
        const path = `api/session/${encodeURIComponent(session)}/documents`;
        const { documents } = await (await request(path)).json();

        if (talk.session === session) {
            const sent = docs.list.filter((d) => !d.id);

            docs.list = [...documents.map((now) =>
                Object.assign(docs.list.find((d) => d.id === now.id) || newDocument({}), now)), ...sent];
            showDocuments();
            lookSoon();
        }

    } catch (error) {
        for (const doc of docs.list.filter((d) => d.id && error.status === 404)) {
            noteGone(doc);
        }

        showDocuments();
    }
}

// A question waits until the documents are read.
async function documentsRead(turn) {
    while (docs.list.some(isReading)) {
        await stoppable(turn, new Promise((resolve) => { setTimeout(resolve, READING_MS / 4); }));
    }
}

function progressWords(doc) {
    switch (doc.state) {
    case 'sending': return `sending, ${Math.round(doc.part * 100)} %`;
    case 'waiting': return 'waits to be read';
    case 'reading': return doc.pages_to_read ? `page ${doc.pages_read} of ${doc.pages_to_read}` : 'is being read';
    case 'ready': return plural(doc.pages_read, 'page') + (doc.pages > doc.pages_read ? ` of ${doc.pages}` : '')
        + (doc.ocr_pages ? `, ${doc.ocr_pages} by OCR` : '');
    case 'unsent': return 'not sent';
    case 'gone': return 'gone';
    default: return 'not read';
    }
}

function trouble(doc) {
    return doc.state === 'failed' ? `${doc.name} could not be read: ${sentence(doc.error)}`
        : doc.state === 'ready' && doc.error ? `${doc.name}: ${sentence(doc.error)}` : doc.error || '';
}

function readingWords() {
    const doc = docs.list.find(isReading);

    return doc ? `${doc.name}: ${progressWords(doc)}` : '';
}


/* ---- chips and pages ------------------------------------------------------------------------- */

function showDocuments() {
    const asks = asksDocuments();

    for (const doc of docs.list) {
        doc.node ??= buildDocument(doc);
        updateDocument(doc);
    }

    arrange($('chips'), docs.list.map((d) => d.node.chip));
    arrange($('pages'), docs.list.map((d) => d.node.section));

    $('documents').hidden = docs.list.length === 0;
    $('pages').hidden = docs.list.length === 0 || stage.picture !== null;
    $('empty').hidden = docs.list.length > 0 || stage.picture !== null;
    $('stage').classList.toggle('filled', docs.list.length > 0 || stage.picture !== null);
    $('tasks').hidden = asks;
    $('choose-pdf').hidden = !server.data.documents;
    showAdapters();
    showHint();

    if (talk.busy) {
        update(talk.busy);
    }
}

// Nodes that are in place stay there, with their focus and their scrolling.
function arrange(parent, nodes) {
    if (nodes.length !== parent.children.length || nodes.some((n, i) => n !== parent.children[i])) {
        parent.replaceChildren(...nodes);
    }
}

function buildDocument(doc) {
    const words = el('span', { className: 'muted' });
    const open = el('button', { type: 'button', className: 'name' },
                    el('b', { textContent: doc.name }), words);
    const remove = iconButton('i-remove', '', () => removeDocument(doc));
    const bar = el('progress', { max: 1, ariaLabel: `Reading ${doc.name}` });
    const note = el('p', { className: 'note error', role: 'alert', hidden: true });
    const tiles = el('ol', { className: 'tiles', ariaLabel: `Pages of ${doc.name}` });
    const title = el('h3', {}, doc.name);

    open.addEventListener('click', () => showPages(doc));
    remove.setAttribute('aria-label', `Remove ${doc.name}`);

    return {
        chip: el('li', {}, open, remove),
        section: el('section', { ariaLabel: doc.name }, title, bar, note, tiles),
        words, bar, note, tiles, told: '',
    };
}

function updateDocument(doc) {
    const { words, bar, note, tiles, chip } = doc.node;
    const part = doc.state === 'sending' ? doc.part : doc.pages_read / (doc.pages_to_read || Infinity);
    const text = trouble(doc);

    words.textContent = progressWords(doc);
    chip.dataset.state = doc.state;
    bar.hidden = !isReading(doc);
    bar.value = part;

    if (text !== doc.node.told) {
        doc.node.told = text;
        note.hidden = !text;
        note.replaceChildren(text, ...(doc.state === 'unsent' ? [' ', el('button', {
            type: 'button', className: 'link', textContent: 'Send again', onclick: () => sendDocument(doc),
        })] : []));
    }

    showTiles(doc, tiles);
}

// A tile for each page; pages have pictures once all are read.
function showTiles(doc, tiles) {
    const ready = doc.state === 'ready';
    const n = ready ? doc.pages_read : isReading(doc) ? doc.pages_to_read : 0;

    while (tiles.children.length > n) {
        tiles.lastChild.remove();
    }

    while (tiles.children.length < n) {
        tiles.append(buildTile(doc, tiles.children.length + 1));
    }

    [...tiles.children].forEach(({ firstChild: tile }, i) => {
        tile.disabled = !ready;
        tile.classList.toggle('read', i < doc.pages_read);

        if (ready && !tile.querySelector('img')) {
            tile.prepend(el('img', { loading: 'lazy', alt: '', src: pageAddress(doc.id, i + 1) }));
        }
    });
}

function buildTile(doc, number) {
    const tile = el('button', { type: 'button', disabled: true, ariaLabel: `Page ${number} of ${doc.name}` },
                    el('span', { textContent: number }));

    tile.addEventListener('click', () => {
        openPage(doc.id, number);
        $('all').focus();
    });

    return el('li', {}, tile);
}

function showPages(doc) {
    show(null, null);
    doc.node.section.scrollIntoView({ block: 'nearest' });
}

const pageAddress = (id, number) => address(`api/documents/${encodeURIComponent(id)}/pages/${number}.png`);

// Shows a page on the stage; the boxes are shares of its sides, the text is what they cite.
function openPage(id, number, { name, boxes = [], text = '', ocr = false } = {}, turn = null, source = -1) {
    const doc = docs.list.find((d) => d.id === id) || { name, pages: 0, pages_read: number };
    const page = { id, number, name: doc.name, pages: doc.pages, last: doc.pages_read, boxes, text, ocr, turn, source };
    const title = `${page.name}, page ${number}${page.pages ? ` of ${page.pages}` : ''}`;

    show({ title, src: pageAddress(id, number), width: 0, height: 0, page }, null);
    say(title + (boxes.length ? `, ${plural(boxes.length, 'place')} marked.` : '.'));
}

// The number comes first: on a narrow screen the end is cut off.
const pageWords = (page) => `Page ${page.number}${page.pages ? ` of ${page.pages}` : ''}  ·  `
    + (page.ocr ? 'read by OCR  ·  ' : '') + page.name;

function turnPage(step) {
    const { id, number, last } = stage.picture.page;
    const other = number + step;

    if (other >= 1 && other <= last) {
        openPage(id, other);
    }
}

// The row below a page, and the text that an answer cites from it.
function showPageRow() {
    const page = stage.picture?.page;

    $('page-row').hidden = !page;
    $('picture-row').hidden = Boolean(page);
    $('cited').hidden = !page?.text;
    $('cited').textContent = page?.text || '';

    if (page) {
        $('page-name').textContent = pageWords(page);
        $('previous').disabled = page.number <= 1;
        $('next').disabled = page.number >= page.last;
        $('full').href = stage.picture.src;
    }

    for (const turn of talk.turns) {
        for (const node of turn.node.querySelectorAll('[data-source]')) {
            node.setAttribute('aria-pressed',
                String(page?.turn === turn && page.source === Number(node.dataset.source)));
        }
    }
}

function citedBoxes(width, height) {
    return (stage.picture?.page?.boxes || []).map(([x1, y1, x2, y2]) => {
        const box = {
            x: x1 * width - 2, y: y1 * height - 2, rx: 3,
            width: (x2 - x1) * width + 4, height: (y2 - y1) * height + 4,
        };

        return svg('rect', { class: 'found', ...box });
    });
}

// The picture element tells no reason for a failure, so the page asks once more.
async function pageFailed(picture) {
    try {
        await request(picture.src);

    } catch (error) {
        if (stage.picture === picture) {
            complain(`${picture.title}: ${error.message}`);
        }
    }
}


/* ---- sources of earlier answers, which the server's history does not have --------------------- */

// The list begins with the newest: { session, question, answer, sources, unsupported, notDrawn }.
function keptAnswers() {
    try {
        const list = JSON.parse(recall('sources'));

        return Array.isArray(list) ? list.filter((a) => a && Array.isArray(a.sources) && Array.isArray(a.unsupported))
            : [];
    } catch {
        return [];
    }
}

function keepAnswers(list) {
    const texts = [];
    let length = 0;

    for (const text of list.slice(0, KEPT_ANSWERS).map((answer) => JSON.stringify(answer))) {
        length += text.length;

        if (length > KEPT_LENGTH) {
            break;
        }

        texts.push(text);
    }

    remember('sources', texts.length ? `[${texts}]` : null);
}

function keepSources({ question, answer, sources, unsupported, notDrawn }) {
    if (sources.length) {
        keepAnswers([{ session: talk.session, question, answer, sources, unsupported, notDrawn }, ...keptAnswers()]);
    }
}

// Of an answer that the server's history has; another answer to the same question has its own.
function keptSources(question, answer) {
    const kept = keptAnswers().find((a) => a.session === talk.session && a.question === question && a.answer === answer);

    return kept ? { sources: kept.sources, unsupported: kept.unsupported, notDrawn: kept.notDrawn || [] } : {};
}

function forgetSources(session) {
    keepAnswers(keptAnswers().filter((a) => a.session !== session));
}


/* ---- answers --------------------------------------------------------------------------------- */

async function askDocuments(turn) {
    await documentsRead(turn);
    turn.wait = null;

    try {
        await listen(turn, 'api/ask', { session_id: talk.session, question: turn.question, pages: turn.pages });

    } catch (error) {
        if (error.status === 400 || error.status === 404 || error.status === 409) {
            loadDocuments();
        }

        throw error;
    }
}

// [2] and [1, 3] become buttons that open the source, if all are sources; unsupported numbers are underlined.
function markSources(turn, node) {
    if (!turn.sources.length) {
        return;
    }

    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const texts = [];

    while (walker.nextNode()) {
        if (!walker.currentNode.parentNode.closest('a, pre')) {
            texts.push(walker.currentNode);
        }
    }

    for (const text of texts) {
        text.replaceWith(...citedText(turn, text.data));
    }
}

function citedText(turn, text) {
    const nodes = [];
    let at = 0;

    for (const match of text.matchAll(/\[\d{1,3}(?:\s*,\s*\d{1,3})*\]/g)) {
        if (!match[0].match(/\d+/g).every((n) => turn.sources[n - 1])) {
            continue;
        }

        nodes.push(...numberedText(turn, text.slice(at, match.index)),
                   ...match[0].split(/(\d+)/).map((piece) => citation(turn, piece)));
        at = match.index + match[0].length;
    }

    return [...nodes, ...numberedText(turn, text.slice(at))];
}

function citation(turn, piece) {
    const i = /^\d+$/.test(piece) ? Number(piece) - 1 : -1;
    const source = turn.sources[i];

    return source ? sourceButton(turn, i, 'cite', piece) : piece;
}

function sourceButton(turn, i, className, ...content) {
    const source = turn.sources[i];
    const button = el('button', { type: 'button', className }, ...content);

    button.dataset.source = i;
    button.setAttribute('aria-pressed', 'false');
    button.setAttribute('aria-label', `Source ${i + 1}: ${source.name}, page ${source.page}`);
    button.addEventListener('click', () => openPage(source.document, source.page, source, turn, i));

    return button;
}

// A number is underlined where it stands alone, not within a longer one.
function numberedText(turn, text) {
    const escaped = turn.unsupported.map((n) => n.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));

    if (!escaped.length) {
        return [text];
    }

    const numbers = new RegExp(`(?<![\\d.,])(${escaped.join('|')})(?![\\d]|[.,]\\d)`, 'g');

    return text.split(numbers).map((piece, i) => (i % 2 ? el('span', {
        className: 'unsupported', title: 'not found in the pages', textContent: piece,
    }) : piece));
}

// Pages that were to be pictures; one without text is no source, either.
function notDrawnWords(turn) {
    const pages = turn.notDrawn.map(({ document, page }) => {
        const known = turn.sources.find((s) => s.document === document) || docs.list.find((d) => d.id === document);

        return `page ${page} of ${known ? known.name : 'a document'}`;
    });
    const reasons = [...new Set(turn.notDrawn.map(({ why }) => why))];

    return `The model has not seen ${pages.join(', ')} as ${pages.length > 1 ? 'pictures' : 'a picture'}: `
        + sentence(reasons.join('; '));
}

// The sources below an answer: those that it cites, and behind a line to open the others.
function showSources(turn, running) {
    const { sources } = turn.parts;
    const shown = (turn.sources.length > 0 || turn.notDrawn.length > 0) && !running;

    sources.hidden = !shown;

    if (!shown) {
        return;
    }

    const item = (i) => el('li', {}, sourceButton(turn, i, 'source', el('b', { textContent: i + 1 }),
        `${turn.sources[i].name}, page ${turn.sources[i].page}${turn.sources[i].ocr ? ', read by OCR' : ''}`));
    const all = turn.sources.map((_, i) => i);
    const cited = all.filter((i) => turn.sources[i].cited);
    const others = all.filter((i) => !turn.sources[i].cited);
    const nodes = [];

    if (turn.unsupported.length) {
        nodes.push(el('p', { className: 'note' }, el('span', { className: 'unsupported', textContent: 'Underlined' }),
                      `: not found in the pages: ${turn.unsupported.join(' · ')}`));
    }

    if (turn.notDrawn.length) {
        nodes.push(el('p', { className: 'note', textContent: notDrawnWords(turn) }));
    }

    if (cited.length) {
        nodes.push(el('ul', { ariaLabel: 'Sources of the answer' }, ...cited.map(item)));
    }

    if (others.length) {
        nodes.push(el('details', {}, el('summary', {
            textContent: cited.length ? `${plural(others.length, 'more source')} that the model was given`
                : `The model was given ${plural(others.length, 'source')}; the answer cites none`,
        }), el('ul', { ariaLabel: 'Other sources' }, ...others.map(item))));
    }

    sources.replaceChildren(...nodes);
}
