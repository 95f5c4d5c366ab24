package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	manifestForm = "sluice-report-manifest 1"
	maxManifest  = 4 << 20
)

// Names of files that a manifest may give: none leads out of its folder.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// What lies in a night's folder although the manifest does not name it.
var alsoThere = map[string]bool{manifestName: true, manifestName + signatureSuffix: true, "root.pem": true, "verify.sh": true}

// A manifest is what is read of manifest.json.
type manifest struct {
	Form   string `json:"form"`
	Report string `json:"report"`
	Files  []struct {
		Name   string `json:"name"`
		Bytes  int64  `json:"bytes"`
		SM3    string `json:"sm3"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
}

// judgeReport checks a signed file, a manifest with all that it names, or the manifest of a night's folder.
func judgeReport(path string, root *certificate) *judgement {
	known, err := os.Stat(path)
	if err == nil && known.IsDir() {
		path = filepath.Join(path, manifestName)
	}
	j := judgeFile(path, root)
	if j.Verdict == valid && filepath.Base(path) == manifestName {
		j.judgeNamed(filepath.Dir(path), root)
	}
	return j
}

// judgeNamed checks the files of a manifest whose signature is good.
func (j *judgement) judgeNamed(folder string, root *certificate) {
	named, err := readManifest(filepath.Join(folder, manifestName))
	if err != nil {
		j.fail(err)
		return
	}
	j.Report = text(named.Report)
	seen := map[string]bool{manifestName: true}
	for _, line := range named.Files {
		if !plainName.MatchString(line.Name) || seen[line.Name] {
			j.fail(refusal{malformed, fmt.Sprintf("it names %q, which is no name of a file of its folder, or twice", line.Name)})
			return
		}
		seen[line.Name] = true
	}
	for _, line := range named.Files {
		j.add(judgeNamedFile(folder, line.Name, line.Bytes, line.SM3, line.SHA256, root))
	}
	j.remarkOthers(folder, seen)
}

func readManifest(path string) (*manifest, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := new(manifest)
	if len(content) > maxManifest || json.Unmarshal(content, read) != nil || read.Form != manifestForm {
		return nil, fmt.Errorf("it is no manifest of the form %q", manifestForm)
	}
	return read, nil
}

// judgeNamedFile compares one file with its line of the manifest, then checks the signature that it has of its own.
func judgeNamedFile(folder, name string, size int64, wantSM3, wantSHA256 string, root *certificate) *judgement {
	path := filepath.Join(folder, name)
	j := newJudgement(name)
	file, found, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = refusal{missing, "the manifest names it, and it is not there"}
	}
	if err != nil {
		j.fail(err)
		return j
	}
	defer file.Close()
	hashes := [2]interface {
		io.Writer
		Sum([]byte) []byte
	}{sm3.New(), sha256.New()}
	if _, err := io.Copy(io.MultiWriter(hashes[0], hashes[1]), file); err != nil {
		j.fail(err)
		return j
	}
	if found != size || hex.EncodeToString(hashes[0].Sum(nil)) != wantSM3 || hex.EncodeToString(hashes[1].Sum(nil)) != wantSHA256 {
		j.fail(refusal{digest, "it is not the file that the manifest names"})
		return j
	}
	return ownSignature(path, j, root)
}

// ownSignature is the judgement of a PDF, or of a file that has a signature beside it; the manifest vouches for any other.
func ownSignature(path string, proven *judgement, root *certificate) *judgement {
	_, err := os.Stat(path + signatureSuffix)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(path, pdfSuffix) {
		proven.Words = "as the manifest names it; it has no signature of its own"
		return proven
	}
	return judgeFile(path, root)
}

// remarkOthers names what lies in the folder and is nobody's to vouch for.
func (j *judgement) remarkOthers(folder string, named map[string]bool) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		j.fail(err)
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		signed := strings.TrimSuffix(strings.TrimSuffix(name, signatureSuffix), ".tsr")
		if !named[name] && !alsoThere[name] && (signed == name || !named[signed]) {
			j.Remarks = append(j.Remarks, fmt.Sprintf("%s lies in the folder, and the manifest does not name it", name))
		}
	}
}
