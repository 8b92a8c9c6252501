import { Command, InvalidArgumentError } from 'commander';

/** A developer's command, with --help. What it is not given rightly ends it with exit code 2: 1 says that it found something. */
export function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}

/** A whole number that is not negative, for commander. */
export function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('A whole number is wanted.');
  return Number(text);
}

/** A whole number from 1 on, for commander. */
export function positive(text: string): number {
  const value = count(text);
  if (value === 0) throw new InvalidArgumentError('At least 1 is wanted.');
  return value;
}

/** A number that is not negative, for commander. */
export function amount(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) {
    throw new InvalidArgumentError('A number that is not negative is wanted.');
  }
  return value;
}
