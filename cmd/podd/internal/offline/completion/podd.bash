# Completion of podd for bash 4.3 and later: source <(podd completion bash)
_podd() {
	local line=${COMP_LINE:-${COMP_WORDS[*]}} words=() files='' i rest cut
	# bash also splits words at = and :. Join them, so that only white space separates words.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		rest=${line#"${line%%[![:space:]]*}"}
		if ((i < 2)) || [[ $rest != "$line" ]]; then
			words+=("${COMP_WORDS[i]}")
		else
			words[-1]+=${COMP_WORDS[i]}
		fi
		line=${rest#"${COMP_WORDS[i]}"}
	done
	local cur=${words[-1]}
	[[ $cur == *[=:]* ]] && cut=${cur%"${cur##*[=:]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		if [[ $line == :files ]]; then
			files=yes
		else
			COMPREPLY+=("${line#"$cut"}")
		fi
	done < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/,] ]]; then
		compopt -o nospace 2>/dev/null
	fi
	if [[ $files ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${cur#"$cut"}")
	fi
}
complete -F _podd podd
