#!/usr/bin/env bash
# Writes the player of recordings (tools/site/player) from its npm package. Its version and its
# checksum at npm are pinned here; a test of tools/site has the checksums of the files.
set -euo pipefail
package=asciinema-player@3.18.0
integrity=sha512-5gpt2ipFcy4NKmgkv+c/QXnJ9zMicxqWROCOuJqgwwtiYKM8Qe9hnDOvfqke5bW6M2DW/seO3uQYkQ0xeUUVtw==
folder=$(cd "$(dirname "$0")/../tools/site/player" && pwd)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
cd "$temporary"
archive=$(npm pack --silent "$package")
got=sha512-$(openssl dgst -sha512 -binary "$archive" | base64 -w 0)
[[ $got == "$integrity" ]] || { echo "$package has checksum $got, not $integrity" >&2; exit 1; }
tar xzf "$archive" --strip-components 3 -C "$folder" package/dist/bundle/asciinema-player.{min.js,css}
sha256sum "$folder"/*
