package main

import (
	"crypto/rand"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/emmansun/gmsm/sm2"
	"github.com/emmansun/gmsm/sm3"
	"github.com/emmansun/gmsm/smx509"
)

// The standard's example, and what must not pass for it.
type example struct {
	X         string `json:"public_key_x"`
	Y         string `json:"public_key_y"`
	Message   string `json:"message_ascii"`
	Signature string `json:"signature_der"`
	Negatives []struct {
		Name   string `json:"name"`
		R      string `json:"r"`
		S      string `json:"s"`
		ID     string `json:"user_id_ascii"`
		NoID   bool   `json:"skip_z"`
		Expect bool   `json:"expected"`
	} `json:"negative_derived_here"`
	DER []struct {
		Name      string `json:"name"`
		Signature string `json:"der"`
	} `json:"der_negative"`
	SM3 []struct {
		Message string `json:"msg_ascii"`
		Digest  string `json:"digest"`
	} `json:"sm3"`
}

func readExample(t *testing.T) (read example, key *certificate) {
	t.Helper()
	folder := os.Getenv("SLUICE_SAMPLES")
	if folder == "" {
		t.Skip("SLUICE_SAMPLES does not name the folder of sample files")
	}
	file, err := os.ReadFile(filepath.Join(folder, "sm2", "gmt0003_5_annex.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &read); err != nil {
		t.Fatal(err)
	}
	public, err := sm2.NewPublicKey(unhex(t, "04"+read.X+read.Y))
	if err != nil {
		t.Fatal(err)
	}
	return read, &certificate{new(smx509.Certificate), public}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func der(t *testing.T, r, s string) []byte {
	t.Helper()
	var numbers struct{ R, S *big.Int }
	numbers.R, _ = new(big.Int).SetString(r, 16)
	numbers.S, _ = new(big.Int).SetString(s, 16)
	raw, err := asn1.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The standard's signature is taken; wrong numbers, wrong encodings, another identity and none are not.
func TestStandardExample(t *testing.T) {
	read, key := readExample(t)
	message := []byte(read.Message)
	if !key.verifies(message, unhex(t, read.Signature)) {
		t.Fatal("the standard's own signature is refused")
	}
	for _, negative := range read.Negatives {
		signature := der(t, negative.R, negative.S)
		switch {
		case negative.ID != "":
			if sm2.VerifyASN1WithSM2(key.key, []byte(negative.ID), message, signature) {
				t.Errorf("taken: %s", negative.Name)
			}
		case negative.NoID:
			if digest := sm3.Sum(message); sm2.VerifyASN1(key.key, digest[:], signature) {
				t.Errorf("taken: %s", negative.Name)
			}
		default:
			if key.verifies(message, signature) {
				t.Errorf("taken: %s", negative.Name)
			}
		}
	}
	for _, negative := range read.DER {
		if key.verifies(message, unhex(t, negative.Signature)) {
			t.Errorf("taken: %s", negative.Name)
		}
	}
	if n := len(read.Negatives) + len(read.DER); n != 17 {
		t.Errorf("%d negatives were tried, not 17", n)
	}
}

// SM3 gives the standard's digests.
func TestStandardDigests(t *testing.T) {
	read, _ := readExample(t)
	for _, one := range read.SM3 {
		if digest := sm3.Sum([]byte(one.Message)); hex.EncodeToString(digest[:]) != one.Digest {
			t.Errorf("SM3 of %q is %x", one.Message, digest)
		}
	}
}

// A signature that is r and s without DER, or made with the empty identity, is refused.
func TestOtherForms(t *testing.T) {
	a := newAuthority(t)
	signer := &certificate{a.signer, &a.signerKey.PublicKey}
	message := []byte("some text\n")
	sign := func(id []byte) []byte {
		za, err := sm2.CalculateZA(signer.key, id)
		if err != nil {
			t.Fatal(err)
		}
		digest := sm3.Sum(append(za, message...))
		signature, err := a.signerKey.Sign(rand.Reader, digest[:], nil)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	if !signer.verifies(message, sign(signerID)) {
		t.Fatal("a good signature is refused")
	}
	if signer.verifies(message, sign([]byte{})) {
		t.Error("a signature with the empty identity is taken")
	}
	var numbers struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(sign(signerID), &numbers); err != nil {
		t.Fatal(err)
	}
	if signer.verifies(message, append(numbers.R.FillBytes(make([]byte, 32)), numbers.S.FillBytes(make([]byte, 32))...)) {
		t.Error("64 bytes without DER are taken")
	}
}
