package eds

import (
	"cmp"
	"math"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/internal/rest"
)

// everything is the name that stands for all resources of a type.
const everything = "*"

// foreign stands for a version of a resource that is not one of ours.
const foreign = math.MaxUint64

// limits bound what one subscription may ask for.
type limits struct{ names, bytes int }

// limits are those of now.
func (s *Server) limits() limits {
	names := max(s.maxNames, 2*int(max(s.clusters.most.Load(), s.assignments.most.Load())))
	return limits{names: names, bytes: 256 * names}
}

// raised says how more may be allowed.
const raised = "ask for \"*\", or raise limits.max_source_clusters in hdsd's configuration and restart it"

func (l limits) check(names, bytes int) error {
	if names > l.names {
		return rest.TooLarge("a subscription may have up to %d names: "+raised, l.names)
	}
	if bytes > l.bytes {
		return rest.TooLarge("the names of a subscription may have up to %d bytes together: "+raised, l.bytes)
	}
	return nil
}

// request is what both kinds of request have in common.
type request struct {
	node    *corev3.Node
	typeURL string
	nonce   string
	refusal *string // why the response of that nonce was refused; nil for an ACK
	names   []string

	// Of delta requests.
	unsubscribe []string
	versions    map[string]string
}

// takeState takes a state-of-the-world request in. One with a stale nonce gets
// no response of its own. While a response is under way its list counts all
// the same: a name dropped and taken up again meanwhile has to be sent again,
// which the answer to that response would not tell.
func (u *subscription) takeState(r *request) error {
	u.hold()
	defer u.release()
	if u.stale(r.nonce) {
		return nil
	}
	u.stream.acknowledge(u, r)
	list := hashOf(r.names)
	if u.begun && list == u.list {
		return nil // the usual ACK
	}
	first := !u.begun
	u.begun, u.list = true, list

	if u.legacy && len(r.names) == 0 {
		u.subscribeAll(false)
		u.owe()
		return nil
	}
	u.legacy = false
	return u.replaceNames(r.names, first)
}

// replaceNames makes the names given all that is subscribed.
func (u *subscription) replaceNames(names []string, first bool) error {
	wanted := make(map[string]struct{}, len(names))
	dropped := u.droppedInFlight()
	all, news := false, false
	for _, name := range names {
		if name == everything {
			all = true
			continue
		}
		wanted[name] = struct{}{}
		w, added, err := u.subscribe(name)
		if err != nil {
			return err
		}
		if added {
			news = true
			u.remember(w, dropped[name])
			u.resend(w)
		}
	}
	if !all {
		u.unsubscribeAll()
	} else if !u.wildcard {
		u.subscribeAll(false)
		news = true
	}
	for _, name := range u.namedBeside(wanted) {
		u.unsubscribe(name)
	}
	if news && (u.table.whole || all && first) {
		u.owe()
	}
	return nil
}

// namedBeside gives the names subscribed that are not among those wanted.
func (u *subscription) namedBeside(wanted map[string]struct{}) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.named == len(wanted) {
		return nil
	}
	var beside []string
	for name, w := range u.watches {
		if _, ok := wanted[name]; !ok && w.named {
			beside = append(beside, name)
		}
	}
	return beside
}

// owe makes a response due even if there is nothing to put in: a client that
// asks for everything has to learn that there is nothing.
func (u *subscription) owe() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = true
}

// stale tells whether a nonce is of a response older than the latest, and the
// latest has been answered.
func (u *subscription) stale(nonce string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return nonce != "" && u.nonce != "" && nonce != u.nonce && !u.waiting
}

// takeDelta takes a delta request in. Its subscriptions count whatever its nonce.
func (u *subscription) takeDelta(r *request) error {
	u.hold()
	defer u.release()
	u.stream.acknowledge(u, r)
	first := !u.begun
	u.begun = true

	if u.legacy && len(r.names) == 0 {
		if first {
			u.subscribeAll(false)
		}
	} else {
		u.legacy = false
		if err := u.changeNames(r.names, r.unsubscribe, first); err != nil {
			return err
		}
	}
	if !first {
		return nil
	}
	if u.wildcard && len(r.versions) == 0 {
		u.owe()
	}
	if len(r.versions) == 0 {
		return nil
	}
	u.beatSoon() // what the client has may expire any moment
	if err := u.believe(r.versions); err != nil {
		return err
	}
	if u.table.whole {
		u.takesBefore(r.versions)
	} else {
		u.warm(u.stream.awaited())
	}
	return nil
}

// changeNames subscribes, which always makes the resource be sent, then
// unsubscribes.
func (u *subscription) changeNames(names, unsubscribe []string, first bool) error {
	for _, name := range names {
		if name == everything {
			u.subscribeAll(!first)
			u.owe()
			continue
		}
		w, _, err := u.subscribe(name)
		if err != nil {
			return err
		}
		u.resend(w)
	}
	for _, name := range unsubscribe {
		if name == everything {
			u.unsubscribeAll()
		} else {
			u.unsubscribe(name)
		}
	}
	return nil
}

// believe notes which resources the client has from an earlier stream: equal
// ones are not sent, those that are no more are told to be removed.
func (u *subscription) believe(versions map[string]string) error {
	strangers := 0
	located := u.locatedByName()
	for name, text := range versions {
		u.mu.Lock()
		w := cmp.Or(u.watches[name], located[name])
		u.mu.Unlock()
		if w == nil && !u.wildcard {
			continue
		}
		if w == nil {
			strangers++
			if err := u.stream.server.limits().check(strangers, 0); err != nil {
				return err
			}
			w = u.watch(name)
		}
		u.mu.Lock()
		w.sent = u.shown(parseVersion(text))
		if w.sent == 0 {
			w.sent = foreign
		}
		w.force, w.holds = false, true
		u.enqueue(w)
		u.mu.Unlock()
	}
	return nil
}

// locatedByName gives what is watched by a locator, but of names with several
// variants: which of them a client has it has no way to say.
func (u *subscription) locatedByName() map[string]*watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.located == 0 {
		return nil
	}
	found := make(map[string]*watch)
	for _, w := range u.watches {
		if !w.located {
			continue
		}
		if _, several := found[w.slot.name]; several {
			found[w.slot.name] = nil
		} else {
			found[w.slot.name] = w
		}
	}
	return found
}

func hashOf(names []string) uint64 {
	var digest xxhash.Digest
	digest.Reset()
	for _, name := range names {
		digest.WriteString(name)
		digest.Write([]byte{0xff}) // in no valid UTF-8
	}
	return digest.Sum64()
}
