package main

import "fmt"

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
		if len(c.keys) > 0 { // else trust has said it for all of them
			c.found(tampered, "checkpoint", "%s%v", place, err)
		}
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
