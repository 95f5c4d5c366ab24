package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emmansun/gmsm/sm2"
	"github.com/emmansun/gmsm/sm3"
	"github.com/emmansun/gmsm/smx509"
)

const testLog = "sluice/01900000-0000-7000-8000-0000000000aa"

var began = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// When the tests look: bodies of November may go from now on, 1 December 2026 and 400 days.
var checked = time.Date(2028, 1, 5, 0, 0, 0, 0, time.UTC)

// An authority is a root and one signer that it issued, with their keys.
type authority struct {
	rootKey, signerKey *sm2.PrivateKey
	root, signer       *smx509.Certificate
}

func newKey(t testing.TB) *sm2.PrivateKey {
	t.Helper()
	key, err := sm2.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// template is a certificate as the format asks for it; tests change what they want refused.
func template(name string, ca bool) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: began.Add(-time.Hour), NotAfter: began.AddDate(2, 0, 0),
		SubjectKeyId: []byte(name), BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment,
	}
	if ca {
		c.KeyUsage, c.MaxPathLenZero = x509.KeyUsageCertSign|x509.KeyUsageCRLSign, true
	}
	return c
}

func issue(t testing.TB, what, by *x509.Certificate, key, byKey *sm2.PrivateKey) *smx509.Certificate {
	t.Helper()
	der, err := smx509.CreateCertificate(rand.Reader, what, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := smx509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	a := authority{rootKey: newKey(t), signerKey: newKey(t)}
	root := template("test root", true)
	a.root = issue(t, root, root, a.rootKey, a.rootKey)
	a.signer = issue(t, template("test signer", false), a.root.ToX509(), a.signerKey, a.rootKey)
	return a
}

func (a authority) trusted(t testing.TB) *certificate {
	t.Helper()
	root, err := readRoot(asPEM(a.root))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func asPEM(c *smx509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// reference hashes by the definition of RFC 6962 section 2.1, in another way than the program does.
func reference(leaves [][]byte) []byte {
	switch n := len(leaves); n {
	case 0:
		sum := sm3.Sum(nil)
		return sum[:]
	case 1:
		sum := sm3.Sum(append([]byte{0}, leaves[0]...))
		return sum[:]
	default:
		k := split(n)
		sum := sm3.Sum(append(append([]byte{1}, reference(leaves[:k])...), reference(leaves[k:])...))
		return sum[:]
	}
}

// split is the largest power of two below n.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

// inclusion is PATH(m, D[n]) of RFC 6962 section 2.1.1.
func inclusion(m int, leaves [][]byte) [][]byte {
	n := len(leaves)
	if n == 1 {
		return nil
	}
	k := split(n)
	if m < k {
		return append(inclusion(m, leaves[:k]), reference(leaves[k:]))
	}
	return append(inclusion(m-k, leaves[k:]), reference(leaves[:k]))
}

// subproof is SUBPROOF(m, D[n], b) of RFC 6962 section 2.1.2.
func subproof(m int, leaves [][]byte, whole bool) [][]byte {
	n := len(leaves)
	if m == n {
		if whole {
			return nil
		}
		return [][]byte{reference(leaves)}
	}
	k := split(n)
	if m <= k {
		return append(subproof(m, leaves[:k], whole), reference(leaves[k:]))
	}
	return append(subproof(m-k, leaves[k:], false), reference(leaves[:k]))
}

func hashes(raw [][]byte) (list []Hash) {
	for _, one := range raw {
		list = append(list, Hash(one))
	}
	return list
}

// A memoryLog is a log in memory that can be exported; tests change entries, or the lines of an export.
type memoryLog struct {
	authority
	leaves [][]byte
	bodies []string
}

func newLog(t testing.TB, size int) *memoryLog {
	t.Helper()
	l := &memoryLog{authority: newAuthority(t)}
	for range size {
		l.append("key.revoked", "")
	}
	return l
}

// append adds an entry, recorded a second after the one before; members are more of its body, as JSON between commas.
func (l *memoryLog) append(kind, members string) {
	l.appendAt(began.Add(time.Duration(len(l.leaves))*time.Second), kind, members)
}

func (l *memoryLog) appendAt(recorded time.Time, kind, members string) {
	seq := len(l.leaves)
	id, at := fmt.Sprintf("01900000-0000-7000-8000-%012d", seq), recorded.Format(recordedForm)
	body := fmt.Sprintf(`{"id":%q,"kind":%q,"operator":"olivia","outcome":"done","recorded":%q%s,"tenant":null,"v":1}`, id, kind, at, members)
	l.bodies, l.leaves = append(l.bodies, body), append(l.leaves, makeLeaf(body, id, at, seq))
}

func makeLeaf(body, id, recorded string, seq int) []byte {
	return fmt.Appendf(nil, `{"body":"%x","id":%q,"recorded":%q,"retention":"d400","seq":%d}`, sm3.Sum([]byte(body)), id, recorded, seq)
}

// changed is the log with another body of one entry, and with the hash of that in its leaf.
func (l *memoryLog) changed(seq int, old, new string) *memoryLog {
	body := strings.Replace(l.bodies[seq], old, new, 1)
	hashes := [2]Hash{sm3.Sum([]byte(l.bodies[seq])), sm3.Sum([]byte(body))}
	return l.with(seq, body, strings.Replace(string(l.leaves[seq]), hashes[0].String(), hashes[1].String(), 1))
}

// with is the log with another body and leaf of one entry.
func (l *memoryLog) with(seq int, body, leaf string) *memoryLog {
	other := &memoryLog{l.authority, slices.Clone(l.leaves), slices.Clone(l.bodies)}
	other.bodies[seq], other.leaves[seq] = body, []byte(leaf)
	return other
}

func (l *memoryLog) chain(size int) []byte {
	chain := make([]byte, 32)
	for _, leaf := range l.leaves[:size] {
		sum := sm3.Sum(append(append([]byte{2}, chain...), reference([][]byte{leaf})...))
		chain = sum[:]
	}
	return chain
}

func (l *memoryLog) note(t testing.TB, size int) string {
	t.Helper()
	return signNote(t, testLog, size, reference(l.leaves[:size]), l.signerKey)
}

func signNote(t testing.TB, origin string, size int, root []byte, key *sm2.PrivateKey) string {
	t.Helper()
	text := fmt.Sprintf("%s\n%d\n%s\n", origin, size, base64.StdEncoding.EncodeToString(root))
	signature, err := key.Sign(rand.Reader, []byte(text), sm2.NewSM2SignerOption(true, []byte("1234567812345678")))
	if err != nil {
		t.Fatal(err)
	}
	spki, err := smx509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	id := sha256.Sum256(append([]byte(origin+"\n\xffsm2-sm3-1234567812345678"), spki...))
	return text + "\n\u2014 " + origin + " " + base64.StdEncoding.EncodeToString(append(id[:4:4], signature...)) + "\n"
}

// export is the file of the entries [first, end) of the whole log, with checkpoints at even sizes.
func (l *memoryLog) export(t testing.TB, first, end int, proven ...int) []string {
	t.Helper()
	size := len(l.leaves)
	lines := []string{l.header(t, first, end, proven)}
	for seq := first; seq < end; seq++ {
		leaf := l.leaves[seq]
		lines = append(lines, fmt.Sprintf(`{"body":%s,"leaf":"%x","skeleton":%s}`, l.bodies[seq], reference([][]byte{leaf}), leaf))
		if seq%2 == 1 {
			lines = append(lines, fmt.Sprintf(`{"checkpoint":%s}`, quoted(l.note(t, seq+1))))
		}
	}
	return append(lines, fmt.Sprintf(`{"end":{"chain":"%x","entries":%d}}`, l.chain(min(end, size)), end-first))
}

func (l *memoryLog) header(t testing.TB, first, end int, proven []int) string {
	t.Helper()
	size := len(l.leaves)
	var proofs []string
	for _, old := range proven {
		proofs = append(proofs, fmt.Sprintf(`{"path":%s,"size":%d}`, hexes(subproof(old, l.leaves, true)), old))
	}
	return fmt.Sprintf(`{"sluice_audit_export":1,"certificates":["%s","%s"],"chain":"%x","consistency":[%s],"end":%d,"first":%d,"left":%s,"log":"%s","note":%s,"right":%s,"size":%d}`,
		base64.StdEncoding.EncodeToString(l.root.Raw), base64.StdEncoding.EncodeToString(l.signer.Raw), l.chain(first),
		strings.Join(proofs, ","), end, first, hexes(l.cover(0, first)), testLog, quoted(l.note(t, size)), hexes(l.cover(end, size)), size)
}

// cover hashes the largest aligned subtrees over [begin, end), one by one.
func (l *memoryLog) cover(begin, end int) (roots [][]byte) {
	for begin < end {
		width := 1
		for begin%(width*2) == 0 && begin+width*2 <= end {
			width *= 2
		}
		roots = append(roots, reference(l.leaves[begin:begin+width]))
		begin += width
	}
	return roots
}

func hexes(list [][]byte) string {
	text := make([]string, len(list))
	for i, one := range list {
		text[i] = fmt.Sprintf(`"%x"`, one)
	}
	return "[" + strings.Join(text, ",") + "]"
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// proof is the proof file of one entry.
func (l *memoryLog) proof(t testing.TB, seq int) string {
	t.Helper()
	text := fmt.Sprintf("sluice-audit-proof 1\nentry %s\nleaf %s\nindex %d\n",
		base64.StdEncoding.EncodeToString([]byte(l.bodies[seq])), base64.StdEncoding.EncodeToString(l.leaves[seq]), seq)
	for _, step := range inclusion(seq, l.leaves) {
		text += base64.StdEncoding.EncodeToString(step) + "\n"
	}
	return text + "\n" + l.note(t, len(l.leaves)) + "\n" + string(asPEM(l.signer))
}

// check runs the program's check over lines.
func (l *memoryLog) check(t testing.TB, lines []string, anchors ...string) *report {
	t.Helper()
	return checkExport(strings.NewReader(strings.Join(lines, "\n")+"\n"), l.trusted(t), anchors, checked)
}

// wants fails the test unless the report has the verdict, and the first entry that it names is this one; -1 for none.
func (r *report) wants(t testing.TB, want verdict, entry int) {
	t.Helper()
	named := -1
	for _, found := range r.Findings {
		if found.Seq != nil && named < 0 {
			named = int(*found.Seq)
		}
	}
	if r.Verdict != want || named != entry {
		t.Fatalf("%s naming entry %d, not %s naming %d: %+v", r.Verdict, named, want, entry, r.Findings)
	}
}
