
# Names that change: of runs, profiles, topics and programs.
_minder_names() {
    local cur="$2" prev="$3" verb="${COMP_WORDS[1]}" values="" kind="" is_behind="" is_value="" at word
    case "$verb" in
        run) values=" @RUN@ "; kind=programs ;;
        resume | retry) values=" @RESUME@ "; kind=runs ;;
        log) values=" @LOG@ "; kind=runs ;;
        advise) kind=runs ;;
        help) kind=topics ;;
        man) kind=commands ;;
        config) values=" --profile " ;;
    esac
    # bash makes a word of each `=`.
    [[ $cur == = ]] && { cur=""; prev="="; }
    [[ $prev == = ]] && prev="${COMP_WORDS[COMP_CWORD - 1]}"
    [[ $prev == = ]] && prev="${COMP_WORDS[COMP_CWORD - 2]}"
    for ((at = 2; at < COMP_CWORD; at++)); do
        word="${COMP_WORDS[at]}"
        if [[ $word == = ]]; then
            ((at++))
        elif [[ $word == -* ]]; then
            [[ $values == *" $word "* && ${COMP_WORDS[at + 1]} != = ]] && ((at++))
        else
            is_behind=1
            break
        fi
        ((at == COMP_CWORD)) && is_value=1
    done
    if [[ $prev == --profile && -z $is_behind ]]; then
        kind=profiles
    elif ((COMP_CWORD < 2)) || [[ -z $kind || -n $is_value ]]; then
        kind=""
    elif [[ -n $is_behind && $verb == run || $kind == programs && $cur == */* ]]; then
        # The default: names of files.
        COMPREPLY=()
        return 0
    elif [[ -n $is_behind || $cur == -* ]]; then
        kind=""
    fi
    case "$kind" in
        "") _minder "$1" "$cur" "$prev" ;;
        programs) mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$("$1" __candidates "$kind" 2>/dev/null | cut -f1)" -- "$cur") ;;
    esac
    return 0
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _minder_names -o nosort -o bashdefault -o default minder
fi
