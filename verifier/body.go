package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// maxDepth is how deep the objects and lists of a body go at most.
const maxDepth = 1024

// readable refuses what Go's JSON takes and other readers do not: half a surrogate pair, a number beyond all floats, and depths
// that others cannot follow. What one reader sees in an entry, all must see. The body is valid JSON.
func readable(body []byte) error {
	for depth, i := 0, 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			end := endOfString(body, i)
			if bytes.Contains(body[i:end], []byte(`\u`)) && halfSurrogate(body[i:end]) {
				return errors.New("its body has half a surrogate pair")
			}
			i = end - 1
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return errors.New("its body is nested too deep")
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for ; bytes.IndexByte([]byte("0123456789+-.eE"), body[end]) >= 0; end++ {
			}
			if _, err := strconv.ParseFloat(string(body[i:end]), 64); err != nil {
				return errors.New("its body has a number beyond all that are read")
			}
			i = end - 1
		}
	}
	return nil
}

// endOfString is the index after the closing quote of the string that begins at i.
func endOfString(body []byte, i int) int {
	for i++; body[i] != '"'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// halfSurrogate tells whether Go puts U+FFFD where the quoted string escapes half a pair: the string has more of them than it spells.
func halfSurrogate(quoted []byte) bool {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return true
	}
	replaced := bytes.Count([]byte(text), []byte("\ufffd"))
	spelled := bytes.Count(quoted, []byte("\ufffd"))
	for at := 0; at+6 <= len(quoted); at++ {
		if quoted[at] != '\\' {
			continue
		}
		if quoted[at+1] == 'u' && bytes.EqualFold(quoted[at+2:at+6], []byte("fffd")) {
			spelled++
		}
		at++
	}
	return replaced > spelled
}
