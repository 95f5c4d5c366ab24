package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/emmansun/gmsm/sm2"
	"github.com/emmansun/gmsm/smx509"
)

// The one identity that every SM2 signature here is made with; other libraries default to the empty one.
var signerID = []byte("1234567812345678")

var (
	sm2WithSM3       = asn1.ObjectIdentifier{1, 2, 156, 10197, 1, 501}
	basicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	keyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}
)

// A certificate whose key is an SM2 key and whose signature is SM2 with SM3.
type certificate struct {
	*smx509.Certificate
	key *ecdsa.PublicKey
}

// parseCertificate reads one DER certificate; it checks its form, no signature.
func parseCertificate(der []byte) (*certificate, error) {
	parsed, err := smx509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != sm2.P256() {
		return nil, fmt.Errorf("the key of %q is not an SM2 key", parsed.Subject)
	}
	if parsed.Version != 3 {
		return nil, fmt.Errorf("%q is not of version 3", parsed.Subject)
	}
	for _, extension := range parsed.Extensions {
		if extension.Critical && !extension.Id.Equal(basicConstraints) && !extension.Id.Equal(keyUsage) {
			return nil, fmt.Errorf("%q has the critical extension %s, which is unknown", parsed.Subject, extension.Id)
		}
	}
	return &certificate{parsed, key}, checkAlgorithm(der)
}

// checkAlgorithm demands SM2 with SM3 with its parameters absent (GM/T 0015, RFC 8998), which parsers let pass.
func checkAlgorithm(der []byte) error {
	var outer struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(rest) > 0 {
		return errors.New("it is not one DER certificate")
	}
	if !outer.Algorithm.Algorithm.Equal(sm2WithSM3) {
		return fmt.Errorf("it is signed with %s, not with SM2 with SM3", outer.Algorithm.Algorithm)
	}
	if len(outer.Algorithm.Parameters.FullBytes) > 0 {
		return errors.New("its signature algorithm has parameters")
	}
	return nil
}

func (c *certificate) verifies(message, signature []byte) bool {
	return sm2.VerifyASN1WithSM2(c.key, signerID, message, signature)
}

// readRoot reads --root, PEM or DER: the certificate that the auditor trusts, so it must be one that can vouch for others.
func readRoot(file []byte) (*certificate, error) {
	if len(file) == 0 {
		return nil, errors.New("the file is empty")
	}
	if bytes.Count(file, []byte("-----BEGIN ")) > 1 { // nobody could tell which of them vouched
		return nil, errors.New("more than one certificate or key is in it: name one certificate")
	}
	der := file
	if block, _ := pem.Decode(file); block != nil {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %s, not a certificate", block.Type)
		}
		der = block.Bytes
	}
	root, err := parseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := checkIssued(root, root); err != nil {
		return nil, fmt.Errorf("it is no root: %w", err)
	}
	return root, nil
}

// checkIssued tells why the root does not vouch for the certificate; nil where it does.
func checkIssued(c, root *certificate) error {
	switch {
	case !root.BasicConstraintsValid || !root.IsCA:
		return fmt.Errorf("%q is not a CA", root.Subject)
	case root.KeyUsage&smx509.KeyUsageCertSign == 0:
		return fmt.Errorf("%q may not sign certificates (key usage)", root.Subject)
	case !bytes.Equal(c.RawIssuer, root.RawSubject):
		return fmt.Errorf("%q was issued by %q, not by %q", c.Subject, c.Issuer, root.Subject)
	case len(c.AuthorityKeyId) > 0 && len(root.SubjectKeyId) > 0 && !bytes.Equal(c.AuthorityKeyId, root.SubjectKeyId):
		return fmt.Errorf("%q was issued by another key than that of %q", c.Subject, root.Subject)
	case !root.verifies(c.RawTBSCertificate, c.Signature):
		return fmt.Errorf("the signature of the certificate %q is not by the key of %q", c.Subject, root.Subject)
	}
	return nil
}

// checkSigner tells why the certificate may not sign checkpoints; nil where it may.
func checkSigner(c, root *certificate) error {
	switch {
	case c.IsCA:
		return fmt.Errorf("%q is a CA, not a signer", c.Subject)
	case c.KeyUsage&smx509.KeyUsageCertSign != 0 || c.BasicConstraintsValid && c.MaxPathLen >= 0: // openssl refuses them
		return fmt.Errorf("%q is no CA, and says how it may issue certificates", c.Subject)
	case c.KeyUsage&smx509.KeyUsageDigitalSignature == 0:
		return fmt.Errorf("%q may not sign data (key usage)", c.Subject)
	}
	return checkIssued(c, root)
}

// A keyring holds the signers that the root vouches for.
type keyring []*certificate

// maxCertificates bounds the work: a new signer each year for two centuries.
const maxCertificates = 256

// trusted sorts the certificates of a file: the signers of the root, and what is wrong with those that no root issued.
// A log may have changed its root; another root in the file and its signers are passed over.
func trusted(ders [][]byte, root *certificate) (keys keyring, wrong []error) {
	if len(ders) > maxCertificates {
		return nil, []error{fmt.Errorf("the file has %d certificates, more than %d", len(ders), maxCertificates)}
	}
	var others []*certificate
	for number, der := range ders {
		c, err := parseCertificate(der)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("certificate %d of the file: %w", number+1, err))
		case bytes.Equal(der, root.Raw):
		case checkSigner(c, root) == nil:
			keys = append(keys, c)
		default:
			others = append(others, c)
		}
	}
	return keys, append(wrong, strays(others, root)...)
}

// strays tells what is wrong with certificates that neither are roots nor were issued by one of them.
func strays(certificates []*certificate, root *certificate) (wrong []error) {
	issued := func(c *certificate) bool {
		return slices.ContainsFunc(certificates, func(other *certificate) bool {
			return checkIssued(other, other) == nil && (c == other || checkSigner(c, other) == nil)
		})
	}
	for _, c := range certificates {
		if !issued(c) {
			wrong = append(wrong, checkSigner(c, root))
		}
	}
	return wrong
}

// signer finds a key by its id in the notes of a log; of several certificates for one key the longest-lived counts.
func (k keyring) signer(log string, id keyID) (found *certificate) {
	for _, c := range k {
		if keyIDOf(log, c.RawSubjectPublicKeyInfo) == id && (found == nil || c.NotAfter.After(found.NotAfter)) {
			found = c
		}
	}
	return found
}
