#!/bin/sh
# Checks the proof of one entry of Sluice's audit log with openssl 3 and this shell alone:
#
#   verify.sh PROOF ROOT.pem
#
# PROOF is what GET /audit/entries/{seq}/proof gives as text/plain, ROOT.pem the log's root certificate, from a place you trust.
# Prints the entry's leaf, its body where it is still there, and OK. Exit status: 0 proven, 2 not called so, 4 something is not what was signed, 6 it could not be checked.
set -eu
LC_ALL=C
export LC_ALL
umask 077

id=1234567812345678 # of every SM2 signature; openssl's own default is the empty one
dash=$(printf '\342\200\224')

say() { printf 'verify.sh: %s\n' "$1" >&2; }

refuse() {
  printf 'tampered: %s\n' "$1"
  exit 4
}

give_up() {
  say "$1"
  exit 6
}

end() {
  status=$?
  rm -rf "$work"
  case $status in 0 | 4 | 6) ;; *) say 'a program that is needed failed'; status=6 ;; esac
  exit "$status"
}

[ $# = 2 ] || { say 'usage: verify.sh PROOF ROOT.pem' && exit 2; }
work=$(mktemp -d) || give_up 'no room for temporary files'
trap end EXIT
trap 'exit 6' HUP INT TERM

sm3() { openssl dgst -sm3 -binary; }
hex() { od -A n -v -t x1 | tr -d ' \n'; }
is_number() { case $1 in '' | *[!0-9]* | 0?*) return 1 ;; esac && [ ${#1} -le 18 ]; }

# decode TEXT FILE: false unless TEXT is base64 as it is written; other spellings of the same bytes are none.
decode() {
  printf '%s\n' "$1" | fold -w 64 >"$work/base64"
  openssl base64 -d -in "$work/base64" -out "$2" 2>"$work/errors" || return 1
  openssl base64 -in "$2" -out "$work/again" && cmp -s "$work/base64" "$work/again"
}

# The standard's own example (GB/T 32918.5 annex A) shows whether this openssl can do what is needed here.
can_verify() {
  printf '%s\n' '-----BEGIN PUBLIC KEY-----' \
    'MFkwEwYHKoZIzj0CAQYIKoEcz1UBgi0DQgAECfnfMR5UIaFQ3X0WHkvFxnIXn60Y' \
    'M/wHa7CP81bzUCDM6kkM4md1pS3G6nGMwapgCu0F+/NeCEpmMvYHLamtEw==' '-----END PUBLIC KEY-----' >"$work/example.pem"
  printf '%s' 'message digest' >"$work/example"
  decode 'MEYCIQD1oDsGSNLEYw7qxRPhu4GhWUTaOCfVt0FDrH6s7ucgswIhALG2qinfIS/YdjGCvA1CHKG7kDj9H39C1IQLacSFu8Gq' \
    "$work/example.signature" && verifies "$work/example.pem" "$work/example.signature" "$work/example" ||
    give_up "$(openssl version 2>&1 | head -n 1) cannot check SM2 signatures; OpenSSL 3 with SM2 can"
}

read_files() {
  # Read once and under a name of our own: sed and awk take some names for options or assignments, and files change while they are read.
  proof=$work/proof
  [ -f "$1" ] && cat <"$1" >"$proof" || give_up "$1: no file that can be read"
  [ -f "$2" ] && cat <"$2" >"$work/given" || give_up "$2: no file that can be read"
  [ -s "$work/given" ] || give_up "$2: the file is empty"
  # Nobody could tell which of several vouched.
  [ "$(grep -a -c -e '-----BEGIN ' "$work/given")" -le 1 ] || give_up "$2: more than one certificate or key is in it: name one certificate"
  openssl x509 -in "$work/given" -out "$work/root.pem" 2>"$work/errors" || give_up "$2: no certificate"
  [ -s "$proof" ] || give_up "$1: the file is empty"
  case $(sed -n '1{p;q;}' "$proof" | tr '\r' '~') in
    'sluice-audit-proof 1') ;;
    'sluice-audit-proof 1~') give_up "$1: line ends were changed on the way (CRLF): fetch it again as a file" ;;
    '{'* | '['*) give_up "$1: the file is JSON; what is checked is the text: Accept: text/plain" ;;
    *) give_up "$1: not a proof that this script reads" ;;
  esac
  proofs=$(grep -a -c '^sluice-audit-proof ' "$proof")
  [ "$proofs" = 1 ] || give_up "$1: $proofs proofs are in it: cut them apart, each begins with the line sluice-audit-proof 1"
  # Anything but lines of printable text and the dash of notes would be read differently by different tools.
  [ "$(tr -d '\n\040-\176\342\200\224' <"$proof" | wc -c)" -eq 0 ] || refuse 'the file has characters that no proof has'
  [ "$(tail -c 1 "$proof" | hex)" = 0a ] || refuse 'the file is cut off'
  # Empty lines at the end are of whoever kept several proofs in one file.
  awk -v to="$work/part" 'BEGIN { part = 1; for (i = 1; i <= 4; i++) printf "" > (to i) }
    $0 == "" && part < 4 { part++; next }
    $0 == "" { empty = empty "\n"; next }
    { printf "%s%s\n", empty, $0 > (to part); empty = "" }' "$proof"
}

read_proof() {
  if [ -n "$(sed -n '2{/^entry /p;}' "$work/part1")" ]; then
    decode "$(sed -n '2s/^entry //p' "$work/part1")" "$work/body" || refuse 'the second line is not: entry, and base64'
    sed 2d "$work/part1" >"$work/bare"
  else
    cp "$work/part1" "$work/bare"
  fi
  leaf=$(sed -n '2s/^leaf //p' "$work/bare")
  index=$(sed -n '3s/^index //p' "$work/bare")
  is_number "$index" || refuse 'there is no line: index, and a number'
  decode "$leaf" "$work/leaf" || refuse 'there is no line: leaf, and base64'
}

read_note() {
  [ "$(wc -l <"$work/part2")" -eq 3 ] || refuse 'the checkpoint is not made of origin, size and root'
  origin=$(sed -n 1p "$work/part2")
  size=$(sed -n 2p "$work/part2")
  is_number "$size" || refuse 'the size of the checkpoint is not a number'
  decode "$(sed -n 3p "$work/part2")" "$work/signed-root" || refuse 'the root of the checkpoint is not base64'
}

# issued FILE: whether the root vouches for the certificate.
issued() {
  openssl verify -x509_strict -no_check_time -no-CApath -no-CAstore -vfyopt "distid:$id" -CAfile "$work/root.pem" "$1" >"$work/verified" 2>&1
}

# sm2_signed FILE: twice SM2-with-SM3, alone in its sequence of ten bytes: parameters are absent.
sm2_signed() {
  openssl asn1parse -in "$1" >"$work/parsed"
  [ "$(awk '/:SM2-with-SM3$/ && before ~ /l= *10 cons: SEQUENCE/ { n++ } { before = $0 } END { print n + 0 }' "$work/parsed")" = 2 ]
}

check_root() {
  openssl x509 -in "$work/root.pem" -noout -ext basicConstraints,keyUsage >"$work/usage" 2>"$work/errors" || :
  issued "$work/root.pem" && sm2_signed "$work/root.pem" && grep -q CA:TRUE "$work/usage" && grep -q 'Certificate Sign' "$work/usage" ||
    give_up "$1: it is no root of a log"
}

check_certificate() {
  signer=$work/part4
  openssl x509 -in "$signer" -out "$work/signer.pem" 2>"$work/errors" && cmp -s "$signer" "$work/signer.pem" ||
    refuse 'what follows the checkpoint is not one certificate'
  issued "$signer" || refuse "the root does not vouch for the signer's certificate: $(grep -m 1 error "$work/verified")"
  openssl x509 -in "$signer" -noout -ext basicConstraints,keyUsage >"$work/usage" 2>"$work/errors"
  ! grep -q CA:TRUE "$work/usage" && grep -q 'Digital Signature' "$work/usage" ||
    refuse "the signer's certificate is not for signing data"
  sm2_signed "$signer" || refuse "the signer's certificate is not signed with SM2 with SM3"
  openssl x509 -in "$signer" -noout -pubkey >"$work/key.pem"
}

check_signature() {
  openssl pkey -pubin -in "$work/key.pem" -outform DER -out "$work/key.der"
  key=$({ printf '%s\n\377sm2-sm3-%s' "$origin" "$id" && cat "$work/key.der"; } | openssl dgst -sha256 -binary | head -c 4 | hex)
  [ "$(wc -l <"$work/part3")" -le 16 ] || refuse 'the checkpoint has more than 16 signatures'
  signed=no
  while IFS= read -r line; do
    rest=${line#"$dash "}
    name=${rest%% *} signature=${rest#* }
    [ "$line" != "$rest" ] && [ -n "$name" ] && decode "$signature" "$work/line" && [ "$(wc -c <"$work/line")" -gt 4 ] ||
      refuse 'a line of the checkpoint is no signature'
    [ "$name" = "$origin" ] && [ "$(head -c 4 "$work/line" | hex)" = "$key" ] || continue
    tail -c +5 "$work/line" >"$work/signature"
    verifies "$work/key.pem" "$work/signature" "$work/part2" || refuse "the checkpoint's signature is not of what it says"
    signed=yes
  done <"$work/part3"
  [ $signed = yes ] || refuse "the checkpoint is not signed by the signer's key"
}

# verifies KEY SIGNATURE FILE. None is longer than 72 bytes, and openssl would not look at what follows them.
verifies() { [ "$(wc -c <"$2")" -le 72 ] && openssl dgst -sm3 -verify "$1" -sigopt "distid:$id" -signature "$2" "$3" >"$work/verified" 2>&1; }

node() { { printf '\001' && cat "$1" "$2"; } | sm3 >"$work/node" && mv "$work/node" "$work/reached"; }

# RFC 9162 section 2.1.3.2.
check_inclusion() {
  [ "$index" -lt "$size" ] || refuse "entry $index is not in a tree of $size"
  { printf '\000' && cat "$work/leaf"; } | sm3 >"$work/reached"
  at=$index last=$((size - 1))
  sed -n '4,$p' "$work/bare" >"$work/path"
  while IFS= read -r line; do
    decode "$line" "$work/step" && [ "$(wc -c <"$work/step")" -eq 32 ] || refuse 'a line of the path is not a hash in base64'
    [ "$last" -gt 0 ] || refuse 'the path is too long'
    if [ $((at % 2)) = 1 ] || [ "$at" = "$last" ]; then
      node "$work/step" "$work/reached"
      while [ $((at % 2)) = 0 ] && [ "$at" -gt 0 ]; do at=$((at / 2)) last=$((last / 2)); done
    else
      node "$work/reached" "$work/step"
    fi
    at=$((at / 2)) last=$((last / 2))
  done <"$work/path"
  [ "$last" = 0 ] || refuse 'the path is too short'
  cmp -s "$work/reached" "$work/signed-root" || refuse 'the path does not lead from this leaf to the root that was signed'
}

# member NAME: the text of a member of the body, on the first level of its JSON.
member() {
  awk -v name="$1" '{ text = text $0 }
    END {
      for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (quoted) {
          if (c == "\\") i++
          else if (c == "\"") {
            quoted = 0
            string = substr(text, from, i - from)
            if (depth == 1 && key == name) found = string
          }
        }
        else if (c == "\"") { quoted = 1; from = i + 1 }
        else if (c == ":") key = string
        else if (c == ",") key = ""
        else if (c == "{" || c == "[") { depth++; key = "" }
        else if (c == "}" || c == "]") { depth--; key = "" }
      }
      print found
    }' "$work/body"
}

# A leaf has one spelling. The certificate must not have ended when it was recorded; whether it has ended since does not matter.
check_leaf() {
  [ "$(wc -l <"$work/leaf")" -eq 0 ] && { cat "$work/leaf" && echo; } | sed -n 's/^{"body":"\([0-9a-f]\{64\}\)",'\
'"id":"\([0-9a-f]\{8\}\(-[0-9a-f]\{4\}\)\{3\}-[0-9a-f]\{12\}\)","recorded":"\([0-9TZ:.-]\{27\}\)",'\
'"retention":"d[1-9][0-9]\{2,3\}","seq":\([0-9]*\)}$/\1 \2 \4 \5/p' >"$work/said" && read -r hash identity recorded seq <"$work/said" ||
    refuse 'the leaf is not made of body, id, recorded, retention and seq'
  [ "$seq" = "$index" ] || refuse "the leaf says that its number is $seq, the proof that it is $index"
  ended=$(openssl x509 -in "$work/part4" -noout -enddate -dateopt iso_8601 | sed 's/^notAfter=\(.*\) \(.*\)Z$/\1T\2.000000Z/')
  case $ended in *T*.000000Z) ;; *) give_up 'this openssl does not tell when a certificate ends' ;; esac
  case $recorded in
    [0-9][0-9][0-9][0-9]-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z) ;;
    *) refuse 'the leaf does not say when it was recorded' ;;
  esac
  [ "$(printf '%s\n' "$recorded" "$ended" | sort | tail -n 1)" = "$ended" ] ||
    refuse "the entry was recorded at $recorded, after its signer's certificate ended at $ended"
}

check_body() {
  [ "$(sm3 <"$work/body" | hex)" = "$hash" ] || refuse 'the entry was altered: it does not have the hash that its leaf has'
  [ "$(member id) $(member recorded)" = "$identity $recorded" ] || refuse 'the entry does not have the id and the instant of its leaf'
}

can_verify
read_files "$1" "$2"
check_root "$2"
read_proof
read_note
check_certificate
check_signature
check_inclusion
check_leaf
[ ! -f "$work/body" ] || check_body
for part in leaf body; do
  [ ! -f "$work/$part" ] || { cat "$work/$part" && echo; }
done
echo OK
