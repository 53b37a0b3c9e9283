package eds

// warm has assignments sent again, after a response, that clusters in it will
// wait for. It is not left to the ACK: Envoy withholds that until they are there.
func (st *stream) warm(clusters *subscription) {
	names := clusters.takeWarming()
	st.mu.Lock()
	assignments := st.subs[1]
	st.mu.Unlock()
	if len(names) > 0 && assignments != nil {
		assignments.warm(names)
	}
}

// awaited gives the assignments of the clusters that were sent on this stream.
func (st *stream) awaited() (names []string) {
	st.mu.Lock()
	clusters := st.subs[0]
	st.mu.Unlock()
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
		if w := u.watches[name]; w != nil && w.told() {
			w.force = true
			u.enqueue(w)
		}
	}
	if u.located > 0 {
		u.warmLocated(names)
	}
	u.mu.Unlock()
	u.stream.wakeUp()
}

// told tells whether the client was answered, be it that there is none.
func (w *watch) told() bool { return w.sent != 0 || w.sentAt != 0 }

func (u *subscription) warmLocated(names []string) {
	awaited := make(map[string]bool, len(names))
	for _, name := range names {
		awaited[name] = true
	}
	for _, w := range u.watches {
		if w.located && w.told() && awaited[w.slot.name] {
			w.force = true
			u.enqueue(w)
		}
	}
}
