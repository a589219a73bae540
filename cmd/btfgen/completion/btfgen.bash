# Completion of btfgen for bash.

_btfgen() {
	local line=${COMP_LINE:0:COMP_POINT} words=() n=-1 i part= before= text meaning

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

	COMPREPLY=() # bash completes files if nothing is added
	while IFS=$'\t' read -r text meaning; do
		COMPREPLY+=("${text#"$before"}")
	done < <(command btfgen __complete "${words[@]:1}" 2>/dev/null)
}

complete -o bashdefault -o default -F _btfgen btfgen
