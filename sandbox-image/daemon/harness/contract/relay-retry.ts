// How a harness whose own retry is off asks the relay to try a model call again. Must not know how that is done.

/**
 * Header of a model call that the relay may make again, as long as nothing of an answer came. It goes no further than the
 * relay. A harness that tries again by itself leaves it out. Source: A79, harness-runtimes §3.
 */
export const RELAY_RETRY_HEADER = 'x-beeuni-retry';
