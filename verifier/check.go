package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// A checker reads one export from its first line to its last and reports what it finds. It keeps ids, not entries.
type checker struct {
	root    *certificate
	anchors []*anchor
	// By size: an auditor who keeps one a second has millions.
	anchorsAt map[uint64][]*anchor
	report    *report
	lines     *lineReader

	*header
	keys keyring

	malformed int // lines, of which maxLinesNamed are findings

	next   uint64 // number of the entry that must come now
	stored uint64 // size of the checkpoint that stood last
	tree   frontier
	chain  Hash
	lost   bool   // entries are missing, so that neither tree nor chain can be known
	broken bool   // a signed root was not that of the entries: no later one will be
	proven uint64 // up to where a signed root was that of the entries

	ids    map[string]uint64
	newest instant
	oldest time.Time
	late   map[uint64]bool
	leave  retention
}

// An instant is when an entry says it was recorded.
type instant struct {
	time.Time
	entry uint64
}

// checkExport checks one export against the root certificate and the anchors; by now the time of bodies that are gone must be over.
func checkExport(file io.Reader, root *certificate, anchors []string, now time.Time) *report {
	c := &checker{root: root, report: newReport(), lines: newLineReader(file),
		anchorsAt: map[uint64][]*anchor{}, ids: map[string]uint64{}, late: map[uint64]bool{}, leave: newRetention(now)}
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
			c.found(tampered, "end", "the file has no last line: it was cut off")
			return nil
		case errors.As(err, new(damagedLine)):
			c.refuse(err)
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
		var read entryLine
		if read, err = parseEntryLine(line); err == nil {
			c.entry(read)
		}
	case bytes.HasPrefix(line, goneMark):
		var read entryLine
		if read, err = parsePurgedLine(line); err == nil {
			c.entry(read)
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
		c.refuse(err)
	}
}

// maxLinesNamed bounds what is said of malformed lines, or a file of empty ones would fill memory with it.
const maxLinesNamed = 1000

// refuse reports that the line that was just read is malformed.
func (c *checker) refuse(why error) {
	if c.malformed++; c.malformed <= maxLinesNamed {
		c.found(tampered, "line", "%s%v", c.here(), why)
	}
}

// entry checks one entry: its leaf, its place, its id, its body, and what it says of other entries.
func (c *checker) entry(line entryLine) {
	l, ok := c.leaf(line)
	switch {
	case !ok:
	case line.purged:
		c.leave.bodyGone(l)
		c.report.Purged++
	case !l.has(line.body):
		c.tampered(l.seq, l.seq, "entry", "its body was altered: it does not have the hash that its leaf has")
	default:
		parsed, err := parseEntry(l, line.body)
		if err != nil {
			c.tampered(l.seq, l.seq, "entry", "it has its hash but is no entry: %v", err)
			return
		}
		c.leave.read(parsed)
		c.report.Entries++
	}
}

// leaf takes the leaf of a line into tree and chain; false, and reported, unless it stands in its place with its hash.
func (c *checker) leaf(line entryLine) (l leaf, ok bool) {
	why := "its leaf was altered: it does not have the hash that the log stored"
	if leafHash(line.leaf) == line.hash {
		var err error
		if l, err = parseLeaf(line.leaf); err != nil {
			why = fmt.Sprintf("its leaf has its hash and is none: %v", err)
		}
		ok = err == nil
	}
	if !ok {
		l.seq = c.next // what it says cannot be believed, its number included: it counts as the entry that belongs here
	}
	if !c.inPlace(l.seq) {
		return l, false
	}
	if ok {
		c.remember(l)
	} else {
		c.tampered(c.next, c.next, "entry", "%s", why)
	}
	c.grow(line.hash)
	return l, ok
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

// remember keeps what later entries are compared with, whatever became of the body.
func (c *checker) remember(l leaf) {
	if earlier, ok := c.ids[l.id]; ok {
		c.tampered(l.seq, l.seq, "entry", "its id %s is that of entry %d", l.id, earlier)
	}
	c.ids[l.id] = l.seq
	if c.oldest.IsZero() || l.recorded.Before(c.oldest) {
		c.oldest = l.recorded
	}
	if l.recorded.After(c.newest.Time) {
		c.newest = instant{l.recorded, l.seq}
	}
}
