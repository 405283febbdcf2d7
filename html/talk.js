/*
 * The conversation: its turns on the page, the request of a question, the stream of an answer.
 */
'use strict';

const TASKS = {                         // name, and what to type
    auto: ['Auto', 'Ask about the picture'],
    general: ['General', 'How many cups are there?'],
    grounding: ['Grounding', 'What should be found?'],
    pointing: ['Pointing', 'What should be pointed at?'],
    affordance: ['Affordance', 'What should be picked up?'],
    trajectory: ['Trajectory', 'What should move where?'],
};

// Questions with these tasks need no picture.
const plain = (task) => task === 'auto' || task === 'general';

const NEAR_END_PX = 80;                 // within this distance of the end, the view follows the answer


/* ---- turns: a question and its answer -------------------------------------------------------- */

const talk = {
    session: '', turns: [], busy: null, note: '', restored: false,
    following: true,                    // the view follows the end of the conversation
    opening: null,                      // the request for a session
};

function addTurn(values) {
    const turn = {
        question: '', task: 'auto', adapter: '', pages: '', done: '', picture: null, size: null,
        answer: '', thinking: '', marks: [], wait: null, began: 0, pieces: 0,
        failure: '', remark: '', output: '', timings: null, dropped: 0,
        sources: [], unsupported: [], notDrawn: [],
        ...values,
    };

    buildTurn(turn);
    talk.turns.push(turn);
    $('turns').append(turn.node);
    $('welcome').hidden = true;

    return turn;
}

function buildTurn(turn) {
    const parts = {
        task: el('span', { className: 'task' }),
        thinking: el('details', { className: 'thinking', hidden: true },
                     el('summary', { textContent: 'Thinking' }), el('p')),
        wait: el('p', { className: 'wait', hidden: true }),
        text: el('div', { className: 'text', hidden: true }),
        note: el('div', { className: 'note', hidden: true }),
        sources: el('div', { className: 'sources', hidden: true }),
        meta: el('p', { className: 'meta', hidden: true }),
    };

    turn.parts = parts;
    turn.node = el('li', { className: 'turn' },
        el('div', { className: 'question' },
           parts.task, el('p', { textContent: turn.question })),
        el('div', { className: 'answer' },
           parts.thinking, parts.wait, parts.text, parts.note, parts.sources, parts.meta));
}

function update(turn) {
    const { parts } = turn;
    const running = talk.busy === turn;

    turn.node.setAttribute('aria-busy', String(running));
    parts.task.textContent = taskWords(turn);

    parts.thinking.hidden = !turn.thinking;
    parts.thinking.lastChild.textContent = turn.thinking;

    parts.wait.hidden = !running || Boolean(turn.answer || turn.thinking);
    parts.wait.textContent = running ? waitWords(turn) : '';

    if (running) {
        markEarly(turn);
    }

    showText(turn, running);
    showNote(turn);
    showSources(turn, running);
    showMeta(turn, running);
    followEnd();
}

function noteEnd() {
    const { scrollHeight, scrollTop, clientHeight } = $('scroll');

    talk.following = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
}

function followEnd() {
    if (talk.following) {
        $('scroll').scrollTop = $('scroll').scrollHeight;
    }
}

function taskWords(turn) {
    const name = (task) => (task === ASK ? 'Documents' : (TASKS[task] || [task])[0]);

    const task = turn.task === 'auto' && turn.done
                 ? `Auto, ${name(turn.done).toLowerCase()}` : name(turn.task);

    if (turn.pages && turn.pages !== 'auto') {
        return `${task}, ${turn.pages === 'text' ? 'as text' : 'as pictures'}`;
    }

    return turn.adapter ? `${task}, adapter ${turn.adapter}` : task;
}

function waitWords(turn) {
    const ms = performance.now() - turn.began;

    return placeWords(turn) + (ms > 3000 ? `  ·  ${Math.round(ms / 1000)} s` : '');
}

function placeWords(turn) {
    const before = turn.wait > 1 ? `, ${turn.wait - 1} before you` : '';

    if (turn.picture && !turn.picture.name) {
        return 'Sending the picture';
    }

    if (turn.task === ASK && turn.wait === null && readingWords()) {
        return readingWords();
    }

    if (server.state === 'loading') {
        return `The model is loading, ${server.data.progress || 0} %; your question waits${before}`;
    }

    switch (turn.wait) {
    case null: return 'Asking';
    case 0: return turn.task === ASK ? 'Reading the pages'
                   : turn.picture ? 'Looking at the picture' : 'Reading the question';
    case 1: return 'Next in the queue';
    default: return `In the queue${before}`;
    }
}

// Shows an answer with coordinates as it was written, with marks; any other with its Markdown as elements.
function showText(turn, running) {
    const { text } = turn.parts;
    const { answer } = turn;

    text.hidden = !answer;
    text.classList.toggle('writing', running);
    text.replaceChildren(...(turn.marks.length && turn.source === 'answer' ? [withPlaces(turn)] : rich(answer)));
    markSources(turn, text);
}

function withPlaces({ answer, marks }) {
    const nodes = [];
    let at = 0;

    marks.forEach((mark, i) => {
        if (mark.start >= at && mark.end <= answer.length) {
            const place = el('span', { className: 'place' }, answer.slice(mark.start, mark.end));

            place.dataset.mark = i;
            nodes.push(answer.slice(at, mark.start), place);
            at = mark.end;
        }
    });

    return el('p', {}, ...nodes, answer.slice(at));
}

function showNote(turn) {
    const { note } = turn.parts;
    const text = turn.failure || turn.remark;

    note.hidden = !text;
    note.classList.toggle('error', Boolean(turn.failure));
    note.replaceChildren(text);

    if (turn.failure) {
        note.append(' ', el('button', {
            type: 'button', className: 'link', textContent: 'Ask again', onclick: () => again(turn),
        }));
    }
}

// The buttons are made again at every change; the focus moves to the new button of the same name.
function showMeta(turn, running) {
    const { meta } = turn.parts;
    const focused = meta.contains(document.activeElement) ? document.activeElement.textContent : null;
    const words = metaWords(turn, running);
    const nodes = words ? [el('span', { textContent: words })] : [];

    turn.parts.show = null;

    if (turn.marks.length && !running) {
        turn.parts.show = iconButton('i-eye', 'Show', () => show(turn.picture, turn));
        turn.parts.show.setAttribute('aria-label', 'Show on the picture');
        turn.parts.show.setAttribute('aria-pressed', String(stage.turn === turn));
        nodes.push(turn.parts.show);
    }

    if (turn.answer && !running) {
        nodes.push(iconButton('i-copy', 'Copy', () => copy(turn)));
    }

    if (!running && !turn.failure) {
        nodes.push(iconButton('i-again', 'Retry', () => retry(turn)));
    }

    if (turn.output) {
        nodes.push(saveLink(turn));
    }

    meta.hidden = nodes.length === 0;
    meta.replaceChildren(...nodes);

    if (focused) {
        nodes.find((node) => node.matches('button, a') && node.textContent === focused)?.focus();
    }
}

// Browsers offer navigator.clipboard only over https and on localhost.
async function copy(turn) {
    try {
        await navigator.clipboard.writeText(turn.answer);

    } catch {
        const box = el('textarea', { value: turn.answer, readOnly: true, className: 'hidden' });
        const before = document.activeElement;

        document.body.append(box);
        box.select();
        document.execCommand('copy');
        box.remove();
        before?.focus();
    }

    say('The answer is copied.');
}

function metaWords(turn, running) {
    const times = turn.timings;
    const words = [];

    if (times) {
        words.push(plural(times.predicted_n, 'token'));

        if (times.predicted_per_second !== null && times.predicted_n > 1) {
            words.push(`${round(times.predicted_per_second)} tokens/s`);
        }

        if (times.first_ms !== null) {
            words.push(`first after ${seconds(times.first_ms)}`);
        }

    } else if (running && turn.pieces > 8) {
        const rate = (turn.pieces - 1) * 1000 / (performance.now() - turn.first);

        words.push(`${round(rate)} tokens/s`);
    }

    if (turn.dropped) {
        words.push(`${turn.dropped} earlier entries did not fit`);
    }

    return words.join('  ·  ');
}

function saveLink(turn) {
    const link = el('a', {
        className: 'link', href: address(turn.output), download: baseName(turn.output),
    });
    const icon = svg('svg', { 'aria-hidden': 'true' });

    icon.append(svg('use', { href: '#i-save' }));
    link.append(icon, 'Save');
    link.setAttribute('aria-label', 'Save the marked picture');

    return link;
}

// If the answer is empty, the thinking text is used: some checkpoints put everything there.
function setMarks(turn) {
    const running = talk.busy === turn;

    turn.source = turn.answer || running ? 'answer' : 'thinking';
    turn.marks = turn.picture ? findMarks(taskOf(turn), turn[turn.source], !running) : [];
}

// The task that the server chose; before the server has said it, the task of the request.
function taskOf(turn) {
    const task = turn.done || turn.task;

    return task === 'auto' ? 'general' : task;
}

// Marks are drawn as soon as they are written.
function markEarly(turn) {
    const n = turn.marks.length;

    setMarks(turn);

    if (turn.marks.length !== n && stage.turn === turn) {
        draw();
        listMarks();
    }
}


/* ---- asking ---------------------------------------------------------------------------------- */

function submit() {
    const question = $('message').value.trim();
    const asks = asksDocuments();
    const task = asks ? ASK : document.querySelector('input[name=task]:checked').value;
    const picture = asks ? null : stage.picture;

    if (talk.busy || !question) {
        $('message').focus();
        return;
    }

    if (!picture && !asks && !plain(task)) {
        complain('Choose a picture first: drop it here, paste it, or press the button.');
        $('choose').focus();
        return;
    }

    $('message').value = '';
    grow();
    run(addTurn({ question, task, picture }));
}

// Asks the same question again, as a new turn.
function retry({ question, task, picture }) {
    if (!talk.busy) {
        $('message').focus();
        run(addTurn({ question, task, picture }));
    }
}

// Replaces the turn that failed.
function again(turn) {
    if (talk.busy) {
        return;
    }

    talk.turns = talk.turns.filter((t) => t !== turn);
    turn.node.remove();
    $('message').focus();
    run(addTurn({ question: turn.question, task: turn.task, picture: turn.picture }));
}

async function run(turn) {
    const ticks = setInterval(() => update(turn), 1000);

    talk.busy = turn;
    talk.note = '';
    turn.stop = new AbortController();
    turn.began = performance.now();
    turn.adapter = turn.task === ASK ? '' : adapterToAsk();
    turn.pages = turn.task === ASK ? pagesToAsk() : '';
    talk.following = true;
    keepDraft(turn.question);
    showSend();

    if (turn.task !== ASK || !asksDocuments()) {
        show(turn.picture, turn);
    }

    update(turn);

    try {
        await converse(turn);
        noteTalk(turn.question);
        say(`Answer: ${turn.answer || turn.thinking || 'empty'}`);

    } catch (error) {
        fail(turn, error);

    } finally {
        clearInterval(ticks);
        talk.busy = null;
        keepDraft($('message').value || (turn.stored ? '' : turn.question));
        end(turn);
    }
}

function end(turn) {
    turn.parts.thinking.open = Boolean(turn.thinking && !turn.answer);
    setMarks(turn);
    update(turn);
    showSend();

    if (stage.turn === turn) {
        fit();
        listMarks();
        showPictureName();
    }

    poll();
}

function fail(turn, error) {
    if (error.name === 'AbortError') {
        turn.remark = turn.answer || turn.thinking
                      ? 'Stopped here. This answer is not part of the conversation.' : 'Stopped.';
        say('Stopped.');

    } else if (error instanceof Failure) {
        turn.failure = error.message;
        say(error.message);

    } else {
        turn.failure = broken().message;
        say(turn.failure);
    }
}

async function converse(turn) {
    const { picture } = turn;

    if (picture && !picture.name && !picture.sent) {
        send(picture);
    }

    await stoppable(turn, picture?.name || picture?.sent);
    await openSession();

    if (turn.task === ASK) {
        await askDocuments(turn);
        return;
    }

    try {
        await chat(turn);

    } catch (error) {
        if (!(error.status === 400 && /^Image not found/.test(error.text))) {
            throw error;
        }

        await sendAnew(turn);
        await chat(turn);
    }
}

// The stop button works during the upload of the picture, too.
function stoppable(turn, promise) {
    const { signal } = turn.stop;

    return Promise.race([promise, new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
    })]);
}

// The server lost the picture, perhaps with its whole store; this page may still have it.
async function sendAnew(turn) {
    const { picture } = turn;

    if (!picture.blob) {
        picture.gone = true;
        showPictureError();
        throw new Failure('The server no longer has this picture. Choose it again', 404);
    }

    picture.name = '';
    send(picture);
    await stoppable(turn, picture.sent);
}

const broken = () => new Failure('The connection broke before the answer was whole', 502);

// Uploads and a question that begin together share one session.
async function openSession() {
    if (!talk.session) {
        talk.opening ??= makeSession().finally(() => { talk.opening = null; });
        await talk.opening;
    }
}

async function makeSession() {
    const made = await (await request('api/session', { method: 'POST' })).json();

    talk.session = made.session_id;
    remember('session', talk.session);
}

function chat(turn) {
    return listen(turn, 'api/chat', {
        session_id: talk.session,
        message: turn.question,
        image: turn.picture?.name || null,
        text_only: !turn.picture,
        task: turn.task,
        adapter: turn.adapter || undefined,
    });
}

// Sends a question and hears its answer.
async function listen(turn, path, question) {
    const response = await request(path, {
        method: 'POST',
        headers: {
            'Content-Type': 'application/json',
            'Accept': 'text/event-stream, application/json',
        },
        signal: turn.stop.signal,
        body: JSON.stringify({
            ...question,
            enable_thinking: Boolean(server.data.thinking) && $('think').checked,
            stream: true,
            timings: true,
        }),
    });

    if (!(response.headers.get('Content-Type') || '').startsWith('text/event-stream')) {
        finish(turn, await response.json());
        return;
    }

    for await (const event of events(response.body)) {
        if (event.name === 'answer') {
            finish(turn, JSON.parse(event.data));
            return;
        }

        hear(turn, event);
    }

    throw broken();
}

// Reads server-sent events, as far as this server uses them: comments, event, data.
async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';

    for (;;) {
        const { done, value } = await reader.read();

        if (done) {
            return;
        }

        const blocks = (rest + value).split(/\r?\n\r?\n/);

        rest = blocks.pop();
        yield* blocks.map(eventOf);
    }
}

function eventOf(block) {
    const event = { name: 'message', data: '', comment: '' };

    for (const line of block.split(/\r?\n/)) {
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);

        if (field === '') {
            event.comment = value;
        } else if (field === 'event') {
            event.name = value;
        } else if (field === 'data') {
            event.data += value;
        }
    }

    return event;
}

function hear(turn, event) {
    const place = /^place (\d+)/.exec(event.comment);

    if (place) {
        if (turn.wait !== Number(place[1])) {
            turn.wait = Number(place[1]);
            say(placeWords(turn));
        }

        later(turn);

    } else if (event.name === 'token') {
        const { text, thinking } = JSON.parse(event.data);

        turn.answer += text || '';
        turn.thinking += thinking || '';
        turn.first ??= performance.now();
        turn.pieces++;
        turn.parts.thinking.open = !turn.answer;
        later(turn);

    } else if (event.name === 'sources') {
        turn.sources = JSON.parse(event.data).sources;

    } else if (event.name === 'error') {
        const { error, status } = JSON.parse(event.data);

        throw new Failure(error, status);
    }
}

// Tokens may arrive faster than the screen is refreshed.
function later(turn) {
    turn.frame ??= requestAnimationFrame(() => {
        turn.frame = null;

        if (talk.busy === turn) {
            update(turn);
        }
    });
}

function finish(turn, answer) {
    if (answer.error && (!answer.answer || answer.answer === answer.error)) {
        throw new Failure(answer.error, 200);
    }

    turn.answer = answer.answer || '';
    turn.thinking = answer.thinking || '';
    turn.done = answer.task || turn.task;
    turn.size = answer.image_resized || null;
    turn.output = answer.output_image || '';
    turn.timings = answer.timings || null;
    turn.dropped = answer.history_dropped || 0;
    turn.sources = answer.sources || [];
    turn.unsupported = answer.unsupported || [];
    turn.notDrawn = answer.not_drawn || [];
    turn.remark = remarkOf(turn, answer);

    server.rate = turn.timings?.predicted_per_second ?? server.rate;

    if (turn.size) {
        remember('sizes', JSON.stringify({ ...seenSizes(), [turn.picture.name]: turn.size }));
    }

    turn.stored = answer.turn_number > 0;
    keepSources(turn);
}

function remarkOf(turn, answer) {
    if (answer.error) {
        return `The answer could not be stored: ${sentence(answer.error)}`;
    }

    if (answer.turn_number === 2 && talk.turns.some((t) => t !== turn && t.stored)) {
        return 'The server had lost the earlier conversation; it knows this question only.';
    }

    return answer.answer || answer.thinking ? '' : 'The answer is empty. Ask in other words.';
}

function stop() {
    talk.busy?.stop.abort();
    $('message').focus();
}

function showSend() {
    const busy = talk.busy !== null;

    $('send').setAttribute('aria-label', busy ? 'Stop' : 'Ask');
    $('send').title = busy ? 'Stop (Esc)' : 'Ask (Enter)';
    $('send').classList.toggle('stop', busy);
    $('send').disabled = !busy && !$('message').value.trim();
    $('send-icon').setAttribute('href', busy ? '#i-stop' : '#i-send');
}
