# frozen_string_literal: true

# Builds the Rust library by cargo, unless the gem has it, and a Makefile for the C shim that links it.
#
# Environment: CARGO names another cargo; MINDER_CARGO_TARGET_DIR is the directory in which cargo builds;
# MINDER_BUILT_DIR has libminder_c.a and minder-guardian already, and cargo is not called.

require "mkmf"
require "rbconfig"

here = __dir__
# The gem for a platform has the library. Another one has the sources in `rust`; in the repository they
# are its root.
prebuilt = Dir[File.expand_path("../../prebuilt/*", here)].first
root = [File.expand_path("../../rust", here), File.expand_path("../../../..", here)].find do |directory|
  File.file?(File.join(directory, "bindings/c/Cargo.toml"))
end
abort "minder: the Rust sources are missing: reinstall the gem" unless root || prebuilt
if prebuilt && RbConfig::CONFIG["host_os"] =~ /musl/
  abort "minder: the library in this gem needs glibc: gem install minder --platform ruby"
end
if RbConfig::CONFIG["host_os"] =~ /mswin|mingw/
  abort "minder: Windows is not supported yet: the descriptors of Ruby differ from handles there"
end

# Builds the archive and the program of a guardian. Returns their directory.
def build(root)
  cargo = ENV["CARGO"] || find_executable("cargo")
  abort "minder: cargo is missing: install Rust 1.95 or newer, for example from https://rustup.rs" unless cargo

  # In the directory of the Makefile, so that the end of `gem install` removes it.
  target = ENV["MINDER_CARGO_TARGET_DIR"] || File.join(Dir.pwd, "target")
  message "building the Rust library, which takes half a minute... "
  command = [cargo, "build", "--release", "--locked", "--quiet", "--target-dir", target,
             "--manifest-path", File.join(root, "Cargo.toml"), "-p", "minder-c", "-p", "minder-guardian"]
  system(*command) || abort("minder: cargo failed: see the messages above")
  message "done\n"
  File.join(target, "release")
end

built = ENV["MINDER_BUILT_DIR"] || prebuilt || build(root)
archive = File.join(built, "libminder_c.a")
guardian = File.join(built, "minder-guardian")
[archive, guardian].each { |path| abort "minder: #{path} is missing" unless File.file?(path) }

have_func("rb_io_closed_p", "ruby/io.h")

include = prebuilt ? File.join(prebuilt, "include") : File.join(root, "bindings/c/include")
$INCFLAGS << " -I#{include.quote}"
# preadv2 and its flags, before the first header.
$CFLAGS << " -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-declaration-after-statement"
# Nothing is exported but what is marked so: the entry.
$CFLAGS << " -fvisibility=hidden"
$LOCAL_LIBS << " #{archive.quote}"
if RbConfig::CONFIG["host_os"] =~ /linux/
  # The archive contains Rust's standard library, of which the extension exports nothing.
  $DLDFLAGS << " -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--strip-debug"
end
%w[pthread dl m].each { |library| have_library(library) }

create_makefile("minder/minder_ext")

# The program of a guardian lies in the directory of the extension.
File.write("Makefile", <<~MAKE, mode: "a")

  GUARDIAN = #{guardian}
  all: minder-guardian
  minder-guardian: $(GUARDIAN)
  \t$(Q) $(COPY) $(GUARDIAN) $@
  install-so: install-guardian
  install-guardian: minder-guardian
  \t$(Q) $(MAKEDIRS) $(RUBYARCHDIR)
  \t$(Q) $(INSTALL_PROG) minder-guardian $(RUBYARCHDIR)
MAKE
