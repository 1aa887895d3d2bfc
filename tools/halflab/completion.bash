# Tab completion of halflab for bash: the commands, their options and files, as the program itself lists them.
_halflab() {
  local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} asked=1
  if [ "$COMP_CWORD" -gt 2 ] && [ "${COMP_WORDS[1]}" = run ]; then asked=2; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null | sed -nE '/^Commands/,/^$/s/^  ([a-z]+) .*/\1/p')" -- "$word")
  elif [ "$COMP_CWORD" -eq 2 ] && [ "${COMP_WORDS[1]}" = run ] && [[ $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" run --list 2>/dev/null)" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "${COMP_WORDS[@]:1:asked}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$word")
  fi
}
complete -o default -F _halflab halflab
