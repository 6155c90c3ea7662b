// The three parts of our Dockerfiles, for an engine that builds each in its own way. Pure.

/** Parts of a Dockerfile with the stages `sources`, `compiled` and a last one on `sources`. */
export interface Stages {
  /** All stages before the sources. */
  readonly dependencies: string;
  /** The sources and what the last stage sets, in one stage on the argument DEPENDENCIES. */
  readonly sources: string;
  /** The shell command of the stage `compiled`, with its paths in the image. */
  readonly compile: string;
  /** The stage `compiled` itself: what it copies is there for its command alone. */
  readonly compiled: string;
}

const SOURCES = '\nFROM ${DEPENDENCIES} AS sources\n';
const COMPILED = '\nFROM sources AS compiled\n';
const LAST = '\nFROM sources\n';

/** The parts. Throws when a stage is missing, or when one that is built on nothing runs a program. */
export function splitStages(dockerfile: string): Stages {
  const [first, sources, compiled, last] = [
    dockerfile.search(/^FROM /m),
    ...[SOURCES, COMPILED, LAST].map((line) => dockerfile.indexOf(line)),
  ] as [number, number, number, number];
  if (first < 0 || sources < first || compiled < sources || last < compiled) {
    throw new Error('the Dockerfile has no stages `sources`, `compiled` and a last one on `sources`, in this order');
  }
  const body = (from: number, line: string, to?: number): string => dockerfile.slice(from + line.length, to);
  const stage = body(compiled, COMPILED, last);
  const run = /^RUN (.+)$/m.exec(stage.replaceAll(/\\\n\s*/g, ''))?.[1];
  if (run === undefined) throw new Error('the stage `compiled` runs nothing');
  const own = `${body(sources, SOURCES, compiled)}\n${body(last, LAST)}`.replaceAll(/^COPY --from=compiled .*\n/gm, '');
  if (/^\s*RUN\b/im.test(own)) throw new Error('a stage that is built on nothing runs a program');
  return {
    dependencies: dockerfile.slice(0, sources + 1),
    sources: `${dockerfile.slice(0, first)}FROM \${DEPENDENCIES}\n${own}`,
    compile: run,
    compiled: stage,
  };
}
