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
			if got.Entries != uint64(end-first) || *got.Size != 9 {
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
		checkExport(strings.NewReader(file), l.trusted(t), nil, checked).wants(t, unchecked, -1)
	}
}

// Every single changed byte of a file is found.
func TestEveryByte(t *testing.T) {
	l := newLog(t, 3)
	file := []byte(strings.Join(l.export(t, 1, 3), "\n") + "\n")
	root := l.trusted(t)
	for i := range file {
		file[i] ^= 1
		if got := checkExport(strings.NewReader(string(file)), root, nil, checked); got.Verdict != tampered && got.Verdict != unchecked {
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
		checkExport(strings.NewReader(file[:i]), root, nil, checked).wantsVerdict(t, tampered)
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
	found := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, fmt.Sprintf(`"seq":%d}}`, seq)) })
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
			i := at(t, lines, 3)
			lines[i] = l.changed(3, "olivia", "mallory").export(t, 0, 8)[i]
			return lines
		}},
		"an edited retention": {3, func(lines []string) []string {
			i := at(t, lines, 3)
			lines[i] = strings.Replace(lines[i], `"d400"`, `"d100"`, 1)
			return lines
		}},
		"two bodies that changed places": {2, func(lines []string) []string {
			i, k := at(t, lines, 2), at(t, lines, 3)
			one, other := lines[i], lines[k]
			lines[i] = strings.Replace(one, l.bodies[2], l.bodies[3], 1)
			lines[k] = strings.Replace(other, l.bodies[3], l.bodies[2], 1)
			return lines
		}},
		"a purged leaf with another retention": {3, func(lines []string) []string {
			i := at(t, lines, 3)
			lines[i] = strings.Replace(withoutBodies(t, lines, 3)[i], `"d400"`, `"d100"`, 1)
			return lines
		}},
		"a purged leaf of another month": {3, func(lines []string) []string {
			i := at(t, lines, 3)
			lines[i] = strings.Replace(withoutBodies(t, lines, 3)[i], `"recorded":"2026-11`, `"recorded":"2020-11`, 1)
			return lines
		}},
		"a checkpoint twice": {-1, func(lines []string) []string { return slices.Insert(lines, 3, lines[3]) }},
		"a blank line":       {-1, func(lines []string) []string { return slices.Insert(lines, 4, "") }},
		"something after it": {-1, func(lines []string) []string { return append(lines, "{}") }},
		"two ends":           {-1, func(lines []string) []string { return append(lines, lines[len(lines)-1]) }},
		"a carriage return":  {-1, func(lines []string) []string { lines[3] += "\r"; return lines }},
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

// An id that stands twice is found, although every hash is right, and also where a body is gone.
func TestDoubleID(t *testing.T) {
	l := newLog(t, 4)
	l = l.changed(2, "000000000002", "000000000001")
	l.leaves[2] = []byte(strings.Replace(string(l.leaves[2]), "000000000002", "000000000001", 1))
	l.check(t, l.export(t, 0, 4)).wants(t, tampered, 2)
	l.check(t, withoutBodies(t, l.export(t, 0, 4), 1)).wants(t, tampered, 2)
}

// What is signed and hashed but no leaf, or no entry, or not that of its leaf, is found.
func TestNoEntry(t *testing.T) {
	l := newLog(t, 4)
	leaf := string(l.leaves[2])
	for _, other := range []string{
		`{}`, `x`, leaf + ` `, ` ` + leaf, strings.Replace(leaf, `"d400"`, `"400"`, 1), strings.Replace(leaf, `"d400"`, `"d99"`, 1),
		strings.Replace(leaf, `"seq":2`, `"seq":02`, 1), strings.Replace(leaf, `"seq":2`, `"seq":9223372036854775808`, 1),
		strings.Replace(leaf, "01900000-", "01900000", 1), strings.Replace(leaf, `"id":`, `"ID":`, 1), strings.Replace(leaf, `}`, `,"x":1}`, 1),
	} {
		other := l.with(2, l.bodies[2], other)
		other.check(t, other.export(t, 0, 4)).wants(t, tampered, 2)
	}
	for _, change := range [][2]string{
		{l.bodies[2], `{}`}, {l.bodies[2], `1`}, {l.bodies[2], `x`}, {l.bodies[2], ``}, {"000000000002", "000000000001"}, {"000000000002", "00000000000A"},
		{`"recorded":"2026-11-01T00:00:02`, `"recorded":"2026-11-01T00:00:03`}, {`"kind":"key.revoked"`, `"kind":1`}, {"olivia", "\xff"},
	} {
		other := l.changed(2, change[0], change[1])
		other.check(t, other.export(t, 0, 4)).wants(t, tampered, 2)
	}
}

// An anchor finds what a file alone cannot show: a tail that is gone, and a log that was written anew.
func TestAnchors(t *testing.T) {
	l := newLog(t, 9)
	short := &memoryLog{l.authority, l.leaves[:7], l.bodies[:7]}
	anew := l.changed(2, "olivia", "mallory")
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
func withoutBodies(t testing.TB, lines []string, entries ...int) []string {
	for _, seq := range entries {
		i := at(t, lines, seq)
		_, rest, _ := strings.Cut(lines[i], `,"leaf":"`)
		lines[i] = `{"leaf":"` + strings.Replace(rest, `"skeleton":`, `"purged":`, 1)
	}
	return lines
}

// Bodies may go when an entry says so and their time was over; otherwise records are missing.
func TestPurge(t *testing.T) {
	over := checked
	for name, test := range map[string]struct {
		recorded time.Time
		says     string
		want     verdict
	}{
		"in time":         {over, `,"count":2,"first":1,"last":2,"shelf":"d400-2026-11"`, whole},
		"too early":       {over.Add(-time.Microsecond), `,"count":2,"first":1,"last":2,"shelf":"d400-2026-11"`, gap},
		"another class":   {over, `,"count":2,"first":1,"last":2,"shelf":"d401-2026-11"`, gap},
		"another month":   {over, `,"count":2,"first":1,"last":2,"shelf":"d400-2026-10"`, gap},
		"others":          {over, `,"count":2,"first":2,"last":3,"shelf":"d400-2026-11"`, gap},
		"fewer":           {over, `,"count":1,"first":1,"last":2,"shelf":"d400-2026-11"`, gap},
		"nothing of them": {over, `,"shelf":"d400-2026-11"`, gap},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, 4)
			l.appendAt(test.recorded, "audit.purge", test.says)
			entry := 1
			if test.want == whole {
				entry = -1
			}
			l.check(t, withoutBodies(t, l.export(t, 0, 5), 1, 2)).wants(t, test.want, entry)
		})
	}
	l := newLog(t, 4)
	l.check(t, withoutBodies(t, l.export(t, 0, 4), 1, 2)).wants(t, gap, 1)
}

// Whoever purges before time and dates the entry ahead does not pass.
func TestPurgeBeforeItsTime(t *testing.T) {
	l := newLog(t, 4)
	l.appendAt(checked, "audit.purge", `,"count":2,"first":1,"last":2,"shelf":"d400-2026-11"`)
	file := strings.Join(withoutBodies(t, l.export(t, 0, 5), 1, 2), "\n") + "\n"
	checkExport(strings.NewReader(file), l.trusted(t), nil, checked).wants(t, whole, -1)
	checkExport(strings.NewReader(file), l.trusted(t), nil, checked.Add(-time.Microsecond)).wants(t, gap, 1)
}

// What Go reads as an instant, but entries do not write, is no entry.
func TestInstantsHaveOneSpelling(t *testing.T) {
	for _, text := range []string{"2026-11-01T1:00:00.000000Z", "2026-11-01T01:00:00,000000Z", "0000-01-01T00:00:00.000000Z", "2026-11-01T01:00:00Z"} {
		if _, err := parseLeaf(makeLeaf("{}", "01900000-0000-7000-8000-000000000000", text, 0)); err == nil {
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
		body := `{"id":"1","kind":"k","recorded":"2026-11-01T00:00:00.000000Z","x":` + text + `}`
		if _, err := parseEntry(leaf{id: "1", recorded: began}, []byte(body)); (err == nil) != good {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
