package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// maxNumber is the largest number in canonical JSON.
const maxNumber = 1<<53 - 1

// retention judges what is missing by leave: bodies that went, and times that nobody could record.
//
// A shelf holds the bodies of one retention class and one month, such as d365-2026-11; they go together. Which shelf a body stood
// on is proven by its leaf. When it went is not: an entry of a purge does not prove its own time. So the time must be over by the
// clock of this machine.
type retention struct {
	now    time.Time
	gone   map[string]*gone
	purges map[string][]purge
	gaps   []finding

	remarks []string
}

// gone are the entries of one shelf that have lost their bodies.
type gone struct {
	first, last, count uint64
	until              time.Time // when the youngest body that the shelf can hold may go
}

// A purge is what an audit.purge entry says.
type purge struct {
	entry              uint64
	recorded           time.Time
	first, last, count uint64
}

func newRetention(now time.Time) retention {
	return retention{now: now, gone: map[string]*gone{}, purges: map[string][]purge{}}
}

// bodyGone notes that an entry has lost its body.
func (r *retention) bodyGone(l leaf) {
	known := r.gone[l.shelf()]
	if known == nil {
		known = &gone{first: l.seq, until: l.keptUntil()}
		r.gone[l.shelf()] = known
	}
	known.last = l.seq
	known.count++
}

// keptUntil is the end of the month in which the entry was recorded, and then the days of its retention.
func (l leaf) keptUntil() time.Time {
	days, _ := strconv.Atoi(l.retention[1:]) // by its form
	return time.Date(l.recorded.Year(), l.recorded.Month()+1, 1+days, 0, 0, 0, 0, time.UTC)
}

// read notes what an entry says of other entries.
func (r *retention) read(entry entry) {
	switch entry.kind {
	case "audit.purge":
		said := purge{entry: entry.seq, recorded: entry.recorded}
		for name, number := range map[string]*uint64{"first": &said.first, "last": &said.last, "count": &said.count} {
			if entry.member(name, number) != nil || *number > maxNumber {
				return // it names no entries, and so covers none
			}
		}
		var shelf string
		if entry.member("shelf", &shelf) == nil {
			r.purges[shelf] = append(r.purges[shelf], said)
			r.remarks = append(r.remarks, fmt.Sprintf("entry %d: bodies of shelf %q went", entry.seq, shelf))
		}
	case "audit.gap":
		lost := string(entry.members["lost"])
		if number, err := strconv.ParseInt(lost, 10, 64); err == nil && number == 0 {
			r.remarks = append(r.remarks, fmt.Sprintf("entry %d: for a time entries could not be written, and none was lost", entry.seq))
		} else {
			r.gaps = append(r.gaps, finding{Verdict: gap, What: "gap", Why: gapText(lost), Seq: &entry.seq})
		}
	}
}

func gapText(lost string) string {
	if _, err := strconv.ParseInt(lost, 10, 64); err != nil {
		lost = "an unknown number of"
	}
	return lost + " records were lost"
}

// findings tells which bodies went against the rules, and which entries speak of losses, in the order of entries.
func (r *retention) findings() []finding {
	found := slices.Clone(r.gaps)
	for shelf, bodies := range r.gone {
		if why := bodies.fault(r.purges[shelf], r.now); why != "" {
			found = append(found, finding{Verdict: gap, What: "purge", Seq: &bodies.first, Last: &bodies.last,
				Why: fmt.Sprintf("%d bodies of shelf %q are gone: %s", bodies.count, shelf, why)})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(*a.Seq, *b.Seq) })
	return found
}

// fault tells why the bodies of a shelf should not be gone; empty where they went by the rules.
func (g *gone) fault(purges []purge, now time.Time) string {
	switch {
	case now.Before(g.until):
		return fmt.Sprintf("they are to be kept until %s, and it is %s now", g.until.Format(recordedForm), now.UTC().Format(recordedForm))
	case len(purges) == 0:
		return "no audit.purge entry of the file names it"
	}
	first, last, count := purges[0].first, purges[0].last, uint64(0)
	for _, said := range purges {
		if said.recorded.Before(g.until) {
			return fmt.Sprintf("entry %d says so at %s, before their time was over at %s",
				said.entry, said.recorded.Format(recordedForm), g.until.Format(recordedForm))
		}
		first, last, count = min(first, said.first), max(last, said.last), count+said.count
	}
	if g.first < first || g.last > last {
		return "not all of them are among those that its audit.purge entries name"
	}
	if g.count > count {
		return fmt.Sprintf("its audit.purge entries count only %d", count)
	}
	return ""
}
