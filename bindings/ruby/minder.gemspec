# frozen_string_literal: true

# `cargo xtask gem` builds the gem: it puts the Rust sources into `rust` before.

require_relative "lib/minder/version"

Gem::Specification.new do |spec|
  spec.name = "minder"
  spec.version = Minder::VERSION
  spec.summary = "A fiber scheduler on epoll, kqueue or io_uring, and thousands of child processes"
  spec.description = "Minder::Scheduler runs fibers that wait for sockets, pipes, processes, times and locks. " \
                     "Minder::Children starts, hears, times and kills child processes with everything that they " \
                     "started. The loop is native code (Rust)."
  spec.authors = ["The minder authors"]
  spec.licenses = ["MIT", "Apache-2.0"]
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  spec.files = Dir.chdir(__dir__) do
    Dir["{lib,sig,samples}/**/*.{rb,rbs}", "ext/**/*.{c,h,rb}", "{rust,prebuilt}/**/*", "README.md", "LICENSE-*"]
      .select { |path| File.file?(path) }
  end
  # A directory named after a platform has the Rust library for it, and the gem is for that platform alone.
  prebuilt = Dir[File.join(__dir__, "prebuilt/*")].first
  spec.platform = File.basename(prebuilt) if prebuilt
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/minder/extconf.rb"]
  # The files of the extension, except its objects, are not needed after the installation.
end
