package eds

import "slices"

// warm sends the assignments again that clusters in a response will wait for. It does not wait
// for the ACK: Envoy withholds that until it has them.
func (st *stream) warm(clusters *subscription) {
	names := clusters.takeWarming()
	if _, assignments := st.pair(); len(names) > 0 && assignments != nil {
		assignments.warm(names)
	}
}

// servicesSent returns the assignments of the clusters that were sent on this stream.
func (st *stream) servicesSent() (names []string) {
	clusters, _ := st.pair()
	if clusters == nil {
		return nil
	}
	for _, w := range clusters.watchesSent() {
		if f := w.current(); f != nil && f.service != "" {
			names = append(names, f.service)
		}
	}
	return names
}

func (u *subscription) takeWarming() (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	names, u.warming = u.warming, nil
	return names
}

// watchesSent returns the watches whose resources were sent on this stream, not only on an earlier one.
func (u *subscription) watchesSent() []*watch {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(u.interest.list(), func(w *watch) bool { return w.sentAt == 0 })
}

// warm sends assignments again that the client got before the latest version of their cluster. A
// data plane waits for an assignment before it uses a new cluster, even if it has the assignment
// already.
func (u *subscription) warm(names []string) {
	u.mu.Lock()
	for _, name := range names {
		if w := u.interest.find(u, name); w != nil && w.answered() {
			u.queue.force(w)
		}
	}
	if u.interest.located > 0 {
		u.warmLocated(names)
	}
	u.mu.Unlock()
	u.stream.wakeUp()
}

// warmLocated is warm for watches with a locator. It is called under the lock.
func (u *subscription) warmLocated(names []string) {
	awaited := make(map[string]bool, len(names))
	for _, name := range names {
		awaited[name] = true
	}
	for _, w := range u.interest.watches {
		if w.located && w.answered() && awaited[w.slot.name] {
			u.queue.force(w)
		}
	}
}

// answered reports whether the client was sent the resource, or its absence.
func (w *watch) answered() bool { return w.sent != 0 || w.sentAt != 0 }
