//! Prints a C header of the library. `minder.h` has a section for each file of `bindings/c/src`, in the order
//! of `lib.rs`; the files of [`APART`] have a header each, `minder_cells.h` for `cells.rs`.
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

/// The modules whose declarations are not in `minder.h`.
const APART: [&str; 1] = ["cells"];

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(package), Some(name)) = (args.next().map(PathBuf::from), args.next()) else {
        bail!("usage: xtask-c-header DIRECTORY-OF-THE-PACKAGE NAME-OF-THE-HEADER");
    };
    let module = APART.into_iter().find(|module| name == format!("minder_{module}.h").as_str());
    print!("{}", module.map_or_else(|| header(&package), |module| header_apart(&package, module))?);
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
    let modules = root.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    for module in modules.filter(|module| !APART.contains(module)) {
        let file = src.join(module).with_extension("rs");
        text.push_str(&section(&file, package).with_context(|| format!("section {module}"))?);
    }
    text.push_str(&read(&package.join("header/end.h"))?);
    Ok(text)
}

/// Returns the header of one module.
fn header_apart(package: &Path, module: &str) -> Result<String> {
    let file = package.join("src").join(module).with_extension("rs");
    let guard = format!("MINDER_{}_H", module.to_uppercase());
    let mut text = comment("/**", &with_file_command(head(&read(&file)?)));
    let _ = write!(
        text,
        "/* Made by `cargo xtask c-header` from bindings/c/src/{module}.rs. Do not edit. */\n\n\
         #ifndef {guard}\n#define {guard}\n\n#include <minder.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{}\
         #ifdef __cplusplus\n}} /* extern \"C\" */\n#endif\n\n#endif /* {guard} */\n",
        declarations(&file, package)?
    );
    Ok(text)
}

/// doxygen describes only files that have this command.
fn with_file_command(mut lines: Vec<&str>) -> Vec<&str> {
    lines.splice(0..0, ["@file", ""]);
    lines
}

/// Returns the section of one file; nothing for a file without declarations.
fn section(file: &Path, package: &Path) -> Result<String> {
    let declarations = declarations(file, package)?;
    if declarations.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("\n{}\n{declarations}", comment("/*", &head(&read(file)?))))
}

/// Returns the declarations of one file.
fn declarations(file: &Path, package: &Path) -> Result<String> {
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
    Ok(short_comments(declarations.trim()) + "\n")
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
