//! Prints the C header of the library: a section for each file of `bindings/c/src`, in the order of
//! `lib.rs`.
//!
//! cbindgen writes the declarations of one file. This program adds what makes a reference of them: the
//! head of each file as the introduction of its section, short comments on one line, and the two parts
//! of `bindings/c/header`. A package apart from xtask, which every chore builds first.
#![expect(clippy::print_stdout, reason = "it prints the header")]

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const EXTERN_BEGIN: &str = "#ifdef __cplusplus\nextern \"C\" {\n#endif // __cplusplus\n";
const EXTERN_END: &str = "#ifdef __cplusplus\n}  // extern \"C\"\n#endif  // __cplusplus\n";
/// The longest line of the header.
const COLUMNS: usize = 110;

fn main() -> Result<()> {
    let Some(package) = std::env::args_os().nth(1).map(PathBuf::from) else {
        bail!("usage: xtask-c-header DIRECTORY-OF-THE-PACKAGE");
    };
    print!("{}", header(&package)?);
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the whole header.
fn header(package: &Path) -> Result<String> {
    let src = package.join("src");
    let root = read(&src.join("lib.rs"))?;
    let mut text = comment("/**", &with_file_command(head(&root)));
    text.push_str(&read(&package.join("header/begin.h"))?);
    for module in root.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')) {
        let file = src.join(module).with_extension("rs");
        text.push_str(&section(&file, package).with_context(|| format!("section {module}"))?);
    }
    text.push_str(&read(&package.join("header/end.h"))?);
    Ok(text)
}

/// doxygen describes only files that have this command.
fn with_file_command(mut lines: Vec<&str>) -> Vec<&str> {
    lines.splice(0..0, ["@file", ""]);
    lines
}

/// Returns the section of one file; nothing for a file without declarations.
fn section(file: &Path, package: &Path) -> Result<String> {
    let source = read(file)?;
    let mut config =
        cbindgen::Config::from_file(package.join("cbindgen.toml")).map_err(anyhow::Error::msg)?;
    // cbindgen leaves out types that no function of the file names.
    let name = |line: &str| {
        let rest = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "))?;
        Some(rest.split([' ', '(']).next()?.to_string())
    };
    config.export.include = source.lines().filter_map(name).collect();
    let bindings = cbindgen::Builder::new().with_config(config).with_src(file).generate()?;
    let mut written = Vec::new();
    bindings.write(&mut written);
    let written = String::from_utf8(written)?;
    let declarations = written.replace(EXTERN_BEGIN, "").replace(EXTERN_END, "");
    if declarations.trim().is_empty() {
        return Ok(String::new());
    }
    let mut text = String::from("\n");
    text.push_str(&comment("/*", &head(&source)));
    text.push('\n');
    text.push_str(&short_comments(declarations.trim()));
    text.push('\n');
    Ok(text)
}

/// Returns the documentation at the top of a file.
fn head(source: &str) -> Vec<&str> {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect()
}

/// Returns a comment over several lines.
fn comment(begin: &str, lines: &[&str]) -> String {
    let mut text = format!("{begin}\n");
    for line in lines {
        let _ = writeln!(text, "{}", format!(" * {line}").trim_end());
    }
    text.push_str(" */\n");
    text
}

/// Writes comments of one line on one line.
fn short_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut short = String::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let indent = &line[..line.len() - line.trim_start().len()];
        let content = lines.get(at + 1).and_then(|line| line.trim_start().strip_prefix("* "));
        let ends = lines.get(at + 2).is_some_and(|line| line.trim() == "*/");
        match content {
            Some(content)
                if line.trim() == "/**"
                    && ends
                    && indent.len() + content.len() + "/**  */".len() <= COLUMNS =>
            {
                let _ = writeln!(short, "{indent}/** {content} */");
                at += 3;
            }
            _ => {
                // One empty line separates, and cbindgen sometimes writes two.
                if !(line.is_empty() && short.ends_with("\n\n")) {
                    let _ = writeln!(short, "{}", line.trim_end());
                }
                at += 1;
            }
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_of_one_line_is_written_on_one_line() {
        let text = "/**\n * One.\n */\nint a;\n    /**\n     * Two.\n     */\n/**\n * A.\n *\n * B.\n */";
        let short = "/** One. */\nint a;\n    /** Two. */\n/**\n * A.\n *\n * B.\n */\n";
        assert_eq!(short_comments(text), short);
    }

    #[test]
    fn head_ends_with_the_documentation() {
        assert_eq!(head("//! One.\n//!\n//!     code\n#![x]\n//! no\n"), ["One.", "", "    code"]);
        assert_eq!(comment("/*", &["One.", ""]), "/*\n * One.\n *\n */\n");
    }
}
