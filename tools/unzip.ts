// Reads files out of a ZIP archive in memory. Only what our one archive needs: stored and deflated files, no ZIP64, no encryption.
import { inflateRawSync } from 'node:zlib';

/** Content of the named files, in the order of the names. Throws when the archive lacks one, or is of another kind. */
export function unzip(archive: Buffer, names: readonly string[]): Map<string, Buffer> {
  const end = archive.lastIndexOf('PK\x05\x06');
  if (end < 0) throw new Error('not a ZIP archive');
  const entries = archive.readUInt16LE(end + 10);
  const places = new Map<string, { readonly method: number; readonly sizeBytes: number; readonly header: number }>();
  for (let at = archive.readUInt32LE(end + 16), entry = 0; entry < entries; entry++) {
    if (archive.toString('latin1', at, at + 4) !== 'PK\x01\x02') throw new Error('the ZIP archive is damaged');
    const nameBytes = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + 46, at + 46 + nameBytes);
    const header = archive.readUInt32LE(at + 42);
    places.set(name, { method: archive.readUInt16LE(at + 10), sizeBytes: archive.readUInt32LE(at + 20), header });
    at += 46 + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return new Map(
    names.map((name) => {
      const place = places.get(name);
      if (!place) throw new Error(`the ZIP archive lacks ${name}`);
      // The local header has a name and an extra field of its own lengths before the data.
      const start =
        place.header + 30 + archive.readUInt16LE(place.header + 26) + archive.readUInt16LE(place.header + 28);
      const data = archive.subarray(start, start + place.sizeBytes);
      if (place.method === 0) return [name, data];
      if (place.method === 8) return [name, inflateRawSync(data)];
      throw new Error(`${name} is compressed by method ${place.method}`);
    }),
  );
}
