/** A greeting for a name; without a name it greets the world. */
export function greeting(name) {
  return `Hello, ${name ?? 'world'}!`;
}
