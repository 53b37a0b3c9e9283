package eds

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Complete ends what Options.Incomplete began: from now on what is not
// published does not exist. Whoever waits for an answer that says so gets it.
func (s *Server) Complete() {
	s.owner.Lock()
	defer s.owner.Unlock()
	if !s.incomplete.Swap(false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		st.mu.Lock()
		subs := st.subs
		st.mu.Unlock()
		for _, u := range subs {
			if u != nil {
				u.tellWithheld()
			}
		}
		st.wakeUp()
	}
}

// tellWithheld queues what could not be told as long as nobody knew whether it
// exists.
func (u *subscription) tellWithheld() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.watches {
		if w.withheld {
			u.enqueue(w)
		}
	}
}

var errIncomplete = status.Error(codes.Unavailable,
	"not every source has been read yet, so that it is not known what exists: ask again in a second")

// knows tells whether everything that a fetch asks for can be answered though
// not every source has been read. A Cluster response removes what is not in it,
// and so does one of everything.
func (t *table) knows(names []string, found int) bool {
	return !t.whole && len(names) > 0 && found == len(names)
}
