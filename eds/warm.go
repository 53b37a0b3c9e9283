package eds

// warm sends assignments again, after a response, that clusters in it will
// wait for. It does not wait for the ACK: Envoy withholds that until they are there.
func (st *stream) warm(clusters *subscription) {
	names := clusters.takeWarming()
	if _, assignments := st.pair(); len(names) > 0 && assignments != nil {
		assignments.warm(names)
	}
}

// servicesSent gives the names of the assignments of the clusters that were sent on
// this stream.
func (st *stream) servicesSent() (names []string) {
	clusters, _ := st.pair()
	if clusters == nil {
		return nil
	}
	for _, w := range clusters.all() {
		if !clusters.sentHere(w) {
			continue
		}
		if f := w.slot.current(); f != nil && f.service != "" {
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

// sentHere tells whether a watch's resource was sent on this stream, and not only
// on an earlier one.
func (u *subscription) sentHere(w *watch) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return w.sentAt != 0
}

// warm sends assignments again that were sent before their cluster was, or was
// as it is now: the data plane waits for one before it uses such a cluster, even
// if it is the one it has.
func (u *subscription) warm(names []string) {
	u.mu.Lock()
	for _, name := range names {
		if w := u.interest.watches[name]; w != nil && w.answered() {
			u.queue.force(w)
		}
	}
	if u.interest.located > 0 {
		u.warmLocated(names)
	}
	u.mu.Unlock()
	u.stream.wakeUp()
}

// warmLocated is warm of what is watched by a locator. It is called under the lock.
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

// answered tells whether the client was sent the resource, or that there is none.
func (w *watch) answered() bool { return w.sent != 0 || w.sentAt != 0 }
