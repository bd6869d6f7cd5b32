# env_parallel and parset for bash. To load them: eval "$(minder parallel --env-setup bash)"

# Runs `minder parallel` with the functions, aliases and variables of this shell. Jobs read them from a
# private file, which bash reads because of BASH_ENV. Nothing of it is in the environment.
env_parallel() {
    case ${1-} in
    --session)
        PARALLEL_IGNORED_NAMES=$(_minder_names)
        return
        ;;
    --end-session)
        unset -v PARALLEL_IGNORED_NAMES
        return
        ;;
    --record-env)
        _minder_record_names
        return
        ;;
    esac
    (
        trap - ERR DEBUG RETURN
        _minder_dir=$(command mktemp -d "${TMPDIR:-/tmp}/minder-env.XXXXXXXX") || exit 255
        trap 'command rm -rf -- "$_minder_dir"' EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        _minder_save "$@" >|"$_minder_dir/env" || exit 255
        PARALLEL_SHELL=$BASH BASH_ENV=$_minder_dir/env "$_minder_program" parallel "$@"
    )
}

# Assigns the outputs of jobs, without the last newline: to an array, or to the variables of a list.
parset() {
    local _minder_list=() _minder_text _minder_attributes _minder_count=0 _minder_status=255
    IFS=', ' read -r -a _minder_list <<<"${1-}"
    for _minder_text in "${_minder_list[@]:-}"; do
        if ! [[ $_minder_text =~ ^[A-Za-z_][A-Za-z0-9_]*(\[[A-Za-z0-9_.:@%+-]+\])?$ ]]; then
            printf 'parset: invalid name `%s`: expected NAME, NAME[INDEX] or a list (parset NAMES COMMAND ::: ARGUMENT…)\n' \
                "$_minder_text" >&2
            return 255
        fi
        # bash evaluates what is assigned to an integer, and a reference may name one.
        _minder_attributes=$(declare -p -- "${_minder_text%%\[*}" 2>/dev/null || :)
        _minder_attributes=${_minder_attributes#declare -}
        case ${_minder_attributes%% *} in
        *[inr]*)
            printf 'parset: cannot assign to `%s`: it is an integer, a reference or read-only\n' "$_minder_text" >&2
            return 255
            ;;
        esac
    done
    shift
    local _minder_array=
    if [[ ${#_minder_list[@]} -eq 1 && ${_minder_list[0]} != *']' ]]; then
        _minder_array=${_minder_list[0]}
        # The name consists of letters, digits and underscores.
        eval "$_minder_array=()"
    fi
    while IFS= read -r -d '' _minder_text; do
        case $_minder_text in
        status=*)
            _minder_status=${_minder_text#status=}
            continue
            ;;
        esac
        _minder_text=${_minder_text#output=}
        if [[ -n $_minder_array ]]; then
            printf -v "$_minder_array[$_minder_count]" %s "${_minder_text%$'\n'}"
        elif [[ $_minder_count -lt ${#_minder_list[@]} ]]; then
            printf -v "${_minder_list[_minder_count]}" %s "${_minder_text%$'\n'}"
        fi
        _minder_count=$((_minder_count + 1))
    done < <(_minder_outputs "$@")
    if [[ -z $_minder_array && $_minder_count -gt ${#_minder_list[@]} ]]; then
        printf 'parset: %s outputs for %s names\n' "$_minder_count" "${#_minder_list[@]}" >&2
        return 255
    fi
    return "$_minder_status"
}

# Prints each output and then the status, each with a NUL at its end. A NUL within an output is removed, since
# a variable cannot have one. This runs in a subshell, whose traps need the name of the directory.
_minder_outputs() {
    local _minder_file _minder_status=0
    trap - ERR DEBUG RETURN
    set +e
    _minder_dir=$(command mktemp -d "${TMPDIR:-/tmp}/minder-parset.XXXXXXXX") || exit 255
    trap 'command rm -rf -- "$_minder_dir"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    env_parallel --keep-order --files --tmpdir "$_minder_dir" "$@" >|"$_minder_dir/list"
    _minder_status=$?
    while IFS= read -r _minder_file; do
        printf output=
        command tr -d '\0' <"$_minder_file"
        printf '\0'
    done <"$_minder_dir/list"
    printf 'status=%s\0' "$_minder_status"
}

# Prints the names that jobs could get.
_minder_names() {
    compgen -A variable
    compgen -A function
    compgen -A alias
    :
}

# Prints what jobs get. Functions come first and aliases last, so that no alias changes a function.
_minder_save() {
    local _minder_name _minder_line _minder_chosen _minder_ignored
    _minder_choose "$@"
    if [[ -n ${BASH_ENV-} ]]; then
        printf '. %q\nexport BASH_ENV=%q\n' "$BASH_ENV" "$BASH_ENV"
    else
        printf 'unset -v BASH_ENV\n'
    fi
    [[ -n ${PARALLEL_SHELL+set} ]] || printf 'unset -v PARALLEL_SHELL\n'
    shopt -p extglob
    compgen -A function >|"$_minder_dir/names"
    while IFS= read -r _minder_name; do
        _minder_is_wanted "$_minder_name" && declare -f -- "$_minder_name"
    done <"$_minder_dir/names"
    compgen -A variable >|"$_minder_dir/names"
    while IFS= read -r _minder_name; do
        _minder_save_variable
    done <"$_minder_dir/names"
    printf 'shopt -s expand_aliases\n'
    compgen -A alias >|"$_minder_dir/names"
    while IFS= read -r _minder_name; do
        _minder_is_wanted "$_minder_name" && alias -- "$_minder_name"
    done <"$_minder_dir/names"
    :
}

# Prints the declaration of a variable, unless it is exported, belongs to bash, or cannot be set again.
_minder_save_variable() {
    case $_minder_name in
    _minder_program) ;;
    _ | _minder_*) return ;;
    BASH | BASH[_OP]* | COMP_* | DIRSTACK | EPOCH* | EUID | FUNCNAME | FUNCNEST | GROUPS | HISTCMD | LINENO) return ;;
    OPT* | PIPESTATUS | PPID | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID) return ;;
    esac
    _minder_is_wanted "$_minder_name" || return
    declare -p -- "$_minder_name" >|"$_minder_dir/one" 2>/dev/null || return
    IFS= read -r _minder_line <"$_minder_dir/one"
    _minder_line=${_minder_line#declare -}
    case ${_minder_line%% *} in
    *r*) ;;
    *[aA]*) declare -p -- "$_minder_name" ;;
    *x*) ;;
    *) declare -p -- "$_minder_name" ;;
    esac
}
