package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// begin reads the first line; false where nothing more can be checked.
func (c *checker) begin(anchors []string) bool {
	parsed, err := c.readHeader()
	switch {
	case errors.Is(err, io.EOF):
		c.found(unchecked, "file", "the file is empty")
		return false
	case errors.As(err, new(damagedLine)):
		c.found(tampered, "line", "line 1: %v", err)
		return false
	case err != nil:
		c.found(unchecked, "file", "%v", err)
		return false
	}
	c.header = parsed
	c.report.Log, c.report.First, c.report.End = text(parsed.Log), parsed.First, parsed.End
	c.trust()
	c.openAnchors(anchors)
	c.startTree()
	return true
}

// readHeader fails with a damagedLine where the file begins like an export, and with another error where it does not or has lost its line ends.
func (c *checker) readHeader() (*header, error) {
	line, err := c.lines.next()
	if err != nil && !errors.As(err, new(damagedLine)) {
		return nil, err
	}
	parsed, refused := parseHeader(line)
	switch {
	case refused == nil:
		return parsed, err
	case errors.Is(refused, errFormat):
		return nil, refused
	case err == nil && bytes.HasSuffix(line, []byte("\r")):
		return nil, errLineEnds
	}
	return nil, damagedLine(refused.Error())
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

// end checks the last line; false where it is none.
func (c *checker) end(line []byte) bool {
	var last endLine
	if err := cmp.Or(decodeExact(line, &last), countable(last.End.Entries)); err != nil {
		c.refuse(err)
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
	if !c.oldest.IsZero() {
		c.report.RecordedFirst, c.report.RecordedLast = text(c.oldest.Format(recordedForm)), text(c.newest.Format(recordedForm))
	}
	closing := c.signed(c.Note, c.Size, "line 1: ")
	c.proveAnchors(closing)
	for _, found := range c.leave.findings() {
		c.report.add(found)
	}
	c.report.Remarks = append(c.report.Remarks, c.leave.remarks...)
	if more := c.malformed - maxLinesNamed; more > 0 {
		c.report.Remarks = append(c.report.Remarks, fmt.Sprintf("%d more lines are malformed", more))
	}
}
