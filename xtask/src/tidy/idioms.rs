//! Expressions that save a line and cost the reader more: each has a plain form.

/// Returns every hit: its line, and what to write. `code` is without comments and strings.
pub(crate) fn find(code: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    for (at, _) in code.match_indices(".filter(|_|") {
        found.push((line(at), "`filter` that ignores its argument: write `if`"));
    }
    for (at, _) in code.match_indices(".into_iter().for_each(") {
        found.push((line(at), "`into_iter().for_each(…)`: write `if let` or `for`"));
    }
    for (at, _) in code.match_indices('{') {
        if is_match_on_bool(&code[at + 1..]) {
            found.push((line(at), "`match` on a bool: write `if`"));
        }
    }
    for (at, _) in code.match_indices("let (") {
        if is_tuple_let(&code[at + "let (".len()..]) {
            found.push((line(at), "`let (a, b) = (x, y)`: write two `let`"));
        }
    }
    found.sort_unstable();
    found
}

/// Returns whether a block begins with an arm for `true` or `false`.
fn is_match_on_bool(block: &str) -> bool {
    let block = block.trim_start();
    let arm = block.strip_prefix("true").or_else(|| block.strip_prefix("false"));
    arm.is_some_and(|rest| rest.trim_start().starts_with("=>") || rest.starts_with(" if "))
}

/// Returns whether plain names, here without their opening parenthesis, are bound to a tuple.
fn is_tuple_let(rest: &str) -> bool {
    let Some((names, rest)) = rest.split_once(')') else { return false };
    let is_plain = names.chars().all(|c| c.is_alphanumeric() || "_, \n".contains(c));
    let Some(value) = rest.trim_start().strip_prefix('=') else { return false };
    let Some(inner) = value.trim_start().strip_prefix('(') else { return false };
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return is_plain && inner[at + 1..].trim_start().starts_with(';');
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_idiom_is_found() {
        let one = |code: &str| assert_eq!(find(code).len(), 1, "{code}");
        one("a.filter(|_| b)");
        one("a.into_iter().for_each(|b| c)");
        one("match a {\n    true => b,\n    false => c,\n}");
        one("match a { false if b => c, _ => d }");
        one("let (a, mut b) = (f(c), d);");
        one("let (\n    a,\n    b,\n) = (\n    c,\n    d,\n);");
    }

    #[test]
    fn plain_code_is_left_alone() {
        let none = |code: &str| assert_eq!(find(code), [], "{code}");
        none("a.filter(|b| c)");
        none("match (a, b) { (true, _) => c, _ => d }");
        none("let (a, b) = pair;");
        none("let (a, b) = (c, d).swap();");
        none("if let (Some(a), Some(b)) = (c, d) {}");
    }
}
