package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A call gives the exit status of its verdict, 6 with the reason where it could not check, and 2 where it was not called so.
func TestRun(t *testing.T) {
	l := newLog(t, 4)
	lines := l.export(t, 0, 4)
	export := write(t, "export.jsonl", strings.Join(lines, "\n")+"\n")
	lines[1] = strings.Replace(lines[1], "olivia", "mallory", 1)
	edited := write(t, "edited.jsonl", strings.Join(lines, "\n")+"\n")
	root := write(t, "root.pem", string(asPEM(l.root)))
	anchor := write(t, "anchor.txt", l.note(t, 3))
	proof := write(t, "proof.txt", l.proof(t, 1))
	dated := write(t, "dated.txt", "# kept on 2026-11-30\n\n"+l.note(t, 3)+"\n# and a day later\n"+l.note(t, 4))
	empty, asJSON := write(t, "empty", ""), write(t, "anchor.json", `{"note": ""}`)
	two := write(t, "two.pem", string(asPEM(l.root))+string(asPEM(l.signer)))
	mailed := write(t, "mailed.jsonl", strings.ReplaceAll(strings.Join(l.export(t, 0, 4), "\n")+"\n", "\n", "\r\n"))
	mailedProof := write(t, "mailed.txt", strings.ReplaceAll(l.proof(t, 1), "\n", "\r\n"))
	for _, test := range []struct {
		arguments []string
		status    int
		says      string
	}{
		{[]string{"--export", export, "--root", root}, 0, "whole\n"},
		{[]string{"--export", export, "--root", root, "--anchor", anchor}, 0, "anchors      1 good"},
		{[]string{"--export", export, "--root", root, "--output", "json"}, 0, `"verdict": "whole"`},
		{[]string{"--proof", proof, "--root", root}, 0, "whole\n"},
		{[]string{"--export", edited, "--root", root}, 4, "entry 0: "},
		{[]string{"--export", proof, "--root", root}, 6, "not an export"},
		{[]string{"--proof", anchor, "--root", root}, 6, "does not begin"},
		{[]string{"--export", export}, 2, "--root"},
		{[]string{"--root", root}, 2, "--export"},
		{[]string{"--export", export, "--root", export}, 6, "--root"},
		{[]string{"--export", export, "--root", root, "--anchor", root}, 6, "something else"},
		{[]string{"--export", root + ".none", "--root", root}, 6, "no such file"},
		{[]string{"--export", filepath.Dir(root), "--root", root}, 6, "directory"},
		{[]string{"--export", export, "--root", root, "--output", "xml"}, 2, "text or json"},
		{[]string{"--export", export, "--root", root, "more"}, 2, "more"},
		{[]string{"--export", export, "--root", root, "--anchor", dated}, 0, "anchors      2 good"},
		{[]string{"--export", export, "--root", root, "--anchor", empty}, 6, "the file is empty"},
		{[]string{"--export", export, "--root", root, "--anchor", asJSON}, 6, "Accept: text/plain"},
		{[]string{"--export", export, "--root", empty}, 6, "the file is empty"},
		{[]string{"--export", export, "--root", two}, 6, "name one certificate"},
		{[]string{"--export", empty, "--root", root}, 6, "the file is empty"},
		{[]string{"--export", mailed, "--root", root}, 6, "CRLF"},
		{[]string{"--proof", mailedProof, "--root", root}, 6, "CRLF"},
		{[]string{"--proof", empty, "--root", root}, 6, "the file is empty"},
		{[]string{"--proof", asJSON, "--root", root}, 6, "Accept: text/plain"},
		{[]string{"--help"}, 0, "Exit status"},
	} {
		var said bytes.Buffer
		if status := run(test.arguments, nil, &said, &said); status != test.status || !strings.Contains(said.String(), test.says) {
			t.Errorf("%v: %d\n%s", test.arguments, status, said.String())
		}
	}
}

// What a terminal would act upon is not written to it.
func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[2J\u202eb"); got != "a\ufffd[2J\ufffdb" {
		t.Errorf("%q", got)
	}
}

// Standard input is read where - is named.
func TestStandardInput(t *testing.T) {
	l := newLog(t, 2)
	root := write(t, "root.pem", string(asPEM(l.root)))
	var said bytes.Buffer
	file := strings.NewReader(strings.Join(l.export(t, 0, 2), "\n") + "\n")
	if status := run([]string{"--export", "-", "--root", root}, file, &said, &said); status != 0 {
		t.Errorf("%d\n%s", status, said.String())
	}
}
