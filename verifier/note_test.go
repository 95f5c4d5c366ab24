package main

import (
	"slices"
	"strings"
	"testing"
)

// What is no checkpoint note is refused with its form.
func TestBadNotes(t *testing.T) {
	good := newLog(t, 3).note(t, 3)
	lines := strings.Split(good, "\n")
	change := func(line int, text string) string {
		changed := slices.Clone(lines)
		changed[line] = text
		return strings.Join(changed, "\n")
	}
	for name, raw := range map[string]string{
		"empty": "", "no signature": strings.Join(lines[:4], "\n") + "\n", "no last line end": strings.TrimSuffix(good, "\n"),
		"no origin": change(0, ""), "size with a zero": change(1, "03"), "size with a sign": change(1, "+3"), "huge size": change(1, "9223372036854775808"),
		"short root": change(2, "AAAA"), "root in other base64": change(2, lines[2][:42]+"B="), "a line more": change(2, lines[2]+"\nmore"),
		"a hyphen for the dash": change(4, "- "+strings.TrimPrefix(lines[4], signaturePrefix)), "no name": change(4, signaturePrefix+"AAAA"),
		"signature with a space": change(4, lines[4]+" "), "short signature": change(4, signaturePrefix+"other AAAA"),
		"17 signatures": good + strings.Repeat(lines[4]+"\n", 16), "too long": good + strings.Repeat("x", maxNoteBytes) + "\n",
	} {
		if _, err := parseNote(raw); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := parseNote(good); err != nil {
		t.Error(err)
	}
}

// A note needs one known signature that is right, may have unknown ones, and none of a known key that is wrong.
func TestOpen(t *testing.T) {
	l := newLog(t, 3)
	keys := keyring{{l.signer, &l.signerKey.PublicKey}}
	good, other := l.note(t, 3), newLog(t, 3).note(t, 3)
	_, stranger, _ := strings.Cut(other, "\n\n")
	wrong := strings.Replace(l.note(t, 2), "\n2\n", "\n3\n", 1)
	_, wrongSignature, _ := strings.Cut(wrong, "\n\n")
	for name, test := range map[string]struct {
		raw, log string
		taken    bool
	}{
		"signed":                    {good, testLog, true},
		"of another log":            {good, testLog + "b", false},
		"with a stranger's":         {good + stranger, testLog, true},
		"a stranger's alone":        {other, testLog, false},
		"of something else":         {wrong, testLog, false},
		"with one that is not good": {good + wrongSignature, testLog, false},
		"of a witness":              {good + signaturePrefix + "witness.example AAAAAAAA\n", testLog, true},
	} {
		parsed, err := parseNote(test.raw)
		if err == nil {
			_, err = parsed.open(test.log, keys)
		}
		if (err == nil) != test.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file of notes is split into them, however its lines end.
func TestNotesIn(t *testing.T) {
	l := newLog(t, 3)
	two := []string{l.note(t, 2), l.note(t, 3)}
	for _, file := range []string{two[0] + two[1], "\n" + two[0] + "\n\n" + two[1] + "\n", strings.ReplaceAll(two[0]+two[1], "\n", "\r\n"), strings.TrimSuffix(two[0]+two[1], "\n")} {
		if got, err := notesIn(file); err != nil || !slices.Equal(got, two) {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
	for _, file := range []string{"", "\n", two[0] + "more", "more\n" + two[0]} {
		if _, err := notesIn(file); err == nil {
			t.Errorf("%q is taken", file)
		}
	}
}
