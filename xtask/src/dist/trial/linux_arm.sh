# Process 1 of the machine for aarch64, with the unpacked archive in /root. Each step prints `ok NAME`, or
# `failed NAME` and its output, which is indented. The last line is `end`.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox --install -s /bin
export HOME=/root PATH=/root:/bin TERM=dumb
cd /root

# Runs the lines of standard input in a shell that ends at the first failure.
step() {
    lines=$(cat)
    if sh -ec "$lines" </dev/null >/tmp/output 2>&1; then
        echo "ok $1"
    else
        echo "failed $1"
        sed 's/^/    /' /tmp/output
    fi
}

step 'print the version' <<'END'
minder --version
test "$(minder --version)" = "minder $VERSION"
END

step 'run the first example' <<'END'
eval "$EXAMPLE" >/tmp/counts
sort -o /tmp/counts /tmp/counts
for file in LICENSE-*; do wc -c "$file"; done | sort | diff - /tmp/counts
END

step 'print the output of 200 jobs in order' <<'END'
seq 200 | minder run -k -j8 --quiet 'echo {}' >/tmp/ordered
seq 200 | cmp - /tmp/ordered
END

step 'leave no job after kill -9' <<'END'
count() { ps | grep -c '[s]leep 100 [1-4]' || true; }
minder run -j4 'sleep 100' ::: 1 2 3 4 &
for second in $(seq 30); do
    test "$(count)" -lt 4 || break
    sleep 1
done
test "$(count)" -ge 4
kill -9 $!
sleep 2
# Without threads of the kernel.
ps | grep -v ' \['
test "$(count)" = 0
END

step 'list the runs' <<'END'
minder log >/tmp/log
cat /tmp/log
grep 'wc -c {}.* 2 *0 ' /tmp/log
grep 'echo {}.* 200 *0 ' /tmp/log
grep 'sleep 100.*killed, 4 left' /tmp/log
END

step 'list the jobs that are left' <<'END'
minder resume --dry-run >/tmp/left
printf 'sleep 100 %s\n' 1 2 3 4 | diff - /tmp/left
END

echo end
poweroff -f
