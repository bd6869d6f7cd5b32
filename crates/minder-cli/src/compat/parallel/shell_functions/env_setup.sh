# What env_parallel of bash and of zsh share.

# Writes the names that jobs could get to the file that `--env _` reads.
_minder_record_names() {
    local _minder_home=${PARALLEL_HOME:-${HOME-}/.parallel}
    mkdir -p -- "$_minder_home" && _minder_names >"$_minder_home/ignored_vars"
}

# Returns whether jobs get what has this name.
_minder_is_wanted() {
    if [[ -n $_minder_chosen ]]; then
        [[ $'\n'$_minder_chosen == *$'\n'"$1"$'\n'* ]]
    else
        [[ $'\n'$_minder_ignored$'\n' != *$'\n'"$1"$'\n'* ]]
    fi
}

# Reads the options `--env`: sets the names that jobs get, or those that they do not get.
_minder_choose() {
    _minder_chosen=
    _minder_ignored=${PARALLEL_IGNORED_NAMES-}
    local _minder_name _minder_home=${PARALLEL_HOME:-${HOME-}/.parallel}
    while [[ $# -gt 0 && $1 != :::* && $1 != -- ]]; do
        _minder_name=
        case $1 in
        --env=*) _minder_name=${1#--env=} ;;
        --env)
            shift
            _minder_name=${1-}
            ;;
        esac
        case $_minder_name in
        '' | *=*) ;;
        _) _minder_ignored+=$'\n'$(cat -- "$_minder_home/ignored_vars" 2>/dev/null) ;;
        *) _minder_chosen+=$_minder_name$'\n' ;;
        esac
        shift $(($# > 0))
    done
}
