
# Names that change: of runs, profiles and topics.
_minder_names() {
    local -a names
    names=(${(f)"$(minder __candidates $1 2>/dev/null)"})
    names=(${${names//:/\\:}/$'\t'/:})
    _describe -V $1 names
}
_minder_runs() { _minder_names runs }
_minder_profiles() { _minder_names profiles }
_minder_commands() { _minder_names commands }
_minder_topics() { _minder_names topics }

