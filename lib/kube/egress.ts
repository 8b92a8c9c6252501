import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { KbindError } from '../model/errors.ts';

/** Which addresses a client may connect to. */
export interface Egress {
  /** Local runs only: API servers of this machine. */
  readonly allowLoopback: boolean;
}

/** Ranges that no API server of a customer lives in, by ipaddr.js's names (spec §9). */
const REFUSED: Readonly<Record<string, string>> = {
  loopback: 'loopback',
  linkLocal: 'link-local',
  multicast: 'multicast',
  unspecified: 'unspecified',
  broadcast: 'broadcast',
};
/** The cloud's own services (metadata, credentials, DNS) in IPv6: a unique-local range, but no customer's. */
const CLOUD_SERVICES = ipaddr.parseCIDR('fd00:ec2::/32');
/** First byte of the IPv4 address that a transition address carries. */
const EMBEDDED_AT: Readonly<Record<string, number>> = {
  ipv4Mapped: 12,
  rfc6145: 12,
  rfc6052: 12,
  rfc8215: 12,
  '6to4': 2,
};

/** The kind of refused address that this one is, or undefined for one that may be connected to. */
export function refusedRange(address: string, egress: Egress): string | undefined {
  if (!ipaddr.isValid(address)) return 'malformed';
  const range = rangeOf(ipaddr.parse(address));
  return range === 'loopback' && egress.allowLoopback ? undefined : range;
}

function rangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): string | undefined {
  const range = address.range();
  if (address.kind() === 'ipv6') {
    const bytes = address.toByteArray();
    const at = EMBEDDED_AT[range] ?? (isV4Compatible(bytes) ? 12 : undefined);
    if (at !== undefined) return rangeOf(new ipaddr.IPv4(bytes.slice(at, at + 4)));
    if (address.match(CLOUD_SERVICES)) return 'cloud service';
  }
  return REFUSED[range];
}

/** `::127.0.0.1`, long deprecated and still routed by some: twelve zero bytes, and more than `::` or `::1` behind them. */
const isV4Compatible = (bytes: readonly number[]): boolean =>
  bytes.slice(0, 12).every((byte) => byte === 0) && bytes.slice(12, 15).some((byte) => byte !== 0);

/** The error that an address is refused with: names its kind and the kubeconfig's field, never the address. */
export const refusedAddress = (range: string): KbindError =>
  new KbindError('credential', `cluster.server leads to a ${range} address, which is refused`);

/** Throws class `credential` when the host is an address literal that is refused. Names are checked when they resolve. */
export function checkHost(hostname: string, egress: Egress): void {
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) === 0) return;
  const range = refusedRange(literal, egress);
  if (range !== undefined) throw refusedAddress(range);
}

/** A `lookup` for sockets that fails when any address of the name is refused: a name must not offer one to fall back to. */
export function guardedLookup(egress: Egress): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error !== null) return callback(error, '', 0);
      const range = addresses.map(({ address }) => refusedRange(address, egress)).find((found) => found !== undefined);
      if (range !== undefined) return callback(refusedAddress(range), '', 0);
      const [first] = addresses;
      if (options.all === true) return callback(null, addresses);
      return callback(null, first?.address ?? '', first?.family ?? 0);
    });
  };
}
