package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/emmansun/gmsm/sm3"
)

const (
	manifestName = "manifest.json"
	maxManifest  = 4 << 20
)

// How a manifest of any version begins, and the line that no other file that Sluice signs has.
var manifestBegin, formLine = []byte("{\n"), []byte("\n  \"form\": \"sluice-report-manifest ")

// Names of files that a manifest may give: none leads out of its folder.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// What lies in a night's folder although the manifest does not name it.
var alsoThere = map[string]bool{manifestName: true, manifestName + signatureSuffix: true, "root.pem": true, "verify.sh": true}

// judgeReport checks a signed file, a manifest with all that it names, or the manifest of a night's folder.
func judgeReport(path string, root *certificate) *judgement {
	if known, err := os.Stat(path); err == nil && known.IsDir() {
		path = filepath.Join(path, manifestName)
	}
	if filepath.Base(path) == manifestName {
		return judgeManifest(path, root)
	}
	return judgeFile(path, root)
}

// hasFormOfManifest tells a manifest by its content, whatever its name and version.
func hasFormOfManifest(file io.ReaderAt, size int64) bool {
	content := readAt(file, 0, min(size, maxManifest))
	return bytes.HasPrefix(content, manifestBegin) && bytes.Contains(content, formLine)
}

// judgeManifest reads the manifest once, so that what is signed is what is gone by.
func judgeManifest(path string, root *certificate) *judgement {
	j := newJudgement(manifestName)
	file, _, err := openRegular(path)
	if err != nil {
		j.fail(err)
		return j
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil {
		err = j.judgeBeside(path, io.MultiReader(bytes.NewReader(content), file), root)
	}
	var named *manifest
	if err == nil {
		named = readManifest(content)
		err = named.check()
	}
	if err != nil {
		j.fail(err)
		return j
	}
	return named.judge(j, filepath.Dir(path), root)
}

// check tells why a signed manifest is not gone by.
func (m *manifest) check() error {
	if m == nil {
		return fmt.Errorf("it is no manifest of the form %q", manifestForm)
	}
	seen := map[string]bool{manifestName: true}
	for _, file := range m.Files {
		if !plainName.MatchString(file.Name) || seen[file.Name] {
			return refusal{malformed, fmt.Sprintf("it names %q: no name of a file of its folder, or twice", file.Name)}
		}
		seen[file.Name] = true
	}
	return nil
}

// judge checks the night of a manifest that is signed as j says: each file that it names.
func (m *manifest) judge(j *judgement, folder string, root *certificate) *judgement {
	night := *j
	night.File, night.Report, night.Remarks, night.Files = m.Report, text(m.Report), []string{}, []*judgement{j}
	for _, file := range m.Files {
		night.Files = append(night.Files, file.judge(folder, root))
	}
	night.summarize()
	night.remarkOthers(folder, m.Files)
	return &night
}

// judge compares a file with what the manifest says of it, then checks the signature that a PDF has, or that lies beside another;
// the manifest vouches for one that has none.
func (n namedFile) judge(folder string, root *certificate) *judgement {
	path := filepath.Join(folder, n.Name)
	j := newJudgement(n.Name)
	file, size, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = refusal{missing, "it is not there"}
	}
	if err != nil {
		j.fail(err)
		return j
	}
	defer file.Close()
	if err := n.compare(file); err != nil {
		j.fail(err)
		return j
	}
	if _, err := os.Lstat(path + signatureSuffix); errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, pdfSuffix) {
		j.Words, j.Covers = "as the manifest names it; it has no signature of its own", &size
		return j
	}
	j.judgeOpened(path, file, size, root)
	return j
}

// compare reads a file and tells whether it is the one that the manifest names.
func (n namedFile) compare(file io.Reader) error {
	is3, is2 := sm3.New(), sha256.New()
	size, err := io.Copy(io.MultiWriter(is3, is2), file)
	if err != nil {
		return err
	}
	if number(size) != n.Bytes || hex.EncodeToString(is3.Sum(nil)) != n.SM3 || hex.EncodeToString(is2.Sum(nil)) != n.SHA256 {
		return refusal{digest, "it is not the file that the manifest names: size, SM3 or SHA-256 differ"}
	}
	return nil
}

// remarkOthers names what lies in the folder and is nobody's to vouch for.
func (j *judgement) remarkOthers(folder string, files []namedFile) {
	named := map[string]bool{manifestName: true}
	for _, file := range files {
		named[file.Name] = true
	}
	entries, err := os.ReadDir(folder)
	if err != nil { // who may read its files by name may still not list it
		j.Remarks = append(j.Remarks, fmt.Sprintf("its folder cannot be listed: %v", err))
	}
	for _, entry := range entries {
		name := entry.Name()
		signed := strings.TrimSuffix(strings.TrimSuffix(name, signatureSuffix), ".tsr")
		if !named[name] && !alsoThere[name] && (signed == name || !named[signed]) {
			j.Remarks = append(j.Remarks, fmt.Sprintf("%s is not named by the manifest: not judged", name))
		}
	}
}
