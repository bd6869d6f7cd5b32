//! Gives the shared library its stable name.
//!
//! Programs record this name, and the dynamic linker looks for it. Its number changes when a program
//! that was linked before would no longer run.

/// The name for which programs look at run time.
const SONAME: &str = "libminder.so.0";
const INSTALL_NAME: &str = "@rpath/libminder.0.dylib";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("windows") => (), // The name of a DLL is that of its file.
        Ok("macos" | "ios") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,{INSTALL_NAME}"),
        _ => println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}"),
    }
}
