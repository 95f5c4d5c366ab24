package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A shelf holds the bodies of one retention class and one month, such as d365-2026-11; they go together.
// Of a body that is gone nothing is proven but its hash; which shelf it stood on is what the file says, and an entry of a purge
// does not prove its own time. So the time must be over by the clock of this machine, and the month fit the entries around.
var shelfForm = regexp.MustCompile(`^d([1-9][0-9]{2,3})-([0-9]{4})-(0[1-9]|1[0-2])$`)

// late is how long after its month an entry may still be handed over: outages and clocks part the two, but not by a month.
const lateDays = 31

// maxNumber is the largest number in canonical JSON.
const maxNumber = 1<<53 - 1

// retention judges what is missing by leave: bodies that went, and times that nobody could record.
type retention struct {
	now    time.Time
	before time.Time // when the last entry that has its body was recorded
	gone   map[string]*gone
	purges map[string][]purge
	gaps   []finding

	remarks []string
}

// gone are the entries of one shelf that have lost their bodies.
type gone struct {
	first, last, count uint64
	after              time.Time // the latest that an entry just before one of them was recorded
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

// bodyGone notes that entry seq has lost its body, which is said to have stood on the shelf.
func (r *retention) bodyGone(seq uint64, shelf string) {
	known := r.gone[shelf]
	if known == nil {
		known = &gone{first: seq}
		r.gone[shelf] = known
	}
	known.last = seq
	known.count++
	if r.before.After(known.after) {
		known.after = r.before
	}
}

// read notes what an entry says of other entries.
func (r *retention) read(entry envelope) {
	r.before = entry.recorded
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
		lost := string(entry.body["lost"])
		if number, err := strconv.ParseInt(lost, 10, 64); err == nil && number == 0 {
			r.remarks = append(r.remarks, fmt.Sprintf("entry %d: for a time entries could not be written, and none was lost", entry.seq))
		} else {
			r.gaps = append(r.gaps, finding{Verdict: gap, What: "gap", Why: gapText(lost), Seq: &entry.seq})
		}
	}
}

func gapText(lost string) string {
	if lost == "" {
		return "for a time entries could not be written, and nobody knows how many are lost"
	}
	return fmt.Sprintf("for a time entries could not be written; lost: %.20s", lost)
}

// findings tells which bodies went against the rules, and which entries speak of losses, in the order of entries.
func (r *retention) findings() []finding {
	found := slices.Clone(r.gaps)
	for shelf, bodies := range r.gone {
		if why := bodies.fault(shelf, r.purges[shelf], r.now); why != "" {
			found = append(found, finding{Verdict: gap, What: "purge", Seq: &bodies.first, Last: &bodies.last,
				Why: fmt.Sprintf("%d bodies of shelf %q are gone: %s", bodies.count, shelf, why)})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(*a.Seq, *b.Seq) })
	return found
}

// fault tells why the bodies of a shelf should not be gone; empty where they went by the rules.
func (g *gone) fault(shelf string, purges []purge, now time.Time) string {
	over, until, err := shelfTimes(shelf)
	switch {
	case err != nil:
		return err.Error()
	case now.Before(until):
		return fmt.Sprintf("they are to be kept until %s, and it is %s now", until.Format(recordedForm), now.UTC().Format(recordedForm))
	case g.after.After(over.AddDate(0, 0, lateDays)):
		return fmt.Sprintf("an entry before one of them was recorded at %s, so that they cannot be of that month", g.after.Format(recordedForm))
	case len(purges) == 0:
		return "no audit.purge entry of the file names it"
	}
	first, last, count := purges[0].first, purges[0].last, uint64(0)
	for _, said := range purges {
		if said.recorded.Before(until) {
			return fmt.Sprintf("entry %d says so at %s, before their time was over at %s",
				said.entry, said.recorded.Format(recordedForm), until.Format(recordedForm))
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

// shelfTimes are the end of a shelf's month, and when the youngest body that it can hold may go: its days later.
func shelfTimes(shelf string) (over, until time.Time, err error) {
	form := shelfForm.FindStringSubmatch(shelf)
	if form == nil {
		return over, until, errors.New("that is no shelf")
	}
	month, err := time.Parse("2006-01", form[2]+"-"+form[3])
	if err != nil {
		return over, until, errors.New("that is no month")
	}
	days, err := strconv.Atoi(form[1])
	over = month.AddDate(0, 1, 0)
	return over, over.AddDate(0, 0, days), err
}
