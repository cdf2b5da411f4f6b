#!/bin/sh
# Write the Homebrew formula of a release: formula.sh SHA256SUMS VERSION
set -eu
sums=$1
version=$2

sum() {
	s=$(sed -n "s/^\([0-9a-f]\{64\}\)  coppice_${version}_$1\.tar\.gz\$/\1/p" "$sums")
	[ -n "$s" ] || { echo "formula.sh: $sums has no archive of $version for $1" >&2; exit 1; }
	echo "$s"
}

darwin_arm64=$(sum darwin_arm64)
darwin_amd64=$(sum darwin_amd64)
linux_arm64=$(sum linux_arm64)
linux_amd64=$(sum linux_amd64)
address=https://github.com/coppice-run/coppice/releases/download/v$version/coppice_$version

cat <<FORMULA
class Coppice < Formula
  desc "Python sessions that stay alive"
  homepage "https://github.com/coppice-run/coppice"
  version "$version"
  license "MIT"

  on_macos do
    on_arm do
      url "${address}_darwin_arm64.tar.gz"
      sha256 "$darwin_arm64"
    end
    on_intel do
      url "${address}_darwin_amd64.tar.gz"
      sha256 "$darwin_amd64"
    end
  end

  on_linux do
    on_arm do
      url "${address}_linux_arm64.tar.gz"
      sha256 "$linux_arm64"
    end
    on_intel do
      url "${address}_linux_amd64.tar.gz"
      sha256 "$linux_amd64"
    end
  end

  def install
    bin.install "coppice"
    man1.install Dir["man/*.1.gz"]
    man7.install Dir["man/*.7.gz"]
    bash_completion.install "completions/coppice.bash" => "coppice"
    zsh_completion.install "completions/_coppice"
    fish_completion.install "completions/coppice.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/coppice --version")
  end
end
FORMULA
