package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

const manifestForm = "sluice-report-manifest 1"

// Names of what is counted, of reports and of versions.
var word = regexp.MustCompile(`^[a-z0-9_]+$`)

// A manifest is what stands in manifest.json. Here and below the fields are in the order of their names, in which Sluice writes them.
type manifest struct {
	Begin    string            `json:"begin"`
	Counts   counts            `json:"counts"`
	Day      string            `json:"day"`
	End      string            `json:"end"`
	Files    []namedFile       `json:"files"`
	Form     string            `json:"form"`
	Log      namedLog          `json:"log"`
	Made     string            `json:"made"`
	MadeBy   string            `json:"made_by"`
	Report   string            `json:"report"`
	Verdicts map[string]counts `json:"verdicts"`
	Versions map[string]any    `json:"versions"`
	Zone     string            `json:"zone"`
}

// A namedFile is a file as a manifest has it.
type namedFile struct {
	Bytes  number `json:"bytes"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	SM3    string `json:"sm3"`
}

// A namedLog is the log that the reports are made from.
type namedLog struct {
	Certificate string `json:"certificate"`
	End         number `json:"end"`
	First       number `json:"first"`
	Note        string `json:"note"`
	Origin      string `json:"origin"`
	Root        string `json:"root"`
	Size        number `json:"size"`
	Verdict     string `json:"verdict"`
}

type counts map[string]number

// A number is whole, not negative, and below 10^15.
type number uint64

// UnmarshalJSON refuses any other.
func (n *number) UnmarshalJSON(content []byte) error {
	read, err := strconv.ParseUint(string(content), 10, 64)
	if err == nil && read >= 1e15 {
		err = errors.New("too large a number")
	}
	*n = number(read)
	return err
}

// readManifest is nil for what is not of the form that is known, in the spelling that Sluice gives it: with a member more or less, or
// with one of another kind, what is read is not what is written.
func readManifest(content []byte) *manifest {
	read := new(manifest)
	if len(content) > maxManifest || json.Unmarshal(content, read) != nil || read.spelling() != string(content) || !read.complete() {
		return nil
	}
	return read
}

// complete tells whether what could be null is not, and names are such.
func (m *manifest) complete() bool {
	if m.Form != manifestForm || !plainName.MatchString(m.Report) || m.Files == nil || m.Verdicts == nil || m.Versions == nil || !m.Counts.complete() {
		return false
	}
	for name, counted := range m.Verdicts {
		if !word.MatchString(name) || !counted.complete() {
			return false
		}
	}
	for name, version := range m.Versions {
		if !word.MatchString(name) || !isVersion(version) {
			return false
		}
	}
	return true
}

// isVersion tells a text or a list of texts.
func isVersion(version any) bool {
	several, isList := version.([]any)
	if !isList {
		several = []any{version}
	}
	for _, one := range several {
		if _, isText := one.(string); !isText {
			return false
		}
	}
	return true
}

func (c counts) complete() bool {
	for name := range c {
		if !word.MatchString(name) {
			return false
		}
	}
	return c != nil
}

// spelling is how Sluice writes the manifest; empty where it cannot be written.
func (m *manifest) spelling() string {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(m) != nil {
		return ""
	}
	// Go alone escapes these two; where a backslash is escaped before them, they are text.
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(written.String())
}
