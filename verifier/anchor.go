package main

import "fmt"

// An anchor is a checkpoint that was kept elsewhere, and what the file said to it so far.
type anchor struct {
	*note
	compared bool
	right    bool
}

// openAnchors takes the notes that are checkpoints of this log, well signed, and reports the others. Without any signer none can be
// told from another, which trust has said for all of them.
func (c *checker) openAnchors(notes []string) {
	if len(c.keys) == 0 {
		return
	}
	for _, raw := range notes {
		kept, err := parseNote(raw)
		if err == nil {
			_, err = kept.open(c.Log, c.keys)
		}
		if err != nil {
			c.found(tampered, "anchor", "an anchor is not of this log: %v", err)
			continue
		}
		known := &anchor{note: kept}
		c.anchors = append(c.anchors, known)
		c.anchorsAt[kept.size] = append(c.anchorsAt[kept.size], known)
	}
}

// compareAnchors compares the anchors of the size that the tree has just now.
func (c *checker) compareAnchors() {
	for _, kept := range c.anchorsAt[c.tree.size] {
		kept.compared, kept.right = true, kept.root == c.tree.root()
	}
}

// proveAnchors judges each anchor, those that no tree of this file could be compared with by the proofs that the file has.
func (c *checker) proveAnchors(closing *note) {
	for _, kept := range c.anchors {
		word, why := c.judge(kept, closing)
		switch {
		case why != "":
			c.found(word, "anchor", "%s", why)
		case word == whole:
			c.report.Anchors++
		}
	}
}

// judge compares an anchor with each thing that the file has of it: the root of its size, and proofs.
func (c *checker) judge(kept *anchor, closing *note) (verdict, string) {
	if kept.size > c.Size {
		return tampered, fmt.Sprintf("the log had %d entries when it was anchored, the file closes at %d: entries were taken off its end, or an older state is shown", kept.size, c.Size)
	}
	if closing == nil {
		return unchecked, "" // what closes the file is not proven, and that was reported
	}
	known, right := kept.compared, kept.right || !kept.compared
	for _, proof := range c.Consistency {
		if proof.Size == kept.size {
			known = true
			right = right && isConsistent(kept.size, closing.size, kept.root, closing.root, proof.Path)
		}
	}
	switch {
	case !known:
		return unchecked, fmt.Sprintf("the file has no proof for the anchor of size %d; export it with this anchor", kept.size)
	case !right:
		return tampered, fmt.Sprintf("the tree of size %d is not the one that was anchored", kept.size)
	}
	return whole, ""
}
