// Why the daemon ends, and the one line that the kubelet takes into the pod's status instead of the log's tail.
// Must not know how the daemon ends. Source: 10-kubernetes §7, sandbox-pod §7.
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';

/** Where the kubelet reads a container's last word. */
export const TERMINATION_FILE = '/dev/termination-log';

/** Why a daemon ends. */
export type EndCause =
  | 'drained'
  | 'superseded'
  | 'credential_refused'
  | 'invalid_configuration'
  | 'data_mount'
  | 'harness_not_available'
  | 'harness_mismatch'
  | 'branch_not_found'
  | 'fault'
  /** Left at the start for whoever ends without another word. */
  | 'killed';

/** Exit code of each cause. A daemon that was asked to end exits 0. */
export const EXIT_CODE: Readonly<Record<EndCause, number>> = {
  drained: 0,
  fault: 1,
  invalid_configuration: 2,
  superseded: 3,
  harness_not_available: 4,
  harness_mismatch: 5,
  data_mount: 6,
  credential_refused: 7,
  branch_not_found: 8,
  killed: 137,
};

/** Writes `cause: message` in one line of at most 512 characters, if the file exists; outside of a pod it does not. */
export const writeTermination = (file: string, cause: EndCause, message: string): void => {
  try {
    const descriptor = openSync(file, 'r+');
    try {
      ftruncateSync(descriptor, 0);
    } catch {
      // A device cannot be cut; the line stands alone anyway.
    }
    writeSync(descriptor, `${`${cause}: ${message}`.replace(/\s+/g, ' ').slice(0, 512)}\n`);
    closeSync(descriptor);
  } catch {
    // Not in a pod.
  }
};
