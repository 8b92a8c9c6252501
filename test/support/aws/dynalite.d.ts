/** The part of dynalite that tests use; the package brings no types. */
declare module 'dynalite' {
  import type { Server } from 'node:http';
  export default function dynalite(options?: { readonly createTableMs?: number }): Server;
}
