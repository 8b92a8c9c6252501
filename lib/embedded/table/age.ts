const UNITS: [string, number][] = [['y', 365 * 86_400], ['d', 86_400], ['h', 3600], ['m', 60], ['s', 1]]; // prettier-ignore

/** A time as kubectl shows it: `5d3h`; `<unknown>` without one. */
export function age(time: string | undefined, now = Date.now()): string {
  if (!time) return '<unknown>';
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return '<unknown>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 600) return parts(seconds, 'm', 's');
  if (seconds < 3 * 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 8 * 3600) return parts(seconds, 'h', 'm');
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`;
  if (seconds < 8 * 86_400) return parts(seconds, 'd', 'h');
  if (seconds < 2 * 365 * 86_400) return `${Math.floor(seconds / 86_400)}d`;
  return seconds < 8 * 365 * 86_400 ? parts(seconds, 'y', 'd') : `${Math.floor(seconds / (365 * 86_400))}y`;
}

function parts(seconds: number, large: string, small: string): string {
  const size = (unit: string): number => UNITS.find(([name]) => name === unit)?.[1] ?? 1;
  const rest = Math.floor((seconds % size(large)) / size(small));
  return `${Math.floor(seconds / size(large))}${large}${rest > 0 ? `${rest}${small}` : ''}`;
}
