# Completion of btfgen for fish.

function __btfgen_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l current (commandline -ct)
    set -l lines (command btfgen __complete $before "$current" 2>/dev/null)
    or return
    if test (count $lines) -gt 0
        printf '%s\n' $lines
        return
    end

    # A file, also behind =.
    set -l option (string match -r -- '^.*=' "$current")
    for file in (__fish_complete_path (string replace -- "$option" '' "$current"))
        printf '%s%s\n' "$option" $file
    end
end

complete -c btfgen -f -a '(__btfgen_complete)'
