/*
 * The picture: its way to the page and to the server, the points and boxes that an answer names,
 * and their drawing over it.  Coordinates are those that the model wrote; only the stage converts
 * them to pixels of the screen.
 */
'use strict';

const READS = ['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/bmp'];

const SAMPLES = {                       // objects that the demo model was trained on
    'sample-1.png': 'Sample: two balls and two bowls',
    'sample-2.png': 'Sample: a bottle, balls, a bowl and a cup',
    'sample-3.png': 'Sample: a bowl, a spoon, balls and a bottle',
};

const MAX_MARKS = 256;                  // drawn for one answer
const MAX_LABEL = 64;                   // characters
const MAX_ZOOM = 3;                     // small pictures are enlarged up to this
const NARROW_PART = 0.34;               // of the window's height, for the picture on a phone


/* ---- marks: the boxes and points of an answer ------------------------------------------------ */

// Two or more numbers in brackets or parentheses.
const TUPLE = /[[(]\s*(-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?)+)\s*[\])]/g;
const BARE = /-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?)+/g;

/*
 * Finds the points and boxes in an answer, in any of the brackets that models of this family write,
 * with their places in the text: { kind, at: [x, y] or [x1, y1, x2, y2], depth, label, start, end }.
 * Three numbers are a point of a path and its depth.  A general answer is prose, so only JSON objects with a box or a point count there.  Numbers without
 * brackets count only if the answer has no others and is complete, since the beginning of a number
 * is a number, too.
 */
function findMarks(task, text, whole = true) {
    let marks = [...text.matchAll(TUPLE)].flatMap((m) => marksOf(task, text, m, m[1]));

    if (marks.length === 0 && task !== 'general' && whole) {
        marks = [...text.matchAll(BARE)].flatMap((m) => marksOf(task, text, m, m[0]));
    }

    return fitTask(task, marks.slice(0, MAX_MARKS));
}

function marksOf(task, text, match, list) {
    const numbers = list.split(',').map(Number);
    const start = match.index;
    const end = start + match[0].length;
    const path = task === 'trajectory';
    const size = numbers.length === (path ? 3 : 4) ? numbers.length : 2;
    const marks = [];

    if (!numbers.every(Number.isFinite) || numbers.length % size
        || (task === 'general' && !/"(?:bbox_2d|point_2d)"\s*:\s*$/.test(text.slice(0, start)))) {
        return [];
    }

    for (let i = 0; i < numbers.length; i += size) {
        marks.push({
            kind: size === 4 ? 'box' : 'point',
            at: numbers.slice(i, i + (path ? 2 : size)),
            depth: size === 3 ? numbers[i + 2] : null,
            label: labelAt(text, start, end),
            start,
            end,
        });
    }

    return marks;
}

// Returns the "label" of the JSON object around a place.
function labelAt(text, start, end) {
    const open = text.lastIndexOf('{', start);
    const close = text.indexOf('}', end);

    if (open < 0 || close < 0 || text.lastIndexOf('}', start) > open) {
        return '';
    }

    const label = /"label"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text.slice(open, close));

    return label ? label[1].replace(/\\(.)/g, '$1').slice(0, MAX_LABEL) : '';
}

// Prefers boxes for tasks that ask for boxes, and points for those that ask for points.
function fitTask(task, marks) {
    const boxes = marks.filter((m) => m.kind === 'box');
    const points = marks.filter((m) => m.kind === 'point');

    switch (task) {
    case 'grounding': case 'affordance': return boxes.length ? boxes : points;
    case 'pointing': return points.length ? points : boxes.map(centre);
    case 'trajectory': return [points.filter((m) => m.depth !== null),
                               points.filter((m) => m.depth === null)].find((m) => m.length > 1) || [];
    default: return marks;
    }
}

function centre(box) {
    const [x1, y1, x2, y2] = box.at;

    return { ...box, kind: 'point', at: [(x1 + x2) / 2, (y1 + y2) / 2] };
}

function markWords(mark) {
    const [x, y, x2, y2] = mark.at;
    const what = mark.label ? mark.label + ' ' : '';
    const depth = mark.depth === null ? '' : `, depth ${mark.depth}`;

    return mark.kind === 'box' ? `${what}${x}, ${y}, ${x2}, ${y2}` : `${what}(${x}, ${y})${depth}`;
}


/* ---- the stage: the picture and the marks over it -------------------------------------------- */

const stage = { picture: null, turn: null, pinned: -1, drawn: 0 };

function show(picture, turn) {
    const other = stage.picture !== picture;

    stage.picture = picture;
    stage.turn = turn;
    stage.pinned = -1;
    stage.drawn = 0;

    $('frame').hidden = picture === null;
    $('below').hidden = picture === null;

    if (other && picture) {
        $('image').src = picture.src;
        $('image').alt = picture.page ? picture.title : `Picture: ${picture.title}`;
    }

    if (!picture) {
        $('image').removeAttribute('src');
    }

    for (const t of talk.turns) {
        t.parts.show?.setAttribute('aria-pressed', String(t === turn));
    }

    showDocuments();
    showPageRow();
    showPictureName();
    showSending();
    showPictureError();
    fit();
    listMarks();
}

// Returns the size of the picture that coordinates refer to: some models write shares of its sides.
function space() {
    const { picture, turn } = stage;
    const shares = server.data.coordinates;

    return shares ? [shares, shares] : turn?.size || [picture?.width || 0, picture?.height || 0];
}

// Fits the frame tightly around the picture, so that draw() works in the pixels of the frame.
function fit() {
    const { picture } = stage;

    if (!picture?.width) {
        $('overlay').replaceChildren();
        return;
    }

    const area = $('area');
    const tall = narrow.matches ? innerHeight * NARROW_PART : area.clientHeight;
    const scale = Math.min(area.clientWidth / picture.width, tall / picture.height, MAX_ZOOM);

    $('frame').style.width = Math.max(1, Math.floor(picture.width * scale)) + 'px';
    $('frame').style.height = Math.max(1, Math.floor(picture.height * scale)) + 'px';
    draw();
}

function draw() {
    const overlay = $('overlay');
    const marks = stage.turn?.marks || [];

    overlay.replaceChildren(...citedBoxes($('frame').clientWidth, $('frame').clientHeight));

    if (!stage.picture?.width || marks.length === 0) {
        return;
    }

    const [w, h] = space();
    const sx = $('frame').clientWidth / w;
    const sy = $('frame').clientHeight / h;
    const place = (mark) => mark.at.map((v, i) => v * (i % 2 ? sy : sx));

    if (taskOf(stage.turn) === 'trajectory') {
        overlay.append(drawPath(marks.map(place)));
    }

    marks.forEach((mark, i) => overlay.append(drawMark(mark, i, marks.length, place(mark))));
    stage.drawn = marks.length;
    heat(stage.pinned);
}

// A light line below a coloured one is visible on any picture.
function drawPath(points) {
    const group = svg('g', { class: stage.drawn ? 'path' : 'path new' });
    const line = points.map((p) => p.join(',')).join(' ');

    group.append(svg('polyline', { class: 'under', points: line }));
    group.append(svg('polyline', { class: 'over', points: line, pathLength: 1 }));

    return group;
}

function drawMark(mark, i, n, at) {
    const group = svg('g', { class: i < stage.drawn ? '' : 'new', 'data-mark': i });

    if (mark.kind === 'box') {
        const [x, y] = [Math.min(at[0], at[2]), Math.min(at[1], at[3])];
        const [width, height] = [Math.abs(at[2] - at[0]), Math.abs(at[3] - at[1])];
        const box = { x, y, width, height, rx: 3 };

        group.append(svg('rect', { class: 'under', ...box }),
                     svg('rect', { class: 'over', ...box }));

        if (n > 1) {
            group.append(...numbered(i, Math.max(11, x), Math.max(11, y)));
        }

    } else if (n > 1) {
        group.append(...numbered(i, ...at));
        group.classList.toggle('last', taskOf(stage.turn) === 'trajectory' && i === n - 1);

    } else {
        group.append(svg('circle', { class: 'disc', cx: at[0], cy: at[1], r: 8 }),
                     svg('circle', { class: 'dot', cx: at[0], cy: at[1], r: 2.5 }));
    }

    return group;
}

function numbered(i, x, y) {
    const text = svg('text', { x, y, dy: '0.36em' });

    text.textContent = i + 1;

    return [svg('circle', { class: 'disc', cx: x, cy: y, r: 10 }), text];
}

// Lists the marks as buttons, for the keyboard and for screen readers.
function listMarks() {
    const marks = stage.turn?.marks || [];

    $('marks').replaceChildren(...marks.map((mark, i) => {
        const button = el('button', { type: 'button' },
                          el('b', { textContent: i + 1 }), markWords(mark));

        button.dataset.mark = i;
        button.setAttribute('aria-pressed', 'false');
        button.setAttribute('aria-label', `${mark.kind} ${i + 1}: ${markWords(mark)}`);

        return el('li', {}, button);
    }));
}

// Highlights one mark wherever it is shown; -1 highlights none.
function heat(n) {
    const hot = (node) => Number(node.dataset.mark) === n;

    for (const node of document.querySelectorAll('#overlay [data-mark], #marks [data-mark]')) {
        node.classList.toggle('hot', hot(node));
        if (node.hasAttribute('aria-pressed')) {
            node.setAttribute('aria-pressed', String(Number(node.dataset.mark) === stage.pinned));
        }
    }

    for (const node of document.querySelectorAll('.turn [data-mark]')) {
        node.classList.toggle('hot', hot(node) && stage.turn?.node.contains(node));
    }

    $('overlay').classList.toggle('some', n >= 0);
    showReadout(n >= 0 ? readoutOf(stage.turn.marks[n]) : '', stage.turn?.marks[n]);
}

function readoutOf(mark) {
    const { picture } = stage;
    const [w, h] = space();
    const words = markWords(mark);

    if (w === picture.width && h === picture.height) {
        return words;
    }

    const scale = [picture.width / w, picture.height / h];
    const full = mark.at.map((v, i) => Math.round(v * scale[i % 2]));

    return `${words}  ·  in the original ${full.join(', ')}`;
}

// Places the readout away from its mark.
function showReadout(text, mark) {
    const [, y, , y2 = y] = mark?.at || [0, 0];

    $('readout').textContent = text;
    $('readout').hidden = !text;
    $('readout').classList.toggle('above', Boolean(mark) && y + y2 > space()[1]);
}

function markUnder(event) {
    const node = event.target.closest?.('[data-mark]');
    const other = node?.closest('.turn');

    return node && (!other || other === stage.turn?.node) ? Number(node.dataset.mark) : -1;
}

function hover(event) {
    const n = markUnder(event);

    heat(n >= 0 ? n : stage.pinned);

    if (n < 0 && stage.pinned < 0 && !stage.picture?.page && event.pointerType === 'mouse'
        && $('frame').contains(event.target)) {
        const box = $('frame').getBoundingClientRect();
        const [w, h] = space();
        const x = Math.round((event.clientX - box.left) / box.width * w);
        const y = Math.round((event.clientY - box.top) / box.height * h);

        showReadout(`${x}, ${y}`);
    }
}

function pin(event) {
    const n = markUnder(event);

    if (n >= 0) {
        stage.pinned = stage.pinned === n ? -1 : n;
        heat(stage.pinned);
    }
}


/* ---- pictures -------------------------------------------------------------------------------- */

const pictures = new Map();             // pictures on the server, by their names there

function pictureNamed(name) {
    if (!pictures.has(name)) {
        pictures.set(name, {
            name,
            title: name.replace(/^[0-9a-f-]{36}_/, ''),
            src: address('uploads/' + encodeURIComponent(name)),
            width: 0,
            height: 0,
        });
    }

    return pictures.get(name);
}

function loadImage(src) {
    const image = new Image();

    image.src = src;

    return image.decode().then(() => image);
}

function showSamples(wanted) {
    const samples = $('samples');

    samples.hidden = !wanted;

    if (wanted && !samples.firstChild) {
        samples.append(...Object.entries(SAMPLES).map(([file, title]) => {
            const button = el('button', { type: 'button', title, ariaLabel: title },
                              el('img', { src: file, alt: title }));

            button.addEventListener('click', () => takeSample(file));

            return button;
        }));
    }
}

async function takeSample(file) {
    try {
        const blob = await (await request(file)).blob();

        await take(new File([blob], file, { type: 'image/png' }));

    } catch (failure) {
        complain(failure.message);
    }
}

// Removes the picture: the next question is asked without one.
function removePicture() {
    show(null, null);
    $('message').focus();
    say('The picture is removed. The next question is asked without one.');
}

async function take(file) {
    const picture = {
        title: file.name || 'picture.png',
        blob: file,
        src: URL.createObjectURL(file),
        width: 0,
        height: 0,
    };

    complain('');

    try {
        const image = await loadImage(picture.src);

        picture.width = image.naturalWidth;
        picture.height = image.naturalHeight;

        if (!picture.width || !picture.height) {
            throw new Error('no size');
        }

        if (!READS.includes(file.type)) {
            await redraw(picture, image);
        }

    } catch {
        URL.revokeObjectURL(picture.src);
        complain(`“${picture.title}” is not a picture that this browser can show. `
                 + 'Choose a JPEG, PNG, WebP, GIF or BMP.');
        return;
    }

    send(picture);
    show(picture, null);
    $('message').focus({ preventScroll: true });
    say(`Picture ${picture.title}, ${picture.width} by ${picture.height}.`);
}

// A picture that only the browser can decode (AVIF, SVG, HEIC) is sent to the server as a JPEG.
async function redraw(picture, image) {
    const canvas = el('canvas', { width: picture.width, height: picture.height });
    const context = canvas.getContext('2d');

    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0);
    picture.blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.92));
    picture.title = picture.title.replace(/\.[^.]*$/, '') + '.jpg';
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(picture.blob);
}

// The upload begins at once, so that the server has the picture when the question is complete.
function send(picture) {
    picture.part = 0;
    picture.failure = null;
    picture.sent = uploadPicture(picture);

    picture.sent.then((name) => {
        picture.name = name;
        pictures.set(name, picture);
    }, (failure) => {
        picture.failure = failure;
        picture.sent = null;
    }).then(() => {
        showSending();
        showPictureError();
    });
}

async function uploadPicture(picture) {
    const form = new FormData();

    form.append('file', picture.blob, picture.title);

    const { filename } = await upload('api/upload', form, (part) => {
        picture.part = part;
        showSending();
    });

    return filename;
}

function showSending() {
    const { picture } = stage;

    $('sending').hidden = !picture?.sent || Boolean(picture.name);
    $('sending').value = picture?.part || 0;
}

function showPictureName() {
    const { picture } = stage;

    if (!picture || picture.page) {
        return;
    }

    const words = [picture.title];

    if (picture.width) {
        words.push(`${picture.width} × ${picture.height}`);
    }

    if (stage.turn?.size) {
        words.push(`seen as ${stage.turn.size.join(' × ')}`);
    }

    $('picture-name').textContent = words.join('  ·  ');
}

function showPictureError() {
    const { picture } = stage;

    if (picture?.failure) {
        complain(picture.failure.message, el('button', {
            type: 'button', className: 'link', textContent: 'Send again',
            onclick: () => { send(picture); show(picture, stage.turn); },
        }));

    } else {
        complain(picture?.gone ? 'The server no longer has this picture. Choose it again.' : '');
    }
}

function complain(text, ...more) {
    $('picture-error').replaceChildren(text, ...(text ? more : []));
    $('picture-error').hidden = !text;
}

function imageLoaded() {
    const { picture } = stage;

    if (picture) {
        picture.width = $('image').naturalWidth;
        picture.height = $('image').naturalHeight;
        showPictureName();
        fit();
    }
}

function imageFailed() {
    if (stage.picture?.page) {
        pageFailed(stage.picture);

    } else if (stage.picture && !stage.picture.blob) {
        stage.picture.gone = true;
        showPictureError();
    }
}

function takeFirst(files, types) {
    if ($('stage').hidden) {            // the model does not take part in conversations
        return;
    }

    const file = [...files].find((f) => f.type.startsWith('image/')) || files[0];
    const pdfs = [...files].filter(isPdf);

    if (pdfs.length) {
        takeDocuments(pdfs);
    } else if (file) {
        take(file);
    } else if (types?.includes('text/uri-list')) {
        complain('That was an address, not a file. Save the picture first, then drop the file.');
    }
}
