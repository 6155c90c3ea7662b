// The readable text of pages: what is kept, what is left out, and that no page takes long.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cpuMsOf } from '#test/support/cpu-time.ts';
import { readableText } from './readable-text.ts';

const long = 'Bees dance to tell where flowers are. '.repeat(8).trim();

describe('readableText', () => {
  it('keeps headings, lists and paragraphs as lines of text', () => {
    const { title, text } = readableText(
      '<html><head><title> The &amp; bee </title></head><body><h1>Bees</h1><p>They  <b>dance</b>.<br>Often.</p><ul><li>one<li>two</ul></body>',
    );
    assert.equal(title, 'The & bee');
    assert.equal(text, '# Bees\n\nThey dance.\nOften.\n\n- one\n- two');
  });

  it('leaves out scripts, styles, comments and what looks like tags inside of them', () => {
    const { text } = readableText(
      '<style>p { color: "<b>" }</style><script>if (a < b) document.write("<p>evil</p>")</script><!-- <p>hidden</p> --><p>seen</p>',
    );
    assert.equal(text, 'seen');
  });

  it('leaves out navigation and forms around the content, and takes the main part if there is one', () => {
    const { text } = readableText(
      `<nav><a href="/">Home</a></nav><p>An advertisement.</p><main><p>${long}</p></main><footer>Imprint</footer>`,
    );
    assert.equal(text, long);
  });

  it('keeps everything of a page that has nothing but navigation', () => {
    assert.equal(readableText('<nav><p>Home</p></nav>').text, 'Home');
  });

  it('decodes characters, and never makes half of one', () => {
    assert.equal(
      readableText('&lt;p&gt; &#x1F41D; &#65; &#xD800; &#0; &nosuch; &hellip;').text,
      '<p> 🐝 A \uFFFD \uFFFD &nosuch; …',
    );
  });

  it('keeps a lone < and quotes in attributes from ending the text', () => {
    assert.equal(readableText('<p title="a > b">1 < 2 and <3</p>').text, '1 < 2 and <3');
  });

  it('FF13 reads hostile pages of a megabyte in time that grows with their length only', () => {
    const pages = [
      '<a',
      '<a "',
      '<a \'"',
      '<p>',
      '<!--',
      '<script',
      '<div><nav>',
      '&#',
      '<pre>\n\n\n ',
      'alt=<img alt="',
      ' \n',
    ];
    for (const piece of pages) {
      const page = piece.repeat(Math.ceil(1_048_576 / piece.length));
      const cpuMs = cpuMsOf(() => readableText(page));
      assert.ok(cpuMs < 5_000, `${JSON.stringify(piece)} took ${cpuMs} ms of CPU`);
    }
  });
});
