package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

const exportVersion = "1"

// maxLineBytes is far above an entry (at most 1 MiB); a first line may hold thousands of certificates or proofs.
const maxLineBytes = 4 << 20

// What each kind of line begins with, and what stands between the parts of an entry's, which are not parsed before they are hashed.
var (
	headerMark     = []byte(`{"sluice_audit_export":`)
	entryMark      = []byte(`{"body":`)
	goneMark       = []byte(`{"leaf":"`)
	checkpointMark = []byte(`{"checkpoint":`)
	endMark        = []byte(`{"end":`)
	leafMark       = []byte(`,"leaf":"`)
	skeletonMark   = []byte(`","skeleton":`)
	purgedMark     = []byte(`","purged":`)
	lineEnd        = []byte(`}`)
)

// A header is the first line: which entries of which log, and what links them to the tree that its note signs.
// Fields stand in the order of the file.
type header struct {
	Version      int               `json:"sluice_audit_export"`
	Certificates list[string]      `json:"certificates"` // DER in base64
	Chain        Hash              `json:"chain"`
	Consistency  list[consistency] `json:"consistency"`
	End          uint64            `json:"end"`
	First        uint64            `json:"first"`
	Left         list[Hash]        `json:"left"`
	Log          string            `json:"log"`
	Note         string            `json:"note"`
	Right        list[Hash]        `json:"right"`
	Size         uint64            `json:"size"`

	ders [][]byte
}

// A list is one that JSON's null is not.
type list[T any] []T

// UnmarshalJSON reads a list.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return errors.New("not a list")
	}
	return json.Unmarshal(raw, (*[]T)(l))
}

// consistency is a proof that the tree of Size begins the tree that closes the file.
type consistency struct {
	Path list[Hash] `json:"path"`
	Size uint64     `json:"size"`
}

// An entryLine holds the bytes of one entry's leaf and body, and the leaf hash that the log had stored; retention may have taken the body.
type entryLine struct {
	body, leaf []byte
	hash       Hash
	purged     bool
}

type checkpointLine struct {
	Checkpoint string `json:"checkpoint"`
}

type endLine struct {
	End struct {
		Chain   Hash   `json:"chain"`
		Entries uint64 `json:"entries"`
	} `json:"end"`
}

// MarshalText writes a hash as the export does, in lower-case hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads it.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = parseHash(string(text))
	return err
}

// lineReader hands out the lines of a file one by one, without their ends, in memory that does not grow with the file.
type lineReader struct {
	*bufio.Reader
	number int
	long   []byte // a line that is longer than the reader's buffer
}

func newLineReader(file io.Reader) *lineReader {
	return &lineReader{Reader: bufio.NewReader(file)}
}

// A damaged line was read but is not one; anything else that a read returns is the machine's fault.
type damagedLine string

func (d damagedLine) Error() string { return string(d) }

// next is the next line, valid until the one after it; io.EOF at the end. What there is of a damaged line comes with its error.
func (r *lineReader) next() ([]byte, error) {
	r.number++
	line, err := r.ReadSlice('\n')
	for r.long = r.long[:0]; errors.Is(err, bufio.ErrBufferFull); {
		if r.long = append(r.long, line...); len(r.long) > maxLineBytes {
			return r.long, damagedLine("it is longer than any line of an export")
		}
		line, err = r.ReadSlice('\n')
	}
	if len(r.long) > 0 {
		r.long = append(r.long, line...)
		line = r.long
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, damagedLine("it is cut off in its middle")
	}
	return nil, err
}

// errFormat says that a file is not an export that this program reads: nothing can be said of it.
var errFormat = errors.New("not an export of the log that this program reads")

// errLineEnds says that each line is another than what was written, by a mail program or an editor, so that none is read.
var errLineEnds = errors.New("line ends were changed on the way (CRLF): fetch it again as a file")

// parseHeader reads the first line. errFormat where it is of something else, another error where it is a damaged header.
func parseHeader(line []byte) (*header, error) {
	rest, found := bytes.CutPrefix(line, headerMark)
	if !found {
		return nil, errFormat
	}
	if version, _, _ := bytes.Cut(rest, []byte(",")); string(version) != exportVersion {
		return nil, fmt.Errorf("%w: its format is %.20q, this program reads %s", errFormat, version, exportVersion)
	}
	parsed := new(header)
	if err := cmp.Or(decodeExact(line, parsed), countable(parsed.First, parsed.End, parsed.Size)); err != nil {
		return nil, err
	}
	for _, proof := range parsed.Consistency {
		if err := countable(proof.Size); err != nil {
			return nil, err
		}
	}
	for _, text := range parsed.Certificates {
		der, err := decodeBase64(text)
		if err != nil {
			return nil, fmt.Errorf("a certificate: %w", err)
		}
		parsed.ders = append(parsed.ders, der)
	}
	return parsed, nil
}

// decodeExact reads JSON that must be spelled exactly as this program would write it: no other order of keys, no second key of
// a name, no unknown one, no other spelling of a number, so that a file cannot change without changing what it says.
func decodeExact(line []byte, into any) error {
	if err := json.Unmarshal(line, into); err != nil {
		return errors.New("it is not what an export has there")
	}
	var again bytes.Buffer
	encoder := json.NewEncoder(&again)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(into); err != nil {
		return err
	}
	if !bytes.Equal(bytes.TrimSuffix(again.Bytes(), []byte("\n")), line) {
		return errors.New("it is spelled in another way than an export spells it")
	}
	return nil
}

// countable demands numbers below 2^63, like the other readers of the format.
func countable(numbers ...uint64) error {
	for _, number := range numbers {
		if number > math.MaxInt64 {
			return fmt.Errorf("%d is more than any log counts", number)
		}
	}
	return nil
}

// parseEntryLine reads the line of an entry that has its body. A body may have members named like the marks, too, a leaf has
// none: the last ones count.
func parseEntryLine(line []byte) (read entryLine, err error) {
	at := bytes.LastIndex(line, skeletonMark)
	hashAt := at - 2*len(Hash{})
	if hashAt < len(entryMark)+len(leafMark) || !bytes.HasSuffix(line, lineEnd) || !bytes.HasSuffix(line[:hashAt], leafMark) {
		return read, errors.New("an entry without its leaf, or cut off")
	}
	read.body = line[len(entryMark) : hashAt-len(leafMark)]
	read.leaf = line[at+len(skeletonMark) : len(line)-len(lineEnd)]
	read.hash, err = parseHash(string(line[hashAt:at]))
	return read, err
}

// parsePurgedLine reads the line of an entry that has lost its body.
func parsePurgedLine(line []byte) (read entryLine, err error) {
	at := len(goneMark) + 2*len(Hash{})
	if len(line) < at || !bytes.HasPrefix(line[at:], purgedMark) || !bytes.HasSuffix(line, lineEnd) {
		return read, errors.New("a purged entry without its leaf, or cut off")
	}
	read.purged = true
	read.leaf = line[at+len(purgedMark) : len(line)-len(lineEnd)]
	read.hash, err = parseHash(string(line[len(goneMark):at]))
	return read, err
}

// parseNumber reads a count in its one spelling, up to 2^63-1.
func parseNumber(text string) (uint64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 || strconv.FormatInt(number, 10) != text {
		return 0, fmt.Errorf("%.20q is not a plain number", text)
	}
	return uint64(number), nil
}
