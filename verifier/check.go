package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// recordedForm is how entries write instants: UTC, always with microseconds.
const recordedForm = "2006-01-02T15:04:05.000000Z"

// A checker reads one export from its first line to its last and reports what it finds. It keeps ids, not entries.
type checker struct {
	root    *certificate
	anchors []*anchor
	report  *report
	lines   *lineReader

	*header
	keys keyring

	next   uint64 // number of the entry that must come now
	stored uint64 // size of the checkpoint that stood last
	tree   frontier
	chain  Hash
	lost   bool   // entries are missing, so that neither tree nor chain can be known
	broken bool   // a signed root was not that of the entries: no later one will be
	proven uint64 // up to where a signed root was that of the entries

	ids    map[string]uint64
	newest instant
	late   map[uint64]bool
	leave  retention
}

// An instant is when an entry says it was recorded.
type instant struct {
	time.Time
	entry uint64
}

// checkExport checks one export against the root certificate and the anchors.
func checkExport(file io.Reader, name string, root *certificate, anchors []string) *report {
	c := &checker{root: root, report: newReport(name), lines: newLineReader(file),
		ids: map[string]uint64{}, late: map[uint64]bool{}, leave: newRetention()}
	if !c.begin(anchors) {
		return c.report
	}
	if err := c.body(); err != nil {
		c.found(unchecked, "file", "it could not be read to its end: %v", err)
		return c.report
	}
	c.finish()
	return c.report
}

// found reports something that is about no entry.
func (c *checker) found(word verdict, what, form string, values ...any) {
	c.report.add(finding{Verdict: word, What: what, Why: fmt.Sprintf(form, values...)})
}

// tampered reports something wrong with the entries from first to last.
func (c *checker) tampered(first, last uint64, what, form string, values ...any) {
	c.report.add(finding{Verdict: tampered, What: what, Why: fmt.Sprintf(form, values...), Seq: &first, Last: &last})
}

// here names the line that was just read.
func (c *checker) here() string { return fmt.Sprintf("line %d: ", c.lines.number) }

// begin reads the first line; false where nothing more can be checked.
func (c *checker) begin(anchors []string) bool {
	parsed, err := c.readHeader()
	switch {
	case errors.Is(err, io.EOF):
		c.found(unchecked, "file", "it is empty")
		return false
	case errors.As(err, new(damagedLine)):
		c.found(tampered, "line", "line 1: %v", err)
		return false
	case err != nil:
		c.found(unchecked, "file", "%v", err)
		return false
	}
	c.header = parsed
	c.report.Log, c.report.First, c.report.End = parsed.Log, parsed.First, parsed.End
	c.trust()
	c.openAnchors(anchors)
	c.startTree()
	return true
}

// readHeader fails with a damagedLine where the file begins like an export, and with another error where it does not.
func (c *checker) readHeader() (*header, error) {
	line, err := c.lines.next()
	if err != nil && !errors.As(err, new(damagedLine)) {
		return nil, err
	}
	parsed, refused := parseHeader(line)
	if refused == nil {
		refused = err
	} else if !errors.Is(refused, errFormat) {
		refused = damagedLine(refused.Error())
	}
	return parsed, refused
}

// trust takes in the signers of the file that the root vouches for, and reports certificates that no root issued.
func (c *checker) trust() {
	keys, strays := trusted(c.ders, c.root)
	for _, why := range strays {
		c.found(tampered, "certificate", "%v", why)
	}
	if len(keys) == 0 {
		c.found(tampered, "certificate", "the given root issued none of the signers in the file")
	}
	c.keys = keys
}

// startTree pushes what stands left of the first entry.
func (c *checker) startTree() {
	c.next, c.stored, c.chain = c.First, c.First, c.Chain
	if c.First > c.End || c.End > c.Size {
		c.found(tampered, "line", "line 1: the entries from %d to before %d do not lie in a tree of %d", c.First, c.End, c.Size)
		c.lost = true
		return
	}
	if c.First == 0 && c.Chain != (Hash{}) {
		c.found(tampered, "chain", "line 1: the chain before entry 0 is not zero")
	}
	c.compareAnchors()
	c.pushAll(0, c.First, c.Left, "left")
}

// pushAll adds the subtrees over [begin, end), which the header lists.
func (c *checker) pushAll(begin, end uint64, hashes []Hash, side string) {
	levels := covering(begin, end)
	if len(levels) != len(hashes) {
		c.found(tampered, "line", "line 1: %d hashes on the %s of the entries, where %d are needed", len(hashes), side, len(levels))
		c.lost = true
		return
	}
	for i, level := range levels {
		c.push(level, hashes[i])
	}
}

func (c *checker) push(level int, subtree Hash) {
	if c.lost {
		return
	}
	if err := c.tree.push(level, subtree); err != nil {
		c.found(tampered, "tree", "line 1: %v", err)
		c.lost = true
		return
	}
	c.compareAnchors()
}

// body reads all lines after the first. An error says why the file could not be read.
func (c *checker) body() error {
	for {
		line, err := c.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			c.missing(c.End)
			c.found(tampered, "end", "the file has no last line: it was cut off before entry %d or right after it", c.next)
			return nil
		case errors.As(err, new(damagedLine)):
			c.found(tampered, "line", "%s%v", c.here(), err)
		case err != nil:
			return err
		case bytes.HasPrefix(line, endMark):
			if c.end(line) {
				return c.afterEnd()
			}
		default:
			c.line(line)
		}
	}
}

func (c *checker) line(line []byte) {
	var err error
	switch {
	case bytes.HasPrefix(line, entryMark):
		var entry entryLine
		if entry, err = parseEntryLine(line); err == nil {
			c.entry(entry)
		}
	case bytes.HasPrefix(line, purgedMark):
		var gone purgedLine
		if err = decodeExact(line, &gone); err == nil {
			c.purged(gone)
		}
	case bytes.HasPrefix(line, checkpointMark):
		var stored checkpointLine
		if err = decodeExact(line, &stored); err == nil {
			c.checkpoint(stored.Checkpoint)
		}
	default:
		err = errors.New("no line of an export begins like this")
	}
	if err != nil {
		c.found(tampered, "line", "%s%v", c.here(), err)
	}
}

// entry checks one entry: its bytes, its place, its id, and what it says of other entries.
func (c *checker) entry(line entryLine) {
	if leafHash(line.bytes) != line.leaf {
		// Its number may have been edited, too: it is taken for the entry that belongs here.
		if c.inPlace(c.next) {
			c.tampered(c.next, c.next, "entry", "%sits bytes do not have the hash that the log stored: it was altered", c.here())
			c.grow(line.leaf)
		}
		return
	}
	parsed, err := parseEntry(line.bytes)
	if err != nil {
		c.tampered(c.next, c.next, "entry", "%sit has its hash but is no entry: %v", c.here(), err)
		return
	}
	if c.inPlace(parsed.seq) {
		c.remember(parsed)
		c.grow(line.leaf)
		c.report.Entries++
	}
}

func (c *checker) purged(line purgedLine) {
	if c.inPlace(line.Purged.Seq) {
		c.leave.bodyGone(line.Purged.Seq, line.Purged.Shelf)
		c.grow(line.Leaf)
		c.report.Purged++
	}
}

// inPlace tells whether entry seq may stand here; entries that it leaves out are missing.
func (c *checker) inPlace(seq uint64) bool {
	switch {
	case seq >= c.End:
		c.tampered(seq, seq, "order", "%sthe first line says that the file ends before it", c.here())
	case seq < c.next:
		c.tampered(seq, seq, "order", "%sit stands there again, or too late", c.here())
	default:
		c.missing(seq)
		return true
	}
	return false
}

// missing reports the entries from the next one to before end, where there are any, and goes on at end.
func (c *checker) missing(end uint64) {
	if c.next < end {
		c.tampered(c.next, end-1, "order", "missing")
		c.next, c.lost = end, true
	}
}

// grow adds the listed leaf hash of entry c.next to tree and chain.
func (c *checker) grow(leaf Hash) {
	c.next++
	c.chain = chainHash(c.chain, leaf)
	c.push(0, leaf)
}

func (c *checker) remember(parsed envelope) {
	if earlier, ok := c.ids[parsed.id]; ok {
		c.tampered(parsed.seq, parsed.seq, "entry", "its id %s is that of entry %d", parsed.id, earlier)
	}
	c.ids[parsed.id] = parsed.seq
	recorded, err := time.Parse(recordedForm, parsed.recorded)
	if err != nil {
		c.tampered(parsed.seq, parsed.seq, "entry", "the time %q of its record is not in UTC with microseconds", parsed.recorded)
		return
	}
	if recorded.After(c.newest.Time) {
		c.newest = instant{recorded, parsed.seq}
	}
	c.leave.read(parsed, recorded)
}

// checkpoint checks one that stands between the entries: each has new ones before it.
func (c *checker) checkpoint(raw string) {
	if c.next <= c.stored {
		c.found(tampered, "order", "%sa checkpoint without a new entry before it", c.here())
	}
	c.stored = c.next
	c.signed(raw, c.next, c.here())
}

// signed checks a checkpoint that must be of this size: its signature, its signer's time, and its root. It returns it where all is good.
func (c *checker) signed(raw string, size uint64, place string) (stored *note) {
	stored, err := parseNote(raw)
	var by *certificate
	if err == nil {
		by, err = stored.open(c.Log, c.keys)
	}
	if err == nil && stored.size != size {
		err = fmt.Errorf("a checkpoint of size %d stands where one of %d belongs", stored.size, size)
	}
	if err != nil {
		c.found(tampered, "checkpoint", "%s%v", place, err)
		return nil
	}
	if c.newest.After(by.NotAfter) && !c.late[c.newest.entry] {
		c.late[c.newest.entry] = true
		c.tampered(c.newest.entry, c.newest.entry, "checkpoint", "recorded at %s, but the certificate that signed it at size %d ended at %s",
			c.newest.Format(recordedForm), size, by.NotAfter.UTC().Format(recordedForm))
	}
	if c.lost {
		return nil
	}
	if c.tree.root() != stored.root {
		c.diverged(size)
		return nil
	}
	c.proven = size
	c.report.proves(stored, by)
	return stored
}

// diverged reports the first root that is another than what was signed; after it no later one can be right.
func (c *checker) diverged(size uint64) {
	if !c.broken {
		c.tampered(c.proven, max(size, 1)-1, "tree", "some of these entries are not those that were signed: the root of size %d is another", size)
	}
	c.broken = true
}

// end checks the last line; false where it is none.
func (c *checker) end(line []byte) bool {
	var last endLine
	if err := decodeExact(line, &last); err != nil {
		c.found(tampered, "line", "%s%v", c.here(), err)
		return false
	}
	c.missing(c.End)
	if last.End.Entries != c.End-c.First {
		c.found(tampered, "end", "the last line counts %d entries, the first %d", last.End.Entries, c.End-c.First)
	}
	if !c.lost && last.End.Chain != c.chain {
		c.found(tampered, "chain", "the chain over all entries does not end where the last line says")
	}
	return true
}

func (c *checker) afterEnd() error {
	_, err := c.lines.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil && !errors.As(err, new(damagedLine)) {
		return err
	}
	c.found(tampered, "end", "%ssomething follows the last line", c.here())
	return nil
}

// finish closes the tree with the note of the header, and asks what needs the whole file.
func (c *checker) finish() {
	if !c.lost {
		c.pushAll(c.End, c.Size, c.Right, "right")
	}
	closing := c.signed(c.Note, c.Size, "line 1: ")
	c.proveAnchors(closing)
	for _, found := range c.leave.findings() {
		c.report.add(found)
	}
	c.report.Remarks = append(c.report.Remarks, c.leave.remarks...)
}
