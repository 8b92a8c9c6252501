import { isIPv4, isIPv6 } from 'node:net';

const isBase64 = (text: string): boolean => /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0;
const isDateTime = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/.test(text) &&
  !Number.isNaN(Date.parse(text));
const isDuration = (text: string): boolean => /^[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(text);

/** The formats that CustomResourceDefinitions may use; others are ignored, as Kubernetes does. */
export const FORMATS: Record<string, true | ((text: string) => boolean)> = {
  byte: isBase64,
  'date-time': isDateTime,
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)),
  duration: isDuration,
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  email: (text) => /^[^@\s]+@[^@\s]+$/.test(text),
  hostname: (text) => /^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$/.test(text) && text.length <= 255,
  ipv4: (text) => isIPv4(text),
  ipv6: (text) => isIPv6(text),
  cidr: (text) => isCidr(text),
  uri: (text) => URL.canParse(text),
};

function isCidr(text: string): boolean {
  const [address = '', bits = ''] = text.split('/');
  if (!/^\d+$/.test(bits)) return false;
  return isIPv4(address) ? Number(bits) <= 32 : isIPv6(address) && Number(bits) <= 128;
}
