package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Any range of a log is whole, also with anchors before, in and after it.
func TestWholeRanges(t *testing.T) {
	l := newLog(t, 9)
	for first := 0; first <= 9; first++ {
		for end := first; end <= 9; end++ {
			got := l.check(t, l.export(t, first, end))
			got.wants(t, whole, -1)
			if got.Entries != uint64(end-first) || got.Size != 9 {
				t.Fatalf("%+v", got)
			}
		}
	}
	got := l.check(t, l.export(t, 5, 8, 3), l.note(t, 3), l.note(t, 5), l.note(t, 7), l.note(t, 9))
	got.wants(t, whole, -1)
	if got.Anchors != 4 {
		t.Fatalf("%+v", got)
	}
}

// An empty log is whole.
func TestEmptyLog(t *testing.T) {
	l := newLog(t, 0)
	l.check(t, l.export(t, 0, 0), l.note(t, 0)).wants(t, whole, -1)
}

// A file that is no export of this format says nothing: it was not checked.
func TestUnchecked(t *testing.T) {
	l := newLog(t, 2)
	lines := l.export(t, 0, 2)
	for _, file := range []string{"", "\n", "garbage\n", "{}\n", strings.Replace(lines[0], `export":1,`, `export":2,`, 1), strings.Repeat("x", maxLineBytes+1)} {
		checkExport(strings.NewReader(file), "test", l.trusted(t), nil, checked).wants(t, unchecked, -1)
	}
}

// Every single changed byte of a file is found.
func TestEveryByte(t *testing.T) {
	l := newLog(t, 3)
	file := []byte(strings.Join(l.export(t, 1, 3), "\n") + "\n")
	root := l.trusted(t)
	for i := range file {
		file[i] ^= 1
		if got := checkExport(strings.NewReader(string(file)), "test", root, nil, checked); got.Verdict != tampered && got.Verdict != unchecked {
			t.Fatalf("byte %d changed to %q: %s", i, file[i], got.Verdict)
		}
		file[i] ^= 1
	}
}

// A file that ends early is found wherever it ends.
func TestEveryCut(t *testing.T) {
	l := newLog(t, 3)
	file := strings.Join(l.export(t, 0, 3), "\n") + "\n"
	root := l.trusted(t)
	for i := len(headerMark) + 2; i < len(file); i++ {
		checkExport(strings.NewReader(file[:i]), "test", root, nil, checked).wantsVerdict(t, tampered)
	}
}

func (r *report) wantsVerdict(t testing.TB, want verdict) {
	t.Helper()
	if r.Verdict != want {
		t.Fatalf("%s, not %s: %+v", r.Verdict, want, r.Findings)
	}
}

// at is the index of the line of an entry.
func at(t testing.TB, lines []string, seq int) int {
	t.Helper()
	found := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, fmt.Sprintf(`"seq":%d},"leaf"`, seq)) })
	if found < 0 {
		t.Fatalf("no entry %d", seq)
	}
	return found
}

// Each change of lines is found, and the entry that it is about is named.
func TestLines(t *testing.T) {
	l := newLog(t, 8)
	other := newLog(t, 8)
	for name, test := range map[string]struct {
		entry  int
		change func(lines []string) []string
	}{
		"an edited body": {3, func(lines []string) []string {
			i := at(t, lines, 3)
			lines[i] = strings.Replace(lines[i], "olivia", "mallory", 1)
			return lines
		}},
		"two that changed places": {2, func(lines []string) []string {
			i, k := at(t, lines, 2), at(t, lines, 3)
			lines[i], lines[k] = lines[k], lines[i]
			return lines
		}},
		"one that is missing":  {5, func(lines []string) []string { return slices.Delete(lines, at(t, lines, 5), at(t, lines, 5)+1) }},
		"one that comes twice": {5, func(lines []string) []string { return slices.Insert(lines, at(t, lines, 5), lines[at(t, lines, 5)]) }},
		"the newest missing":   {7, func(lines []string) []string { return slices.Delete(lines, at(t, lines, 7), at(t, lines, 7)+1) }},
		"a tail missing":       {6, func(lines []string) []string { return slices.Delete(lines, at(t, lines, 6), len(lines)-1) }},
		"a tail cut off":       {6, func(lines []string) []string { return lines[:at(t, lines, 6)] }},
		"an entry with its hash edited": {2, func(lines []string) []string {
			l := &memoryLog{l.authority, slices.Clone(l.leaves)}
			l.leaves[3] = []byte(strings.Replace(string(l.leaves[3]), "olivia", "mallory", 1))
			lines[at(t, lines, 3)] = l.export(t, 0, 8)[at(t, lines, 3)]
			return lines
		}},
		"a checkpoint twice": {-1, func(lines []string) []string { return slices.Insert(lines, 3, lines[3]) }},
		"a blank line":       {-1, func(lines []string) []string { return slices.Insert(lines, 4, "") }},
		"something after it": {-1, func(lines []string) []string { return append(lines, "{}") }},
		"two ends":           {-1, func(lines []string) []string { return append(lines, lines[len(lines)-1]) }},
		"a carriage return":  {-1, func(lines []string) []string { lines[0] += "\r"; return lines }},
		"a space": {-1, func(lines []string) []string {
			lines[0] = strings.Replace(lines[0], `"chain":`, `"chain": `, 1)
			return lines
		}},
		"a null for a list": {-1, func(lines []string) []string {
			lines[0] = strings.Replace(lines[0], `"left":[]`, `"left":null`, 1)
			return lines
		}},
		"a key in other case": {-1, func(lines []string) []string {
			lines[0] = strings.Replace(lines[0], `"left"`, `"Left"`, 1)
			return lines
		}},
		"a misplaced checkpoint": {-1, func(lines []string) []string { lines[3], lines[6] = lines[6], lines[3]; return lines }},
		"another log's name": {-1, func(lines []string) []string {
			lines[0] = strings.Replace(lines[0], `"log":"sluice/`, `"log":"sluice/1`, 1)
			return lines
		}},
		"other keys": {-1, func([]string) []string { return other.export(t, 0, 8) }},
		"a checkpoint by another key": {-1, func(lines []string) []string {
			lines[3] = fmt.Sprintf(`{"checkpoint":%s}`, quoted(other.note(t, 2)))
			return lines
		}},
	} {
		t.Run(name, func(t *testing.T) { l.check(t, test.change(l.export(t, 0, 8))).wants(t, tampered, test.entry) })
	}
}

// An id that stands twice is found, although every hash is right.
func TestDoubleID(t *testing.T) {
	l := newLog(t, 4)
	l.leaves[2] = []byte(strings.Replace(string(l.leaves[2]), "000000000002", "000000000001", 1))
	l.check(t, l.export(t, 0, 4)).wants(t, tampered, 2)
}

// What is signed and hashed but no entry is found.
func TestNoEntry(t *testing.T) {
	for _, leaf := range []string{`{}`, `{"body":{},"retention":"d400","seq":2}`, `{"body":1,"retention":"d400","seq":2}`, `{"body":{},"retention":"400","seq":2}`, `x`} {
		l := newLog(t, 4)
		l.leaves[2] = []byte(leaf)
		l.check(t, l.export(t, 0, 4)).wants(t, tampered, 2)
	}
}

// An anchor finds what a file alone cannot show: a tail that is gone, and a log that was written anew.
func TestAnchors(t *testing.T) {
	l := newLog(t, 9)
	short := &memoryLog{l.authority, l.leaves[:7]}
	anew := &memoryLog{l.authority, slices.Clone(l.leaves)}
	anew.leaves[2] = []byte(strings.Replace(string(anew.leaves[2]), "olivia", "mallory", 1))
	short.check(t, short.export(t, 0, 7)).wants(t, whole, -1)
	anew.check(t, anew.export(t, 0, 9)).wants(t, whole, -1)

	short.check(t, short.export(t, 0, 7), l.note(t, 9)).wants(t, tampered, -1)
	anew.check(t, anew.export(t, 0, 9), l.note(t, 5)).wants(t, tampered, -1)
	anew.check(t, anew.export(t, 6, 9, 5), l.note(t, 5)).wants(t, tampered, -1)
	l.check(t, l.export(t, 6, 9), l.note(t, 5)).wants(t, unchecked, -1)
	l.check(t, l.export(t, 0, 5), l.note(t, 7)).wants(t, unchecked, -1)
	l.check(t, l.export(t, 0, 9), newLog(t, 5).note(t, 5)).wants(t, tampered, -1)
	l.check(t, l.export(t, 0, 9), "no note").wants(t, tampered, -1)
}

// An entry under a checkpoint whose signer's certificate had ended is named.
func TestEndedSigner(t *testing.T) {
	l := newLog(t, 3)
	l.appendAt(began.AddDate(3, 0, 0), "key.revoked", "")
	l.append("key.revoked", "")
	l.check(t, l.export(t, 0, 5)).wants(t, tampered, 3)
}

// withoutBodies takes the bodies of entries out of a file.
func withoutBodies(t testing.TB, lines []string, shelf string, entries ...int) []string {
	for _, seq := range entries {
		i := at(t, lines, seq)
		_, leaf, _ := strings.Cut(lines[i], `,"leaf":"`)
		lines[i] = fmt.Sprintf(`{"leaf":"%s","purged":{"seq":%d,"shelf":"%s"}}`, strings.TrimSuffix(leaf, `"}`), seq, shelf)
	}
	return lines
}

// Bodies may go when an entry says so and their time was over; otherwise records are missing.
func TestPurge(t *testing.T) {
	over := checked
	for name, test := range map[string]struct {
		recorded time.Time
		says     string
		shelf    string
		want     verdict
	}{
		"in time":          {over, `,"count":2,"first":1,"last":2,"shelf":"d400-2026-11"`, "d400-2026-11", whole},
		"too early":        {over.Add(-time.Microsecond), `,"count":2,"first":1,"last":2,"shelf":"d400-2026-11"`, "d400-2026-11", gap},
		"another shelf":    {over, `,"count":2,"first":1,"last":2,"shelf":"d401-2026-11"`, "d400-2026-11", gap},
		"others":           {over, `,"count":2,"first":2,"last":3,"shelf":"d400-2026-11"`, "d400-2026-11", gap},
		"fewer":            {over, `,"count":1,"first":1,"last":2,"shelf":"d400-2026-11"`, "d400-2026-11", gap},
		"nothing of them":  {over, `,"shelf":"d400-2026-11"`, "d400-2026-11", gap},
		"no shelf":         {over, `,"count":2,"first":1,"last":2,"shelf":"d400-2026-13"`, "d400-2026-13", gap},
		"no shelf's class": {over, `,"count":2,"first":1,"last":2,"shelf":"d4-2026-11"`, "d4-2026-11", gap},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, 4)
			l.appendAt(test.recorded, "audit.purge", test.says)
			entry := 1
			if test.want == whole {
				entry = -1
			}
			l.check(t, withoutBodies(t, l.export(t, 0, 5), test.shelf, 1, 2)).wants(t, test.want, entry)
		})
	}
	l := newLog(t, 4)
	l.check(t, withoutBodies(t, l.export(t, 0, 4), "d400-2026-11", 1, 2)).wants(t, gap, 1)
}

// Whoever purges before time and dates the entry ahead, or names a shelf of long ago, does not pass.
func TestPurgeThatIsNotSo(t *testing.T) {
	for shelf, now := range map[string]time.Time{"d400-2026-11": checked.Add(-time.Microsecond), "d400-2026-08": checked} {
		l := newLog(t, 4)
		l.appendAt(checked, "audit.purge", fmt.Sprintf(`,"count":2,"first":1,"last":2,"shelf":%q`, shelf))
		file := strings.Join(withoutBodies(t, l.export(t, 0, 5), shelf, 1, 2), "\n") + "\n"
		checkExport(strings.NewReader(file), "test", l.trusted(t), nil, now).wants(t, gap, 1)
	}
}

// What Go reads as an instant, but entries do not write, is no entry.
func TestInstantsHaveOneSpelling(t *testing.T) {
	for _, text := range []string{"2026-11-01T1:00:00.000000Z", "2026-11-01T01:00:00,000000Z", "0000-01-01T00:00:00.000000Z", "2026-11-01T01:00:00Z"} {
		leaf := fmt.Sprintf(`{"body":{"id":"1","kind":"key.revoked","recorded":%q},"retention":"d400","seq":0}`, text)
		if _, err := parseEntry([]byte(leaf)); err == nil {
			t.Errorf("%s is taken for an instant", text)
		}
	}
}

// An entry that speaks of lost records is a gap; one that says that none was lost is not.
func TestGap(t *testing.T) {
	for members, want := range map[string]verdict{``: gap, `,"lost":3`: gap, `,"lost":null`: gap, `,"lost":"0"`: gap, `,"lost":0`: whole} {
		l := newLog(t, 2)
		l.append("audit.gap", members)
		l.check(t, l.export(t, 0, 3)).wantsVerdict(t, want)
	}
}

// Of several findings the gravest gives the verdict.
func TestGravest(t *testing.T) {
	l := newLog(t, 2)
	l.append("audit.gap", "")
	lines := l.export(t, 0, 3)
	lines[at(t, lines, 1)] = strings.Replace(lines[at(t, lines, 1)], "olivia", "mallory", 1)
	l.check(t, lines).wantsVerdict(t, tampered)
}

// What other readers of JSON refuse in a body is refused here, too; what only looks like it is not.
func TestBodiesThatNotAllRead(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for text, good := range map[string]bool{
		`1e400`: false, `-1e400`: false, strings.Repeat("9", 400): false, `1e308`: true, `[1,-0.5]`: true,
		`"\ud800"`: false, `"\udc00\ud83d"`: false, `"\ud83d\ude00"`: true, `"\\ud800"`: true, `"\ufffd�"`: true, `"\uFFFD\ud800"`: false,
		nested(1023): true, nested(1024): false, `"[\"[["`: true,
	} {
		leaf := `{"body":{"id":"1","kind":"k","recorded":"2026-11-01T01:00:00.000000Z","x":` + text + `},"retention":"d400","seq":0}`
		if _, err := parseEntry([]byte(leaf)); (err == nil) != good {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
