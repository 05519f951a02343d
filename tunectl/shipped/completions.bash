# Completion of tunectl for bash. The program itself knows what may follow; see "tunectl --help".

_tunectl() {
    local line answer kind value rest
    COMPREPLY=()
    line=${COMP_LINE:0:COMP_POINT}
    answer=$(_TUNECTL_COMPLETE=bash_complete _TUNECTL_LINE=$line _TUNECTL_BREAKS=$COMP_WORDBREAKS \
        PROGRAM </dev/null 2>/dev/null) || return 0
    while IFS=$'\t' read -r kind value rest; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o plusdirs 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
        esac
    done <<<"$answer"
}

complete -o nosort -F _tunectl tunectl
