package relay

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
)

// nodes has the connected nodes, by the hash of keyOf.
type nodes struct {
	mu  sync.Mutex // guards all
	all map[[sha256.Size]byte]*node
}

// node connects the streams of a node. Its lock also guards the holdings of its clusters' ledgers: their streams
// write them with both locks held.
type node struct {
	changes changes // assignments whose clusters may have other versions

	mu                sync.Mutex // guards the fields below
	ledgers           [kinds][]*ledger
	assignmentStreams []*stream // of assignments without clusters
}

// links lead from a ledger to the other ledgers of its client.
type links struct {
	server     *Server
	stream     *stream // of the ledger
	node       *node   // of all streams of the node
	seenChange uint64  // of the node's changes
}

func (k *links) clusters() *ledger {
	if k.stream == nil {
		return nil
	}
	return k.stream.ledgers[clusters]
}

func (k *links) assignments() *ledger {
	if k.stream == nil {
		return nil
	}
	return k.stream.ledgers[assignments]
}

// join adds a ledger.
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
	_, _, next := peers.changes.since(0)
	l.links.node, l.links.seenChange = peers, next
	peers.mu.Lock()
	defer peers.mu.Unlock()
	peers.ledgers[l.key.kind] = append(peers.ledgers[l.key.kind], l)
	if l.key.kind == assignments && l.links.clusters() == nil {
		peers.assignmentStreams = append(peers.assignmentStreams, st)
	}
}

// leave removes a ledger whose stream has ended.
func (n *nodes) leave(st *stream, l *ledger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peers := l.links.node
	peers.mu.Lock()
	defer peers.mu.Unlock()
	ledgers := &peers.ledgers[l.key.kind]
	*ledgers = slices.DeleteFunc(*ledgers, func(x *ledger) bool { return x == l })
	peers.assignmentStreams = slices.DeleteFunc(peers.assignmentStreams, func(x *stream) bool { return x == st })
	if len(peers.ledgers[clusters])+len(peers.ledgers[assignments]) == 0 && n.all[st.node] == peers {
		delete(n.all, st.node)
	}
}

// lock is held while the holdings of a ledger change. A nil node has no other streams.
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

// find returns a connected node; nil: it is not connected.
func (n *nodes) find(key [sha256.Size]byte) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[key]
}

// versions returns the versions of a cluster that the node has, and that use an assignment.
func (n *node) versions(cluster, assignment string) (list []version) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.ledgers[clusters] {
		list = withVersion(list, l.holdings.get(cluster), assignment)
	}
	return list
}

// withVersion adds the version of a cluster if it uses an assignment.
func withVersion(list []version, cluster *delivery, assignment string) []version {
	if cluster == nil || !cluster.item.body.eds || cluster.item.body.service != assignment {
		return list
	}
	if v := (version{cluster.name(), cluster.item.body.group}); !slices.Contains(list, v) {
		list = append(list, v)
	}
	return list
}

// changed notifies the streams of assignments that a cluster of an assignment has another version.
func (n *node) changed(assignment string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.assignmentStreams) > 0 {
		n.changes.add([]subject{{assignments, assignment}}, 0)
	}
	for _, st := range n.assignmentStreams {
		st.wakeUp()
	}
}

// versions returns the versions of a cluster that a node has, and that use an assignment. The node is nil if it
// is not connected.
func (s *Server) versions(key nodeKey, n *node, cluster, assignment string) (list []version) {
	if n != nil {
		list = n.versions(cluster, assignment)
	}
	if len(list) == 0 { // the stream of its clusters may come back
		list = s.memory.versions(key, cluster, assignment)
	}
	return list
}

// versions returns the remembered versions of a cluster of a node that use an assignment.
func (m *memory) versions(key nodeKey, cluster, assignment string) (list []version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, delta := range []bool{false, true} {
		for _, p := range m.records[nodeKey{key.node, clusters, delta}] {
			list = withVersion(list, p.holdings.get(cluster), assignment)
		}
	}
	return list
}

// updatePanels gives remembered assignments the current panels, of changed resources with several versions.
func (m *memory) updatePanels(s *Server, subjects []subject) {
	users := map[string][]string{} // by assignment
	for _, sub := range subjects {
		if names := s.book.users(sub.name); sub.kind == assignments && len(names) > 0 {
			users[sub.name] = names
		}
	}
	if len(users) == 0 {
		return
	}
	m.mu.Lock()
	keys := slices.Collect(maps.Keys(m.records))
	m.mu.Unlock()
	for _, key := range keys { // without the lock for long: streams wait for it
		if key.kind == assignments {
			m.updatePanelsOf(s, key, users)
		}
	}
}

// updateNodePanels gives the remembered assignments of a node and name the current panels.
func (m *memory) updateNodePanels(s *Server, node [sha256.Size]byte, assignment string) {
	users := s.book.users(assignment)
	if len(users) == 0 {
		return
	}
	for _, delta := range []bool{false, true} {
		m.updatePanelsOf(s, nodeKey{node, assignments, delta}, map[string][]string{assignment: users})
	}
}

// updatePanelsOf gives some remembered assignments of a node the current panels.
func (m *memory) updatePanelsOf(s *Server, key nodeKey, users map[string][]string) {
	m.panelMu.Lock()
	defer m.panelMu.Unlock()
	for _, assignment := range m.knownOf(key, users) {
		var versions []version
		for _, cluster := range s.book.users(assignment) { // read them again under the lock
			versions = append(versions, s.versions(key, s.nodes.find(key.node), cluster, assignment)...)
		}
		m.setPanel(key, assignment, s.book.panelOf(versions))
	}
}

// knownOf lists the names that the parts of a node have deliveries of.
func (m *memory) knownOf(key nodeKey, names map[string][]string) (list []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		list = append(list, knownNames(p, names)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// setPanel gives the remembered deliveries of an assignment a panel.
func (m *memory) setPanel(key nodeKey, assignment string, current *panel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.records[key] {
		if held := p.holdings.get(assignment); held != nil {
			p.holdings.set(m.stock.transfer(held, current))
		}
		m.stock.transferAll(p.alternatives[assignment], current)
	}
}
