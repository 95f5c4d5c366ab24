package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A verdict is the answer in one word; of several findings the gravest gives it.
type verdict string

const (
	whole     verdict = "whole"
	tampered  verdict = "tampered"
	gap       verdict = "gap"
	unchecked verdict = "unchecked"
)

// Exit statuses, the same as those of `sluice audit verify`.
var exitStatus = map[verdict]int{whole: 0, valid: 0, tampered: 4, unchecked: 6, gap: 7}

// Which verdict outweighs which: what is there and wrong, what could not be looked at, what is missing by leave.
var gravity = map[verdict]int{whole: 0, valid: 0, gap: 1, unchecked: 2, tampered: 3}

// A finding is one thing that is not as it should be.
type finding struct {
	Verdict verdict `json:"verdict"`
	What    string  `json:"what"` // which part of the file it is about, in one word
	Why     string  `json:"why"`
	Seq     *uint64 `json:"seq"`  // the entry, or the first of several; null where no entry is meant
	Last    *uint64 `json:"last"` // the last of several; null where one is meant, or none
}

// A text of a report is null in JSON where it is not known.
type text string

// MarshalJSON writes a text.
func (t text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// A report says what a file is, what of it was checked, and what was found. Its JSON has the fields of `sluice audit verify`.
type report struct {
	Verdict verdict `json:"verdict"`
	Log     text    `json:"log"`
	First   uint64  `json:"first"`
	End     uint64  `json:"end"`     // one past the last entry
	Entries uint64  `json:"entries"` // those with their bodies
	Purged  uint64  `json:"purged"`  // those without
	// The earliest and the latest that an entry says it was recorded; empty where none can be believed.
	RecordedFirst text      `json:"recorded_first"`
	RecordedLast  text      `json:"recorded_last"`
	Checkpoints   uint64    `json:"checkpoints"` // good ones
	Anchors       uint64    `json:"anchors"`     // good ones
	Size          *uint64   `json:"size"`        // of the tree that the newest good checkpoint signs; null where none is good
	Root          text      `json:"root"`        // of the same
	Signer        string    `json:"-"`           // of that checkpoint
	Findings      []finding `json:"findings"`
	Remarks       []string  `json:"remarks"` // what an auditor should know although it is in order
}

func newReport() *report {
	return &report{Verdict: whole, Findings: []finding{}, Remarks: []string{}}
}

// add takes a finding in; the verdict is that of the gravest.
func (r *report) add(found finding) {
	if found.Last != nil && *found.Last == *found.Seq {
		found.Last = nil
	}
	r.Findings = append(r.Findings, found)
	if gravity[found.Verdict] > gravity[r.Verdict] {
		r.Verdict = found.Verdict
	}
}

// proves notes the newest good checkpoint.
func (r *report) proves(stored *note, by *certificate) {
	r.Checkpoints++
	r.Size, r.Root, r.Signer = &stored.size, text(stored.root.String()), by.Subject.String()
}

func (r *report) verdict() verdict { return r.Verdict }

func (r *report) writeJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *report) writeText(to io.Writer) error {
	lines := []string{string(r.Verdict)}
	if r.Log != "" {
		lines = append(lines, fmt.Sprintf("  log          %s", r.Log),
			fmt.Sprintf("  entries      %s: %d with their bodies, %d purged", r.numbers(), r.Entries, r.Purged))
		if r.RecordedFirst != "" {
			lines = append(lines, fmt.Sprintf("  recorded     %s to %s", r.RecordedFirst, r.RecordedLast))
		}
		lines = append(lines, fmt.Sprintf("  checkpoints  %d good", r.Checkpoints), fmt.Sprintf("  anchors      %d good", r.Anchors))
	}
	if r.Size != nil {
		lines = append(lines, fmt.Sprintf("  newest       size %d, root %s", *r.Size, r.Root), "  signed by    "+r.Signer)
	}
	for _, found := range r.Findings {
		lines = append(lines, fmt.Sprintf("%-9s  %s%s", found.Verdict, found.place(), found.Why))
	}
	for _, remark := range r.Remarks {
		lines = append(lines, "remark     "+remark)
	}
	for i, line := range lines {
		lines[i] = printable(line)
	}
	_, err := io.WriteString(to, strings.Join(lines, "\n")+"\n")
	return err
}

func (r *report) numbers() string {
	if r.End <= r.First {
		return "none"
	}
	return fmt.Sprintf("%d to %d", r.First, r.End-1)
}

func (f finding) place() string {
	switch {
	case f.Seq == nil:
		return ""
	case f.Last == nil || *f.Last == *f.Seq:
		return fmt.Sprintf("entry %d: ", *f.Seq)
	}
	return fmt.Sprintf("entries %d to %d: ", *f.Seq, *f.Last)
}

// printable shows what a terminal would act upon: the file is a stranger's.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}
