package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emmansun/gmsm/sm3"
)

// manifestOf is the text of a manifest that names these files.
func manifestOf(files ...[2]string) string {
	named := []namedFile{}
	for _, file := range files {
		content := []byte(file[1])
		digests := [2]string{fmt.Sprintf("%x", sm3.Sum(content)), fmt.Sprintf("%x", sha256.Sum256(content))}
		named = append(named, namedFile{Name: file[0], Bytes: number(len(content)), SM3: digests[0], SHA256: digests[1]})
	}
	m := manifest{Day: "2026-11-02", Files: named, Form: manifestForm, Report: "one", Counts: counts{"entries": 7},
		Verdicts: map[string]counts{"mlps": {"met": 1}}, Versions: map[string]any{"sluice": "0"}}
	return m.spelling()
}

// signed adds the manifest and its signature to a folder.
func (a authority) signed(t testing.TB, manifest string, files map[string]string) map[string]string {
	t.Helper()
	folder := maps.Clone(files)
	folder[manifestName], folder[manifestName+signatureSuffix] = manifest, string(a.form(t, manifest).sign(t))
	return folder
}

// A night is valid where all that its manifest names is there, as it is named, and signed where it has a signature.
func TestManifests(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	pdf, csv := a.asPDF(t, "(text)", nil), "\ufeffa,b\r\n"
	files := map[string]string{"x.pdf": pdf, "x.csv": csv, "x.csv.p7s": string(a.form(t, csv).sign(t)), "log.jsonl": "{}\n"}
	good := manifestOf([2]string{"x.pdf", pdf}, [2]string{"x.csv", csv}, [2]string{"log.jsonl", "{}\n"})
	with := func(name, content string) map[string]string {
		other := a.signed(t, good, files)
		if other[name] = content; content == "" {
			delete(other, name)
		}
		return other
	}
	plain := manifestOf([2]string{"x.pdf", "%PDF-"})
	for name, test := range map[string]struct {
		files map[string]string
		want  cause
	}{
		"as signed":              {a.signed(t, good, files), ""},
		"another file":           {with("more.txt", "x"), ""},
		"no signature of a CSV":  {with("x.csv.p7s", ""), ""},
		"a file changed":         {with("log.jsonl", "[]\n"), digest},
		"a file gone":            {with("log.jsonl", ""), missing},
		"a bad signature":        {with("x.csv.p7s", "x"), malformed},
		"a stranger's signature": {with("x.csv.p7s", string(b.form(t, csv).sign(t))), untrusted},
		"the manifest changed":   {with(manifestName, strings.Replace(good, "one", "two", 1)), digest},
		"no manifest":            {with(manifestName, ""), unreadable},
		"manifest unsigned":      {with(manifestName+signatureSuffix, ""), unsigned},
		"stranger's manifest":    {b.signed(t, good, files), untrusted},
		"unsigned PDF":           {a.signed(t, plain, map[string]string{"x.pdf": "%PDF-"}), unsigned},
		"twice":                  {a.signed(t, manifestOf([2]string{"log.jsonl", "{}\n"}, [2]string{"log.jsonl", "{}\n"}), files), malformed},
		"elsewhere":              {a.signed(t, manifestOf([2]string{"../log.jsonl", "{}\n"}), files), malformed},
		"itself":                 {a.signed(t, manifestOf([2]string{manifestName, ""}), files), malformed},
		"another form":           {a.signed(t, strings.Replace(good, "manifest 1", "manifest 2", 1), files), unreadable},
		"another spelling":       {a.signed(t, strings.Replace(good, "  \"day\"", "   \"day\"", 1), files), unreadable},
		"a member twice":         {a.signed(t, strings.Replace(good, "{\n", "{\n  \"files\": [],\n", 1), files), unreadable},
		"no JSON":                {a.signed(t, "x", files), unreadable},
	} {
		a.judged(t, ".", test.files).wants(t, name, test.want)
	}
}

// A manifest is known by its content: under another name its signature alone is no answer, and a file that quotes one is none.
func TestManifestUnderAnotherName(t *testing.T) {
	a := newAuthority(t)
	night := a.signed(t, manifestOf([2]string{"log.jsonl", "{}\n"}), map[string]string{})
	quoted := "x\n" + night[manifestName]
	files := map[string]string{"x.json": night[manifestName], "x.json.p7s": night[manifestName+signatureSuffix],
		"y.txt": quoted, "y.txt.p7s": string(a.form(t, quoted).sign(t)), "log.jsonl": "{}\n", manifestName: ""}
	j := a.judged(t, "x.json", files)
	if j.wants(t, "a manifest under another name", unreadable); j.Verdict != unchecked || j.Signer != "" {
		t.Errorf("%+v", j)
	}
	a.judged(t, "y.txt", files).wants(t, "a quoted manifest", "")
	j = a.judged(t, "log.jsonl", files)
	if j.wants(t, "a file without a signature", unsigned); !strings.Contains(j.Words, "manifest.json beside it may vouch") {
		t.Error(j.Words)
	}
}

// All files of a night that are not valid are named, the gravest first, and a good manifest is not blamed for them.
func TestBadFilesOfANight(t *testing.T) {
	a := newAuthority(t)
	lines := [][2]string{{"c.csv", "c"}, {"a.csv", "a"}, {"b.csv", "b"}}
	j := a.judged(t, manifestName, a.signed(t, manifestOf(lines...), map[string]string{"a.csv": "x"}))
	j.wants(t, "a night", missing)
	if j.File != "one" || j.Words != "not all files are valid: c.csv (missing), a.csv (digest), b.csv (missing)" {
		t.Errorf("%s: %s", j.File, j.Words)
	}
	if j.Files[0].File != manifestName || j.Files[0].Verdict != valid {
		t.Errorf("%+v", j.Files[0])
	}
}

// What lies in the folder and is nobody's is told; what belongs to it is not.
func TestRemarks(t *testing.T) {
	a := newAuthority(t)
	files := map[string]string{"log.jsonl": "{}\n", "log.jsonl.tsr": "", "root.pem": "", "verify.sh": "", "more.pdf": "", "more.pdf.p7s": ""}
	j := a.judged(t, manifestName, a.signed(t, manifestOf([2]string{"log.jsonl", "{}\n"}), files))
	j.wants(t, "the folder", "")
	if got := strings.Join(j.Remarks, ";"); got != "more.pdf is not named by the manifest: not judged;more.pdf.p7s is not named by the manifest: not judged" {
		t.Error(got)
	}
}

// A call checks a report and gives the exit status of its verdict.
func TestRunReport(t *testing.T) {
	a := newAuthority(t)
	root := write(t, "root.pem", string(asPEM(a.root)))
	good, edited := write(t, "x.pdf", a.asPDF(t, "(a)", nil)), write(t, "x.pdf", strings.Replace(a.asPDF(t, "(a)", nil), "(a)", "(b)", 1))
	odd := filepath.Join(t.TempDir(), "a\x1b[2J.pdf")
	if err := os.WriteFile(odd, []byte("%PDF-"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments []string
		status    int
		says      string
	}{
		{[]string{"--report", good, "--root", root}, 0, "valid  x.pdf\n  signed by    test signer\n"},
		{[]string{"--report", good, "--root", root, "--output", "json"}, 0, `"verdict": "valid"`},
		{[]string{"--report", edited, "--root", root}, 4, "tampered  x.pdf: digest: "},
		{[]string{"--report", odd, "--root", root}, 4, "tampered  a\ufffd[2J.pdf: unsigned"},
		{[]string{"--report", good + ".none", "--root", root}, 6, "unchecked"},
		{[]string{"--report", "/dev/null", "--root", root}, 6, "is no file"},
		{[]string{"--report", good, "--root", good}, 6, "--root"},
		{[]string{"--report", good}, 2, "--root"},
		{[]string{"--report", good, "--export", good, "--root", root}, 2, "name one file"},
		{[]string{"--report", good, "--root", root, "--anchor", root}, 2, "--anchor is for --export"},
	} {
		var said bytes.Buffer
		if status := run(test.arguments, nil, &said, &said); status != test.status || !strings.Contains(said.String(), test.says) {
			t.Errorf("%v: %d\n%s", test.arguments, status, said.String())
		}
	}
}
