package eds

import (
	"sync"
	"testing"

	"hdsd/publish"
)

// TestANameThatGoesWhileItsPageIsMadeIsAnswered: the client was not sent it yet, and has to
// learn that it does not exist, as every client does of each name.
func TestANameThatGoesWhileItsPageIsMadeIsAnswered(t *testing.T) {
	s := newSide(1, 1<<20)
	s.come(true, someNames(0))
	c := s.clients[0]
	m := c.sub.member
	from, due := m.beginPage()
	equal(t, "a page is due", due, true)
	s.server.Update(publish.Update{RemovedAssignments: []string{"n3"}})
	equal(t, "the page", m.group.page(from, s.limit), nil)
	m.dissolve() // as next does
	equal(t, "read", s.read(c), "true map[n0:UN n1:UN n2:UN n3:]")
}

// TestANameThatGoesWhileAClientResumesIsRemoved: that the client has it was not noted yet.
func TestANameThatGoesWhileAClientResumesIsRemoved(t *testing.T) {
	names := manyNames(2000)
	for range rounds(10, 30) {
		s := &side{server: NewServer(Options{fewestShared: 1}), limit: 1 << 20}
		s.server.Update(publish.Update{Assignments: manyAssignments(names, 1)})
		s.come(true, names)
		c := s.clients[0]
		u, m, held := c.sub, c.sub.member, map[string]string{}
		for i, version := range m.group.versions() {
			held[names[i]], c.has[names[i]] = formatVersion(version), "UN"
		}
		m.group.notify(len(names) - 1) // so that all are looked at again
		u.pause()
		var removed sync.WaitGroup
		removed.Go(func() {
			for begun := false; !begun; {
				u.mu.Lock()
				begun = m.progress == len(names)
				u.mu.Unlock()
			}
			s.server.Update(publish.Update{RemovedAssignments: names[:1]})
		})
		m.resume(held)
		removed.Wait()
		u.unpause()
		s.catchUp()
		equal(t, "names that the client has", len(c.has), len(names)-1)
	}
}

// TestAnAssignmentNamedAsEverything makes no group: who asks for "*" asks for everything.
func TestAnAssignmentNamedAsEverything(t *testing.T) {
	s := newSide(1, 1<<20)
	s.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("*", 1000, 1)}})
	s.come(true, []string{"*", "n0"})
	equal(t, "resources", len(s.clients[0].names()), namesInPlay+1)
}
