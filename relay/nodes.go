package relay

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
)

// nodes are those that are connected, by what the control plane tells clients apart by.
type nodes struct {
	mu  sync.Mutex // guards what follows
	all map[[sha256.Size]byte]*node
}

// node has what the streams of a node need to know of each other. Its lock also guards what its
// clusters hold, which their streams write with their own lock held, too.
type node struct {
	changes changes // assignments of whose clusters the node may have other versions

	mu      sync.Mutex // guards what follows
	ledgers [kinds][]*ledger
	streams []*stream // of assignments, which find clusters on other streams
}

// kin is where a ledger finds what else its client has.
type kin struct {
	server *Server
	stream *stream // of the ledger
	node   *node   // of all streams of the node
	seen   uint64  // of the node's changes
}

func (k *kin) clusters() *ledger {
	if k.stream == nil {
		return nil
	}
	return k.stream.ledgers[clusters]
}

func (k *kin) assignments() *ledger {
	if k.stream == nil {
		return nil
	}
	return k.stream.ledgers[assignments]
}

// join adds a ledger. Assignments of a stream that has clusters, too, need no others.
func (n *nodes) join(st *stream, l *ledger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peers := n.all[st.node]
	if peers == nil {
		if n.all == nil {
			n.all = map[[sha256.Size]byte]*node{}
		}
		peers = &node{}
		n.all[st.node] = peers
	}
	_, _, seen := peers.changes.since(0)
	l.peers.node, l.peers.seen = peers, seen
	peers.mu.Lock()
	defer peers.mu.Unlock()
	peers.ledgers[l.key.kind] = append(peers.ledgers[l.key.kind], l)
	if l.key.kind == assignments && l.peers.clusters() == nil {
		peers.streams = append(peers.streams, st)
	}
}

// leave removes a ledger whose stream has ended.
func (n *nodes) leave(st *stream, l *ledger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peers := l.peers.node
	peers.mu.Lock()
	defer peers.mu.Unlock()
	of := &peers.ledgers[l.key.kind]
	*of = slices.DeleteFunc(*of, func(other *ledger) bool { return other == l })
	peers.streams = slices.DeleteFunc(peers.streams, func(other *stream) bool { return other == st })
	if len(peers.ledgers[clusters])+len(peers.ledgers[assignments]) == 0 && n.all[st.node] == peers {
		delete(n.all, st.node)
	}
}

// lock is held while what a ledger holds changes; nil: no other stream looks.
func (n *node) lock() {
	if n != nil {
		n.mu.Lock()
	}
}

func (n *node) unlock() {
	if n != nil {
		n.mu.Unlock()
	}
}

// find returns a node that is connected, or nil.
func (n *nodes) find(key [sha256.Size]byte) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[key]
}

// versions returns the versions of a cluster by which the node takes an assignment.
func (n *node) versions(cluster, assignment string) (all []version) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.ledgers[clusters] {
		all = withVersion(all, l.held.get(cluster), assignment)
	}
	return all
}

// withVersion adds the version that a cluster is, if it takes an assignment.
func withVersion(all []version, cluster *sent, assignment string) []version {
	if cluster == nil || !cluster.item.body.byEDS || cluster.item.body.service != assignment {
		return all
	}
	if v := (version{cluster.name(), cluster.item.body.group}); !slices.Contains(all, v) {
		all = append(all, v)
	}
	return all
}

// changed tells the streams of assignments that the node has another version of a cluster.
func (n *node) changed(assignment string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.streams) > 0 {
		n.changes.add([]subject{{assignments, assignment}}, 0)
	}
	for _, st := range n.streams {
		st.wakeUp()
	}
}

// versions returns the versions of a cluster by which a node takes an assignment. The node is nil if
// it has no stream.
func (s *Server) versions(key nodeKey, n *node, cluster, assignment string) (all []version) {
	if n != nil {
		all = n.versions(cluster, assignment)
	}
	if len(all) == 0 { // its clusters are yet to come back
		all = s.memory.versions(key, cluster, assignment)
	}
	return all
}

// versions returns the versions of a cluster by which a node that has gone took an assignment.
func (m *memory) versions(key nodeKey, cluster, assignment string) (all []version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, delta := range []bool{false, true} {
		for _, p := range m.records[nodeKey{key.node, clusters, delta}] {
			all = withVersion(all, p.has.get(cluster), assignment)
		}
	}
	return all
}

// resettle has what nodes had that have gone for the panels of now, of assignments of which there are
// several versions now.
func (m *memory) resettle(s *Server, changed []subject) {
	users := map[string][]string{} // by assignment
	for _, about := range changed {
		if all := s.book.users(about.name); about.kind == assignments && len(all) > 0 {
			users[about.name] = all
		}
	}
	if len(users) == 0 {
		return
	}
	m.mu.Lock()
	keys := slices.Collect(maps.Keys(m.records))
	m.mu.Unlock()
	for _, key := range keys { // one at a time: streams wait for the lock
		if key.kind == assignments {
			m.resettleNode(s, key, users)
		}
	}
}

// regroup has what a node had of an assignment for the versions of clusters that it has now.
func (m *memory) regroup(s *Server, node [sha256.Size]byte, assignment string) {
	users := s.book.users(assignment)
	if len(users) == 0 {
		return
	}
	for _, delta := range []bool{false, true} {
		m.resettleNode(s, nodeKey{node, assignments, delta}, map[string][]string{assignment: users})
	}
}

// resettleNode has what a node had of assignments, by users, for the panels of now.
func (m *memory) resettleNode(s *Server, key nodeKey, users map[string][]string) {
	m.settling.Lock()
	defer m.settling.Unlock()
	for _, assignment := range m.had(key, users) {
		var have []version
		for _, cluster := range s.book.users(assignment) { // as they are now
			have = append(have, s.versions(key, s.nodes.find(key.node), cluster, assignment)...)
		}
		m.transfer(key, assignment, s.book.panelOf(have))
	}
}

// had lists the names that a node had, or may have had.
func (m *memory) had(key nodeKey, names map[string][]string) (had []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		had = append(had, known(p, names)...)
	}
	slices.Sort(had)
	return slices.Compact(had)
}

// transfer has what a node had of an assignment for a panel.
func (m *memory) transfer(key nodeKey, assignment string, now *panel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		if held := p.has.get(assignment); held != nil {
			p.has.set(m.stock.transfer(held, now))
		}
		m.stock.transferAll(p.others[assignment], now)
	}
}
