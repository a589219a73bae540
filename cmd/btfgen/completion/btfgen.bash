# Completion of btfgen for bash.

_btfgen() {
	local line=${COMP_LINE:0:COMP_POINT} words=() n=-1 i part= before= kind= text meaning

	# COMP_WORDS is cut at = and : as well. Words that nothing separates are one.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i == 0)) || [[ $line == [[:blank:]]* ]]; then
			line=${line#"${line%%[![:blank:]]*}"}
			words[++n]=
		fi
		before=${words[n]} part=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || part=$line
		words[n]+=$part line=${line#"$part"}
	done
	[[ $part != [=:]* ]] || before+=$part # what is to be completed begins behind it

	COMPREPLY=()
	while IFS=$'\t' read -r text meaning; do
		if [[ -z $kind ]]; then
			kind=$text
		else
			COMPREPLY+=("${text#"$before"}")
		fi
	done < <(command btfgen __complete "${words[@]:1}" 2>/dev/null)

	case $kind in
	files) # which bash completes itself, by -o default, where there is nothing else
		[[ -z $(compgen -f -- "${words[n]}") ]] || COMPREPLY=()
		;;
	directories)
		compopt -o dirnames +o default +o bashdefault 2>/dev/null
		;;
	*)
		compopt +o default +o bashdefault 2>/dev/null
		;;
	esac
	[[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
}

complete -o bashdefault -o default -F _btfgen btfgen
