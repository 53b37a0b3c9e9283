package replica

import (
	"time"

	"hdsd/health"
)

// idRest is the time before the id of an endpoint is used again, so that a vote still under way never counts
// for another endpoint.
const idRest = time.Minute

// names gives the endpoints in the specifiers of local checkers ids of this process.
type names struct {
	ids   map[health.Hash]health.EndpointID
	hash  []health.Hash // by id
	uses  []int         // by id: number of specifiers with the endpoint
	freed []freed       // in the order of time
}

type freed struct {
	id   health.EndpointID
	time time.Time
}

// acquire returns the id of an endpoint for one more specifier.
func (n *names) acquire(now time.Time, hash health.Hash) health.EndpointID {
	id, known := n.ids[hash]
	switch {
	case known:
	case len(n.freed) > 0 && now.Sub(n.freed[0].time) >= idRest:
		id, n.freed = n.freed[0].id, n.freed[1:]
		n.ids[hash], n.hash[id] = id, hash
	default:
		id = health.EndpointID(len(n.hash))
		n.ids[hash] = id
		n.hash, n.uses = append(n.hash, hash), append(n.uses, 0)
	}
	n.uses[id]++
	return id
}

// release ends the use of endpoints by one specifier.
func (n *names) release(now time.Time, hashes []health.Hash) {
	for _, hash := range hashes {
		id := n.ids[hash]
		if n.uses[id]--; n.uses[id] == 0 {
			delete(n.ids, hash)
			n.freed = append(n.freed, freed{id, now})
		}
	}
}
