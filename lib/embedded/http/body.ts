import type { IncomingMessage } from 'node:http';
import { badRequest, tooLarge, unsupportedMediaType } from '../api/status.ts';
import { parseJson } from '../json/json.ts';
import { parseYaml } from '../json/yaml.ts';
import { parseProtobuf, PROTOBUF } from './protobuf.ts';

/** kube-apiserver's limit of a request body. */
export const MAX_BODY = 3 * 1024 * 1024;

/** Reads a whole body, or refuses it when it is too large. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const buffer = chunk as Buffer;
    size += buffer.length;
    // The rest is read and dropped, so that the client gets to see the answer.
    if (size <= MAX_BODY) chunks.push(buffer);
  }
  if (size > MAX_BODY) throw tooLarge(`Request entity too large: limit is ${MAX_BODY}`);
  return Buffer.concat(chunks);
}

/** The media type without parameters; nothing given means JSON. */
export const mediaType = (header: string | undefined): string =>
  (header ?? '').split(';')[0]?.trim().toLowerCase() || 'application/json';

const decoder = new TextDecoder('utf-8', { ignoreBOM: false });

/** Parses a body by its content type; protobuf is for built-in kinds only. */
export function parseBody(body: Buffer, contentType: string, builtIn = true): unknown {
  if (contentType === 'application/json') return parseJsonBody(body);
  if (contentType === 'application/yaml') return parseYamlBody(body);
  if (contentType === PROTOBUF && builtIn) return parseProtobuf(body);
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${PROTOBUF}`,
  );
}

/** Parses a JSON body; a malformed one is the client's fault. */
export function parseJsonBody(body: Buffer): unknown {
  try {
    return parseJson(decoder.decode(body));
  } catch (error) {
    throw badRequest(
      `the object provided is unrecognized: couldn't get version/kind; json parse error: ${(error as Error).message}`,
    );
  }
}

/** Parses a YAML body; JSON is YAML, too, and much faster to parse. */
export function parseYamlBody(body: Buffer): unknown {
  const text = decoder.decode(body);
  try {
    if (text.trimStart().startsWith('{')) return parseJson(text);
  } catch {
    // Flow mappings of YAML look like JSON and are not.
  }
  try {
    return parseYaml(text);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: yaml: ${(error as Error).message}`);
  }
}
