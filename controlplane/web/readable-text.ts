// The readable text of an HTML page: what stands in it without markup, scripts, navigation and forms. One pass over the
// text, in time that grows with its length only. Pure. Must not know where a page is from. Source: A44, FF13.

/** Title and text of a page. */
export type ReadableText = Readonly<{ title: string; text: string }>;

/** Elements whose content is no markup and is not shown. */
const RAW = new Set(['script', 'style', 'noscript', 'template', 'iframe', 'svg', 'textarea', 'noembed', 'math']);
/** Elements around the content of a page. */
const AROUND = new Set(['nav', 'footer', 'aside', 'form', 'button', 'select', 'dialog']);
const BLOCK = new Set(
  'address article blockquote dd div dl dt fieldset figcaption figure header hr main ol p section table tbody tr ul pre h1 h2 h3 h4 h5 h6'.split(
    ' ',
  ),
);
const CONTENT = new Set(['main', 'article']);
/** Longest tag that is read as one. Units: characters. */
const MAX_TAG = 65_536;
/** A main part shorter than this is not trusted to be all of the content. Units: characters. */
const MIN_CONTENT = 200;

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  bull: '•',
  copy: '©',
  euro: '€',
  gt: '>',
  hellip: '…',
  laquo: '«',
  ldquo: '“',
  lsquo: '‘',
  lt: '<',
  mdash: '—',
  middot: '·',
  nbsp: ' ',
  ndash: '–',
  quot: '"',
  raquo: '»',
  rdquo: '”',
  rsquo: '’',
  trade: '™',
};

const decodeEntities = (text: string): string =>
  text.replace(/&(#[xX]?[0-9a-fA-F]{1,7}|[a-zA-Z]{2,8});/g, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name] ?? whole;
    const code = /^#[xX]/.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
    const isText = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isText ? String.fromCodePoint(code) : '\uFFFD';
  });

type Tag = Readonly<{ name: string; isEnd: boolean; attributes: string; end: number }>;

/** The tag that begins at `at`, where a `<` stands; undefined when it is text. */
const tagAt = (html: string, at: number): Tag | undefined => {
  const opening = /<(\/?)([a-zA-Z][a-zA-Z0-9:-]{0,63})/y;
  opening.lastIndex = at;
  const [found, slash, name = ''] = opening.exec(html) ?? [];
  if (found === undefined) return undefined;
  let quote = '';
  const limit = Math.min(html.length, at + MAX_TAG);
  for (let end = at + found.length; end < limit; end += 1) {
    const character = html[end] ?? '';
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    // No tag begins inside of another: without this a page of open tags takes quadratic time.
    else if (character === '<') return undefined;
    else if (character === '>') {
      const attributes = html.slice(at + found.length, end);
      return { name: name.toLowerCase(), isEnd: slash === '/', attributes, end: end + 1 };
    }
  }
  return undefined;
};

const alternativeText = (attributes: string): string =>
  /\balt\s*=\s*["']([^"']{1,300})["']/i.exec(attributes)?.[1] ?? '';

const tidy = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();

/** What a pass over a page found. `content`: pieces inside of the page's main part. */
type Pass = Readonly<{ title: string; all: string; content: string }>;

const pass = (html: string, leaveOut: ReadonlySet<string>): Pass => {
  const lower = html.toLowerCase();
  const all: string[] = [];
  const content: string[] = [];
  let title = '';
  let around = 0;
  let inContent = 0;
  let inPre = 0;
  let atLineStart = true;
  let at = 0;

  const add = (piece: string): void => {
    if (around > 0 || piece === '') return;
    atLineStart = piece.endsWith('\n') || (atLineStart && piece.trim() === '');
    all.push(piece);
    if (inContent > 0) content.push(piece);
  };
  const addText = (text: string): void => {
    if (inPre > 0) add(decodeEntities(text));
    else {
      const collapsed = decodeEntities(text).replace(/\s+/g, ' ');
      add(atLineStart ? collapsed.trimStart() : collapsed);
    }
  };
  /** Position after the element whose content is no markup. */
  const skipRaw = (name: string, from: number): number => {
    const close = lower.indexOf(`</${name}`, from);
    if (close === -1) return html.length;
    const end = html.indexOf('>', close);
    return end === -1 ? html.length : end + 1;
  };
  const onTag = (tag: Tag): void => {
    const { name, isEnd } = tag;
    if (leaveOut.has(name)) around = Math.max(0, around + (isEnd ? -1 : 1));
    if (CONTENT.has(name)) inContent = Math.max(0, inContent + (isEnd ? -1 : 1));
    if (name === 'pre') inPre = Math.max(0, inPre + (isEnd ? -1 : 1));
    if (name === 'br') add('\n');
    else if (name === 'li') add(isEnd ? '' : '\n- ');
    else if (name === 'td' || name === 'th') add(isEnd ? ' | ' : '');
    else if (name === 'img' && !isEnd) {
      const alternative = alternativeText(tag.attributes);
      if (alternative !== '') addText(`[image: ${alternative}]`);
    } else if (/^h[1-6]$/.test(name)) add(isEnd ? '\n\n' : `\n\n${'#'.repeat(Number(name[1]))} `);
    else if (BLOCK.has(name)) add('\n\n');
  };

  while (at < html.length) {
    const open = html.indexOf('<', at);
    if (open === -1) {
      addText(html.slice(at));
      break;
    }
    addText(html.slice(at, open));
    if (html.startsWith('<!--', open)) {
      const end = html.indexOf('-->', open + 4);
      at = end === -1 ? html.length : end + 3;
      continue;
    }
    if (html[open + 1] === '!' || html[open + 1] === '?') {
      const end = html.indexOf('>', open);
      at = end === -1 ? html.length : end + 1;
      continue;
    }
    const tag = tagAt(html, open);
    if (tag === undefined) {
      addText('<');
      at = open + 1;
      continue;
    }
    at = tag.end;
    if (tag.name === 'title' && !tag.isEnd) {
      const close = lower.indexOf('</title', at);
      const inner = html.slice(at, close === -1 ? at + 1_024 : close);
      if (title === '') title = decodeEntities(inner).replace(/\s+/g, ' ').trim().slice(0, 512);
      at = skipRaw('title', at);
    } else if (RAW.has(tag.name) && !tag.isEnd && !tag.attributes.endsWith('/')) {
      at = skipRaw(tag.name, at);
    } else onTag(tag);
  }
  return { title, all: tidy(all.join('')), content: tidy(content.join('')) };
};

/** Title and text of a page. What is around the content is left out, unless hardly anything would be left. */
export const readableText = (html: string): ReadableText => {
  const found = pass(html, AROUND);
  if (found.content.length >= MIN_CONTENT) return { title: found.title, text: found.content };
  if (found.all.length >= MIN_CONTENT) return { title: found.title, text: found.all };
  return { title: found.title, text: pass(html, new Set()).all };
};
