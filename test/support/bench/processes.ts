import { readdir, readFile, writeFile } from 'node:fs/promises';

/** What one process used: CPU since a mark, and the most memory that it held. */
export interface ProcessUse {
  readonly name: string;
  readonly cpuMs: number;
  readonly peakRssMb: number;
}

/** CPU time by process id, from /proc: what the machine did beside waiting, whoever else uses it. */
export type UseMark = ReadonlyMap<number, number>;

/** Linux counts CPU in hundredths of a second on every machine that this runs on (`getconf CLK_TCK`). */
const TICK_MS = 10;
const MB = 1024;

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly cpuMs: number;
}

/** This process and those that it started (API servers, their etcds, forwarders of their own), the oldest first; none where there is no /proc. */
async function family(): Promise<Seen[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const all = (await Promise.all(pids.map(look))).filter((seen) => seen !== undefined);
  return all.filter(({ pid, parent }) => pid === process.pid || parent === process.pid).sort((a, b) => a.pid - b.pid);
}

/** One that ends while it is looked at is not there. */
async function look(pid: number): Promise<Seen | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const found = /^\d+ \((.*)\) \S (\d+) (?:\S+ ){9}(\d+) (\d+) /s.exec(text);
  if (found === null) return undefined;
  const [, name = '', parent, user, system] = found;
  return { pid, parent: Number(parent), name, cpuMs: (Number(user) + Number(system)) * TICK_MS };
}

/** Begins to count: CPU from here on, and the peaks of memory anew where the kernel lets us. */
export async function markUse(): Promise<UseMark> {
  const members = await family();
  await Promise.all(members.map(({ pid }) => writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => undefined)));
  return new Map(members.map(({ pid, cpuMs }) => [pid, cpuMs]));
}

/** What each process used since the mark. This one is called `bench`; of several of one name the second is `name 2`. */
export async function useSince(mark: UseMark): Promise<ProcessUse[]> {
  const members = await family();
  const times = new Map<string, number>();
  const uses = members.map(async ({ pid, name, cpuMs }) => {
    const own = pid === process.pid ? 'bench' : name;
    const time = (times.get(own) ?? 0) + 1;
    times.set(own, time);
    return {
      name: time === 1 ? own : `${own} ${time}`,
      cpuMs: cpuMs - (mark.get(pid) ?? 0),
      peakRssMb: (await memoryOf(pid)).peakRssMb,
    };
  });
  return Promise.all(uses);
}

/** The memory that a process holds and the most that it held; 0 where there is no /proc. */
export async function memoryOf(pid: number): Promise<{ readonly rssMb: number; readonly peakRssMb: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const megabytes = (field: RegExp): number => Math.round(Number(field.exec(status)?.[1] ?? 0) / MB);
  return { rssMb: megabytes(/^VmRSS:\s+(\d+) kB/m), peakRssMb: megabytes(/^VmHWM:\s+(\d+) kB/m) };
}
