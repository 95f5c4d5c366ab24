package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	proofMark     = "sluice-audit-proof "
	proofVersion  = "1"
	maxProofBytes = 8 << 20
)

// A proof is what the file of one entry holds.
type proof struct {
	body        []byte // nil where retention took it
	leaf        []byte
	index       uint64
	path        []Hash
	note        string
	certificate []byte
}

// checkProof checks the proof of one entry; an error says why it could not be checked at all.
func checkProof(file io.Reader, name string, root *certificate) (*report, error) {
	raw, err := io.ReadAll(io.LimitReader(file, maxProofBytes+1))
	if err != nil {
		return nil, err
	}
	if err := isProof(string(raw)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	checked := newReport()
	read, err := parseProof(string(raw))
	if err == nil {
		err = read.check(root, checked)
	}
	if err != nil {
		found := finding{Verdict: tampered, What: "proof", Why: err.Error()}
		if read != nil {
			found.Seq = &read.index
		}
		checked.add(found)
	}
	return checked, nil
}

// isProof tells by the first line why the file is none that this program reads.
func isProof(file string) error {
	if err := plainText(file); err != nil {
		return err
	}
	first, _, _ := strings.Cut(file, "\n")
	switch first {
	case proofMark + proofVersion:
		if n := strings.Count(file, "\n"+proofMark); n > 0 {
			return fmt.Errorf("%d proofs are in it: cut them apart, each begins with the line %q", n+1, first)
		}
		return nil
	case proofMark + proofVersion + "\r":
		return errLineEnds
	}
	return fmt.Errorf("it does not begin with %q; GET /audit/entries/{seq}/proof gives one with Accept: text/plain", proofMark+proofVersion)
}

// parseProof splits the file at its empty lines: the proof, the text and the signatures of the note, the certificate. Empty lines
// after that are of whoever kept several proofs in one file.
func parseProof(text string) (*proof, error) {
	for strings.HasSuffix(text, "\n\n") {
		text = text[:len(text)-1]
	}
	parts := strings.SplitN(text, "\n\n", 4)
	if len(text) > maxProofBytes || len(parts) != 4 {
		return nil, errors.New("it is not made of a proof, a checkpoint and a certificate, with empty lines between them")
	}
	read := &proof{note: parts[1] + "\n\n" + parts[2] + "\n"}
	lines := strings.Split(parts[0], "\n")
	var err error
	if encoded, found := strings.CutPrefix(lines[min(1, len(lines)-1)], "entry "); found {
		if read.body, err = decodeBase64(encoded); err != nil {
			return nil, fmt.Errorf("its entry: %w", err)
		}
		lines = lines[1:]
	}
	if len(lines) < 3 {
		return nil, errors.New("it has no lines for leaf and index")
	}
	encoded, isLeaf := strings.CutPrefix(lines[1], "leaf ")
	index, isIndex := strings.CutPrefix(lines[2], "index ")
	if read.leaf, err = decodeBase64(encoded); !isLeaf || !isIndex || err != nil {
		return nil, errors.New("it has no lines 'leaf base64' and 'index number' before its path")
	}
	if read.index, err = parseNumber(index); err != nil {
		return nil, err
	}
	for _, line := range lines[3:] {
		step, err := decodeBase64(line)
		if err != nil || len(step) != len(Hash{}) {
			return nil, errors.New("a line of its path is not 32 bytes in base64")
		}
		read.path = append(read.path, Hash(step))
	}
	block, _ := pem.Decode([]byte(parts[3]))
	if block == nil || string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})) != parts[3] {
		return nil, errors.New("it does not end with one certificate in PEM")
	}
	read.certificate = block.Bytes
	return read, nil
}

// check follows the path from the entry to the root that the note signs, and the signature to the root certificate.
func (p *proof) check(root *certificate, into *report) error {
	stored, err := parseNote(p.note)
	if err != nil {
		return err
	}
	into.Log, into.First, into.End = text(stored.origin), p.index, p.index+1
	signer, err := parseCertificate(p.certificate)
	if err == nil {
		err = checkSigner(signer, root)
	}
	if err != nil {
		return fmt.Errorf("its certificate: %w", err)
	}
	if _, err := stored.open(stored.origin, keyring{signer}); err != nil {
		return fmt.Errorf("its checkpoint: %w", err)
	}
	into.proves(stored, signer)
	reached, err := rootByInclusion(leafHash(p.leaf), p.index, stored.size, p.path)
	if err != nil {
		return err
	}
	if reached != stored.root {
		return errors.New("its path does not lead from this leaf to the root that was signed")
	}
	l, err := p.checkLeaf(signer)
	if err != nil {
		return err
	}
	if p.body == nil {
		into.Purged = 1
		return nil
	}
	into.Entries = 1
	return p.checkBody(l)
}

// checkLeaf compares what the proven leaf says with where it stands and when its signer's certificate ended.
func (p *proof) checkLeaf(by *certificate) (leaf, error) {
	l, err := parseLeaf(p.leaf)
	if err != nil {
		return l, err
	}
	if l.seq != p.index {
		return l, fmt.Errorf("it says that it is entry %d", l.seq)
	}
	if l.recorded.After(by.NotAfter) {
		return l, fmt.Errorf("recorded at %s, after its signer's certificate ended at %s", l.recorded.Format(recordedForm), by.NotAfter.UTC().Format(recordedForm))
	}
	return l, nil
}

// checkBody compares the entry with its leaf.
func (p *proof) checkBody(l leaf) error {
	if !l.has(p.body) {
		return errors.New("its entry was altered: it does not have the hash that its leaf has")
	}
	_, err := parseEntry(l, p.body)
	return err
}
