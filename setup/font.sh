#!/usr/bin/env bash
# Puts the font of the reports at .tools/report-font.ttf; no root needed. It is embedded in the PDFs as a subset, and not in the repository.
#
#   Noto Sans SC Regular 2.004, TrueType outlines, (c) 2014-2021 Adobe, SIL Open Font License 1.1, as its name table says;
#     from the Python package zhplot, which carries it with its licence, else as the npm package @expo-google-fonts/noto-sans-sc has it
#   WenQuanYi Micro Hei 0.2.0-beta, Apache License 2.0 or GPL 3 with font exception; from the Debian package fonts-wqy-microhei
#
# The licence's text, where the source has one, lies beside it: .tools/report-font-licence.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

target=.tools/report-font.ttf
licence=.tools/report-font-licence.txt
noto=5cf8b2a0576d5680284ab03a7a8219499d59bbe981a79bb3dc0031f251c39736
expo=d45f67f0a7c0ca3f256950777ce6a61cc7ce5f9696d02900cbbaac25f8aa7d16
micro_hei=2420e8078af796b19a3f6ef13de527a1a91c1e7171eea115926c614ced1009b3
expo_version=0.4.3
wheel=a5dccc5fc1116eafaa54d99c903ad74836e3ab9f5bdc45d27c29a97202268a2a

sha256_of() { { sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | cut -d' ' -f1; }

# take FILE SHA256: puts it in place where it is the one that was looked at.
take() {
  if [ "$(sha256_of "$1")" != "$2" ]; then
    step "$(basename "$1") is not the file that was looked at; leaving it"
    return 1
  fi
  cp "$1" "$target.new"
  mv "$target.new" "$target"
}

from_pip() {
  [ -x .venv/bin/python ] || return 1
  step "fetching Noto Sans SC with pip (6 MB)"
  echo "zhplot==1.0.0 --hash=sha256:$wheel" > "$work/wanted.txt"
  .venv/bin/python -m pip download --disable-pip-version-check --quiet --retries 2 --no-deps --only-binary :all: --require-hashes \
    --dest "$work" --requirement "$work/wanted.txt" >&2 || return 1
  .venv/bin/python -m zipfile -e "$work"/zhplot-1.0.0-*.whl "$work/zhplot" || return 1
  take "$work/zhplot/zhplot/fonts/NotoSansSC-Regular.ttf" $noto || return 1
  cp "$work/zhplot/zhplot/fonts/OFL.txt" $licence
}

from_system() {
  local installed=/usr/share/fonts/truetype/wqy/wqy-microhei.ttc
  [ -r $installed ] || return 1
  step "using $installed"
  take $installed $micro_hei || return 1
  cp /usr/share/doc/fonts-wqy-microhei/copyright $licence 2>/dev/null || rm -f $licence # some systems keep no such texts
}

from_debian() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  step "fetching WenQuanYi Micro Hei with apt-get download (2 MB)"
  (cd "$work" && apt-get download -q fonts-wqy-microhei >&2) || return 1
  dpkg-deb -x "$work"/fonts-wqy-microhei_*.deb "$work/wqy" || return 1
  take "$work/wqy/usr/share/fonts/truetype/wqy/wqy-microhei.ttc" $micro_hei || return 1
  cp "$work/wqy/usr/share/doc/fonts-wqy-microhei/copyright" $licence
}

from_npm() {
  command -v npm >/dev/null || return 1
  step "fetching Noto Sans SC with npm (57 MB)"
  (cd "$work" && npm pack --silent --fetch-retries=1 "@expo-google-fonts/noto-sans-sc@$expo_version" >&2) || return 1
  tar -xzf "$work/expo-google-fonts-noto-sans-sc-$expo_version.tgz" -C "$work" || return 1
  take "$work/package/400Regular/NotoSansSC_400Regular.ttf" $expo || return 1
  cp "$work/package/LICENSE_FONT" $licence
}

is_right() { [ -r "$target" ] && case $(sha256_of "$target") in "$noto" | "$expo" | "$micro_hei") true ;; *) false ;; esac; }

if [ -n "${SLUICE_FONT:-}" ]; then
  step "SLUICE_FONT is set: fetching no font"
  exit
fi

mkdir -p .tools
work=$(mktemp -d .tools/font.XXXXXX)
trap 'rm -rf "$work"' EXIT
is_right || rm -f "$target" # another file, or half a one
is_right || from_pip || from_system || from_debian || from_npm \
  || fail "no font for the reports, which cannot be made without: neither pip, apt-get nor npm could fetch one" \
    "give one of them a network, then run the same command again; or set SLUICE_FONT to a TrueType file with Latin and Chinese"
touch .tools/report-font.done
step "the font of the reports is ready: $target"
