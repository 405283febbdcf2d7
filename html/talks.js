/*
 * Conversations: the session, which survives a reload of the page or of the server, and the list of
 * earlier ones.  The list is stored in this browser: the server returns a conversation to every client
 * that knows its ID, and lists no IDs.
 */
'use strict';

const MAX_TALKS = 50;
const MAX_TITLE = 80;                   // characters


/* ---- the session ----------------------------------------------------------------------------- */

// Loads the conversation from before a reload, once, after the server's first answer.
async function restore() {
    if (talk.restored) {
        return;
    }

    talk.restored = true;
    talk.session = recall('session') || '';

    if (!talk.session) {
        return;
    }

    const lost = talk.session;

    try {
        const response = await request('api/history/' + encodeURIComponent(talk.session));

        retell(await response.json());
        loadDocuments();

    } catch (error) {
        if (error.status === 404) {
            talk.session = '';
            remember('session', null);
            keepTalks(talks().filter((t) => t.id !== lost));
            forgetSources(lost);
            talk.note = 'The server no longer has that conversation. A new one begins.';
            showNotice();
        } else {
            talk.restored = false;
        }
    }
}

function retell(entries) {
    const sizes = seenSizes();
    const asked = talk.turns.length > 0;

    for (let i = 0; i + 1 < entries.length && !asked; i += 2) {
        const [user, assistant] = [entries[i], entries[i + 1]];
        const name = user.image_path ? baseName(user.image_path) : '';
        const data = assistant.metadata || {};
        const turn = addTurn({
            question: user.content,
            task: user.task || 'general',
            done: data.task || user.task || 'general',
            picture: name ? pictureNamed(name) : null,
            size: data.image_resized || sizes[name] || null,
            answer: assistant.content,
            thinking: data.thinking || '',
            output: data.output_image ? 'result/' + baseName(data.output_image) : '',
            stored: true,
            ...keptSources(user.content, assistant.content),
        });

        setMarks(turn);
        update(turn);
    }

    const last = talk.turns.findLast((t) => t.picture);

    if (last && !stage.picture) {
        show(last.picture, last);
    }
}

function newChat() {
    stop();
    talk.session = '';
    talk.turns = [];
    talk.note = '';
    remember('session', null);
    remember('sizes', null);
    $('turns').replaceChildren();
    $('welcome').hidden = false;

    for (const picture of [...pictures.values(), stage.picture]) {
        if (picture?.blob) {
            URL.revokeObjectURL(picture.src);
        }
    }

    pictures.clear();
    forgetDocuments();
    show(null, null);
    showNotice();
    say('New conversation.');
    $('choose').focus();
}

async function deleteChat(session) {
    $('server').hidePopover();

    if (session === talk.session) {
        newChat();
    }

    if (!session) {
        return;
    }

    keepTalks(talks().filter((t) => t.id !== session));
    forgetSources(session);
    listTalks();

    try {
        await request('api/session/' + encodeURIComponent(session), { method: 'DELETE' });
        say('The conversation is deleted.');

    } catch (error) {
        talk.note = error.status === 404 ? '' : `The conversation is not deleted. ${error.message}`;
        showNotice();
    }
}


/* ---- the list -------------------------------------------------------------------------------- */

// The list begins with the newest: { id, title, time }.
function talks() {
    try {
        const list = JSON.parse(recall('talks'));

        return Array.isArray(list) ? list.filter((t) => t && typeof t.id === 'string') : [];
    } catch {
        return [];
    }
}

function keepTalks(list) {
    remember('talks', list.length ? JSON.stringify(list.slice(0, MAX_TALKS)) : null);
}

// An answered question moves its conversation to the top; the first question is its title.
async function noteTalk(question) {
    const id = talk.session;
    const known = talks().find((t) => t.id === id);
    const entry = known || { id, title: question.slice(0, MAX_TITLE) };

    keepTalks([{ ...entry, time: Date.now() }, ...talks().filter((t) => t.id !== id)]);

    if (known) {
        return;
    }

    try {
        const { title } = await (await request('api/generate-title', {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ message: question }),
        })).json();

        keepTalks(talks().map((t) => (t.id === id && title ? { ...t, title: title.slice(0, MAX_TITLE) } : t)));

    } catch {
        // without the server's title the question remains
    }
}

function listTalks() {
    const list = talks();

    $('talks-none').hidden = list.length > 0;
    $('talks-list').replaceChildren(...list.map((entry) => {
        const title = entry.title || 'Untitled';
        const open = el('button', { type: 'button', className: 'talk' },
                        el('span', { textContent: title }),
                        el('time', { className: 'muted', textContent: when(entry.time) }));
        const remove = iconButton('i-remove', '', () => deleteChat(entry.id));

        open.setAttribute('aria-current', String(entry.id === talk.session));
        open.addEventListener('click', () => openTalk(entry.id));
        remove.setAttribute('aria-label', `Delete the conversation ${title}`);

        return el('li', {}, open, remove);
    }));
}

function when(time) {
    const date = new Date(time || 0);
    const today = date.toDateString() === new Date().toDateString();

    return date.toLocaleString([], today ? { timeStyle: 'short' } : { dateStyle: 'medium' });
}

async function openTalk(id) {
    $('talks').hidePopover();

    if (id === talk.session) {
        return;
    }

    newChat();
    remember('session', id);
    talk.restored = false;
    await restore();
    $('message').focus();
}
