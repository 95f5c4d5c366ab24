#!/bin/sh
# Checks a report of Sluice with openssl 3 and the tools of every Unix alone:
#
#   verify.sh FILE ROOT.pem
#
# FILE is a signed PDF, a file with FILE.p7s beside it, manifest.json with all that it names, or the folder of a night.
# ROOT.pem is the root certificate of the reports, from a place you trust: one that lies beside FILE proves nothing.
# Exit status: 0 valid, 2 not called so, 4 tampered with, 6 it could not be checked. The rules stand in verifier/README.md.
# All of it is one file, since it goes into the folder of each night and must stand alone there.
set -eu
LC_ALL=C
export LC_ALL
umask 077

id=1234567812345678 # of every SM2 signature; openssl's own default is the empty one
sm2_digits=06082A811CCF55018375
pdf_header=255044462d # %PDF-
form=sluice-report-manifest\ 1

say() { printf 'verify.sh: %s\n' "$1" >&2; }

give_up() {
  say "$1"
  exit 6
}

# refuse CAUSE WHY ends the judgement of a file.
refuse() {
  printf '%s: %s\n' "$1" "$2"
  exit 4
}

# unread WHY does, too: nothing can be said of the file.
unread() {
  printf 'unreadable: %s\n' "$1"
  exit 6
}

end() {
  status=$?
  rm -rf "$work"
  case $status in 0 | 4 | 6) ;; *) say 'a program that is needed failed'; status=6 ;; esac
  exit "$status"
}

[ $# = 2 ] || { say 'usage: verify.sh FILE ROOT.pem' && exit 2; }
work=$(mktemp -d) || give_up 'no room for temporary files'
trap end EXIT
trap 'exit 6' HUP INT TERM

sm3() { openssl dgst -sm3 -r | cut -d ' ' -f 1; }
hex() { od -A n -v -t x1 | tr -d ' \n'; }
size_of() { wc -c <"$1" | tr -d ' '; }

# cut_out FILE OFFSET SIZE
cut_out() { tail -c +$(($2 + 1)) "$1" | head -c "$3"; }

# printable TEXT: names of files are strangers', and a terminal acts upon some bytes.
printable() { printf '%s' "$1" | tr -c '\040-\176' '?'; }

# as_pem LABEL: standard input, DER, between its two lines. `openssl x509` would do it, ten times slower.
as_pem() {
  printf -- '-----BEGIN %s-----\n' "$1"
  openssl base64
  printf -- '-----END %s-----\n' "$1"
}

# verifies KEY SIGNATURE FILE. None is longer than 72 bytes, and openssl would not look at what follows them.
verifies() { [ "$(size_of "$2")" -le 72 ] && openssl dgst -sm3 -verify "$1" -sigopt "distid:$id" -signature "$2" "$3" >"$work/verified" 2>&1; }

# The standard's own example (GB/T 32918.5 annex A) shows whether this openssl can do what is needed here.
can_verify() {
  printf '%s\n' '-----BEGIN PUBLIC KEY-----' \
    'MFkwEwYHKoZIzj0CAQYIKoEcz1UBgi0DQgAECfnfMR5UIaFQ3X0WHkvFxnIXn60Y' \
    'M/wHa7CP81bzUCDM6kkM4md1pS3G6nGMwapgCu0F+/NeCEpmMvYHLamtEw==' '-----END PUBLIC KEY-----' >"$work/example.pem"
  printf '%s\n' 'MEYCIQD1oDsGSNLEYw7qxRPhu4GhWUTaOCfVt0FDrH6s7ucgswIhALG2qinfIS/Y' 'djGCvA1CHKG7kDj9H39C1IQLacSFu8Gq' |
    openssl base64 -d -out "$work/example.signature" 2>"$work/errors" &&
    printf '%s' 'message digest' >"$work/example" && verifies "$work/example.pem" "$work/example.signature" "$work/example" ||
    give_up "$(openssl version 2>&1 | head -n 1) cannot check SM2 signatures; OpenSSL 3 with SM2 can"
}

# Reads strict DER as hex digits and writes what is needed of it. `take` is one of
#   hole         hex digits from a PDF: writes the one element before the zeros, as escapes for printf
#   certificate  a certificate that may issue others, rule 5: where what it signs is, its signature, and its key
#   signature    a signature, rule 3: whether its certificate is the one it names, and may sign data by rule 5; where certificate,
#                attributes, signature and key are; the digest; the time as seconds since 1970 and as text
# It ends with 1 where the DER is something else.
# shellcheck disable=SC2016 # none of this is the shell's
der='
function byte(i) { return (index(digit, substr(h, 2 * i + 1, 1)) - 1) * 16 + index(digit, substr(h, 2 * i + 2, 1)) - 1 }
function raw(from, to) { return substr(h, 2 * from + 1, 2 * (to - from)) }
function demand(it) { if (!it) exit 1 }
function want(hexes) { demand(substr(h, 2 * at + 1, length(hexes)) == hexes); at += length(hexes) / 2 }
function element(end,  n, i) { # at `at`: sets tag, body and after
  demand(at + 2 <= end)
  tag = raw(at, at + 1); n = byte(at + 1); body = at + 2; after = body + n
  if (n >= 128) {
    n -= 128
    demand(n >= 1 && n <= 2 && body + n <= end)
    after = 0
    for (i = 0; i < n; i++) after = after * 256 + byte(body + i)
    demand(after >= (n == 1 ? 128 : 256))
    body += n; after += body
  }
  demand(after <= end)
}
function enter(kind, end) { element(end); demand(tag == kind); at = body; return after }
function inside(kind, end) { demand(enter(kind, end) == end) } # nothing follows it
function skip(kind, end) { element(end); demand(tag == kind); at = after }

function certificate(end,  whole, tbs, begin, inner, good) { # sets what else is asked of one
  ca = issues = signs = 0
  whole = enter("30", end); begin = at; tbs = enter("30", whole); signed = begin " " (tbs - begin)
  begin = at; element(tbs); good = tag == "a0" && raw(begin, after) == "a003020102"
  if (tag == "a0") at = after
  begin = at; skip("02", tbs); serial = raw(begin, at)
  begin = at; skip("30", tbs); inner = raw(begin, at)
  begin = at; skip("30", tbs); name = raw(begin, at) serial
  skip("30", tbs); skip("30", tbs)
  begin = at; skip("30", tbs); key = begin " " (at - begin)
  good = good && substr(raw(begin, at), 1, 54) == "3059301306072a8648ce3d020106082a811ccf5501822d03420004" && at - begin == 91
  while (at < tbs) {
    element(tbs)
    if (tag == "a3") good = extensions(tbs) && good
    else at = after
  }
  begin = at; skip("30", whole)
  good = good && inner == sm2 && raw(begin, at) == sm2
  begin = at; skip("03", whole); demand(at == whole && raw(body, body + 1) == "00")
  signed = signed " " (body + 1) " " (whole - body - 1)
  return good
}
function extensions(tbs,  all, one, begin, kind, seen, good) {
  inside("a3", tbs); all = enter("30", tbs); demand(all == tbs)
  good = 1
  while (at < all) {
    one = enter("30", all)
    begin = at; skip("06", one); kind = raw(begin, at)
    if (kind in seen) good = 0
    seen[kind] = 1
    element(one)
    if (tag == "01") {
      if (kind != constraints && kind != usage) good = 0
      at = after
    }
    inside("04", one)
    if (kind == constraints) { ca = raw(at, one) ~ /^30..0101ff/; if (!ca && raw(at, one) != "3000") good = 0 }
    if (kind == usage) {
      inside("03", one); demand(one - at >= 2)
      issues = int(byte(at + 1) / 4) % 2; signs = byte(at + 1) >= 128
    }
    at = one
  }
  return good
}
function signature(size,  certificates, signer, from, to) {
  inside("30", size); want("06092a864886f70d010702"); inside("a0", size); inside("30", size)
  want("020101" "310c" sm3 "300b06092a864886f70d010701")
  certificates = enter("a0", size); from = at; good = certificate(certificates); demand(at == certificates)
  places = from " " (at - from)
  inside("31", size); inside("30", size); want("020101")
  element(size); demand(tag == "30"); signer = raw(body, after); at = after
  want(sm3)
  from = at; to = enter("a0", size); places = places " " from " " (to - from)
  want("301806092a864886f70d010903310b06092a864886f70d010701"); signing_time(to)
  want("302f06092a864886f70d01090431220420"); digest = raw(at, at + 32); at += 32; demand(at == to)
  want(sm2)
  inside("04", size)
  print (signer == name), (good && !ca && signs), places, at, size - at, key, digest, seconds, text
}
function signing_time(end,  one, short, t, i, two, y, m, d, H, M, S) {
  one = enter("30", end); want("06092a864886f70d010905"); inside("31", one)
  element(one); demand(after == one && (tag == "17" || tag == "18")); short = tag == "17"
  demand(after - body == (short ? 13 : 15) && raw(one - 1, one) == "5a")
  for (i = body; i < one - 1; i++) { demand(substr(h, 2 * i + 1, 1) == "3"); two = substr(h, 2 * i + 2, 1); demand(two ~ /[0-9]/); t = t two }
  if (short) t = (substr(t, 1, 2) < 50 ? "20" : "19") t
  y = substr(t, 1, 4) + 0; m = substr(t, 5, 2) + 0; d = substr(t, 7, 2) + 0
  H = substr(t, 9, 2) + 0; M = substr(t, 11, 2) + 0; S = substr(t, 13, 2) + 0
  demand((short || y >= 2050) && m >= 1 && m <= 12 && d >= 1 && d <= days_in(y, m) && H < 24 && M < 60 && S < 60)
  text = sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", y, m, d, H, M, S)
  seconds = sprintf("%.0f", ((days(y, m, d) * 24 + H) * 60 + M) * 60 + S)
  at = one
}
function days_in(y, m) { return m == 2 ? 28 + (y % 4 == 0 && y % 100 != 0 || y % 400 == 0) : 30 + (m == 4 || m == 6 || m == 9 || m == 11 ? 0 : 1) }
function days(y, m, d) { # since 1970, in years that begin in March
  if (m <= 2) { y--; m += 12 }
  return y * 365 + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d - 1 - 719468
}
{ h = h $0 }
END {
  digit = "0123456789abcdef"; constraints = "0603551d13"; usage = "0603551d0f"; sm3 = "300a06082a811ccf55018311"; sm2 = "300a06082a811ccf55018375"
  size = length(h) / 2; at = 0
  if (take == "hole") {
    element(size); demand(tag == "30" && substr(h, 2 * after + 1) !~ /[^0]/)
    for (at = 0; at < after; at++) printf "\\%03o", byte(at)
  }
  else if (take == "certificate") { good = certificate(size); demand(good && ca && issues && at == size); print signed, key }
  else signature(size)
}'

# issued FILE OPTION...: whether the root vouches for the certificate.
issued() {
  of=$1
  shift
  openssl verify -x509_strict "$@" -no-CApath -no-CAstore -vfyopt "distid:$id" -CAfile "$work/root.pem" "$of" >"$work/verified" 2>&1
}

read_root() {
  # Read once and under a name of our own: some programs take some names for options.
  [ -f "$1" ] && cat <"$1" >"$work/given" || give_up "$1: no file that can be read"
  [ -s "$work/given" ] || give_up "$1: the file is empty"
  # Nobody could tell which of several vouched.
  [ "$(grep -a -c -e '-----BEGIN ' "$work/given")" -le 1 ] || give_up "$1: more than one certificate or key is in it: name one certificate"
  if grep -a -q -e '^-----BEGIN CERTIFICATE-----' "$work/given"; then
    tr -d '\r' <"$work/given" | sed -n '/^-----BEGIN/,/^-----END/{/^-----/!p;}' | openssl base64 -d -out "$work/root.der" 2>"$work/errors"
  else
    mv "$work/given" "$work/root.der"
  fi
  is_root || { can_verify && give_up "$1: no certificate of a root of reports"; }
}

# is_root: whether the root is one, its own signature included, which `openssl verify` would check with the wrong ID.
is_root() {
  [ "$(size_of "$work/root.der")" -le 16384 ] && hex <"$work/root.der" | awk -v take=certificate "$der" >"$work/parts" &&
    read -r begin size value value_size key key_size <"$work/parts" && as_pem CERTIFICATE <"$work/root.der" >"$work/root.pem" &&
    cut_out "$work/root.der" "$begin" "$size" >"$work/signed" && cut_out "$work/root.der" "$value" "$value_size" >"$work/signature" &&
    cut_out "$work/root.der" "$key" "$key_size" | as_pem 'PUBLIC KEY' >"$work/key.pem" &&
    verifies "$work/key.pem" "$work/signature" "$work/signed" && issued "$work/root.pem" -no_check_time
}

# judge PATH NAME: says why the file is not valid, or who signed it; in a process of its own, which may end at any step.
judge() {
  load "$1"
  judge_loaded "$1" "$2"
}

load() { [ -f "$1" ] && cat <"$1" >"$work/file" 2>"$work/errors" || unread 'no file that can be read'; }

judge_loaded() {
  begin=$(head -c 5 "$work/file" | hex) name=$2
  if [ "$name" = manifest.json ]; then begin=; fi # that is no PDF, whatever it begins with
  case $begin+$name in $pdf_header+* | *+?*.pdf) judge_pdf ;; *) judge_beside "$1" "$2" ;; esac
}

# judge_named PATH NAME SIZE SM3 SHA-256: the same for a file that a manifest names; it vouches for one that has no signature.
judge_named() {
  [ -e "$1" ] || refuse missing 'it is not there'
  load "$1"
  [ "$(size_of "$work/file") $(sm3 <"$work/file") $(openssl dgst -sha256 -binary <"$work/file" | hex)" = "$3 $4 $5" ] ||
    refuse digest 'it is not the file that the manifest names: size, SM3 or SHA-256 differ'
  case $2 in *.pdf) ;; *) [ -e "$1.p7s" ] || [ -L "$1.p7s" ] || exit 0 ;; esac
  judge_loaded "$1" "$2"
}

judge_beside() {
  [ -e "$1.p7s" ] || refuse unsigned "no signature $(printable "$2").p7s lies beside it$(elsewhere "$1" "$2")"
  [ -f "$1.p7s" ] && head -c 32769 <"$1.p7s" >"$work/cms" 2>"$work/errors" || unread 'the signature beside it cannot be read'
  judge_signature "$(sm3 <"$work/file")"
  [ "$2" = manifest.json ] || ! has_form_of_manifest || unread "it is a night's manifest under another name, so that its files were not checked: name it manifest.json, beside them"
  tell_signer
}

# elsewhere PATH NAME: where to look for a night's file that has no signature of its own, such as its log.
elsewhere() {
  case $1 in */*) beside=${1%/*}/manifest.json ;; *) beside=manifest.json ;; esac
  [ "$2" != manifest.json ] && [ -e "$beside" ] || return 0
  echo '; the manifest.json beside it may vouch for it: check that, or the folder'
}

# Any version's begins so, and no other file that Sluice signs has that line.
has_form_of_manifest() { [ "$(head -c 2 "$work/file" | hex)" = 7b0a ] && head -c 4194304 "$work/file" | grep -a -q '^  "form": "sluice-report-manifest '; }

# Prints each byte range of the file once, and how many there are, well written or not.
byte_ranges() {
  # Each slash begins a line, and nothing else does; of long lines, which would cost awk minutes, the first bytes are enough.
  { printf '.' && cat "$work/file"; } | tr '/\n\000' '\n..' | cut -b 1-160 | awk '
    /^ByteRange/ {
      if (++words > 64) exit
      if (match($0, /^ByteRange *\[ *0 +[1-9][0-9]* +[1-9][0-9]* +[0-9]+ *\]/) && RLENGTH < 128) {
        range = substr($0, 1, RLENGTH); gsub(/[^0-9]+/, " ", range); split(range, n, " ")
        if (length(n[2]) > 15 || length(n[3]) > 15 || length(n[4]) > 15 || n[4] ~ /^0./ || range in seen) next
        seen[range] = 1
        print n[2], n[3], n[4]
      }
    }
    END { print "words", words + 0, 0 }'
}

# is_hole BEGIN END: whether upper-case hex digits between < and > stand there.
is_hole() {
  [ $(($2 - $1)) -ge 4 ] && [ $(($2 - $1)) -le 65538 ] && [ $((($2 - $1) % 2)) = 0 ] && [ "$2" -le "$size" ] || return 1
  cut_out "$work/file" "$1" $(($2 - $1)) >"$work/hole"
  [ "$(tr -d '0-9A-F' <"$work/hole" | hex)" = 3c3e ] && [ "$(head -c 1 "$work/hole")$(tail -c 1 "$work/hole")" = '<>' ]
}

judge_pdf() {
  # A signed CSV could have a hole cut into it, but it does not begin so.
  [ "$begin" = $pdf_header ] || refuse malformed 'it is no PDF: it does not begin with %PDF-'
  size=$(size_of "$work/file") words=0 framed=0 ours=0
  byte_ranges >"$work/ranges"
  while read -r begin after rest; do
    if [ "$begin" = words ]; then words=$after; continue; fi
    is_hole "$begin" "$after" || continue
    framed=$((framed + 1))
    case $(cat "$work/hole") in
      *$sm2_digits*) ours=$((ours + 1)) from=$begin to=$after reach=$((after + rest)) && mv "$work/hole" "$work/digits" ;;
      *) printf 'remark  a signature that is not SM2, over the first %s bytes: not judged\n' $((after + rest)) >>"$work/remarks" ;;
    esac
  done <"$work/ranges"
  [ "$words" -le 64 ] || refuse malformed 'it has more than 64 /ByteRange'
  [ $ours != 0 ] || [ "$words" -le $framed ] || refuse malformed 'it has a /ByteRange that does not lie around a signature, and no SM2 signature'
  [ $ours != 0 ] || refuse unsigned 'it has no SM2 signature'
  [ $ours = 1 ] || refuse malformed "it has $ours SM2 signatures; ours have one"
  [ "$reach" -ge "$size" ] || refuse appended "$((size - reach)) bytes follow what was signed"
  [ "$reach" -le "$size" ] || refuse malformed "it is cut off: $((reach - size)) bytes of what was signed are missing"
  escapes=$(tr -d '<>' <"$work/digits" | tr A-F a-f | awk -v take=hole "$der") || refuse malformed 'its hole has something else than one signature and zeros'
  # shellcheck disable=SC2059 # made of octal escapes alone
  printf "$escapes" >"$work/cms"
  judge_signature "$({ head -c "$from" "$work/file" && tail -c +$((to + 1)) "$work/file"; } | sm3)"
  tell_signer
}

# judge_signature DIGEST: the signature in $work/cms over content of this SM3; rules 3 to 7, in their order.
judge_signature() {
  [ "$(size_of "$work/cms")" -le 32768 ] && hex <"$work/cms" | awk -v take=signature "$der" >"$work/parts" && [ -s "$work/parts" ] ||
    refuse malformed 'its signature is not a CMS of the one form that reports have'
  read -r named good certificate certificate_size attributes attributes_size value value_size key key_size digest seconds when <"$work/parts"
  cut_out "$work/cms" "$certificate" "$certificate_size" >"$work/signer.der"
  as_pem CERTIFICATE <"$work/signer.der" >"$work/signer.pem"
  [ "$named" = 1 ] || refuse certificate 'the certificate in it is not the one that the signature names'
  [ "$digest" = "$1" ] || refuse digest 'the content is not what was signed: it has another SM3'
  issued "$work/signer.pem" -no_check_time || refuse certificate "the root does not vouch for it: $(grep -m 1 error "$work/verified" | tr -c '\040-\176\n' '?')"
  [ "$good" = 1 ] || refuse certificate 'it is a CA, may not sign data, is not of version 3 and SM2, or has extensions that are not known'
  # What is signed is a SET (RFC 5652 section 5.4); in the signature stands the tag of its place.
  { printf '\061' && cut_out "$work/cms" $((attributes + 1)) $((attributes_size - 1)); } >"$work/attributes"
  cut_out "$work/cms" "$value" "$value_size" >"$work/signature"
  cut_out "$work/cms" "$key" "$key_size" | as_pem 'PUBLIC KEY' >"$work/key.pem"
  verifies "$work/key.pem" "$work/signature" "$work/attributes" || refuse signature "the signature is not by the key of its certificate"
  # The last second of a certificate is its own (RFC 5280 section 4.1.2.5), and openssl leaves it out.
  issued "$work/signer.pem" -attime "$seconds" || issued "$work/signer.pem" -attime $((seconds - 1)) || refuse expired "signed at $when, when its certificate or the root was not valid"
}

tell_signer() {
  printf '  signed by    %s\n' "$(openssl x509 -in "$work/signer.pem" -noout -subject -nameopt RFC2253 | sed 's/^subject=//')"
  printf '  fingerprint  %s (SM3 of the certificate)\n  signed       %s, by the clock of who signed\n' "$(sm3 <"$work/signer.der")" "$when"
}

# tell NAME JUDGE ARGUMENT...: prints what is found of a file, and sets `status`.
tell() {
  shown=$(printable "$1")
  shift
  : >"$work/remarks"
  "$@" >"$work/said" & # in the background `set -e` holds
  status=0
  wait $! || status=$?
  case $status in
    0) printf 'valid  %s\n' "$shown" ;;
    4) printf 'tampered  %s: ' "$shown" ;;
    6) printf 'unchecked  %s: ' "$shown" ;;
    *) give_up 'a program that is needed failed' ;;
  esac
  cat "$work/said" "$work/remarks"
}

# Reads a manifest as Sluice writes it, JSON with a line for each member, and prints size, SM3, SHA-256 and name of each file.
# It ends with 1 where it is written otherwise, and with 3 where a name is none of a file of its folder, or stands there twice.
# A value is read by its kind: `rest` is what its first line has of it; `more` is set to whether a comma follows, `said` to a text or number.
manifest_lines() {
  awk -v form="$form" '
    function next_line() { if ((getline line) <= 0) exit 1 }
    function closes(bracket) { next_line(); if (line != bracket && line != bracket ",") exit 1; more = line != bracket }
    function scalar(kind, rest) {
      more = sub(/,$/, "", rest)
      if (kind == "number" ? rest !~ /^(0|[1-9][0-9]*)$/ || length(rest) > 15 : rest !~ /^"([^"\\]|\\(["\\bfnrt]|u00(0[0-7be]|1[0-9a-f])))*"$/) exit 1
      said = kind == "number" ? rest : substr(rest, 2, length(rest) - 2)
    }
    function value(kind, indent, rest) {
      if (kind == "text" || kind == "number") scalar(kind, rest)
      else if (rest == "[]" || rest == "[],") { if (kind != "version" && kind != "files") exit 1; more = rest == "[]," }
      else if (kind == "files") files(indent, rest)
      else if (kind == "version" && rest == "[") texts(indent)
      else if (kind == "version") scalar("text", rest)
      else if (kind == "log") { if (rest != "{") exit 1; record(indent, "certificate text end number first number note text origin text root text size number verdict text") }
      else members(indent, rest, kind == "counts" ? "number" : kind == "verdicts" ? "counts" : "version")
    }
    function members(indent, rest, kind,  name, before) { # in the order of their names
      if (rest == "{}" || rest == "{},") { more = rest == "{},"; return }
      if (rest != "{") exit 1
      before = ""
      do {
        next_line(); if (!match(line, "^" indent "  \"[a-z0-9_]+\": ")) exit 1
        name = substr(line, 1, RLENGTH); if (name <= before) exit 1
        before = name
        value(kind, indent "  ", substr(line, RLENGTH + 1))
      } while (more)
      closes(indent "}")
    }
    function texts(indent) {
      do {
        next_line(); if (index(line, indent "  ") != 1) exit 1
        scalar("text", substr(line, length(indent) + 3))
      } while (more)
      closes(indent "]")
    }
    function record(indent, table,  n, i, part, start) { # the members that a table of names and kinds has
      n = split(table, part, " ")
      for (i = 1; i < n; i += 2) {
        next_line(); start = indent "  \"" part[i] "\": "; if (index(line, start) != 1) exit 1
        value(part[i + 1], indent "  ", substr(line, length(start) + 1))
        if (more != (i + 1 < n)) exit 1
        got[part[i]] = said
      }
      closes(indent "}")
    }
    function plain(name) { return name ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && length(name) <= 128 }
    function digest(hexes) { return hexes ~ /^[0-9a-f]+$/ ? hexes : "none" }
    function files(indent, rest,  name) {
      if (rest != "[") exit 1
      do {
        next_line(); if (line != indent "  {") exit 1
        record(indent "  ", "bytes number name text sha256 text sm3 text")
        name = got["name"]
        if (!plain(name) || name == "manifest.json" || name in seen) refused = 1
        else print got["bytes"], digest(got["sm3"]), digest(got["sha256"]), name
        seen[name] = 1
      } while (more)
      closes(indent "]")
    }
    BEGIN {
      next_line(); if (line != "{") exit 1
      record("", "begin text counts counts day text end text files files form text log log made text made_by text report text verdicts verdicts versions versions zone text")
      if (more || (getline line) > 0 || got["form"] != form || !plain(got["report"])) exit 1
      exit refused ? 3 : 0
    }' <"$work/manifest"
}

# tell_night FOLDER: what is found of the night whose manifest is signed as $work/head says, all of it and then file by file; sets
# `status` to the gravest.
tell_night() {
  mv "$work/file" "$work/manifest" # the bytes that were judged
  status=0
  [ "$(size_of "$work/manifest")" -le 4194304 ] && [ "$(tail -c 1 "$work/manifest" | hex)" = 0a ] &&
    [ "$(tr -cd '\000-\011\013-\037' <"$work/manifest" | wc -c)" -eq 0 ] && manifest_lines >"$work/lines" || status=$?
  case $status in
    0) ;;
    3) printf 'tampered  manifest.json: malformed: it names what is no name of a file of its folder, or twice\n' && exit 4 ;;
    *) printf 'unchecked  manifest.json: unreadable: it is no manifest of the form %s\n' "$form" && exit 6 ;;
  esac
  named=' ' tampered='' unchecked=''
  while read -r bytes sm3 sha256 file; do
    tell "$file" judge_named "$1/$file" "$file" "$bytes" "$sm3" "$sha256" >>"$work/files"
    case $status in
      4) tampered="$tampered, $file ($(cause))" ;;
      6) unchecked="$unchecked, $file ($(cause))" ;;
    esac
    named="$named$file "
  done <"$work/lines"
  tell_whole "$(printable "$(sed -n '/^  "report": "/{s///;s/",*$//;p;q;}' "$work/manifest")")" "$tampered$unchecked"
  cat "$work/head"
  [ ! -f "$work/files" ] || cat "$work/files"
  remark_others "$1"
}

# cause: of the file that was just told, in one word.
cause() { sed -n '1s/:.*//p' "$work/said"; }

# tell_whole NIGHT LIST: the verdict on all files, with those that are not valid, the gravest first.
tell_whole() {
  first=${2#*(}
  status=0
  case $tampered+$unchecked in
    +) printf 'valid  %s\n' "$1" && return ;;
    +*) status=6 && printf 'unchecked  %s: ' "$1" ;;
    *) status=4 && printf 'tampered  %s: ' "$1" ;;
  esac
  printf '%s: not all files are valid: %s\n' "${first%%)*}" "${2#, }"
}

# remark_others FOLDER: names what lies there and the manifest does not vouch for.
remark_others() {
  for path in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$path" ] || [ -L "$path" ] || continue
    file=${path##*/}
    signed=${file%.p7s}
    case $file in
      manifest.json | root.pem | verify.sh) continue ;;
      *[!A-Za-z0-9._-]*) ;;
      *) case "$named manifest.json " in *" $file "* | *" $signed "* | *" ${signed%.tsr} "*) continue ;; esac ;;
    esac
    printf 'remark  %s is not named by the manifest: not judged\n' "$(printable "$file")"
  done
}

read_root "$2"
path=$1
[ ! -d "$path" ] || path=${path%/}/manifest.json
case $path in */*) folder=${path%/*} ;; *) folder=. ;; esac
tell "${path##*/}" judge "$path" "${path##*/}" >"$work/head"
if [ $status = 0 ] && [ "${path##*/}" = manifest.json ]; then
  tell_night "$folder"
else
  cat "$work/head"
fi
[ $status != 0 ] || echo "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's."
exit $status
