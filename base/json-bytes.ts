// The characters of JSON as bytes, and the depth at which reading stops: for whoever scans a body without parsing it.
// Must not know bodies. Source: RFC 8259, 20-control-plane §2.

/** `"`. */
export const QUOTE = 0x22;
/** `,`. */
export const COMMA = 0x2c;
/** `:`. */
export const COLON = 0x3a;
/** `[`. */
export const OPEN_LIST = 0x5b;
/** The escape character. */
export const BACKSLASH = 0x5c;
/** `]`. */
export const CLOSE_LIST = 0x5d;
/** `{`. */
export const OPEN_OBJECT = 0x7b;
/** `}`. */
export const CLOSE_OBJECT = 0x7d;

/** Deepest nesting of objects and lists that is read. Source: 20-control-plane §2. */
export const MAX_JSON_DEPTH = 64;
