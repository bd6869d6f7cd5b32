# A flake that builds minder from the archive of the sources.
{
  description = "Run a command for many arguments at once, with a record of each run";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      package = pkgs: pkgs.rustPlatform.buildRustPackage rec {
        pname = "minder";
        version = "@VERSION@";
        src = pkgs.fetchurl {
          url = "@ADDRESS@/releases/download/v${version}/@FILE_SOURCE@";
          sha256 = "@SHA256_SOURCE@";
        };
        # The file Cargo.lock of the sources, next to this file.
        cargoLock.lockFile = ./Cargo.lock;
        cargoBuildFlags = [ "--package" "minder-cli" ];
        # The tests start thousands of processes, and are not in this package.
        doCheck = false;
        nativeBuildInputs = [ pkgs.installShellFiles ];
        postInstall = ''
          mkdir man1
          $out/bin/minder man --all man1
          installManPage man1/*.1
          installShellCompletion --cmd minder \
            --bash <($out/bin/minder completions bash) \
            --zsh <($out/bin/minder completions zsh) \
            --fish <($out/bin/minder completions fish)
        '';
        meta = {
          homepage = "@ADDRESS@";
          license = with pkgs.lib.licenses; [ mit asl20 ];
          mainProgram = "minder";
        };
      };
    in {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
