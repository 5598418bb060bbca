#compdef podd
# Completion of podd for zsh: source <(podd completion zsh), after compinit; or as
# the file _podd in a directory of $fpath.
_podd() {
	local -a ends begins
	local value description files=1
	while IFS=$'\t' read -r value description; do
		case $value in
		:files) files=0 ;;
		*[=:/,]) begins+=("${value//:/\\:}${description:+:$description}") ;;
		*) ends+=("${value//:/\\:}${description:+:$description}") ;;
		esac
	done < <("${(Q)~words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
	(( ${#ends} )) && _describe podd ends
	(( ${#begins} )) && _describe podd begins -S ''
	(( files )) || _files
}
if [[ ${funcstack[1]} == _podd ]]; then
	_podd "$@"
else
	compdef _podd podd
fi
