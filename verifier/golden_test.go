package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that gmsm signed are kept, so that the service's verifiers and the scripts are shown signatures that OpenSSL did not make.
var update = flag.Bool("update", false, "make the files of testdata anew, with new keys")

func golden(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// The kept files are whole.
func TestGolden(t *testing.T) {
	l := newLog(t, 9)
	root := golden(t, "root.pem", string(asPEM(l.root)))
	export := golden(t, "export.jsonl", strings.Join(l.export(t, 4, 9, 3), "\n")+"\n")
	anchors := golden(t, "anchors.txt", l.note(t, 3)+"\n"+l.note(t, 7))
	proof := golden(t, "proof.txt", l.proof(t, 5))
	report := golden(t, "report.pdf", l.asPDF(t, "(one page)", nil))
	for _, arguments := range [][]string{{"--export", export, "--anchor", anchors}, {"--proof", proof}, {"--report", report}} {
		var said strings.Builder
		if status := run(append(arguments, "--root", root), nil, &said, &said); status != 0 {
			t.Errorf("%d\n%s", status, said.String())
		}
	}
}
