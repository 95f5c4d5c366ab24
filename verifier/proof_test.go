package main

import (
	"strings"
	"testing"
)

func checkText(t testing.TB, l *memoryLog, text string) (*report, error) {
	t.Helper()
	return checkProof(strings.NewReader(text), "test", l.trusted(t))
}

// Every entry's proof holds.
func TestProofs(t *testing.T) {
	l := newLog(t, 7)
	for seq := range l.leaves {
		got, err := checkText(t, l, l.proof(t, seq))
		if err != nil {
			t.Fatal(err)
		}
		got.wants(t, whole, -1)
	}
}

// Empty lines after a proof are of whoever kept several in one file.
func TestProofBeforeEmptyLines(t *testing.T) {
	l := newLog(t, 3)
	got, err := checkText(t, l, l.proof(t, 1)+"\n\n")
	if err != nil {
		t.Fatal(err)
	}
	got.wants(t, whole, -1)
}

// withoutBody is the proof of an entry whose body went.
func withoutBody(proof string) string {
	before, rest, _ := strings.Cut(proof, "entry ")
	_, after, _ := strings.Cut(rest, "\n")
	return before + after
}

// Of an entry whose body went the leaf is proven.
func TestProofOfAPurgedEntry(t *testing.T) {
	l := newLog(t, 7)
	got, err := checkText(t, l, withoutBody(l.proof(t, 3)))
	if err != nil {
		t.Fatal(err)
	}
	got.wants(t, whole, -1)
	if got.Entries != 0 || got.Purged != 1 {
		t.Fatalf("%+v", got)
	}
}

// Every single changed byte of a proof is found.
func TestEveryByteOfAProof(t *testing.T) {
	l := newLog(t, 5)
	text := []byte(l.proof(t, 2))
	for i := range text {
		for _, bit := range []byte{1, 32} {
			text[i] ^= bit
			if got, err := checkText(t, l, string(text)); err == nil && got.Verdict != tampered {
				t.Fatalf("byte %d changed to %q: %s", i, text[i], got.Verdict)
			}
			text[i] ^= bit
		}
	}
}

// A proof of another entry, for another root, or under a certificate that had ended, is refused.
func TestBadProofs(t *testing.T) {
	l, other := newLog(t, 5), newLog(t, 5)
	good := l.proof(t, 2)
	late := newLog(t, 2)
	late.appendAt(began.AddDate(3, 0, 0), "key.revoked", "")
	for name, test := range map[string]struct {
		root *memoryLog
		text string
	}{
		"another root":     {other, good},
		"another body":     {l, strings.Replace(good, lineOf(good, 1), lineOf(l.proof(t, 3), 1), 1)},
		"another leaf":     {l, strings.Replace(good, lineOf(good, 2), lineOf(l.proof(t, 3), 2), 1)},
		"no leaf":          {l, strings.Replace(good, lineOf(good, 2)+"\n", "", 1)},
		"no body, no leaf": {l, "sluice-audit-proof 1\n\n" + strings.SplitN(good, "\n\n", 2)[1]},
		"another index":    {l, strings.Replace(good, "index 2", "index 3", 1)},
		"a path too long":  {l, strings.Replace(good, "\n\n", "\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n", 1)},
		"cut off":          {l, good[:len(good)-1]},
		"more":             {l, good + "\nx\n"},
		"an ended signer":  {late, late.proof(t, 2)},
	} {
		got, err := checkText(t, test.root, test.text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Verdict != tampered {
			t.Errorf("%s: %s", name, got.Verdict)
		}
	}
	for _, text := range []string{"", "garbage", strings.Replace(good, "proof 1", "proof 2", 1), good + good, good + "\n" + good} {
		if _, err := checkText(t, l, text); err == nil {
			t.Errorf("%.20q is checked", text)
		}
	}
}

func lineOf(text string, number int) string { return strings.Split(text, "\n")[number] }
