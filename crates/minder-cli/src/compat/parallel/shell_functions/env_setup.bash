# env_parallel and parset for bash. To load them: eval "$(minder parallel --env-setup bash)"
#
# `builtin` finds the commands of bash even if the shell has functions with their names.

# Runs `minder parallel` with the functions, aliases and variables of this shell. Jobs read them from a
# private file, which bash reads because of BASH_ENV. Nothing of it is in the environment.
env_parallel() {
    case ${1-} in
    --session)
        PARALLEL_IGNORED_NAMES=$(_minder_names)
        builtin return
        ;;
    --end-session)
        builtin unset -v PARALLEL_IGNORED_NAMES
        builtin return
        ;;
    --record-env)
        _minder_record_names
        builtin return
        ;;
    esac
    (
        builtin trap - ERR DEBUG RETURN
        builtin set +a
        _minder_make_dir env
        _minder_chosen=$("$_minder_program" parallel --env-names "$@") || builtin exit
        (_minder_save) >|"$_minder_dir/env" || builtin exit 255
        # bash expands BASH_ENV as if it were in double quotes.
        _minder_text=${_minder_dir//\\/\\\\}
        _minder_text=${_minder_text//\$/\\\$}
        PARALLEL_SHELL=$BASH BASH_ENV=${_minder_text//\`/\\\`}/env "$_minder_program" parallel "$@"
    )
}

# Assigns the outputs of jobs, without the last newline: to an array, or to the variables of a list.
parset() {
    builtin local _minder_list _minder_text _minder_name _minder_count=0 _minder_status=255
    IFS=', ' builtin read -r -a _minder_list <<<"${1-}"
    for _minder_text in "${_minder_list[@]:-}"; do
        if ! [[ $_minder_text =~ ^[A-Za-z_][A-Za-z0-9_]*(\[[A-Za-z0-9_.:@%+-]+\])?$ ]]; then
            builtin printf 'parset: invalid name `%s`: expected NAME, NAME[INDEX] or a list (parset NAMES COMMAND ::: ARGUMENT…)\n' \
                "$_minder_text" >&2
            builtin return 255
        fi
        _minder_name=${_minder_text%%\[*}
        if _minder_is_reserved; then
            builtin printf 'parset: cannot assign to `%s`: parset uses this name itself\n' "$_minder_text" >&2
            builtin return 255
        fi
        # bash evaluates what is assigned to an integer, and a reference may name one.
        _minder_name=$(\builtin declare -p -- "$_minder_name" 2>/dev/null || \builtin :)
        _minder_name=${_minder_name#declare -}
        _minder_name=${_minder_name%% *}
        case $_minder_name in
        *[inr]*)
            builtin printf 'parset: cannot assign to `%s`: it is an integer, a reference or read-only\n' "$_minder_text" >&2
            builtin return 255
            ;;
        esac
        # bash also evaluates an index, which may name a variable with an output of a job.
        case $_minder_text in
        *'[@]') ;;
        *']') [[ $_minder_text =~ \[-?[0-9]+\]$ ]] || builtin test "${_minder_name:0:1}" = A && builtin continue ;;
        *) builtin continue ;;
        esac
        builtin printf 'parset: invalid index in `%s`: expected a number, or a key of an array of `declare -A`\n' \
            "$_minder_text" >&2
        builtin return 255
    done
    builtin shift
    _minder_name=
    if [[ ${#_minder_list[@]} -eq 1 && ${_minder_list[0]} != *']' ]]; then
        _minder_name=${_minder_list[0]}
        # The name consists of letters, digits and underscores.
        builtin eval "$_minder_name=()"
    fi
    while IFS= builtin read -r -d '' _minder_text; do
        case $_minder_text in
        status=*)
            _minder_status=${_minder_text#status=}
            builtin continue
            ;;
        esac
        _minder_text=${_minder_text#output=}
        if [[ -n $_minder_name ]]; then
            builtin printf -v "$_minder_name[$_minder_count]" %s "${_minder_text%$'\n'}"
        elif [[ $_minder_count -lt ${#_minder_list[@]} ]]; then
            builtin printf -v "${_minder_list[_minder_count]}" %s "${_minder_text%$'\n'}"
        fi
        _minder_count=$((_minder_count + 1))
    done < <(_minder_outputs "$@")
    if [[ -z $_minder_name && $_minder_count -gt ${#_minder_list[@]} ]]; then
        builtin printf 'parset: %s outputs for %s names\n' "$_minder_count" "${#_minder_list[@]}" >&2
        builtin return 255
    fi
    builtin return "$_minder_status"
}

# Prints each output and then the status, each with a NUL at its end. A NUL within an output is removed, since
# a variable cannot have one. This runs in a subshell.
_minder_outputs() {
    builtin trap - ERR DEBUG RETURN
    builtin set +ae
    _minder_make_dir parset
    env_parallel --keep-order --files --tmpdir "$_minder_dir" "$@" >|"$_minder_dir/list"
    _minder_status=$?
    while IFS= builtin read -r _minder_name; do
        builtin printf output=
        builtin command tr -d '\0' <"$_minder_name"
        builtin printf '\0'
        _minder_remove_file
    done <"$_minder_dir/list"
    builtin printf 'status=%s\0' "$_minder_status"
}

# Prints the names that jobs could get.
_minder_names() {
    builtin compgen -A variable
    builtin compgen -A function
    builtin compgen -A alias
    builtin :
}

# Prints what jobs get, so that no function or alias changes the lines after it: functions come after variables,
# and aliases last. This runs in a subshell, in which options that change the meaning of these lines are off.
_minder_save() {
    builtin shopt -p extglob
    builtin shopt -u nocasematch
    builtin set +o posix
    _minder_choose
    builtin printf 'unset -v BASH_ENV PARALLEL_SHELL\n'
    [[ -z ${PARALLEL_SHELL+set} ]] || builtin declare -p PARALLEL_SHELL
    if [[ -n ${BASH_ENV+set} ]]; then
        builtin declare -p BASH_ENV
        # What bash does when a job is started without env_parallel. `@P` expands as in double quotes, but twice
        # what follows a backslash.
        builtin printf '_minder_text=%q\n' "${BASH_ENV//\\/\\\\}"
        builtin printf '%s\n' '_minder_text=${_minder_text@P}' '[[ $_minder_text == */* ]] || _minder_text=./$_minder_text' \
            '[[ ! -e $_minder_text || ${BASH_ENV@a} != *x* ]] || . "$_minder_text"' 'unset -v _minder_text'
    fi
    builtin compgen -A variable >|"$_minder_dir/names"
    while IFS= builtin read -r _minder_name; do
        _minder_save_variable
    done <"$_minder_dir/names"
    builtin compgen -A function >|"$_minder_dir/names"
    while IFS= builtin read -r _minder_name; do
        _minder_is_wanted "$_minder_name" && builtin declare -f -- "$_minder_name"
    done <"$_minder_dir/names"
    builtin compgen -A alias >|"$_minder_dir/names"
    while IFS= builtin read -r _minder_name; do
        _minder_is_wanted "$_minder_name" && builtin printf '\\builtin ' && builtin alias -- "$_minder_name"
    done <"$_minder_dir/names"
    builtin printf '\\builtin shopt -s expand_aliases\n'
    builtin :
}

# Prints the declaration of a variable, unless it is exported, belongs to bash, or cannot be set again.
_minder_save_variable() {
    _minder_is_reserved && [[ $_minder_name != _minder_program ]] && builtin return
    case $_minder_name in
    _ | BASH | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARGC | BASH_ARGV | BASH_ARGV0 | BASH_CMDS) builtin return ;;
    BASH_COMMAND | BASH_COMPAT | BASH_EXECUTION_STRING | BASH_LINENO | BASH_MONOSECONDS) builtin return ;;
    BASH_REMATCH | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | BASH_VERSINFO | BASH_VERSION) builtin return ;;
    BASH_XTRACEFD | COMP_CWORD | COMP_KEY | COMP_LINE | COMP_POINT | COMP_TYPE | COMP_WORDBREAKS) builtin return ;;
    COMP_WORDS | DIRSTACK | EPOCHREALTIME | EPOCHSECONDS | EUID | FUNCNAME | FUNCNEST | GROUPS) builtin return ;;
    HISTCMD | LINENO | OPTARG | OPTERR | OPTIND | PIPESTATUS | PPID | RANDOM | SECONDS) builtin return ;;
    SHELLOPTS | SHLVL | SRANDOM | UID) builtin return ;;
    esac
    _minder_is_wanted "$_minder_name" || builtin return
    builtin declare -p -- "$_minder_name" >|"$_minder_dir/one" 2>/dev/null || builtin return
    IFS= builtin read -r _minder_text <"$_minder_dir/one"
    _minder_text=${_minder_text#declare -}
    case ${_minder_text%% *} in
    *r*) ;;
    *[aA]*) builtin declare -p -- "$_minder_name" ;;
    *x*) ;;
    *) builtin declare -p -- "$_minder_name" ;;
    esac
}
