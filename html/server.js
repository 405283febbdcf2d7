/*
 * Requests and the messages for their errors, the polling of the server's health, and the display
 * of that health in the header and the panel of the page.
 */
'use strict';

const POLL_MS = 10000;                  // health, while all is well
const POLL_BUSY_MS = 2000;              // while an answer of this page is in flight
const POLL_SOON_MS = 800;               // while the model loads
const POLL_LATE_MS = 15000;             // the longest pause while the server is away

const PURPOSES = {                      // of memory, by the keys of the plan
    weights: 'Weights', vision: 'Vision', kv: 'Context', workspace: 'Workspace', device: 'Device',
};


/* ---- requests -------------------------------------------------------------------------------- */

const REFUSALS = {                      // replace the server's messages for these statuses
    401: 'The server wants a login or a key (401)',
    403: 'The server does not allow this (403)',
    413: 'The file is larger than the server takes',
};

const TOYS = [6914240, 5945472];        // parameters of demo/model and demo/model-3, and of no others

// The message of an error, and the advice for its status.
class Failure extends Error {
    constructor(text, status, wait) {
        super([sentence(text), advice(status, wait, text)].filter(Boolean).join(' '));
        this.status = status;
        this.text = text;
    }
}

function advice(status, wait, text) {
    switch (status) {
    case 401: return 'Log in, or send the key that the server expects, and load the page again.';
    case 403: return 'Ask the owner of the server for access.';
    case 404: return /^there is no adapter/.test(text) ? 'Choose another one, or none.' : '';
    case 409: return /still being read$/.test(text) ? 'Ask again in a moment.' : '';
    case 0: return 'The page tries to reach it by itself; ask again when it is back.';
    case 413: return 'Choose a smaller one.';
    case 429: return `Ask again in ${plural(wait || 5, 'second')}.`;
    case 502: case 503: return 'Ask again in a moment.';
    case 504: return 'Ask again, or for something shorter.';
    case 500: case 507: return 'The error log of the server says more.';
    default: return '';
    }
}

function failureOf(status, body, wait) {
    let text = '';

    try {
        text = JSON.parse(body).error;
    } catch {
        // the body is not JSON: a proxy answered
    }

    text = REFUSALS[status] || text;

    return new Failure(text || `The server answered with status ${status}`, status, wait);
}

const unreachable = () => new Failure('The server cannot be reached', 0);

async function request(path, options = {}) {
    let response;

    try {
        response = await fetch(address(path), { cache: 'no-store', ...options });
    } catch (error) {
        throw error.name === 'AbortError' ? error : unreachable();
    }

    if (!response.ok) {
        const wait = parseInt(response.headers.get('Retry-After'), 10);

        throw failureOf(response.status, await response.text().catch(() => ''), wait);
    }

    return response;
}

// XMLHttpRequest is used because fetch() does not report the progress of an upload.
function upload(path, form, progress, signal) {
    const xhr = new XMLHttpRequest();

    return new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => {
            xhr.abort();
            reject(signal.reason);
        });
        xhr.upload.onprogress = (e) => progress(e.lengthComputable ? e.loaded / e.total : 0);
        xhr.onerror = () => reject(unreachable());
        xhr.onload = () => {
            try {
                if (xhr.status === 200 || xhr.status === 202) {
                    resolve(JSON.parse(xhr.responseText));
                    return;
                }
            } catch {
                // a body that is not JSON is a failure, below
            }

            reject(failureOf(xhr.status, xhr.responseText, parseInt(xhr.getResponseHeader('Retry-After'), 10)));
        };

        xhr.open('POST', address(path));
        xhr.send(form);
    });
}


/* ---- the server's health --------------------------------------------------------------------- */

const server = { state: 'connecting', data: {}, fails: 0, timer: 0, rate: 0, why: '', adapter: '' };

async function poll() {
    const before = server.state;

    clearTimeout(server.timer);

    try {
        const response = await request('api/health', { signal: AbortSignal.timeout(8000) });

        server.data = await response.json();
        server.state = server.data.state || (server.data.model_loaded ? 'ready' : 'loading');
        server.state = server.state === 'busy' ? 'ready' : server.state;
        server.fails = 0;

    } catch (error) {
        const refused = error.status === 401 || error.status === 403;

        server.state = refused ? 'refused' : 'away';
        server.why = error.status ? error.message : '';
        server.fails++;
    }

    showHealth();
    tellChange(before, server.state);

    if (server.fails === 0) {
        restore();
    }

    clearTimeout(server.timer);
    server.timer = setTimeout(poll, document.hidden ? POLL_LATE_MS : pollDelay());
}

// While the server is unreachable, the pause grows.  Its random part keeps pages from polling together.
function pollDelay() {
    if (server.fails) {
        return Math.min(POLL_LATE_MS, 500 * 2 ** server.fails) * (0.75 + Math.random() / 2);
    }

    return server.state === 'loading' ? POLL_SOON_MS : talk.busy ? POLL_BUSY_MS : POLL_MS;
}

function tellChange(before, now) {
    if (before === now) {
        return;
    }

    if (now === 'away') {
        say('The server cannot be reached. Trying again.');
    } else if (now === 'loading') {
        say('The model is loading.');
    } else if (now === 'ready' && before !== 'connecting') {
        say('The server is ready.');
    }
}

function statusWords() {
    const line = server.data.queue || {};

    switch (server.state) {
    case 'away': return 'Reconnecting';
    case 'refused': return 'No access';
    case 'failed': return 'No model';
    case 'stalled': return 'Restarting';
    case 'loading': return `Loading ${server.data.progress || 0} %`;
    case 'ready': return line.waiting ? `${line.waiting} queued` : 'Ready';
    default: return 'Connecting';
    }
}

function showHealth() {
    const loading = server.state === 'loading';

    $('status').dataset.state = server.state;
    $('status').setAttribute('aria-label', `Server: ${statusWords()}`);
    $('status-text').textContent = statusWords();
    $('loading').hidden = !loading;
    $('loading').value = server.data.progress || 0;

    showNotice();
    showModel();
    showAdapters();
    showServer();
    showPlan(server.data.plan);
    showDocuments();

    if (talk.busy) {
        update(talk.busy);
    }
}

function showNotice() {
    let text = talk.note;

    if (server.state === 'away') {
        text = server.why || 'The server cannot be reached. The page goes on trying by itself.';

    } else if (server.state === 'refused') {
        text = server.why;

    } else if (server.state === 'failed') {
        text = sentence(`The model could not be loaded: ${server.data.reason || 'no reason given'}`)
               + ' The error log of the server says more.';

    } else if (server.data.chat === false) {
        text = `${server.data.model} continues a text and has no chat template, so this page cannot ask it. `
               + 'Send texts to /v1/completions.';
    }

    $('notice').textContent = text;
    $('notice').hidden = !text;
}

function showModel() {
    const { model, parameters, thinking, chat } = server.data;
    const toy = TOYS.includes(parameters);

    $('model').textContent = model ? model + (toy ? ', a toy' : '') : '';
    $('toy').hidden = !toy;
    $('think-row').hidden = !thinking;
    $('stage').hidden = $('ask').hidden = $('welcome-words').hidden = chat === false;
    showSamples(toy);
}

// The list has the adapters that are loaded.  One that was chosen remains in it while it is not loaded, so
// that no question is answered without the adapter that its user has chosen.
function showAdapters() {
    const loaded = server.data.adapters || [];
    const chosen = adapterToAsk();
    const names = !chosen || loaded.includes(chosen) ? loaded : [...loaded, chosen];
    const words = (name) => (loaded.includes(name) ? name : `${name}, not loaded`);
    const options = [['', 'None'], ...names.map((name) => [name, words(name)])];
    const shown = [...$('adapter').options].map((o) => [o.value, o.text]);

    $('adapter-row').hidden = names.length === 0 || asksDocuments();

    // New options would close a list that is open.
    if (JSON.stringify(options) !== JSON.stringify(shown)) {
        $('adapter').replaceChildren(...options.map(([value, text]) => el('option', { value, text })));
    }

    $('adapter').value = chosen;
}

// A choice is not sent to a server without adapters; it is, before the server's first answer.
function adapterToAsk() {
    return server.data.model && !server.data.adapters ? '' : server.adapter;
}

function showServer() {
    const { model, parameters, version } = server.data;
    const { device, device_reason: why, queue, active_sessions: sessions } = server.data;
    const words = {
        ready: 'The model is loaded and answers.',
        loading: `The model is loading, ${server.data.progress || 0} %. Questions wait in the queue.`,
        failed: 'The model could not be loaded.',
        away: 'The server cannot be reached.',
        refused: 'The server refuses the requests of this page.',
    };
    const facts = [
        ['Model', model],
        ['Parameters', parameters && millions(parameters)],
        ['Runs on', device],
        ['Chosen', why],
        ['Answering now', queue && String(queue.running)],
        ['In the queue', queue && `${queue.waiting} of ${queue.limit}`],
        ['Conversations', sessions !== undefined && String(sessions)],
        ['Last answer', server.rate && `${round(server.rate)} tokens/s`],
        ['Version', version && `nginx-vlm ${version}`],
    ];

    $('server-text').textContent = words[server.state] || '';
    $('facts').replaceChildren(...facts.filter((f) => f[1]).map(definition));
}

function definition([name, value]) {
    return el('div', {}, el('dt', { textContent: name }), el('dd', { textContent: value }));
}

// Shows the plan as one bar with a part for each purpose.
function showPlan(plan) {
    const parts = Object.keys(PURPOSES).filter((key) => plan && plan[key] > 0);

    $('plan').hidden = parts.length === 0;

    if (parts.length === 0) {
        return;
    }

    $('plan-total').textContent = bytes(plan.total);
    $('plan-bar').replaceChildren(...parts.map((key) => {
        const part = el('i', { className: key });

        part.style.flexGrow = plan[key];

        return part;
    }));
    $('plan-list').replaceChildren(...parts.map((key) => {
        const row = definition([PURPOSES[key], bytes(plan[key])]);

        row.firstChild.className = key;

        return row;
    }));
}
