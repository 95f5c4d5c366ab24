package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	tags "golang.org/x/crypto/cryptobyte/asn1"
)

const (
	maxByteRanges = 64                     // in one file; ours have one or two
	maxRangeText  = 128                    // bytes of one
	maxHole       = 65536                  // hex digits
	scanned       = 1 << 20                // bytes at once
	sm2Digits     = "06082A811CCF55018375" // DER of SM2-with-SM3
)

var (
	pdfHeader = []byte("%PDF-")
	rangeWord = []byte("/ByteRange")
	rangeText = regexp.MustCompile(`^/ByteRange *\[ *0 +([1-9][0-9]{0,14}) +([1-9][0-9]{0,14}) +(0|[1-9][0-9]{0,14}) *\]`)
	holeText  = regexp.MustCompile(`^<((?:[0-9A-F]{2})+)>$`)
)

// A byteRange says which bytes of a PDF are signed: those before the hole, and size from its end on.
type byteRange struct {
	hole, after, size int64
}

func (r byteRange) end() int64 { return r.after + r.size }

// A pdfSignature is one that stands in a PDF, as hex digits in the hole of what it signs.
type pdfSignature struct {
	byteRange
	digits string
}

// findSM2 finds the one SM2 signature of a PDF and tells of the others. It looks at bytes alone: what only looks like a signature,
// in a comment or a stream, makes no changed file valid, since the one that is judged signs all that is around its hole.
func findSM2(file io.ReaderAt, size int64) (found *pdfSignature, others []string, err error) {
	ranges, words, err := byteRanges(file)
	if err != nil {
		return nil, nil, err
	}
	ours, framed := 0, 0
	for _, one := range ranges {
		digits, ok := readHole(file, one)
		if !ok {
			continue
		}
		framed++
		if !strings.Contains(digits, sm2Digits) {
			others = append(others, fmt.Sprintf("a signature that is not SM2, over the first %d bytes: not judged", one.end()))
			continue
		}
		ours++
		found = &pdfSignature{one, digits}
	}
	return found, others, checkCoverage(found, ours, words > framed, size)
}

// checkCoverage tells why the signature that was found is not the only one, over the whole file.
func checkCoverage(found *pdfSignature, ours int, stray bool, size int64) error {
	switch {
	case ours == 0 && stray:
		return refusal{malformed, "it has a /ByteRange that does not lie around a signature, and no SM2 signature"}
	case ours == 0:
		return refusal{unsigned, "it has no SM2 signature"}
	case ours > 1:
		return refusal{malformed, fmt.Sprintf("it has %d SM2 signatures; ours have one", ours)}
	case found.end() < size:
		return refusal{appended, fmt.Sprintf("%d bytes follow what was signed", size-found.end())}
	case found.end() > size:
		return refusal{malformed, fmt.Sprintf("it is cut off: %d bytes of what was signed are missing", found.end()-size)}
	}
	return nil
}

// byteRanges reads the whole file once. It gives each byte range once, and how often one is named, well or not.
func byteRanges(file io.ReaderAt) (ranges []byteRange, words int, err error) {
	window := make([]byte, scanned+maxRangeText)
	for start := int64(0); ; start += scanned {
		n, err := file.ReadAt(window, start)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		text, last := window[:n], n < len(window)
		for from := 0; ; {
			next := bytes.Index(text[from:], rangeWord)
			if next < 0 || !last && from+next >= scanned { // the next window begins there
				break
			}
			from += next
			if words++; words > maxByteRanges {
				return nil, 0, refusal{malformed, fmt.Sprintf("it has more than %d /ByteRange", maxByteRanges)}
			}
			ranges = addRange(ranges, text[from:min(from+maxRangeText, n)])
			from += len(rangeWord)
		}
		if last {
			return ranges, words, nil
		}
	}
}

func addRange(ranges []byteRange, text []byte) []byteRange {
	numbers := rangeText.FindSubmatch(text)
	if numbers == nil {
		return ranges
	}
	var one byteRange
	for i, to := range []*int64{&one.hole, &one.after, &one.size} {
		*to, _ = strconv.ParseInt(string(numbers[i+1]), 10, 64) // 15 digits always fit
	}
	if slices.Contains(ranges, one) {
		return ranges
	}
	return append(ranges, one)
}

// readAt gives the bytes from begin to before end, fewer where the file ends earlier or cannot be read.
func readAt(file io.ReaderAt, begin, end int64) []byte {
	piece := make([]byte, end-begin)
	n, _ := file.ReadAt(piece, begin)
	return piece[:n]
}

// readHole gives the hex digits between < and >; false where there is something else.
func readHole(file io.ReaderAt, one byteRange) (string, bool) {
	if one.after <= one.hole || one.after-one.hole > maxHole+2 {
		return "", false
	}
	digits := holeText.FindSubmatch(readAt(file, one.hole, one.after))
	if digits == nil || int64(len(digits[1]))+2 != one.after-one.hole {
		return "", false
	}
	return string(digits[1]), true
}

// der is the signature without the zeros that fill its hole.
func (s *pdfSignature) der() ([]byte, error) {
	filled, err := hex.DecodeString(s.digits)
	if err != nil {
		return nil, err
	}
	rest := cryptobyte.String(filled)
	var element cryptobyte.String
	if !rest.ReadASN1Element(&element, tags.SEQUENCE) || len(bytes.Trim(rest, "\x00")) > 0 {
		return nil, errors.New("its hole has something else than one signature and zeros")
	}
	return element, nil
}

// content is what is signed of the file.
func (s *pdfSignature) content(file io.ReaderAt) io.Reader {
	return io.MultiReader(io.NewSectionReader(file, 0, s.hole), io.NewSectionReader(file, s.after, s.size))
}
