// Which of Node's own modules a process has loaded, as it tells at its end. Must not know what is tested.
import { readFileSync } from 'node:fs';

const PROGRAM = (file: string): string =>
  `import{writeFileSync}from'node:fs';import{isMainThread}from'node:worker_threads';` +
  `if(isMainThread)process.on('exit',()=>writeFileSync(${JSON.stringify(file)},process.moduleLoadList.join('\\n')))`;

/** The environment that makes a Node process write the list into a file when it ends by itself. */
export const tellOwnModules = (file: string): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PROGRAM(file))}`,
});

/** The list. */
export const toldModules = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n');
