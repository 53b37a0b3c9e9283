package eds

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// pollingClients gives every list of names that is polled, the one polled last at
// the end.
func (s *Server) pollingClients() []Client {
	polls := s.pollers.all(time.Now())
	behind := make(map[choiceOfGiven][2]int, 1) // mostly, all of a type have been given the same
	all := make([]Client, len(polls))
	for i := range polls {
		all[i] = s.pollingClient(&polls[i], behind)
	}
	return all
}

// choiceOfGiven is what it depends on how far a client is behind that took it.
type choiceOfGiven struct {
	given  *given
	choice string
}

func (s *Server) pollingClient(p *polling, behind map[choiceOfGiven][2]int) Client {
	c := Client{
		ID: p.key.id, TypeURL: p.given.list.table.typeURL, Connected: p.by.since,
		Resources: len(p.given.keys), Unasked: p.unasked, LastAck: p.lastAck, LastError: p.lastErr,
		Poll: &Poll{By: p.key.by, Time: p.last, Given: p.given.version, Held: p.held},
	}
	switch p.state {
	case pending:
		c.Stale = c.Resources
	case refused:
		c.Error = c.Resources
	default:
		key := choiceOfGiven{p.given, p.choice}
		counts, known := behind[key]
		if !known {
			for _, r := range s.standing(p) {
				if counts[0]++; r.changed() {
					counts[1]++
				}
			}
			behind[key] = counts
		}
		c.Resources, c.Stale, c.Synced = counts[0], counts[1], counts[0]-counts[1]
	}
	return c
}

// standing is a resource that a client polls.
type standing struct {
	key    string
	given  uint64 // the version that it was given; 0: that there is none
	latest *frame // what there is now
	fresh  bool   // it was given neither
}

func (r *standing) changed() bool { return r.given != versionOf(r.latest) }

// standing gives the resources that are polled, by name: where all are, also
// what has come to be since.
func (s *Server) standing(p *polling) []standing {
	keys := p.given.keys
	if p.given.list.all {
		keys = nil
	}
	found := s.find(p.given.list.table, keys, p.choice)
	all := make([]standing, 0, len(found.slots))
	if p.given.list.all {
		return s.standingOfAll(p.given, found.slots)
	}
	for i, key := range keys {
		all = append(all, standing{key: key, given: p.given.versions[i], latest: found.slots[i].latest()})
	}
	return all
}

func (s *Server) standingOfAll(g *given, slots []*slot) (all []standing) {
	frames := make(map[string]*frame, len(slots))
	for _, slot := range slots {
		if f := slot.latest(); f != nil {
			frames[slot.name] = f
		}
	}
	for i, key := range g.keys {
		all = append(all, standing{key: key, given: g.versions[i], latest: frames[key]})
		delete(frames, key)
	}
	for _, key := range slices.Sorted(maps.Keys(frames)) {
		all = append(all, standing{key: key, latest: frames[key], fresh: true})
	}
	return all
}

// polling gives the clients that poll.
func (s *Server) polling() []Subscriber {
	of := map[pollerKey][]polling{}
	for _, p := range s.pollers.all(time.Now()) {
		of[p.key.pollerKey] = append(of[p.key.pollerKey], p)
	}
	all := make([]Subscriber, 0, len(of))
	for key, polls := range of {
		all = append(all, Subscriber{
			Node: polls[0].by.node, Service: key.by, Connected: polls[0].by.since,
			resources: func() []Resource { return s.polled(polls) },
		})
	}
	return all
}

// polled gives the resources that a client polls. Of one that is in several lists
// it tells what the latest poll did.
func (s *Server) polled(polls []polling) []Resource {
	type identity struct {
		table *table
		key   string
	}
	all := map[identity]Resource{}
	for i := range polls {
		p := &polls[i]
		for _, r := range s.standing(p) {
			all[identity{p.given.list.table, r.key}] = p.resource(&r)
		}
	}
	ordered := slices.SortedFunc(maps.Keys(all), func(a, b identity) int {
		if a.table != b.table {
			if a.table == s.clusters {
				return -1
			}
			return 1
		}
		return strings.Compare(a.key, b.key)
	})
	resources := make([]Resource, len(ordered))
	for i, key := range ordered {
		resources[i] = all[key]
	}
	return resources
}

func (p *polling) resource(of *standing) Resource {
	name, choice, located := strings.Cut(of.key, separator)
	if !located {
		choice = p.choice
	}
	held, _ := p.accepted.of(of.key)
	zone, _ := zoneOf(choice)
	r := Resource{
		TypeURL: p.given.list.table.typeURL, Name: name, Zone: zone, Exists: of.latest != nil,
		Holds: held != 0, Version: showVersion(of.given), Sent: p.at.UTC(),
		frame: withVersion([]*frame{of.latest}, of.given),
	}
	switch {
	case of.fresh:
		r.State = NotSent
	case p.state == pending:
		r.State = Outstanding
	case p.state == refused:
		r.State = Refused
	case of.changed():
		r.State = Outdated
	default:
		r.State = Accepted
	}
	if p.failure == nil {
		return r
	}
	if version, asked := p.failure.given.of(of.key); asked {
		r.Refusal = &Refusal{
			Text: p.failure.text, Time: p.failure.at.UTC(), Version: showVersion(version),
			frame: withVersion([]*frame{of.latest}, version),
		}
	}
	return r
}
