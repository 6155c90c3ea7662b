// What a plan knows of the way to the control plane, as data. Pure. Must not know connections.

/**
 * `connecting`: no complete snapshot yet, and no reason to call it down: what depends on facts keeps its value.
 * `available`: the last snapshot is complete and followed. `down`: no contact for 30 s. Source: 10-kubernetes §6.
 */
export type ControlPlane = Readonly<{
  state: 'connecting' | 'available' | 'down';
  /** Last frame of the stream. Units: milliseconds since 1970 on the API server's clock. */
  lastContactMs: number | undefined;
}>;
