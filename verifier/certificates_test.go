package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"

	"github.com/emmansun/gmsm/smx509"
)

// A certificate that the root did not issue for signing is not trusted, and the reason is said.
func TestSigners(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	root := a.trusted(t)
	signer := func(change func(*x509.Certificate)) []byte {
		what := template("signer", false)
		change(what)
		return issue(t, what, a.root.ToX509(), a.signerKey, a.rootKey).Raw
	}
	unknown := pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}
	edited := append([]byte{}, a.signer.Raw...)
	edited[len(edited)-1] ^= 1
	for _, test := range []struct {
		der  []byte
		want string // of the reason; empty where it is trusted
	}{
		{signer(func(*x509.Certificate) {}), ""},
		{signer(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }), "is a CA"},
		{signer(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }), "may not sign data"},
		{signer(func(c *x509.Certificate) { c.ExtraExtensions = []pkix.Extension{unknown} }), "which is unknown"},
		{edited, "is not by the key of"},
		{b.signer.Raw, "is not by the key of"}, // both roots have one name
		{a.signer.Raw[1:], "certificate 1 of the file"},
		{append(append([]byte{}, a.signer.Raw...), 0), "certificate 1 of the file"},
		{nil, "certificate 1 of the file"},
	} {
		keys, wrong := trusted([][]byte{test.der}, root)
		switch {
		case test.want == "" && len(keys) == 1 && len(wrong) == 0:
		case test.want != "" && len(keys) == 0 && len(wrong) == 1 && strings.Contains(wrong[0].Error(), test.want):
		default:
			t.Errorf("%q: %d keys, %v", test.want, len(keys), wrong)
		}
	}
}

// The root of before and its signers may stand in a file; they are passed over.
func TestOtherRoot(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	keys, wrong := trusted([][]byte{b.root.Raw, b.signer.Raw, a.root.Raw, a.signer.Raw}, a.trusted(t))
	if len(keys) != 1 || len(wrong) != 0 {
		t.Fatalf("%d keys, %v", len(keys), wrong)
	}
}

// More certificates than any log has are not looked at.
func TestTooManyCertificates(t *testing.T) {
	a := newAuthority(t)
	ders := make([][]byte, maxCertificates+1)
	for i := range ders {
		ders[i] = a.signer.Raw
	}
	if keys, wrong := trusted(ders, a.trusted(t)); len(keys) != 0 || len(wrong) != 1 {
		t.Fatalf("%d keys, %v", len(keys), wrong)
	}
}

// A root must be a CA that signed itself with SM2 and may sign others, in PEM or DER.
func TestGivenRoot(t *testing.T) {
	a := newAuthority(t)
	plain := template("no CA", false)
	usage := template("no usage", true)
	usage.KeyUsage = x509.KeyUsageDigitalSignature
	for name, file := range map[string][]byte{
		"nothing": nil, "text": []byte("root"), "a signer": asPEM(a.signer), "a key": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
		"no CA":        issue(t, plain, plain, a.rootKey, a.rootKey).Raw,
		"no key usage": issue(t, usage, usage, a.rootKey, a.rootKey).Raw,
	} {
		if _, err := readRoot(file); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := readRoot(a.root.Raw); err != nil {
		t.Error(err)
	}
}

// Parameters in the signature algorithm are refused, though a signature covers them.
func TestParametersAbsent(t *testing.T) {
	a := newAuthority(t)
	// 30 0a 06 08 <oid> becomes 30 0c 06 08 <oid> 05 00, inside and outside; only the form is looked at here.
	var outer struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(a.signer.Raw, &outer); err != nil {
		t.Fatal(err)
	}
	outer.Algorithm.Parameters = asn1.NullRawValue
	der, err := asn1.Marshal(outer)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAlgorithm(der); err == nil {
		t.Error("NULL parameters are taken")
	}
	if _, err := smx509.ParseCertificate(der); err == nil {
		t.Error("algorithms that differ inside and outside are taken")
	}
}

// A root that issued none of the signers is said once, not again for each checkpoint and anchor.
func TestAnotherRoot(t *testing.T) {
	l := newLog(t, 9)
	got := newLog(t, 1).check(t, l.export(t, 0, 9), l.note(t, 5))
	got.wants(t, tampered, -1)
	if len(got.Findings) != 1 || got.Findings[0].What != "certificate" {
		t.Errorf("%+v", got.Findings)
	}
}
