package main

import (
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/emmansun/gmsm/sm3"
)

// A Hash is one SM3 digest: of a leaf, of a node of the tree, or of a link of the chain.
type Hash [sm3.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// First bytes of what is hashed, so that no leaf can pass for a node (RFC 6962 section 2.1) nor either for a link.
const (
	leafPrefix  = 0
	nodePrefix  = 1
	chainPrefix = 2
)

func hashOf(prefix byte, parts ...[]byte) (digest Hash) {
	hasher := sm3.New()
	hasher.Write([]byte{prefix})
	for _, part := range parts {
		hasher.Write(part)
	}
	hasher.Sum(digest[:0])
	return digest
}

func leafHash(leaf []byte) Hash          { return hashOf(leafPrefix, leaf) }
func nodeHash(left, right Hash) Hash     { return hashOf(nodePrefix, left[:], right[:]) }
func chainHash(previous, leaf Hash) Hash { return hashOf(chainPrefix, previous[:], leaf[:]) }
func emptyRoot() Hash                    { return sm3.Sum(nil) }
func parseHash(text string) (h Hash, err error) {
	if len(text) != 2*len(h) {
		return h, fmt.Errorf("a hash has %d hexadecimal digits, not %d", 2*len(h), len(text))
	}
	for _, digit := range []byte(text) {
		if (digit < '0' || digit > '9') && (digit < 'a' || digit > 'f') {
			return h, fmt.Errorf("%q is not a digit of a hash", digit)
		}
	}
	_, err = hex.Decode(h[:], []byte(text))
	return h, err
}

// A frontier is a growing tree: the roots of its complete subtrees, largest first.
type frontier struct {
	size  uint64
	stack []Hash
}

// push adds a complete subtree of 1<<level leaves at the right end.
func (f *frontier) push(level int, subtree Hash) error {
	if f.size&(1<<level-1) != 0 {
		return fmt.Errorf("a subtree of %d leaves cannot begin at leaf %d", uint64(1)<<level, f.size)
	}
	for carry := f.size >> level; carry&1 == 1; carry >>= 1 {
		last := len(f.stack) - 1
		subtree = nodeHash(f.stack[last], subtree)
		f.stack = f.stack[:last]
	}
	f.stack = append(f.stack, subtree)
	f.size += 1 << level
	return nil
}

// root folds the subtrees from the right: the root of the tree so far.
func (f *frontier) root() Hash {
	if len(f.stack) == 0 {
		return emptyRoot()
	}
	root := f.stack[len(f.stack)-1]
	for i := len(f.stack) - 2; i >= 0; i-- {
		root = nodeHash(f.stack[i], root)
	}
	return root
}

// covering lists the levels of the fewest complete subtrees over the leaves [begin, end), from left to right.
func covering(begin, end uint64) (levels []int) {
	for begin < end {
		level := bits.Len64(end-begin) - 1
		if begin > 0 {
			level = min(level, bits.TrailingZeros64(begin))
		}
		levels = append(levels, level)
		begin += 1 << level
	}
	return levels
}

// rootByInclusion is the root that the path leads to from leaf number index of a tree of size (RFC 9162 section 2.1.3.2).
func rootByInclusion(leaf Hash, index, size uint64, path []Hash) (Hash, error) {
	if index >= size {
		return Hash{}, fmt.Errorf("entry %d is not in a tree of %d", index, size)
	}
	at, last, root := index, size-1, leaf
	for _, step := range path {
		if last == 0 {
			return Hash{}, fmt.Errorf("the path has %d hashes, too many for entry %d of %d", len(path), index, size)
		}
		if at&1 == 1 || at == last {
			root = nodeHash(step, root)
			for at&1 == 0 && at != 0 {
				at, last = at>>1, last>>1
			}
		} else {
			root = nodeHash(root, step)
		}
		at, last = at>>1, last>>1
	}
	if last != 0 {
		return Hash{}, fmt.Errorf("the path has %d hashes, too few for entry %d of %d", len(path), index, size)
	}
	return root, nil
}

// isConsistent tells whether the path proves that the tree of oldSize begins the tree of newSize (RFC 9162 section 2.1.4.2).
func isConsistent(oldSize, newSize uint64, oldRoot, newRoot Hash, path []Hash) bool {
	switch {
	case oldSize == 0 || oldSize > newSize:
		return false
	case oldSize == newSize:
		return len(path) == 0 && oldRoot == newRoot
	case oldSize&(oldSize-1) == 0:
		path = append([]Hash{oldRoot}, path...)
	}
	if len(path) == 0 {
		return false
	}
	at, last := oldSize-1, newSize-1
	for ; at&1 == 1; at, last = at>>1, last>>1 {
	}
	older, newer := path[0], path[0]
	for _, step := range path[1:] {
		if last == 0 {
			return false
		}
		if at&1 == 1 || at == last {
			older, newer = nodeHash(step, older), nodeHash(step, newer)
			for ; at&1 == 0 && at != 0; at, last = at>>1, last>>1 {
			}
		} else {
			newer = nodeHash(newer, step)
		}
		at, last = at>>1, last>>1
	}
	return last == 0 && older == oldRoot && newer == newRoot
}
