# env_parallel and parset for zsh. To load them: eval "$(minder parallel --env-setup zsh)"

# Runs `minder parallel` with the functions, aliases and variables of this shell. Jobs read them from a
# private file, which zsh reads because of ZDOTDIR. Nothing of it is in the environment.
env_parallel() {
    case ${1-} in
    --session)
        typeset -g PARALLEL_IGNORED_NAMES="$(_minder_names)"
        return
        ;;
    --end-session)
        unset PARALLEL_IGNORED_NAMES
        return
        ;;
    --record-env)
        _minder_record_names
        return
        ;;
    esac
    (
        _minder_dir=$(command mktemp -d "${TMPDIR:-/tmp}/minder-env.XXXXXXXX") || exit 255
        trap 'command rm -rf -- "$_minder_dir"' EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        _minder_save "$@" >|"$_minder_dir/.zshenv" || exit 255
        PARALLEL_SHELL=${commands[zsh]:-zsh} ZDOTDIR=$_minder_dir "$_minder_program" parallel "$@"
    )
}

# Assigns the outputs of jobs, without the last newline: to an array, or to the variables of a list.
parset() {
    emulate -L zsh
    local _minder_text _minder_count=0 _minder_status=255 _minder_array=
    local -a _minder_list _minder_values
    _minder_list=(${(s:,:)${1-}// /,})
    [[ -n $_minder_list ]] || _minder_list=('')
    for _minder_text in "${_minder_list[@]}"; do
        if ! [[ $_minder_text =~ '^[A-Za-z_][A-Za-z0-9_]*(\[[A-Za-z0-9_.:@%+-]+\])?$' ]]; then
            print -ru2 -- "parset: invalid name \`$_minder_text\`: expected NAME, NAME[INDEX] or a list (parset NAMES COMMAND ::: ARGUMENT…)"
            return 255
        fi
    done
    shift
    [[ $#_minder_list -eq 1 && $_minder_list[1] != *']' ]] && _minder_array=$_minder_list[1]
    while IFS= read -r -d '' _minder_text; do
        case $_minder_text in
        status=*)
            _minder_status=${_minder_text#status=}
            continue
            ;;
        esac
        _minder_text=${_minder_text#output=}
        _minder_text=${_minder_text%$'\n'}
        _minder_count=$((_minder_count + 1))
        if [[ -n $_minder_array ]]; then
            _minder_values+=("$_minder_text")
        elif [[ $_minder_count -le $#_minder_list ]]; then
            : ${(P)_minder_list[_minder_count]::=$_minder_text}
        fi
    done < <(_minder_outputs "$@")
    if [[ -n $_minder_array ]]; then
        : ${(PA)_minder_array::="${_minder_values[@]}"}
    elif [[ $_minder_count -gt $#_minder_list ]]; then
        print -ru2 -- "parset: $_minder_count outputs for $#_minder_list names"
        return 255
    fi
    return $_minder_status
}

# Prints each output and then the status, each with a NUL at its end. A NUL within an output is removed. This
# runs in a subshell, whose traps need the name of the directory.
_minder_outputs() {
    setopt no_err_exit no_err_return
    local _minder_file _minder_status=0
    _minder_dir=$(command mktemp -d "${TMPDIR:-/tmp}/minder-parset.XXXXXXXX") || exit 255
    trap 'command rm -rf -- "$_minder_dir"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    env_parallel --keep-order --files --tmpdir "$_minder_dir" "$@" >|"$_minder_dir/list"
    _minder_status=$?
    while IFS= read -r _minder_file; do
        print -rn -- output=
        command tr -d '\0' <"$_minder_file"
        printf '\0'
    done <"$_minder_dir/list"
    printf 'status=%s\0' "$_minder_status"
}

# Prints the names that jobs could get.
_minder_names() {
    print -rl -- ${(k)parameters} ${(k)functions} ${(k)aliases} ${(k)galiases}
}

# Prints what jobs get. Functions come first and aliases last, so that no alias changes a function.
_minder_save() {
    zmodload zsh/parameter
    local _minder_name _minder_chosen _minder_ignored
    _minder_choose "$@"
    if [[ -n ${ZDOTDIR+set} ]]; then
        print -r -- "export ZDOTDIR=${(q)ZDOTDIR}"
    else
        print -r -- 'unset ZDOTDIR'
    fi
    print -r -- '[[ -r ${ZDOTDIR:-$HOME}/.zshenv ]] && . "${ZDOTDIR:-$HOME}/.zshenv"'
    [[ -n ${PARALLEL_SHELL+set} ]] || print -r -- 'unset PARALLEL_SHELL'
    for _minder_name in "${(k)functions[@]}"; do
        # A function that is not loaded yet has no body here.
        [[ $functions[$_minder_name] == *'builtin autoload -X'* ]] && continue
        _minder_is_wanted "$_minder_name" && functions -- "$_minder_name"
    done
    for _minder_name in "${(k)parameters[@]}"; do
        case $_minder_name in
        _minder_program) ;;
        _minder_* | ZDOTDIR | PARALLEL_SHELL) continue ;;
        esac
        case $parameters[$_minder_name] in
        *special* | *readonly* | *hide* | scalar*export* | integer*export* | float*export*) continue ;;
        esac
        _minder_is_wanted "$_minder_name" && typeset -p -- "$_minder_name"
    done
    for _minder_name in "${(k)aliases[@]}" "${(k)galiases[@]}"; do
        _minder_is_wanted "$_minder_name" && alias -L -- "$_minder_name"
    done
    :
}
