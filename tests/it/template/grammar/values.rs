//! Values that leave a mark if a shell evaluates them: a file `MARK` in the current directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::super::Random;

/// The file that an evaluated value creates.
pub(super) const MARK: &str = "MARK";

/// Values that most kinds of evaluation run: arithmetic in any shell, subscripts, `eval`, text in
/// quotes.
const BROAD: &str = r##"
path[$(:>MARK)1]   psvar[$(:>MARK)1]   a[$(:>MARK)]   $(:>MARK)   `:>MARK`
"##;

/// The values, separated by three spaces. `␤` is a newline.
const NARROW: &str = r##"
a[`:>MARK`]   argv[$(:>MARK)1]   PATH[$(:>MARK)1]   x[$(:>MARK)]   v[$(:>MARK)1]   w[$(:>MARK)]
-v a[$(:>MARK)]   -va[$(:>MARK)]   -v
;>MARK;   ␤>MARK␤   &>MARK&   |>MARK   ||>MARK||   &&>MARK   ' ; >MARK #   " ; >MARK #   '; >MARK; '
"; >MARK; "
"$(:>MARK)"   '$(:>MARK)'   '"$(:>MARK)"'   )>MARK;(   $(:>MARK   `:>MARK   }; >MARK; {   ;;esac;>MARK;
done;>MARK;   fi;>MARK
*) >MARK;;   \$(:>MARK)   \\$(:>MARK)   \`:>MARK`   \"$(:>MARK)   $'␤>MARK'   $'\'$(:>MARK)   '\'$(:>MARK)'
\'$(:>MARK)\'
#␤>MARK   x#$(:>MARK)   ${x:=$(:>MARK)}   ${x:-`:>MARK`}   ${a[$(:>MARK)]}   $((a[$(:>MARK)]))
((a[$(:>MARK)]))   x=$(:>MARK)
x=`:>MARK` y   ([$(:>MARK)]=1)   (1 $(:>MARK))   [$(:>MARK)]=1   ($(:>MARK))   a[$(:>MARK)]=1   x+=$(:>MARK)
{$(:>MARK),}   {>MARK,}
{a,$(:>MARK)}   <(:>MARK)   >(:>MARK)   =(:>MARK)   ${ >MARK; }   ${|>MARK;}   ${(e):-$(:>MARK)}
${(e):-'$(:>MARK)'}   ~[$(:>MARK)]
*(e:'>MARK':)   f(e:'>MARK':)   *(+MARKF)   *(#qe:'>MARK':)   (#qe:'>MARK':)   (e:'>MARK':)   e:'>MARK':
+>MARK   1e:'>MARK':
%(e:$(:>MARK):)   %{$(:>MARK)%}   %v$(:>MARK)   %D{$(:>MARK)}   $(:>MARK)%   %(?.$(:>MARK).)   \e[$(:>MARK)
\$(:>MARK)\n
1+a[$(:>MARK)]   a[$(:>MARK)]+1   (a[$(:>MARK)])   -a[$(:>MARK)]   1?a[$(:>MARK)]:2   1,a[$(:>MARK)]
a[a[$(:>MARK)]]   10#a[$(:>MARK)]
x?$(:>MARK)   /s/x/$(:>MARK)/   s/a/$(:>MARK)/   :s/a/$(:>MARK)/   e:s/a/$(:>MARK)/   function x { >MARK; }
() { >MARK; }   x() { >MARK; }
eval >MARK   . MARK   >MARK   <>MARK   2>MARK   &>MARK   a>MARK   a >MARK   >>MARK   >|MARK   exec >MARK
trap '>MARK' EXIT
v   w   x   path   psvar   _   1   -n   -a   -i   -p   -   --   -e   *   ?   [ab]   f   !   !!   !$   ~   ~+
=   =ls   =(   (   )   {   }   {}   {1}
$   $1   $@   ${1}   "$1"   \   \\   '   "   `   ''   ""   %s%n   %d   %1$s   \0\n\c   a b   a'b   a␤b   ␤
a␤   é   -eq   =~   ]   ]]   )   ))   #
"##;

/// Names of commands that evaluate their arguments, and parts of such names, for lines whose
/// commands are composed of values.
const NAMES: &str =
    "eval   ev   al   e   v   l   val   /eval   a/eval   aeval   evalx   .   -v   :>MARK   eval >MARK";

/// The pool of values.
pub(super) struct Values {
    broad: Vec<Vec<u8>>,
    narrow: Vec<Vec<u8>>,
    names: Vec<Vec<u8>>,
}

impl Values {
    pub(super) fn new() -> Values {
        let split = |text: &str| -> Vec<Vec<u8>> {
            let parts = text.split("   ").flat_map(|part| part.split('\n')).filter(|part| !part.is_empty());
            parts.map(|value| value.replace('␤', "\n").into_bytes()).collect()
        };
        let mut narrow = split(NARROW);
        narrow.extend([
            Vec::new(),
            b" ".to_vec(),
            b"\t".to_vec(),
            b"\r".to_vec(),
            b"\x01\\'; >MARK #".to_vec(),
            b"\x7f'; >MARK #".to_vec(),
            b"\n'; >MARK #".to_vec(),
            b"\n\\'; >MARK #".to_vec(),
            b"\xff$(:>MARK)".to_vec(),
            b"\xff'; >MARK #".to_vec(),
            b"\xe0\x81`:>MARK`".to_vec(),
            b"\x81\\$(:>MARK)".to_vec(),
            b"\x83`:>MARK\x83`".to_vec(),
            b"\xc3".to_vec(),
            "\u{2028}$(:>MARK)\u{202e}".as_bytes().to_vec(),
            b"long '\"$`\\\n".repeat(300),
        ]);
        Values { broad: split(BROAD), narrow, names: split(NAMES) }
    }

    /// Draws a value for this line.
    pub(super) fn draw(&self, line: &str, random: &mut Random) -> OsString {
        let composed = line.contains(MARK) && random.below(4) > 0;
        let mut one = |from: &[Vec<u8>]| from[random.below(from.len())].clone();
        if composed {
            return OsString::from_vec(one(&self.names));
        }
        let broad = one(&self.broad);
        let first = one(&self.narrow);
        let second = one(&self.narrow);
        OsString::from_vec(match random.below(20) {
            0..=9 => broad,
            10..=17 => first,
            18 => [first, broad].concat(),
            _ => [first, second].concat(),
        })
    }

    /// Returns the values that shrinking tries.
    pub(super) fn plainest(&self) -> impl Iterator<Item = OsString> {
        self.broad.iter().rev().cloned().chain([b"x".to_vec()]).map(OsString::from_vec)
    }

    /// Returns all values, for lines that are tried with each.
    pub(super) fn all(&self) -> impl Iterator<Item = OsString> {
        self.broad.iter().chain(&self.narrow).cloned().map(OsString::from_vec)
    }
}
