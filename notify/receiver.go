package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of the open notices of one receiver.
const (
	MaxOpen      = 1000
	MaxEndpoints = 500 // of the kind EndpointDown, so that there is room for worse ones
)

// Filter selects the conditions for a receiver.
type Filter struct {
	Kinds       map[Kind]bool             // none: all
	Cluster     func(cluster string) bool // for kinds with a cluster; nil: all
	MinDuration time.Duration
}

func (f *Filter) wants(k *Key) bool {
	return (len(f.Kinds) == 0 || f.Kinds[k.Kind]) && (k.Cluster == "" || f.Cluster == nil || f.Cluster(k.Cluster))
}

// Notice is a message to a receiver.
type Notice struct {
	Condition
	ID    string    `json:"id"`    // the same at the beginning and the end
	Ended time.Time `json:"ended"` // zero at the beginning
}

// Receiver decides which notices one receiver gets.
type Receiver struct {
	filter Filter
	early  map[Key]Condition // conditions that have not lasted long enough
	beyond map[Key]Condition // conditions without room
	open   map[Key]Notice
	single int              // open notices of endpoints
	old    map[Key]struct{} // open since before a restart, and not seen since
	due    time.Time        // time when the first of early is due; zero: none is
}

// NewReceiver makes a Receiver with notices from before.
func NewReceiver(f Filter, open []Notice) *Receiver {
	r := &Receiver{filter: f, early: map[Key]Condition{}, beyond: map[Key]Condition{}, open: map[Key]Notice{}, old: map[Key]struct{}{}}
	for i := range open {
		r.put(open[i])
		r.old[open[i].Key] = struct{}{}
	}
	return r
}

// Open returns the number of open notices.
func (r *Receiver) Open() int { return len(r.open) }

// Apply applies changes, and returns the due notices.
func (r *Receiver) Apply(now time.Time, changes []Change) (notices []Notice) {
	for i := range changes {
		c := &changes[i]
		switch {
		case !r.filter.wants(&c.Key):
		case c.Ended:
			notices = r.end(now, c.Key, notices)
		default:
			r.begin(now, &c.Condition)
		}
	}
	return r.settle(now, notices)
}

// NextDeadline returns the time when Apply next has work without changes, if ever.
func (r *Receiver) NextDeadline() (time.Time, bool) { return r.due, !r.due.IsZero() }

// Confirm declares all present conditions applied since the start. It ends notices open before
// whose condition is gone.
func (r *Receiver) Confirm(now time.Time) (notices []Notice) {
	for key := range r.old {
		if key.Kind != More {
			notices = r.end(now, key, notices)
		}
	}
	clear(r.old)
	return r.settle(now, notices)
}

// SetFilter changes the filter, given all present conditions.
func (r *Receiver) SetFilter(now time.Time, f Filter, wrong []Condition) (notices []Notice) {
	r.filter = f
	clear(r.early)
	clear(r.beyond)
	r.due = time.Time{}
	for key := range r.open {
		if key.Kind != More && !f.wants(&key) {
			notices = r.end(now, key, notices)
		}
	}
	for i := range wrong {
		if f.wants(&wrong[i].Key) {
			r.begin(now, &wrong[i])
		}
	}
	return r.settle(now, notices)
}

func (r *Receiver) begin(now time.Time, c *Condition) {
	delete(r.old, c.Key)
	if _, isOpen := r.open[c.Key]; isOpen {
		return
	}
	if c.Since.IsZero() {
		c.Since = now
	}
	if _, waits := r.beyond[c.Key]; waits {
		return
	}
	r.early[c.Key] = *c
	if due := c.Since.Add(r.filter.MinDuration); r.due.IsZero() || due.Before(r.due) {
		r.due = due
	}
}

func (r *Receiver) end(now time.Time, key Key, notices []Notice) []Notice {
	delete(r.early, key)
	delete(r.beyond, key)
	delete(r.old, key)
	notice, ok := r.open[key]
	if !ok {
		return notices
	}
	delete(r.open, key)
	if key.Kind == EndpointDown {
		r.single--
	}
	notice.Ended = now
	return append(notices, notice)
}

// settle adds the notices of conditions that have lasted long enough, as far as there is room.
func (r *Receiver) settle(now time.Time, notices []Notice) []Notice {
	if !r.due.IsZero() && !now.Before(r.due) {
		r.due = time.Time{}
		for key, c := range r.early {
			if due := c.Since.Add(r.filter.MinDuration); !now.Before(due) {
				r.beyond[key] = c
				delete(r.early, key)
			} else if r.due.IsZero() || due.Before(r.due) {
				r.due = due
			}
		}
	}
	if len(r.beyond) > 0 {
		notices = r.admit(notices)
	}
	summary, isOpen := r.open[Key{Kind: More}]
	switch n := len(r.beyond); {
	case n > 0 && !isOpen:
		notices = r.tell(&Condition{
			Key: Key{Kind: More}, Since: now, Command: "hdsd status",
			Text: fmt.Sprintf("%d more things are wrong than are told one by one", n),
		}, notices)
	case n == 0 && isOpen:
		notices = r.end(now, summary.Key, notices)
	}
	return notices
}

// admit adds the notices of the worst conditions waiting for room, as far as there is some.
func (r *Receiver) admit(notices []Notice) []Notice {
	if len(r.open) >= MaxOpen {
		return notices
	}
	waiting := make([]Condition, 0, len(r.beyond))
	for _, c := range r.beyond {
		if c.Kind != EndpointDown || r.single < MaxEndpoints {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, compare)
	for i := range waiting {
		c := &waiting[i]
		if len(r.open) >= MaxOpen || c.Kind == EndpointDown && r.single >= MaxEndpoints {
			continue
		}
		delete(r.beyond, c.Key)
		notices = r.tell(c, notices)
	}
	return notices
}

// compare orders conditions: the worse first, then the older.
func compare(a, b Condition) int {
	worse := func(c *Condition) int {
		switch {
		case c.Kind.Severe():
			return 0
		case c.Kind != EndpointDown:
			return 1
		}
		return 2
	}
	return cmp.Or(worse(&a)-worse(&b), a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Version, b.Version), strings.Compare(a.Zone, b.Zone),
		strings.Compare(a.Address, b.Address), strings.Compare(a.Name, b.Name))
}

func (r *Receiver) tell(c *Condition, notices []Notice) []Notice {
	n := Notice{Condition: *c, ID: c.ID()}
	r.put(n)
	return append(notices, n)
}

func (r *Receiver) put(n Notice) {
	r.open[n.Key] = n
	if n.Kind == EndpointDown {
		r.single++
	}
}
