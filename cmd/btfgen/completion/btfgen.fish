# Completion of btfgen for fish.

function __btfgen_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l current (commandline -ct)
    set -l lines (command btfgen __complete $before "$current" 2>/dev/null)
    or return
    set -l kind $lines[1]
    set -e lines[1]
    test (count $lines) -eq 0
    or printf '%s\n' $lines

    # Behind = comes a file as well.
    set -l option (string match -r -- '^.*=' "$current")
    set -l path (string replace -- "$option" '' "$current")
    switch $kind
        case files
            for file in (__fish_complete_path "$path")
                printf '%s%s\n' "$option" $file
            end
        case directories
            for dir in (__fish_complete_directories "$path")
                printf '%s%s\n' "$option" $dir
            end
    end
end

complete -c btfgen -f -a '(__btfgen_complete)'
