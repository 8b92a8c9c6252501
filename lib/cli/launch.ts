#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { refusalOfNode } from './needed-node.ts';

/** What an operator's shell starts: looks at Node before anything is loaded that an old one cannot read. */
const refusal = refusalOfNode(process.version);
if (refusal === undefined) {
  // Node keeps what it compiled beside the program, where only those may write who may change the program itself. Whoever may
  // not starts without.
  module.enableCompileCache(fileURLToPath(new URL('compiled', import.meta.url)));
  // The build puts it beside this file. A name that is made at run time keeps it out of this one.
  await import(new URL('main.js', import.meta.url).href);
} else {
  process.stderr.write(`error: ${refusal}\n`);
  process.exitCode = 1;
}
