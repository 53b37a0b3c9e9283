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
	MaxEndpoints = 500 // of the kind EndpointDown, so that there is room for what is worse
)

// Filter says what a receiver wants.
type Filter struct {
	Kinds       map[Kind]bool             // none: all
	Cluster     func(cluster string) bool // for kinds that are about one; nil: all
	MinDuration time.Duration
}

func (f *Filter) wants(k *Key) bool {
	return (len(f.Kinds) == 0 || f.Kinds[k.Kind]) && (k.Cluster == "" || f.Cluster == nil || f.Cluster(k.Cluster))
}

// Notice is what a receiver is told.
type Notice struct {
	Condition
	ID    string    `json:"id"`    // the same at the beginning and the end
	Ended time.Time `json:"ended"` // zero: it begins
}

// Receiver decides what one receiver is told.
type Receiver struct {
	filter Filter
	early  map[Key]Condition // that have not lasted long enough
	beyond map[Key]Condition // that there is no room for
	open   map[Key]Notice
	single int              // open notices of endpoints
	old    map[Key]struct{} // open since before a restart, and not seen since
	next   time.Time        // when the first of early is due; zero: none is
}

// NewReceiver makes a Receiver that was told some notices before.
func NewReceiver(f Filter, open []Notice) *Receiver {
	r := &Receiver{filter: f, early: map[Key]Condition{}, beyond: map[Key]Condition{}, open: map[Key]Notice{}, old: map[Key]struct{}{}}
	for i := range open {
		r.put(open[i])
		r.old[open[i].Key] = struct{}{}
	}
	return r
}

// Open returns how many notices are open.
func (r *Receiver) Open() int { return len(r.open) }

// Apply takes in what begins and ends.
func (r *Receiver) Apply(now time.Time, changes []Change) (out []Notice) {
	for i := range changes {
		c := &changes[i]
		switch {
		case !r.filter.wants(&c.Key):
		case c.Over:
			out = r.end(now, c.Key, out)
		default:
			r.begin(now, &c.Condition)
		}
	}
	return r.settle(now, out)
}

// Tick does what is due.
func (r *Receiver) Tick(now time.Time) []Notice { return r.settle(now, nil) }

// NextDeadline returns when Tick next has something to do, if ever.
func (r *Receiver) NextDeadline() (time.Time, bool) { return r.next, !r.next.IsZero() }

// Confirm says that all that is wrong was applied since the start. It ends what was open
// before and is not wrong any more.
func (r *Receiver) Confirm(now time.Time) (out []Notice) {
	for key := range r.old {
		if key.Kind != More {
			out = r.end(now, key, out)
		}
	}
	clear(r.old)
	return r.settle(now, out)
}

// SetFilter changes what the receiver wants, given all that is wrong.
func (r *Receiver) SetFilter(now time.Time, f Filter, wrong []Condition) (out []Notice) {
	r.filter = f
	clear(r.early)
	clear(r.beyond)
	r.next = time.Time{}
	for key := range r.open {
		if key.Kind != More && !f.wants(&key) {
			out = r.end(now, key, out)
		}
	}
	for i := range wrong {
		if f.wants(&wrong[i].Key) {
			r.begin(now, &wrong[i])
		}
	}
	return r.settle(now, out)
}

func (r *Receiver) begin(now time.Time, c *Condition) {
	delete(r.old, c.Key)
	if _, told := r.open[c.Key]; told {
		return
	}
	if c.Since.IsZero() {
		c.Since = now
	}
	if _, waits := r.beyond[c.Key]; waits {
		return
	}
	r.early[c.Key] = *c
	if due := c.Since.Add(r.filter.MinDuration); r.next.IsZero() || due.Before(r.next) {
		r.next = due
	}
}

func (r *Receiver) end(now time.Time, key Key, out []Notice) []Notice {
	delete(r.early, key)
	delete(r.beyond, key)
	delete(r.old, key)
	told, ok := r.open[key]
	if !ok {
		return out
	}
	delete(r.open, key)
	if key.Kind == EndpointDown {
		r.single--
	}
	told.Ended = now
	return append(out, told)
}

// settle tells what has lasted long enough, as far as there is room.
func (r *Receiver) settle(now time.Time, out []Notice) []Notice {
	if !r.next.IsZero() && !now.Before(r.next) {
		r.next = time.Time{}
		for key, c := range r.early {
			if due := c.Since.Add(r.filter.MinDuration); !now.Before(due) {
				r.beyond[key] = c
				delete(r.early, key)
			} else if r.next.IsZero() || due.Before(r.next) {
				r.next = due
			}
		}
	}
	if len(r.beyond) > 0 {
		out = r.admit(out)
	}
	more, told := r.open[Key{Kind: More}]
	switch n := len(r.beyond); {
	case n > 0 && !told:
		out = r.tell(&Condition{
			Key: Key{Kind: More}, Since: now, Command: "hdsd status",
			Text: fmt.Sprintf("%d more things are wrong than are told one by one", n),
		}, out)
	case n == 0 && told:
		out = r.end(now, more.Key, out)
	}
	return out
}

// admit tells the worst of what waits for room, as far as there is some.
func (r *Receiver) admit(out []Notice) []Notice {
	if len(r.open) >= MaxOpen {
		return out
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
		out = r.tell(c, out)
	}
	return out
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
	return cmp.Or(worse(&a)-worse(&b), a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Zone, b.Zone),
		strings.Compare(a.Address, b.Address), strings.Compare(a.Name, b.Name))
}

func (r *Receiver) tell(c *Condition, out []Notice) []Notice {
	n := Notice{Condition: *c, ID: c.ID()}
	r.put(n)
	return append(out, n)
}

func (r *Receiver) put(n Notice) {
	r.open[n.Key] = n
	if n.Kind == EndpointDown {
		r.single++
	}
}
