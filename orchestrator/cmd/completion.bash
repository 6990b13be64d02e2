# bash completion of reperf; made by: reperf completion bash
_reperf() {
    local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME} words
    [ "$cur" != "=" ] || cur=
    words=$("$program" completion complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
    mapfile -t COMPREPLY < <(compgen -W "${words//<*>/}" -- "$cur")
    case $words in
    *'<files>'*)
        compopt -o filenames 2>/dev/null
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur") ;;
    *'<dirs>'*)
        compopt -o filenames 2>/dev/null
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
}
complete -F _reperf reperf
