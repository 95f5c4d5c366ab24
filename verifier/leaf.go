package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/emmansun/gmsm/sm3"
)

// recordedForm is how entries write instants: UTC, always with microseconds.
const recordedForm = "2006-01-02T15:04:05.000000Z"

// A leaf is what is hashed of an entry, and kept of it for ever.
type leaf struct {
	seq       uint64
	id        string
	recorded  time.Time
	retention string
	body      Hash
}

var leafForm = regexp.MustCompile(`^\{"body":"([0-9a-f]{64})","id":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",` +
	`"recorded":"([0-9TZ:.-]{27})","retention":"(d[1-9][0-9]{2,3})","seq":([0-9]{1,19})\}$`)

// parseLeaf reads the bytes of a leaf in their one spelling.
func parseLeaf(raw []byte) (l leaf, err error) {
	form := leafForm.FindSubmatch(raw)
	if form == nil {
		return l, errors.New("it is not made of body, id, recorded, retention and seq")
	}
	l.id, l.retention = string(form[2]), string(form[4])
	if l.body, err = parseHash(string(form[1])); err != nil {
		return l, err
	}
	if l.seq, err = parseNumber(string(form[5])); err != nil {
		return l, err
	}
	// Go reads hours of one digit and commas, too: what is read must be what would be written.
	recorded := string(form[3])
	if l.recorded, err = time.Parse(recordedForm, recorded); err != nil || l.recorded.Format(recordedForm) != recorded || l.recorded.Year() < 1 {
		return l, fmt.Errorf("the time %q of its record is not in UTC with microseconds", recorded)
	}
	return l, nil
}

// shelf is where the body is kept: its retention and the month in which it was recorded.
func (l leaf) shelf() string { return l.retention + "-" + l.recorded.Format("2006-01") }

// has tells whether these are the bytes of the body that was hashed.
func (l leaf) has(body []byte) bool { return sm3.Sum(body) == l.body }

// An entry is a leaf and what this program must know of its body; everything else in it is hashed and not looked at.
type entry struct {
	leaf
	kind    string
	members map[string]json.RawMessage // a map, because struct fields would also match keys in other case
}

// parseEntry reads the body that the leaf has, and compares id and time with the leaf's.
func parseEntry(l leaf, body []byte) (e entry, err error) {
	e.leaf = l
	if !utf8.Valid(body) {
		return e, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(body, &e.members); err != nil {
		return e, errors.New("its body is not a JSON object")
	}
	if err := readable(body); err != nil {
		return e, err
	}
	var id, recorded string
	for name, field := range map[string]*string{"id": &id, "kind": &e.kind, "recorded": &recorded} {
		if err := e.member(name, field); err != nil {
			return e, err
		}
	}
	if id != l.id || recorded != l.recorded.Format(recordedForm) {
		return e, errors.New("its body has another id, or was recorded at another time, than its leaf")
	}
	return e, nil
}

// member reads one member of the body; missing, null or of another type is an error.
func (e entry) member(name string, into any) error {
	raw := e.members[name]
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		return fmt.Errorf("the member %q of its body is missing or of the wrong type", name)
	}
	return nil
}
