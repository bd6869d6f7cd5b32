
# Names that change: of runs, profiles, topics and programs.
function __fish_minder_needs_program
    for word in (commandline -opc)[3..]
        string match -q -- '-*' $word
        or return 1
    end
    return 0
end
complete -c minder -n "__fish_minder_using_subcommand log resume retry advise" -f -k -a "(minder __candidates runs 2>/dev/null)"
complete -c minder -n "__fish_minder_using_subcommand help" -f -k -a "(minder __candidates topics 2>/dev/null)"
complete -c minder -n "__fish_minder_using_subcommand man" -f -k -a "(minder __candidates commands 2>/dev/null)"
complete -c minder -n "__fish_minder_using_subcommand run config" -l profile -x -a "(minder __candidates profiles 2>/dev/null)"
complete -c minder -n "__fish_minder_using_subcommand run; and __fish_minder_needs_program" -a "(__fish_complete_command)"
