package main

import (
	"bytes"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/emmansun/gmsm/sm3"
	"github.com/emmansun/gmsm/smx509"
)

// signatureSuffix makes the name of a file's signature beside it.
const signatureSuffix = ".p7s"

// pdfSuffix ends the name of a file that is signed within.
const pdfSuffix = ".pdf"

// judgeFile checks the signature of one file, in it or beside it; what it names is not looked at.
func judgeFile(path string, root *certificate) *judgement {
	j := newJudgement(filepath.Base(path))
	file, size, err := openRegular(path)
	if err != nil {
		j.fail(err)
		return j
	}
	defer file.Close()
	j.judgeOpened(path, file, size, root)
	return j
}

// judgeOpened checks a file that is open, by what is in it or beside it.
func (j *judgement) judgeOpened(path string, file *os.File, size int64, root *certificate) {
	if isPDF(path, file) {
		j.fail(j.judgePDF(file, size, root))
		return
	}
	j.fail(j.judgeBeside(path, io.NewSectionReader(file, 0, size), root))
	if j.Verdict == valid && hasFormOfManifest(file, size) {
		*j = *newJudgement(j.File)
		j.fail(fmt.Errorf("it is a night's manifest under another name, so that its files were not checked: name it %s, beside them", manifestName))
	}
}

// openRegular opens a file, and nothing else that has a name: a pipe would never end.
func openRegular(path string) (*os.File, int64, error) {
	known, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !known.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if known, err = file.Stat(); err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, known.Size(), nil
}

func isPDF(path string, file io.ReaderAt) bool {
	name := filepath.Base(path)
	return name != pdfSuffix && strings.HasSuffix(name, pdfSuffix) || beginsAsPDF(file)
}

func beginsAsPDF(file io.ReaderAt) bool {
	return bytes.Equal(readAt(file, 0, int64(len(pdfHeader))), pdfHeader)
}

func (j *judgement) judgePDF(file io.ReaderAt, size int64, root *certificate) error {
	if !beginsAsPDF(file) { // a signed CSV could have a hole cut into it, but it does not begin so
		return refusal{malformed, "it is no PDF: it does not begin with %PDF-"}
	}
	found, others, err := findSM2(file, size)
	j.Others = append(j.Others, others...)
	if err != nil {
		return err
	}
	der, err := found.der()
	if err != nil {
		return refused(malformed, err)
	}
	return j.judge(der, found.content(file), root)
}

func (j *judgement) judgeBeside(path string, file io.Reader, root *certificate) error {
	beside, size, err := openRegular(path + signatureSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return refusal{unsigned, "no signature is beside it: " + filepath.Base(path) + signatureSuffix + elsewhere(path)}
	}
	if err != nil {
		return err
	}
	defer beside.Close()
	if size > maxSignature {
		return refused(malformed, errNoSignature)
	}
	der, err := io.ReadAll(io.LimitReader(beside, maxSignature+1))
	if err != nil {
		return err
	}
	return j.judge(der, file, root)
}

// elsewhere tells where to look for a night's file that has no signature of its own, such as its log.
func elsewhere(path string) string {
	beside := filepath.Join(filepath.Dir(path), manifestName)
	if _, err := os.Lstat(beside); err != nil || filepath.Base(path) == manifestName {
		return ""
	}
	return "; the " + manifestName + " beside it may vouch for it: check that, or the folder"
}

// judge checks a signature over content; the rules of README.md, in their order.
func (j *judgement) judge(der []byte, content io.Reader, root *certificate) error {
	read, err := parseSignature(der)
	if err != nil {
		return refused(malformed, err)
	}
	if err := read.checkNamed(); err != nil {
		return err
	}
	hash := sm3.New()
	covers, err := io.Copy(hash, content)
	if err != nil {
		return err
	}
	if !bytes.Equal(hash.Sum(nil), read.digest) {
		return refusal{digest, "the content is not what was signed: it has another SM3"}
	}
	signer, err := parseCertificate(read.certificate)
	if err == nil {
		err = checkSigner(signer, root)
	}
	if err != nil {
		return refused(untrusted, err)
	}
	if !signer.verifies(read.attributes, read.value) {
		return refusal{forged, fmt.Sprintf("the signature is not by the key of %q", signer.Subject)}
	}
	if err := checkTime(read.at, signer, root); err != nil {
		return refused(expired, err)
	}
	fingerprint := sm3.Sum(signer.Raw)
	j.Signer, j.Fingerprint = text(signer.Subject.CommonName), text(hex.EncodeToString(fingerprint[:]))
	j.SignedAt, j.Covers = text(read.at.Format(recordedForm)), &covers
	j.Words = fmt.Sprintf("signed by %q, and not changed since", signer.Subject.CommonName)
	return nil
}

// checkNamed compares the embedded certificate with the name of it in the signature.
func (s *signature) checkNamed() error {
	embedded, err := smx509.ParseCertificate(s.certificate)
	if err != nil {
		return refused(malformed, err)
	}
	serial, err := asn1.Marshal(embedded.SerialNumber)
	if err != nil || !bytes.Equal(slices.Concat(embedded.RawIssuer, serial), s.signer) {
		return refusal{untrusted, "the certificate in it is not the one that the signature names"}
	}
	return nil
}

func checkTime(at time.Time, certificates ...*certificate) error {
	for _, c := range certificates {
		if at.Before(c.NotBefore) || at.After(c.NotAfter) {
			return fmt.Errorf("signed at %s, and %q is valid from %s to %s", at.Format(time.RFC3339), c.Subject,
				c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
		}
	}
	return nil
}
