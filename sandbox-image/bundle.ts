// Makes the one program that a sandbox starts of the daemon's sources and packages, when an image is built:
// `node sandbox-image/bundle.ts FOLDER`. What is imported later stays in files of its own. Must not know what the daemon does.
// Source: docs/decisions/0054.
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What packages ask for at once and the daemon hardly ever uses. Where it is used after all, it is loaded then. */
const SELDOM = new Set([
  'node:assert',
  'node:dns',
  'node:http2',
  'node:https',
  'node:tls',
  'node:zlib',
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  '@fastify/proxy-addr',
  'light-my-request',
  'safe-regex2',
  'semver',
  'thread-stream',
]);

/** Loads such a module when one of its exports is read, or when it is called. */
const loadedWhenUsed = (load: string): string =>
  `const load = () => ${load};
   module.exports = new Proxy(function () {}, {
     get: (_, name) => load()[name],
     apply: (_, self, args) => Reflect.apply(load(), self, args),
   });`;

/**
 * Modules of Node without their ES form, which reads each export once and so loads what no program here uses; and what is
 * seldom used. Packages that are left out of the program are found beside the sources, as ever.
 */
const modulesOfOthers: Plugin = {
  name: 'modules-of-others',
  setup: (build) => {
    build.onResolve({ filter: /^[a-z@]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (pluginData === 'inner') return undefined;
      const builtin = isBuiltin(path);
      const name = builtin && !path.startsWith('node:') ? `node:${path}` : path;
      const isSeldom = kind === 'require-call' && SELDOM.has(name);
      if (builtin) return { path: name, namespace: isSeldom ? 'seldom-of-node' : 'of-node' };
      if (!isSeldom) return undefined;
      const found = await build.resolve(path, { kind, resolveDir, pluginData: 'inner' });
      return { path: found.path, namespace: 'seldom' };
    });
    build.onLoad({ filter: /^/, namespace: 'of-node' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
    }));
    build.onLoad({ filter: /^/, namespace: 'seldom-of-node' }, ({ path }) => ({
      contents: loadedWhenUsed(`process.getBuiltinModule('${path}')`),
    }));
    build.onLoad({ filter: /^/, namespace: 'seldom' }, ({ path }) => ({
      contents: loadedWhenUsed(`requireBeside(${JSON.stringify(path.slice(path.indexOf('node_modules/')))})`),
    }));
  },
};

/** Our own sources: they find the files beside them as before, and of zod only what is used is taken. */
const ownSources: Plugin = {
  name: 'own-sources',
  setup: (build) => {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      loader: 'ts',
      contents: readFileSync(path, 'utf8')
        .replaceAll('import.meta.url', `besideSources(${JSON.stringify(relative(ROOT, path))})`)
        .replace("import { z } from 'zod';", "import * as z from 'zod';"),
    }));
  },
};

const [argument] = process.argv.slice(2);
if (argument === undefined) throw new Error('say the folder: node sandbox-image/bundle.ts FOLDER');
const folder = resolve(argument);
await bundle({
  entryPoints: [`${ROOT}sandbox-image/daemon/main.ts`],
  outdir: folder,
  entryNames: 'beeunid',
  chunkNames: '[name]-[hash]',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  // Names stay: stack traces and the classes of errors in the log are read by people.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  format: 'esm',
  platform: 'node',
  target: 'node24',
  plugins: [modulesOfOthers, ownSources],
  banner: {
    js: [
      `const besideSources = (path) => new URL('${relative(folder, ROOT)}/' + path, import.meta.url).href;`,
      `const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);`,
      `const requireBeside = (path) => require(process.getBuiltinModule('node:url').fileURLToPath(besideSources(path)));`,
    ].join('\n'),
  },
  logLevel: 'warning',
});
