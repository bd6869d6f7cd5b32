# A formula for Homebrew. On Linux it installs the static program, on macOS it builds from the sources.
class Minder < Formula
  desc "Run a command for many arguments at once, with a record of each run"
  homepage "@ADDRESS@"
  license any_of: ["MIT", "Apache-2.0"]
  version "@VERSION@"

  on_macos do
    url "@ADDRESS@/releases/download/v@VERSION@/@FILE_SOURCE@"
    sha256 "@SHA256_SOURCE@"
    depends_on "rust" => :build
  end

  on_linux do
    on_intel do
      url "@ADDRESS@/releases/download/v@VERSION@/@FILE_LINUX@"
      sha256 "@SHA256_LINUX@"
    end
    on_arm do
      url "@ADDRESS@/releases/download/v@VERSION@/@FILE_LINUX_ARM@"
      sha256 "@SHA256_LINUX_ARM@"
    end
  end

  def install
    if OS.mac?
      system "cargo", "install", *std_cargo_args(path: "crates/minder-cli")
      man1.mkpath
      system bin/"minder", "man", "--all", man1
      generate_completions_from_executable(bin/"minder", "completions")
    else
      bin.install "minder"
      man1.install Dir["man/man1/*"]
      bash_completion.install "completions/bash/minder"
      zsh_completion.install "completions/zsh/_minder"
      fish_completion.install "completions/fish/minder.fish"
      doc.install Dir["doc/*"]
    end
  end

  test do
    assert_equal "a\nb\n", shell_output("#{bin}/minder run -k --quiet echo ::: a b 2>/dev/null")
  end
end
