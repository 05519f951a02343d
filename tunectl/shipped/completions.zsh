#compdef tunectl
# Completion of tunectl for zsh. The program itself knows what may follow; see "tunectl --help".

_tunectl() {
    local kind value said
    local -a values shown
    local wide=0 files=0 dirs=0
    while IFS=$'\t' read -r kind value said; do
        case $kind in
            plain)
                values+=("$value")
                shown+=("$value${said:+  -- $said}")
                [[ -n $said ]] && wide=1
                ;;
            file) files=1 ;;
            dir) dirs=1 ;;
        esac
    done < <(_TUNECTL_COMPLETE=zsh_complete _TUNECTL_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" \
        PROGRAM </dev/null 2>/dev/null)
    if (( wide )); then
        compadd -V tunectl -l -d shown -a values
    elif (( $#values )); then
        compadd -V tunectl -a values
    fi
    if (( files || dirs )); then
        [[ $PREFIX == --*=* ]] && compset -P '--*='
        (( files )) && _files
        (( dirs )) && _files -/
    fi
    (( $#values || files || dirs ))
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _tunectl "$@"
else
    compdef _tunectl tunectl
fi
