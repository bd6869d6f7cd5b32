# env_parallel and parset for zsh. To load them: eval "$(minder parallel --env-setup zsh)"
#
# `builtin` finds the commands of zsh even if the shell has functions with their names.

# Runs `minder parallel` with the functions, aliases and variables of this shell. Jobs read them from a
# private file, which zsh reads because of ZDOTDIR. Nothing of it is in the environment.
env_parallel() {
    case ${1-} in
    --session)
        builtin typeset -g PARALLEL_IGNORED_NAMES="$(_minder_names)"
        builtin return
        ;;
    --end-session)
        builtin unset PARALLEL_IGNORED_NAMES
        builtin return
        ;;
    --record-env)
        _minder_record_names
        builtin return
        ;;
    esac
    (
        builtin setopt no_all_export posix_traps
        _minder_make_dir env
        _minder_chosen=$("$_minder_program" parallel --env-names "$@") || builtin exit
        (_minder_save) >|"$_minder_dir/.zshenv" || builtin exit 255
        PARALLEL_SHELL=${commands[zsh]:-zsh} ZDOTDIR=$_minder_dir "$_minder_program" parallel "$@"
    )
}

# Assigns the outputs of jobs, without the last newline: to an array, or to the variables of a list.
parset() {
    builtin local _minder_text _minder_name _minder_count=0 _minder_status=255
    builtin local -a _minder_list _minder_values
    _minder_list=(${(s:,:)${1-}// /,})
    [[ -n $_minder_list ]] || _minder_list=('')
    for _minder_text in "${_minder_list[@]}"; do
        if ! [[ $_minder_text =~ '^[A-Za-z_][A-Za-z0-9_]*(\[[A-Za-z0-9_.:@%+-]+\])?$' ]]; then
            builtin print -ru2 -- "parset: invalid name \`$_minder_text\`: expected NAME, NAME[INDEX] or a list (parset NAMES COMMAND ::: ARGUMENT…)"
            builtin return 255
        fi
        _minder_name=${_minder_text%%\[*}
        if _minder_is_reserved; then
            builtin print -ru2 -- "parset: cannot assign to \`$_minder_text\`: parset uses this name itself"
            builtin return 255
        fi
        # zsh evaluates what is assigned to a number.
        case ${(Pt)_minder_name} in
        integer* | float* | *readonly*)
            builtin print -ru2 -- "parset: cannot assign to \`$_minder_text\`: it is a number or read-only"
            builtin return 255
            ;;
        esac
        # zsh also evaluates an index, which may name a variable with an output of a job.
        case $_minder_text in
        *'[@]') ;;
        *']') [[ $_minder_text =~ '\[-?[0-9]+\]$' || ${(Pt)_minder_name} == association* ]] && builtin continue ;;
        *) builtin continue ;;
        esac
        builtin print -ru2 -- "parset: invalid index in \`$_minder_text\`: expected a number, or a key of an array of \`typeset -A\`"
        builtin return 255
    done
    builtin shift
    _minder_name=
    [[ $#_minder_list -eq 1 && $_minder_list[1] != *']' ]] && _minder_name=$_minder_list[1]
    while IFS= builtin read -r -d '' _minder_text; do
        case $_minder_text in
        status=*)
            _minder_status=${_minder_text#status=}
            builtin continue
            ;;
        esac
        _minder_text=${_minder_text#output=}
        _minder_text=${_minder_text%$'\n'}
        _minder_count=$((_minder_count + 1))
        if [[ -n $_minder_name ]]; then
            _minder_values+=("$_minder_text")
        elif [[ $_minder_count -le $#_minder_list ]]; then
            builtin : ${(P)_minder_list[_minder_count]::=$_minder_text}
        fi
    done < <(_minder_outputs "$@")
    if [[ -n $_minder_name ]]; then
        builtin : ${(PA)_minder_name::="${_minder_values[@]}"}
    elif [[ $_minder_count -gt $#_minder_list ]]; then
        builtin print -ru2 -- "parset: $_minder_count outputs for $#_minder_list names"
        builtin return 255
    fi
    builtin return $_minder_status
}

# Prints each output and then the status, each with a NUL at its end. A NUL within an output is removed. This
# runs in a subshell.
_minder_outputs() {
    builtin setopt no_err_exit no_err_return no_all_export posix_traps
    _minder_make_dir parset
    env_parallel --keep-order --files --tmpdir "$_minder_dir" "$@" >|"$_minder_dir/list"
    _minder_status=$?
    while IFS= builtin read -r _minder_name; do
        builtin print -rn -- output=
        builtin command tr -d '\0' <"$_minder_name"
        builtin printf '\0'
        _minder_remove_file
    done <"$_minder_dir/list"
    builtin printf 'status=%s\0' "$_minder_status"
}

# Prints the names that jobs could get.
_minder_names() {
    builtin print -rl -- ${(k)parameters} ${(k)functions} ${(k)aliases} ${(k)galiases}
}

# Prints what jobs get, so that no function or alias changes the lines after it: functions come after variables,
# and aliases last.
_minder_save() {
    builtin zmodload zsh/parameter
    _minder_choose
    builtin print -r -- 'unset ZDOTDIR PARALLEL_SHELL'
    for _minder_name in ZDOTDIR PARALLEL_SHELL; do
        [[ ${(Pt)_minder_name} == *export* ]] && builtin print -r -- "export $_minder_name=${(Pqq)_minder_name}"
    done
    builtin print -r -- '[[ -r ${ZDOTDIR:-$HOME}/.zshenv ]] && . "${ZDOTDIR:-$HOME}/.zshenv"'
    for _minder_name in "${(k)parameters[@]}"; do
        _minder_is_reserved && [[ $_minder_name != _minder_program ]] && builtin continue
        case $parameters[$_minder_name] in
        *special* | *readonly* | *hide* | scalar*export* | integer*export* | float*export*) builtin continue ;;
        esac
        _minder_is_wanted "$_minder_name" && builtin typeset -p -- "$_minder_name"
    done
    for _minder_name in "${(k)functions[@]}"; do
        # A function that is not loaded yet has no body here.
        [[ $functions[$_minder_name] == *'builtin autoload -X'* ]] && builtin continue
        _minder_is_wanted "$_minder_name" && builtin functions -- "$_minder_name"
    done
    for _minder_name in "${(k)aliases[@]}" "${(k)galiases[@]}"; do
        _minder_is_wanted "$_minder_name" && builtin print -rn -- '\builtin ' && builtin alias -L -- "$_minder_name"
    done
    builtin :
}
