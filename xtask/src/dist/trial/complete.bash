# Types lines and Tab to each shell, on a terminal of tmux, and waits for what the shell makes of them.
dir=/tmp/typed
mkdir "$dir"
cd "$dir"
printf '[profile.nightly]\njobs = 1\n' >minder.toml
# A user of zsh has these lines, and zsh asks for them otherwise.
printf 'autoload -U compinit\ncompinit -u\n' >.zshrc
minder run --quiet true ::: a
for id in ~/.local/state/minder/runs/*; do id=${id##*/}; done

# Waits until the terminal shows a line that ends in `$1`.
shows() {
    local end=$((SECONDS + 10))
    until tmux capture-pane -p | grep -c -- "$1\$" >/dev/null; do
        if ((SECONDS > end)); then
            echo "$shell does not show: $1"
            tmux capture-pane -p
            exit 1
        fi
        sleep 0.1
    done
}

# Starts the shell, types `$1` and Tab, and waits for `$2`, a longer line.
completes() {
    tmux new-session -d -x 120 -y 40 -e ZDOTDIR="$dir" "$shell"
    # Keys before the prompt may be lost.
    shows '# \?'
    tmux send-keys -l "$1"
    tmux send-keys Tab
    shows "# $2 \?"
    tmux kill-session
    echo "${shell%% *}: $1 -> $2"
}

tmux -f /dev/null start-server ';' set-option -g exit-empty off
for shell in "bash --rcfile /usr/share/bash-completion/bash_completion -i" zsh \
    "fish -C 'set -g fish_autosuggestion_enabled 0'"; do
    completes 'minder doct' 'minder doctor'
    completes "minder log ${id:0:5}" "minder log $id"
    completes 'minder run --failure-output ne' 'minder run --failure-output never'
    completes 'minder run --color=al' 'minder run --color=always'
    completes 'minder run --profile ' 'minder run --profile nightly'
done
tmux kill-server
rm -r "$dir"
