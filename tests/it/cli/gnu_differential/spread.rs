//! One input for several running jobs: in turn, to all, by key.

use super::{Case, case, script};

const KEYS: &str = "a 1\na 2\nb 3\nc 4\nc 5\na 6\n";
const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    // Which job gets which block is left open.
    case("--pipe --round-robin -j2 --block 4 'cat; echo -'").input(TEN).sorted(),
    case("--pipe --roundrobin -j2 -N1 'cat; echo -'").input(TEN).sorted(),
    case("--pipe --round -j1 -N3 'cat; echo -'").input(TEN),
    case("--round-robin --pipe -j2 -N2 'cat; echo -'").input(TEN).sorted(),
    case("--pipe --round-robin -j3 -N1 cat").input(TEN).sorted(),
    case("--pipe --round-robin -j4 -N5 'cat; echo -'").input("1\n2\n").sorted(),
    case("--pipe --round-robin -j2 -N1 --header : 'cat; echo -'").input("head\n1\n2\n3\n").sorted(),
    case("--pipe --round-robin -j2 -N1 cat").input(""),
    script("seq 200000 | parallel --pipe --round-robin -j3 --block 10k cat | sort -n | cksum"),
    script("seq 100000 | parallel --pipe --round-robin -j3 --block 10k --pipe 'cat > /dev/null; echo end'"),
    script("seq 1000 > f; parallel --pipe-part -a f --round-robin -j2 --block 500 cat | sort -n | cksum"),
    // To all of them.
    case("--pipe --tee -k '{}' ::: 'wc -l' 'tail -1' 'cat | head -1'").input(TEN),
    case("--pipe --tee -k head -n {} ::: 1 2 3").input(TEN),
    case("--pipe --tee -k -v wc {} ::: -w -l -c").input(TEN),
    case("--pipe --tee --tag -k 'grep {1} | wc {2}' ::: 1 2 ::: -l -c").input(TEN),
    case("--pipe --tee -k 'sed s/^/{}/' ::: a b").input("1\n")
        .differs("Where a value would be code, the line is refused"),
    case("--pipe --tee -k -j1 'cat; echo {}' ::: a b c").input("1\n2\n").status()
        .differs("all jobs run at once"),
    case("--pipe-part -a ten --tee -k tail -n {} ::: 1 2").files(&[("ten", TEN)]),
    script("seq 300000 | parallel --pipe --tee -k -j3 '{}' ::: cksum 'wc -c' 'tail -1'"),
    script("seq 300000 | parallel --pipe --tee -k -j3 '{}' ::: 'wc -c' 'head -1' true"),
    // By key.
    case("--pipe --shard 1 --colsep ' ' -j2 'cat > f$PARALLEL_SEQ'").input(KEYS),
    script("parallel --pipe --shard 1 --colsep ' ' -j3 'cut -c1 | sort -u' | sort").input(KEYS),
    script("parallel --pipe --shard k --header : --colsep ' ' -j3 cat | grep -v '^k v' | sort")
        .input("k v\na 1\nb 2\na 3\n"),
    case("--pipe --shard 2 --colsep ' ' -j4 cat").input(KEYS).sorted(),
    case("--pipe --bin 1 -j11 -k 'cat; echo -'").input(TEN),
    case("--pipe --bin 1 -j4 -k 'cat; echo -'").input(TEN),
    case("--pipe --bin 2 --colsep ' ' -j3 -k 'cat; echo -'").input(KEYS),
    case("--pipe --bin k --header : --colsep ' ' -j3 -k 'cat; echo -'").input("k v\n1 a\n2 b\n4 c\n")
        .differs("every job gets the header"),
    case("--pipe --bin '1 $_%=2' -j4 -k 'cat; echo -'").input(TEN).differs("No Perl"),
    case("--pipe --group-by 1 --colsep ' ' -k -N1 'cat; echo -'").input(KEYS),
    case("--pipe --groupby 1 --colsep ' ' -k -N1 'cat; echo -'").input(KEYS).status(),
    case("--pipe --group-by 1 --colsep ' ' -k -N2 'cat; echo -'").input(KEYS),
    case("--pipe --group-by 1 --colsep ' ' -k --block 4 'cat; echo -'").input(KEYS)
        .differs("blocks may end elsewhere, but never inside a group"),
    case("--pipe --group-by k --header : --colsep ' ' -k -N1 'cat; echo -'").input("k v\na 1\na 2\nb 3\n"),
    script("parallel --pipe --group-by 1 --header : --colsep ' ' -k -N1 'tail -n +2; echo -'")
        .input("k v\na 1\na 2\nb 3\n"),
    case("--pipe --group-by 's/ .*//' -k -N1 'cat; echo -'").input(KEYS).differs("No Perl"),
    case("--pipe-part -a keys --group-by 1 --colsep ' ' -k --block 10 'cat; echo -'").files(&[("keys", KEYS)])
        .differs("blocks may end elsewhere, but never inside a group"),
];
