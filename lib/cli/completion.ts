import type { Command } from 'commander';

/** Shell completion, made of the commands themselves. */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

interface Words {
  /** `dlq list`; empty for the program. */
  readonly path: string;
  readonly words: readonly string[];
}

function wordsOf(command: Command, path: string): Words[] {
  const options = [...command.options, ...(path === '' ? [] : (command.parent?.options ?? []))];
  const flags = options.map(({ long, short }) => long ?? short ?? '').filter((flag) => flag !== '');
  const words = [...command.commands.map((sub) => sub.name()), ...flags, '--help'];
  return [
    { path, words: [...new Set(words)] },
    ...command.commands.flatMap((sub) => wordsOf(sub, path === '' ? sub.name() : `${path} ${sub.name()}`)),
  ];
}

/** The script that a shell sources. */
export function completionScript(program: Command, shell: Shell): string {
  const tree = wordsOf(program, '');
  if (shell === 'fish') return fishScript(tree);
  const body = bashScript(tree);
  return shell === 'zsh' ? `autoload -U +X bashcompinit && bashcompinit\n${body}` : body;
}

function bashScript(tree: readonly Words[]): string {
  const cases = tree.map(({ path, words }) => `    "${path}") words="${words.join(' ')}" ;;`);
  const paths = tree.map(({ path }) => `"${path}"`).filter((path) => path !== '""');
  return `_kbind_fleet() {
  local current path="" word words=""
  current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths.join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _kbind_fleet kbind-fleet`;
}

function fishScript(tree: readonly Words[]): string {
  const lines = tree.map(({ path, words }) => {
    const seen = path.split(' ').filter((word) => word !== '');
    const condition =
      seen.length === 0
        ? '__fish_use_subcommand'
        : seen.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    return `complete -c kbind-fleet -f -n '${condition}' -a '${words.join(' ')}'`;
  });
  return lines.join('\n');
}
