// What Pi is without us. For ../pi.ts and daemon-with-pi.ts.
import { piModule } from '#daemon/harness/pi/adapter.ts';

/** The files of Pi that the thread loads. Throws when Pi is not installed. */
export const filesOfThread = (): URL => {
  const module = piModule();
  if (module === undefined) throw new Error('Pi is not installed; run tools/bootstrap.sh harness');
  return module;
};

/** What a program gets that imports Pi's package by its name. Throws when Pi is not installed. */
export const packageEntry = (): URL => new URL('../index.js', filesOfThread());
