// A shell command that goes on when the test says so, in place of a sleep that must outlast what the test looks at.
// Must not know what runs the command.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The command: waits in its working directory until the latch of that name is opened. */
export const waitForLatch = (name: string): string => `until rm ${name} 2>/dev/null; do sleep 0.1; done`;

/** Lets the command go on; `directory` is where it runs. */
export const openLatch = (directory: string, name: string): void => writeFileSync(join(directory, name), '');
