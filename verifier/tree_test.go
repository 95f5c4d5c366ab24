package main

import (
	"fmt"
	"testing"
)

func testLeaves(n int) (leaves [][]byte) {
	for i := range n {
		leaves = append(leaves, []byte(fmt.Sprint("leaf ", i)))
	}
	return leaves
}

// The empty tree's root is SM3 of nothing, as the standard's tables have it.
func TestEmptyRoot(t *testing.T) {
	if got := emptyRoot().String(); got != "1ab21d8355cfa17f8e61194831e81a8f22bec8c728fefb747ed035eb5082aa2b" {
		t.Fatal(got)
	}
}

// A tree that grows leaf by leaf, or by subtrees that cover a range, has the root of the definition.
func TestRoots(t *testing.T) {
	leaves := testLeaves(40)
	for n := 0; n <= len(leaves); n++ {
		for first := 0; first <= n; first++ {
			var f frontier
			begin := uint64(0)
			for _, level := range covering(0, uint64(first)) {
				end := begin + 1<<level
				if err := f.push(level, Hash(reference(leaves[begin:end]))); err != nil {
					t.Fatal(err)
				}
				begin = end
			}
			for _, leaf := range leaves[first:n] {
				if err := f.push(0, leafHash(leaf)); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := f.root(), Hash(reference(leaves[:n])); got != want || f.size != uint64(n) {
				t.Fatalf("size %d from %d: %s, not %s", n, first, got, want)
			}
		}
	}
}

// A subtree can only begin at a multiple of its width.
func TestMisplacedSubtree(t *testing.T) {
	f := frontier{}
	if f.push(0, Hash{}) != nil || f.push(1, Hash{}) == nil {
		t.Fatal("two leaves were taken at leaf 1")
	}
}

// Every inclusion proof leads to the root, and none does with another leaf, place, step or length.
func TestInclusion(t *testing.T) {
	for n := 1; n <= 33; n++ {
		leaves := testLeaves(n)
		root := Hash(reference(leaves))
		for m := range n {
			path, leaf := hashes(inclusion(m, leaves)), leafHash(leaves[m])
			if got, err := rootByInclusion(leaf, uint64(m), uint64(n), path); err != nil || got != root {
				t.Fatalf("entry %d of %d: %v", m, n, err)
			}
			proves := func(leaf Hash, index, size uint64, path []Hash) {
				t.Helper()
				if got, err := rootByInclusion(leaf, index, size, path); err == nil && got == root {
					t.Fatalf("entry %d of %d: proven wrongly", m, n)
				}
			}
			proves(leafHash([]byte("other")), uint64(m), uint64(n), path)
			proves(leaf, uint64(m), uint64(n), append(path[:len(path):len(path)], Hash{}))
			proves(leaf, uint64(n), uint64(n), path)
			if n > 1 {
				proves(leaf, uint64((m+1)%n), uint64(n), path)
				proves(leaf, uint64(m), uint64(n), path[1:])
				proves(leaf, uint64(m), uint64(n), path[:len(path)-1])
			}
			for i := range path {
				path[i][i] ^= 1
				proves(leaf, uint64(m), uint64(n), path)
				path[i][i] ^= 1
			}
		}
	}
}

// Every consistency proof holds, and none does with another root, size, step or length.
func TestConsistency(t *testing.T) {
	leaves := testLeaves(33)
	for n := 1; n <= len(leaves); n++ {
		newRoot := Hash(reference(leaves[:n]))
		for m := 1; m <= n; m++ {
			oldRoot, path := Hash(reference(leaves[:m])), hashes(subproof(m, leaves[:n], true))
			m, n := uint64(m), uint64(n)
			if !isConsistent(m, n, oldRoot, newRoot, path) {
				t.Fatalf("%d to %d is refused", m, n)
			}
			if isConsistent(m, n, Hash{}, newRoot, path) || isConsistent(m, n, oldRoot, Hash{}, path) ||
				isConsistent(0, n, oldRoot, newRoot, path) || isConsistent(n+1, n, oldRoot, newRoot, path) ||
				isConsistent(m, n, oldRoot, newRoot, append(path[:len(path):len(path)], Hash{})) {
				t.Fatalf("%d to %d is taken wrongly", m, n)
			}
			for i := range path {
				if isConsistent(m, n, oldRoot, newRoot, path[:i]) {
					t.Fatalf("%d to %d is taken with %d steps of %d", m, n, i, len(path))
				}
				path[i][i] ^= 1
				if isConsistent(m, n, oldRoot, newRoot, path) {
					t.Fatalf("%d to %d is taken with step %d changed", m, n, i)
				}
				path[i][i] ^= 1
			}
		}
	}
}

// A hash has one spelling.
func TestParseHash(t *testing.T) {
	const good = "1ab21d8355cfa17f8e61194831e81a8f22bec8c728fefb747ed035eb5082aa2b"
	if h, err := parseHash(good); err != nil || h != emptyRoot() {
		t.Fatal(err)
	}
	for _, bad := range []string{"", good[1:], good + "0", "1A" + good[2:], "g" + good[1:]} {
		if _, err := parseHash(bad); err == nil {
			t.Fatalf("%q is taken", bad)
		}
	}
}
