package main

import (
	"bytes"
	"crypto/rand"
	"encoding/asn1"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emmansun/gmsm/sm2"
	"github.com/emmansun/gmsm/sm3"
	"github.com/emmansun/gmsm/smx509"
)

var signedAt = began.Add(24 * time.Hour)

// A cmsForm is a signature as tests make it, by another way than the program reads it; they change what they want refused.
type cmsForm struct {
	digest     [32]byte
	at         time.Time
	algorithm  asn1.RawValue
	signer     *smx509.Certificate // whose name and key
	key        *sm2.PrivateKey
	embedded   []byte
	attributes [][]byte // more than the three
}

type algorithmOnly struct{ Algorithm asn1.ObjectIdentifier }

type cmsSigner struct {
	Version    int
	Name       asn1.RawValue
	Digest     algorithmOnly
	Attributes asn1.RawValue
	Algorithm  asn1.RawValue
	Signature  []byte
}

type cmsData struct {
	Version      int
	Digests      []algorithmOnly `asn1:"set"`
	Content      algorithmOnly
	Certificates asn1.RawValue
	Signers      []cmsSigner `asn1:"set"`
}

var (
	sm3OID   = asn1.ObjectIdentifier{1, 2, 156, 10197, 1, 401}
	pkcs7OID = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7}
	pkcs9OID = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9}
)

func marshal(t testing.TB, what any, options ...string) []byte {
	t.Helper()
	der, err := asn1.MarshalWithParams(what, strings.Join(options, ","))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func attribute(t testing.TB, kind int, value any) []byte {
	t.Helper()
	return marshal(t, struct {
		Kind   asn1.ObjectIdentifier
		Values []any `asn1:"set"`
	}{append(slices.Clone(pkcs9OID), kind), []any{value}})
}

func (a authority) form(t testing.TB, content string) cmsForm {
	t.Helper()
	algorithm := asn1.RawValue{FullBytes: marshal(t, algorithmOnly{sm2WithSM3})}
	return cmsForm{sm3.Sum([]byte(content)), signedAt, algorithm, a.signer, a.signerKey, a.signer.Raw, nil}
}

func (f cmsForm) sign(t testing.TB) []byte {
	t.Helper()
	list := append([][]byte{attribute(t, 3, append(slices.Clone(pkcs7OID), 1)), attribute(t, 5, f.at), attribute(t, 4, f.digest[:])}, f.attributes...)
	slices.SortFunc(list, bytes.Compare)
	attributes := bytes.Join(list, nil)
	set := asn1.RawValue{Tag: asn1.TagSet, IsCompound: true, Bytes: attributes}
	signed, err := f.key.Sign(rand.Reader, marshal(t, set), sm2.NewSM2SignerOption(true, signerID))
	if err != nil {
		t.Fatal(err)
	}
	name := asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: slices.Concat(f.signer.RawIssuer, marshal(t, f.signer.SerialNumber))}
	inner := func(content []byte) asn1.RawValue {
		return asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: content}
	}
	digests := algorithmOnly{sm3OID}
	data := cmsData{1, []algorithmOnly{digests}, algorithmOnly{append(slices.Clone(pkcs7OID), 1)}, inner(f.embedded),
		[]cmsSigner{{1, name, digests, inner(attributes), f.algorithm, signed}}}
	return marshal(t, struct {
		Kind    asn1.ObjectIdentifier
		Content asn1.RawValue
	}{append(slices.Clone(pkcs7OID), 2), inner(marshal(t, data))})
}

// asPDF has what only has to look like a PDF: a hole of hex digits, and a byte range around it; change changes what is signed.
func (a authority) asPDF(t testing.TB, text string, change func(*cmsForm)) string {
	t.Helper()
	const digits = 2400
	before := "%PDF-1.4\n" + text + "\n/Contents "
	after := fmt.Sprintf("\n/ByteRange [0 %d %d", len(before), len(before)+digits+2)
	after = fmt.Sprintf("%s %-9d]\n%%%%EOF\n", after, len(after)+18)
	form := a.form(t, before+after)
	if change != nil {
		change(&form)
	}
	signature := fmt.Sprintf("%X", form.sign(t))
	return before + "<" + signature + strings.Repeat("0", digits-len(signature)) + ">" + after
}

// judged is the judgement of a file with this name, among others by theirs.
func (a authority) judged(t testing.TB, name string, files map[string]string) *judgement {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return judgeReport(filepath.Join(folder, name), a.trusted(t))
}

func (j *judgement) wants(t testing.TB, what string, want cause) {
	t.Helper()
	if j.Cause != want || (want == "") != (j.Verdict == valid) {
		t.Errorf("%s: %s, %q, not %q: %s", what, j.Verdict, j.Cause, want, j.Words)
	}
}

// Files are valid as they were signed; of what happened to others the cause is named.
func TestReports(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	pdf := a.asPDF(t, "(text)", nil)
	late := template("late", false)
	late.NotAfter = signedAt.Add(-time.Second)
	lateSigner := issue(t, late, a.root.ToX509(), a.signerKey, a.rootKey)
	ca := template("ca", true)
	caSigner := issue(t, ca, a.root.ToX509(), a.signerKey, a.rootKey)
	by := func(signer *smx509.Certificate) func(*cmsForm) {
		return func(f *cmsForm) { f.signer, f.embedded = signer, signer.Raw }
	}
	null := asn1.RawValue{FullBytes: marshal(t, struct {
		Algorithm  asn1.ObjectIdentifier
		Parameters asn1.RawValue
	}{sm2WithSM3, asn1.NullRawValue})}
	for name, test := range map[string]struct {
		pdf  string
		want cause
	}{
		"as signed":           {pdf, ""},
		"decoys":              {a.asPDF(t, "% /ByteRange [0 9 99 9] /ByteRange[0 1 2 3]", nil), ""},
		"decoy around text":   {a.asPDF(t, "<41> /ByteRange [0 9 13 9]", nil), ""},
		"a body changed":      {strings.Replace(pdf, "(text)", "(test)", 1), digest},
		"bytes after the end": {pdf + "\n", appended},
		"cut":                 {pdf[:len(pdf)-1], malformed},
		"unsigned":            {"%PDF-1.4\n%%EOF\n", unsigned},
		"no PDF":              {pdf[1:], malformed},
		"lower case":          {strings.Replace(pdf, "<3082", "<3082a", 1), malformed},
		"an expired signer":   {a.asPDF(t, "", by(lateSigner)), expired},
		"a CA":                {a.asPDF(t, "", by(caSigner)), untrusted},
		"another root":        {b.asPDF(t, "", nil), untrusted},
		"another certificate": {a.asPDF(t, "", func(f *cmsForm) { f.embedded = lateSigner.Raw }), untrusted},
		"two certificates":    {a.asPDF(t, "", func(f *cmsForm) { f.embedded = append(slices.Clone(f.embedded), a.root.Raw...) }), malformed},
		"another key":         {a.asPDF(t, "", func(f *cmsForm) { f.key = b.signerKey }), forged},
		"another time":        {a.asPDF(t, "", func(f *cmsForm) { f.at = began.AddDate(-1, 0, 0) }), expired},
		"parameters":          {a.asPDF(t, "", func(f *cmsForm) { f.algorithm = null }), malformed},
		"more attributes":     {a.asPDF(t, "", func(f *cmsForm) { f.attributes = [][]byte{attribute(t, 99, 1)} }), malformed},
		"too many ranges":     {a.asPDF(t, strings.Repeat("/ByteRange", 64), nil), malformed},
	} {
		a.judged(t, "x.pdf", map[string]string{"x.pdf": test.pdf}).wants(t, name, test.want)
	}
}

// A byte range is found wherever it lies: across the pieces that a large file is read in, too.
func TestLargeFiles(t *testing.T) {
	a := newAuthority(t)
	for _, size := range []int{scanned - 2500, scanned - 2450, scanned - 2440, scanned - 2430, scanned, 2*scanned - 2445} {
		a.judged(t, "x.pdf", map[string]string{"x.pdf": a.asPDF(t, strings.Repeat("x", size), nil)}).wants(t, fmt.Sprint(size), "")
	}
}

// Whatever bit of a PDF is another, it is not valid.
func TestEveryBitOfAPDF(t *testing.T) {
	a := newAuthority(t)
	good := []byte(a.asPDF(t, "(text)", nil))
	root := a.trusted(t)
	for at := range good {
		changed := slices.Clone(good)
		changed[at] ^= 1 << (at % 8)
		j := newJudgement("x.pdf")
		if j.fail(j.judgePDF(bytes.NewReader(changed), int64(len(changed)), root)); j.Verdict != tampered {
			t.Fatalf("byte %d: %s %s", at, j.Verdict, j.Words)
		}
	}
}

// A file with its signature beside it is valid; whatever bit of that is another, or missing, it is not.
func TestEveryBitBeside(t *testing.T) {
	a := newAuthority(t)
	content := "\ufeffa,b\r\n"
	good := a.form(t, content).sign(t)
	root := a.trusted(t)
	beside := func(signature []byte) *judgement {
		j := newJudgement("x.csv")
		j.fail(j.judge(signature, strings.NewReader(content), root))
		return j
	}
	beside(good).wants(t, "as signed", "")
	for at := range good {
		changed := slices.Clone(good)
		changed[at] ^= 1 << (at % 8)
		if j := beside(changed); j.Verdict != tampered {
			t.Fatalf("byte %d: %s %s", at, j.Verdict, j.Words)
		}
		beside(good[:at]).wants(t, fmt.Sprintf("the first %d bytes", at), malformed)
	}
	a.judged(t, "x.csv", map[string]string{"x.csv": content, "x.csv.p7s": string(good)}).wants(t, "as files", "")
	a.judged(t, "x.csv", map[string]string{"x.csv": content}).wants(t, "alone", unsigned)
	a.judged(t, "x.csv", map[string]string{}).wants(t, "nothing", unreadable)
}

// A time from 2050 on has four digits, and is read with either form where it belongs.
func TestSigningTimes(t *testing.T) {
	a := newAuthority(t)
	long := template("long", false)
	long.NotAfter = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	root := template("long root", true)
	root.NotAfter = long.NotAfter
	a.root = issue(t, root, root, a.rootKey, a.rootKey)
	a.signer = issue(t, long, a.root.ToX509(), a.signerKey, a.rootKey)
	for _, at := range []time.Time{time.Date(2049, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)} {
		j := a.judged(t, "x.pdf", map[string]string{"x.pdf": a.asPDF(t, "", func(f *cmsForm) { f.at = at })})
		j.wants(t, at.String(), "")
		if string(j.SignedAt) != at.Format(recordedForm) {
			t.Errorf("%s, not %s", j.SignedAt, at)
		}
	}
}
