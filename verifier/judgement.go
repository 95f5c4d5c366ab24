package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A cause is why a report is not valid, in one word.
type cause string

const (
	digest    cause = "digest"      // the content is not what was signed
	forged    cause = "signature"   // no signature of the certificate's key
	untrusted cause = "certificate" // the root does not vouch for the signer
	expired   cause = "expired"     // signed outside of the certificate's validity
	unsigned  cause = "unsigned"    // no SM2 signature is there
	appended  cause = "appended"    // something follows what was signed
	malformed cause = "malformed"   // not a signature as reports have it
	missing   cause = "missing"     // the manifest names a file that is not there

	unreadable cause = "unreadable" // it was not checked
)

// A refusal is an error with its cause.
type refusal struct {
	cause cause
	why   string
}

// Error is why.
func (r refusal) Error() string { return r.why }

// refused wraps an error in a cause.
func refused(why cause, err error) error {
	if err == nil {
		return nil
	}
	return refusal{why, err.Error()}
}

// valid is the verdict of a report that is as it was signed; the others are those of logs.
const valid verdict = "valid"

// A judgement is the verdict on one file, or on a night and each of its files. Its JSON has the fields of `sluice report verify`.
type judgement struct {
	File        string       `json:"file"` // its name, without the folder; of a night its id
	Verdict     verdict      `json:"verdict"`
	Cause       cause        `json:"cause"`       // empty where it is valid
	Words       string       `json:"words"`       // the same for people
	Signer      text         `json:"signer"`      // common name of the certificate; null where no signature of its own is good
	Fingerprint text         `json:"fingerprint"` // SM3 of the certificate's DER
	SignedAt    text         `json:"signed_at"`   // by the clock of who signed, RFC 3339
	Covers      *int64       `json:"covers"`      // bytes that are signed
	Others      []string     `json:"others"`      // other signatures of a PDF, not judged
	Remarks     []string     `json:"remarks"`     // what an auditor should know although it is in order
	Report      text         `json:"report"`      // of a night: its id
	Files       []*judgement `json:"files"`       // of a night: its manifest, then those that this names
}

func newJudgement(file string) *judgement {
	return &judgement{File: file, Verdict: valid, Others: []string{}, Remarks: []string{}, Files: []*judgement{}}
}

// fail takes in an error: a refusal says that the file is not what was signed, any other that it could not be checked.
func (j *judgement) fail(err error) {
	var why refusal
	switch {
	case err == nil || j.Verdict != valid: // the first reason counts
	case errors.As(err, &why):
		j.Verdict, j.Cause, j.Words = tampered, why.cause, why.why
	default:
		j.Verdict, j.Cause, j.Words = unchecked, unreadable, err.Error()
	}
}

// summarize gives a night the verdict of its gravest file, of several the first, and names all that are not valid, the gravest first.
func (j *judgement) summarize() {
	var bad []*judgement
	for _, file := range j.Files {
		if file.Verdict != valid {
			bad = append(bad, file)
		}
	}
	if len(bad) == 0 {
		return
	}
	slices.SortStableFunc(bad, func(a, b *judgement) int { return gravity[b.Verdict] - gravity[a.Verdict] })
	var names []string
	for _, file := range bad {
		names = append(names, fmt.Sprintf("%s (%s)", file.File, file.Cause))
	}
	j.Verdict, j.Cause, j.Words = bad[0].Verdict, bad[0].Cause, "not all files are valid: "+strings.Join(names, ", ")
}

func (j *judgement) verdict() verdict { return j.Verdict }

func (j *judgement) writeJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(j)
}

func (j *judgement) writeText(to io.Writer) error {
	lines := []string{j.line()}
	if j.Signer != "" {
		lines = append(lines, fmt.Sprintf("  signed by    %s", j.Signer), fmt.Sprintf("  fingerprint  %s (SM3 of the certificate)", j.Fingerprint),
			fmt.Sprintf("  signed       %s, by the clock of who signed", j.SignedAt))
	}
	for _, file := range j.Files {
		lines = append(lines, "  "+file.line())
	}
	for _, remark := range j.remarks() {
		lines = append(lines, "remark  "+remark)
	}
	if j.Verdict == valid {
		lines = append(lines, "SM2-compatible signature; not a certified commercial cryptography product (商用密码产品); key custody is the operator's.")
	}
	for i, line := range lines {
		lines[i] = printable(line)
	}
	_, err := io.WriteString(to, strings.Join(lines, "\n")+"\n")
	return err
}

// line is the verdict in one line.
func (j *judgement) line() string {
	if j.Verdict == valid {
		return fmt.Sprintf("%s  %s", j.Verdict, j.File)
	}
	return fmt.Sprintf("%s  %s: %s: %s", j.Verdict, j.File, j.Cause, j.Words)
}

// remarks are what an auditor should know of this file and those that it names.
func (j *judgement) remarks() []string {
	list := j.Remarks
	for _, one := range append([]*judgement{j}, j.Files...) {
		for _, other := range one.Others {
			list = append(list, fmt.Sprintf("%s: %s", one.File, other))
		}
	}
	return list
}
