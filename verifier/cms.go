package main

import (
	"bytes"
	"errors"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tags "golang.org/x/crypto/cryptobyte/asn1"
)

// maxSignature bounds what is taken apart: ours have a thousand bytes.
const maxSignature = 32 << 10

// longYears is from when on years have four digits; two reach from 1950 to 2049.
const longYears = 2050

// The parts of a signature that have one spelling, in DER.
var (
	signedDataType = []byte{0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2}
	dataType       = []byte{0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1}
	versionOne     = []byte{0x02, 1, 1}
	algorithmSM3   = []byte{0x30, 10, 0x06, 8, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 1, 0x83, 0x11}
	algorithmSM2   = []byte{0x30, 10, 0x06, 8, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 1, 0x83, 0x75}
)

// Signed attributes before their values: there are these three, in the order of DER.
var (
	contentTypeAttribute = []byte{0x30, 24, 0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3, 0x31, 11,
		0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1} // of data
	signingTimeType        = []byte{0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 5}
	messageDigestAttribute = []byte{0x30, 47, 0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4, 0x31, 34, 0x04, 32}
)

var (
	context0       = tags.Tag(0).ContextSpecific().Constructed()
	errNoSignature = errors.New("its signature is not a CMS of the one form that reports have")
	errAttributes  = errors.New("its signed attributes are not those of a report")
	errSigningTime = errors.New("its signing time is not UTC in whole seconds")
)

// A signature is a detached CMS SignedData (RFC 5652) with SM2 and SM3, taken apart; nothing of it is checked but its form.
type signature struct {
	certificate []byte // DER
	signer      []byte // issuer and serial number, DER of both
	attributes  []byte // DER of the SET that is signed
	digest      []byte // SM3 that the content must have
	at          time.Time
	value       []byte
}

// parseSignature reads DER of the form in README.md, rule 3, and no other bytes.
func parseSignature(der []byte) (*signature, error) {
	read := new(signature)
	whole := cryptobyte.String(der)
	var outer, wrapped, data, certificates, certificate, signers, signer cryptobyte.String
	if len(der) > maxSignature ||
		!whole.ReadASN1(&outer, tags.SEQUENCE) || !whole.Empty() ||
		!literal(&outer, signedDataType) || !outer.ReadASN1(&wrapped, context0) || !outer.Empty() ||
		!wrapped.ReadASN1(&data, tags.SEQUENCE) || !wrapped.Empty() ||
		!literal(&data, versionOne) || !inside(&data, tags.SET, algorithmSM3) || !inside(&data, tags.SEQUENCE, dataType) ||
		!data.ReadASN1(&certificates, context0) || !certificates.ReadASN1Element(&certificate, tags.SEQUENCE) || !certificates.Empty() ||
		!data.ReadASN1(&signers, tags.SET) || !data.Empty() ||
		!signers.ReadASN1(&signer, tags.SEQUENCE) || !signers.Empty() {
		return nil, errNoSignature
	}
	read.certificate = certificate
	return read, read.readSigner(signer)
}

// literal skips bytes that must be these.
func literal(from *cryptobyte.String, want []byte) bool {
	var found []byte
	return from.ReadBytes(&found, len(want)) && bytes.Equal(found, want)
}

// inside skips an element that must hold these bytes alone.
func inside(from *cryptobyte.String, tag tags.Tag, want []byte) bool {
	var found cryptobyte.String
	return from.ReadASN1(&found, tag) && bytes.Equal(found, want)
}

func (s *signature) readSigner(info cryptobyte.String) error {
	var signer, attributes, value cryptobyte.String
	if !literal(&info, versionOne) || !info.ReadASN1(&signer, tags.SEQUENCE) || !literal(&info, algorithmSM3) ||
		!info.ReadASN1Element(&attributes, context0) || !literal(&info, algorithmSM2) ||
		!info.ReadASN1(&value, tags.OCTET_STRING) || !info.Empty() {
		return errNoSignature
	}
	s.signer, s.value = signer, value
	s.attributes = bytes.Clone(attributes)
	s.attributes[0] = byte(tags.SET) // RFC 5652 section 5.4
	return s.readAttributes()
}

func (s *signature) readAttributes() error {
	set := cryptobyte.String(s.attributes)
	var attributes, signingTime, values cryptobyte.String
	if !set.ReadASN1(&attributes, tags.SET) || !literal(&attributes, contentTypeAttribute) ||
		!attributes.ReadASN1(&signingTime, tags.SEQUENCE) || !literal(&signingTime, signingTimeType) ||
		!signingTime.ReadASN1(&values, tags.SET) || !signingTime.Empty() ||
		!literal(&attributes, messageDigestAttribute) || !attributes.ReadBytes(&s.digest, 32) || !attributes.Empty() {
		return errAttributes
	}
	at, err := readTime(values)
	s.at = at
	return err
}

// readTime reads a UTCTime, or a GeneralizedTime where the year has to have four digits (RFC 5652 section 11.3).
func readTime(value cryptobyte.String) (time.Time, error) {
	var text cryptobyte.String
	var tag tags.Tag
	if !value.ReadAnyASN1(&text, &tag) || !value.Empty() {
		return time.Time{}, errSigningTime
	}
	form, short := "20060102150405Z", tag == tags.UTCTime
	if short {
		form = "060102150405Z"
	}
	at, err := time.Parse(form, string(text))
	if err != nil || at.Format(form) != string(text) || !short && tag != tags.GeneralizedTime {
		return time.Time{}, errSigningTime
	}
	if short && at.Year() >= longYears {
		at = at.AddDate(-100, 0, 0)
	}
	if !short && at.Year() < longYears {
		return time.Time{}, errSigningTime
	}
	return at, nil
}
