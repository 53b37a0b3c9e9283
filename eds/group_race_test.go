package eds

import (
	"sync"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/publish"
)

// TestANameThatGoesWhileItsPageIsMadeIsAnswered: the client was not sent it yet, and has to
// learn that it does not exist, as every client does of each name.
func TestANameThatGoesWhileItsPageIsMadeIsAnswered(t *testing.T) {
	s := newSide(1, 1<<20)
	s.come(true, someNames(0))
	c := s.clients[0]
	m := &c.sub.interest.membership
	equal(t, "a page is due", m.due(), true)
	m.making = true // as next does
	s.server.Update(publish.Update{RemovedAssignments: []string{"n3"}})
	equal(t, "the page", m.group.page(0, s.limit), nil)
	m.making = false
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
		u, m, held := c.sub, &c.sub.interest.membership, map[string]string{}
		for i, version := range m.group.versions() {
			held[names[i]], c.has[names[i]] = formatVersion(version), "UN"
		}
		m.group.notify(len(names) - 1) // so that all are looked at again
		u.pause()
		var removed sync.WaitGroup
		removed.Go(func() {
			for begun := false; !begun; {
				u.mu.Lock()
				begun = m.making || m.sent > 0
				u.mu.Unlock()
			}
			s.server.Update(publish.Update{RemovedAssignments: names[:1]})
		})
		m.resume(u, held)
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

// awaitMaking waits until a page of a member is being made, or its versions are being compared.
func awaitMaking(u *subscription) {
	for begun := false; !begun; {
		u.mu.Lock()
		begun = u.interest.making
		u.mu.Unlock()
	}
}

// TestANameThatGoesWhileTheVersionsOfAResumingClientAreCompared: it is removed, although the client has
// the version of before.
func TestANameThatGoesWhileTheVersionsOfAResumingClientAreCompared(t *testing.T) {
	s := newSide(1, 1<<20)
	s.come(true, someNames(0))
	c := s.clients[0]
	u, m, held := c.sub, &c.sub.interest.membership, map[string]string{}
	for i, version := range m.group.versions() {
		held[m.group.names[i]] = formatVersion(version)
	}
	s.server.setHealth(20, health.Unhealthy) // the versions are looked up again
	u.pause()
	m.group.slots[3].mu.Lock() // the last one waits
	var removed sync.WaitGroup
	removed.Go(func() {
		awaitMaking(u)
		time.Sleep(10 * time.Millisecond) // so that the first one is looked up; if not, the test proves less
		s.server.Update(publish.Update{RemovedAssignments: []string{"n0"}})
		m.group.slots[3].mu.Unlock()
	})
	m.resume(u, held)
	removed.Wait()
	u.unpause()
	equal(t, "read", s.read(c), "true map[n0: n2:UN]")
}

// TestANameThatAClientGivesUpWhileItsPageIsMade: the page is not sent, because it has the name.
func TestANameThatAClientGivesUpWhileItsPageIsMade(t *testing.T) {
	s := newSide(1, 1<<20)
	s.come(true, someNames(0))
	c := s.clients[0]
	u, m := c.sub, &c.sub.interest.membership
	m.group.slots[0].mu.Lock() // the page waits for it
	var given sync.WaitGroup
	given.Go(func() {
		awaitMaking(u)
		c.ask(nil, []string{"n3"})
		m.group.slots[0].mu.Unlock()
	})
	equal(t, "read", s.read(c), "true map[n0:UN n1:UN n2:UN]")
	given.Wait()
	c.answer(nil, nil)
	equal(t, "read again", s.read(c), "nothing")
}

// TestANameThatAWildcardClientGivesUpUnseen: it is not told of what it never had.
func TestANameThatAWildcardClientGivesUpUnseen(t *testing.T) {
	s := newSide(1, 1<<20)
	s.come(true, someNames(0))
	c := s.clients[0]
	c.ask([]string{wildcard}, nil)
	c.ask(nil, []string{"n3"})
	s.server.Update(publish.Update{RemovedAssignments: []string{"n3"}})
	equal(t, "resources", len(c.sub.resources()), namesInPlay-1)
	equal(t, "read", s.read(c), "true map[n0:UN n1:UN n2:UN n4:UN n5:UN]")
}
