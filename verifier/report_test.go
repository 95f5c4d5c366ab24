package main

import (
	"testing"
	"time"
)

// The time that a file covers reaches from the earliest to the latest that its entries say, whatever their order.
func TestRecorded(t *testing.T) {
	l := newLog(t, 0)
	for _, second := range []int{5, 3, 9, 4} {
		l.appendAt(began.Add(time.Duration(second)*time.Second), "key.revoked", "")
	}
	got := l.check(t, l.export(t, 0, 4))
	if got.RecordedFirst != "2026-11-01T00:00:03.000000Z" || got.RecordedLast != "2026-11-01T00:00:09.000000Z" {
		t.Errorf("%s to %s", got.RecordedFirst, got.RecordedLast)
	}
}
