# What env_parallel of bash and of zsh share.

# Creates the private directory of a subshell, and removes it when the subshell exits. The list of `--files`
# has one name a line, so a directory whose name has a newline is not used.
_minder_make_dir() {
    _minder_dir=${TMPDIR:-/tmp}
    [[ $_minder_dir != *$'\n'* ]] || _minder_dir=/tmp
    _minder_dir=$(\builtin command mktemp -d "$_minder_dir/minder-$1.XXXXXXXX") || builtin exit 255
    builtin trap '\builtin command rm -rf -- "$_minder_dir"' EXIT
    builtin trap '\builtin exit 129' HUP
    builtin trap '\builtin exit 130' INT
    builtin trap '\builtin exit 143' TERM
}

# Removes a file of `--files` that another `--tmpdir` has put elsewhere; files of `--results` stay.
_minder_remove_file() {
    case $_minder_name in
    "$_minder_dir"/*) ;;
    */par?????.par) builtin command rm -f -- "$_minder_name" ;;
    esac
}

# Writes the names that jobs could get to the file that `--env _` reads.
_minder_record_names() {
    builtin local _minder_name=${PARALLEL_HOME:-${HOME-}/.parallel}
    builtin command mkdir -p -- "$_minder_name" && _minder_names >|"$_minder_name/ignored_vars"
}

# Returns whether these functions use a variable of this name.
_minder_is_reserved() {
    case $_minder_name in
    _minder_chosen | _minder_count | _minder_dir | _minder_ignored | _minder_list) ;;
    _minder_name | _minder_program | _minder_status | _minder_text | _minder_values) ;;
    *) builtin return 1 ;;
    esac
}

# Returns whether jobs get what has this name.
_minder_is_wanted() {
    if [[ -n $_minder_chosen ]]; then
        [[ $'\n'$_minder_chosen$'\n' == *$'\n'"$1"$'\n'* ]]
    else
        [[ $'\n'$_minder_ignored$'\n' != *$'\n'"$1"$'\n'* ]]
    fi
}

# Reads the values of `--env`, one a line: those are the names that jobs get. `_` excludes recorded names.
_minder_choose() {
    _minder_ignored=${PARALLEL_IGNORED_NAMES-}
    if [[ $'\n'$_minder_chosen$'\n' == *$'\n_\n'* ]]; then
        _minder_text=${PARALLEL_HOME:-${HOME-}/.parallel}/ignored_vars
        _minder_ignored+=$'\n'$(\builtin command cat -- "$_minder_text" 2>/dev/null)
        [[ $_minder_chosen != _ ]] || _minder_chosen=
    fi
}
