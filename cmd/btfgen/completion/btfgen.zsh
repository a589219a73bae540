#compdef btfgen
# Completion of btfgen for zsh.

_btfgen() {
	local -a before lines words_with_meaning
	local line text meaning

	(( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
	lines=("${(@f)$(command btfgen __complete "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
	for line in "${(@)lines}"; do
		[[ -n $line ]] || continue
		text=${line%%$'\t'*} meaning=${line#*$'\t'}
		text=${text//:/\\:}
		[[ -z $meaning ]] || text+=":$meaning"
		words_with_meaning+=("$text")
	done
	if (( $#words_with_meaning )); then
		_describe 'btfgen' words_with_meaning
	else
		compset -P '*=' # a file, also behind =
		_files
	fi
}

# The file is a function of $fpath, or is sourced.
if [[ $funcstack[1] == _btfgen ]]; then
	_btfgen "$@"
else
	compdef _btfgen btfgen
fi
