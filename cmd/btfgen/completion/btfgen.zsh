#compdef btfgen
# Completion of btfgen for zsh.

_btfgen() {
	local -a before lines open closed
	local line text meaning
	local -i found=1

	(( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
	lines=("${(@f)$(command btfgen __complete "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")

	# Behind = : and / comes more, without a space.
	for line in "${(@)lines[2,-1]}"; do
		[[ -n $line ]] || continue
		text=${line%%$'\t'*} meaning=${line#*$'\t'}
		text=${text//:/\\:}
		[[ -z $meaning ]] || text+=":$meaning"
		if [[ ${line%%$'\t'*} == *[=:/] ]]; then
			open+=("$text")
		else
			closed+=("$text")
		fi
	done
	(( $#closed )) && _describe 'btfgen' closed && found=0
	case $lines[1] in
	files)
		compset -P '*='
		_files && found=0
		;;
	directories)
		compset -P '*='
		_files -/ && found=0
		;;
	esac
	(( $#open )) && [[ $lines[1] == none || $found -eq 1 ]] && _describe 'btfgen' open -S '' && found=0
	return found
}

# The file is a function of $fpath, or is sourced.
if [[ $funcstack[1] == _btfgen ]]; then
	_btfgen "$@"
else
	compdef _btfgen btfgen
fi
