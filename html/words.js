/*
 * The text of an answer: a safe subset of Markdown, shown as elements.
 *
 * The subset is paragraphs, headings, lists, quotations, blocks of code, bold, italics, code, and links to
 * http and https.  Every text becomes text nodes, so no text can create other elements than these.
 * Pictures, HTML, tables and all other syntax are shown as they were written.
 */
'use strict';

const MAX_DEPTH = 4;                    // of bold within italics within a link

const FENCE = /^\s*(```|~~~)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s*>\s?/;

const INLINE = new RegExp([
    /(?<code>(?<!`)(?<ticks>`{1,3})(?!`)(?<inner>[^`\n]{1,2000})\k<ticks>(?!`))/,
    /(?<link>\[(?<label>[^\][\n]{1,300})\]\((?<href>https?:\/\/[^\s()<>"]{1,2000})\))/,
    /(?<url>\bhttps?:\/\/[^\s()<>"'`\]]{0,2000}[^\s()<>"'`\].,;:!?*])/,
    /(?<strong>(?<two>\*\*|__)(?=\S)(?<bold>[^\n]{1,1000}?)(?<=\S)\k<two>(?!\w))/,
    /(?<em>(?<![\w*])(?<one>[*_])(?=[^\s*_])(?<slanted>[^\n*_]{1,1000}?)(?<=\S)\k<one>(?![\w*]))/,
].map((r) => r.source).join('|'), 'g');

// Returns the elements of a text; a text without Markdown is a single paragraph.
function rich(text) {
    const lines = text.split('\n');
    const nodes = [];

    while (lines.length) {
        nodes.push(...block(lines));
    }

    return nodes;
}

// Takes the lines of one block from the list and returns its elements.
function block(lines) {
    const [line] = lines;

    if (!line.trim()) {
        lines.shift();
        return [];
    }

    if (FENCE.test(line)) {
        return [fenced(lines)];
    }

    if (HEADING.test(line)) {
        const [, hashes, words] = HEADING.exec(lines.shift());

        return [el('p', { className: 'heading', role: 'heading', ariaLevel: String(hashes.length + 2) },
                   ...inline(words))];
    }

    if (ITEM.test(line)) {
        return [list(lines)];
    }

    if (QUOTE.test(line)) {
        const words = takeWhile(lines, (l) => QUOTE.test(l)).map((l) => l.replace(QUOTE, ''));

        return [el('blockquote', {}, ...inline(words.join('\n')))];
    }

    const words = [lines.shift(), ...takeWhile(lines, isPlain)];

    return [el('p', {}, ...inline(words.join('\n')))];
}

const isPlain = (line) => line.trim() && ![FENCE, HEADING, ITEM, QUOTE].some((r) => r.test(line));

function takeWhile(lines, test) {
    const end = lines.findIndex((line) => !test(line));

    return lines.splice(0, end < 0 ? lines.length : end);
}

// The block ends at the closing fence, or at the end of a text that is still incomplete.
function fenced(lines) {
    const [, fence] = FENCE.exec(lines.shift());
    const inside = takeWhile(lines, (line) => !line.trim().startsWith(fence));

    lines.shift();

    return el('pre', { tabIndex: 0 }, el('code', { textContent: inside.join('\n') }));
}

// Items that are indented further form a list inside the item before.
function list(lines) {
    const [, indent, sign] = ITEM.exec(lines[0]);
    const deep = indent.length;
    const ordered = /\d/.test(sign);
    const items = el(ordered ? 'ol' : 'ul', ordered ? { start: parseInt(sign, 10) } : {});

    while (lines.length) {
        const item = ITEM.exec(lines[0]);

        if (item && item[1].length > deep + 1 && items.lastChild) {
            items.lastChild.append(list(lines));

        } else if (item && item[1].length >= deep && /\d/.test(item[2]) === ordered) {
            lines.shift();
            items.append(el('li', {}, ...inline([item[3], ...takeWhile(lines, isPlain)].join('\n'))));

        } else {
            break;
        }
    }

    return items;
}

function inline(text, depth = 0) {
    const nodes = [];
    let at = 0;

    for (const match of depth < MAX_DEPTH ? text.matchAll(INLINE) : []) {
        nodes.push(text.slice(at, match.index), inlineOf(match.groups, depth + 1));
        at = match.index + match[0].length;
    }

    return [...nodes, text.slice(at)].filter((node) => node !== '');
}

function inlineOf(groups, depth) {
    if (groups.code) {
        return el('code', { textContent: groups.inner });
    }

    if (groups.strong) {
        return el('strong', {}, ...inline(groups.bold, depth));
    }

    if (groups.em) {
        return el('em', {}, ...inline(groups.slanted, depth));
    }

    return el('a', { href: groups.href || groups.url, target: '_blank', rel: 'noopener noreferrer' },
              groups.label || groups.url);
}
