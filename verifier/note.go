package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Limits of a checkpoint note: more is no checkpoint of ours, and a verifier reads strangers' files.
const (
	maxNoteBytes  = 16 << 10
	maxSignatures = 16
)

// What a key id is made with after the name (C2SP signed-note): SM2 has no number of its own, so type 0xff and a long name.
const noteAlgorithm = "\n\xffsm2-sm3-1234567812345678"

const signaturePrefix = "\u2014 "

type keyID [4]byte

func keyIDOf(origin string, spki []byte) (id keyID) {
	digest := sha256.Sum256(append([]byte(origin+noteAlgorithm), spki...))
	copy(id[:], digest[:])
	return id
}

// A note is a signed checkpoint: the log called origin had this root when it had size entries.
type note struct {
	origin     string
	size       uint64
	root       Hash
	text       []byte // what is signed, as it stands
	signatures []noteSignature
}

type noteSignature struct {
	key keyID
	der []byte
}

// parseNote reads a note and checks no signature.
func parseNote(raw string) (*note, error) {
	if len(raw) > maxNoteBytes {
		return nil, errors.New("the note is larger than any checkpoint")
	}
	text, signatures, found := strings.Cut(raw, "\n\n")
	lines := strings.Split(text, "\n")
	if !found || len(lines) != 3 || lines[0] == "" || !strings.HasSuffix(signatures, "\n") {
		return nil, errors.New("not a checkpoint: expected origin, size and root, an empty line, and signatures")
	}
	size, err := parseNumber(lines[1])
	if err != nil {
		return nil, fmt.Errorf("the size of a checkpoint: %w", err)
	}
	root, err := decodeBase64(lines[2])
	if err != nil || len(root) != len(Hash{}) {
		return nil, errors.New("the root of a checkpoint is not 32 bytes in base64")
	}
	n := &note{origin: lines[0], size: size, root: Hash(root), text: []byte(text + "\n")}
	n.signatures, err = parseSignatures(strings.Split(strings.TrimSuffix(signatures, "\n"), "\n"), n.origin)
	return n, err
}

func parseSignatures(lines []string, origin string) (signatures []noteSignature, err error) {
	if len(lines) > maxSignatures {
		return nil, fmt.Errorf("a checkpoint with more than %d signatures", maxSignatures)
	}
	for _, line := range lines {
		rest, isSignature := strings.CutPrefix(line, signaturePrefix)
		name, encoded, _ := strings.Cut(rest, " ")
		if !isSignature || name == "" {
			return nil, errors.New("a signature line of a checkpoint is not '\u2014 name base64'")
		}
		raw, err := decodeBase64(encoded)
		if err != nil {
			return nil, fmt.Errorf("a signature of a checkpoint: %w", err)
		}
		if len(raw) <= len(keyID{}) {
			return nil, errors.New("a signature of a checkpoint has no more bytes than the id of its key")
		}
		if name == origin { // others are of witnesses, whom the file says nothing about
			signatures = append(signatures, noteSignature{keyID(raw[:len(keyID{})]), raw[len(keyID{}):]})
		}
	}
	return signatures, nil
}

// decodeBase64 takes the one spelling that encoding would make: what is signed is text, and must not have twins.
func decodeBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("base64 with line ends in it")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	return raw, nil
}

// open checks that the note is of the log and signed by one of the keys, and tells by whose.
// Unknown keys are passed over; one wrong signature of a known key refuses the note.
func (n *note) open(log string, keys keyring) (by *certificate, err error) {
	if n.origin != log {
		return nil, fmt.Errorf("it is of the log %q, not of %q", n.origin, log)
	}
	for _, signature := range n.signatures {
		signer := keys.signer(log, signature.key)
		if signer == nil {
			continue
		}
		if !signer.verifies(n.text, signature.der) {
			return nil, fmt.Errorf("the checkpoint of size %d has a signature that is not of what it says", n.size)
		}
		if by == nil {
			by = signer
		}
	}
	if by == nil {
		return nil, fmt.Errorf("the checkpoint of size %d is not signed by a key of this log", n.size)
	}
	return by, nil
}

var noteForm = regexp.MustCompile(`^(?:[^#\n][^\n]*\n){3}\n(?:\x{2014} [^\n]*\n)+`)

// What its keeper writes between notes: when and from where it came.
var betweenNotes = regexp.MustCompile(`^(?:#[^\n]*\n|\n)*`)

// notesIn splits a file of one or more notes, as mails and files keep them: with empty lines, and lines that begin with #, between.
// Mails change the ends of lines, and editors the last one; neither is signed.
func notesIn(file string) (notes []string, err error) {
	if err := plainText(file); err != nil {
		return nil, err
	}
	rest := strings.Trim(strings.ReplaceAll(file, "\r\n", "\n"), "\n") + "\n"
	for {
		if rest = rest[len(betweenNotes.FindString(rest)):]; rest == "" {
			break
		}
		found := noteForm.FindString(rest)
		if found == "" {
			return nil, fmt.Errorf("after %d checkpoints there is something else: %.60q", len(notes), rest)
		}
		notes, rest = append(notes, found), rest[len(found):]
	}
	if len(notes) == 0 {
		return nil, errors.New("there is no checkpoint in the file")
	}
	return notes, nil
}

// plainText refuses what checkpoints and proofs are taken for by mistake: nothing at all, and the JSON that is the default over HTTP.
func plainText(file string) error {
	switch trimmed := strings.TrimSpace(file); {
	case trimmed == "":
		return errors.New("the file is empty")
	case trimmed[0] == '{' || trimmed[0] == '[':
		return errors.New("the file is JSON; what is checked is the text: Accept: text/plain")
	}
	return nil
}
