package eds

import (
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/eds/poll"
	"hdsd/publish"
)

// clients returns one Client for every polled list of names, the latest poll last.
func (s *fetcher) clients(filter func(name string) bool, unasked map[any]int) []publish.Client {
	polls := s.polls.All(time.Now())
	cache := make(map[choiceOfAnswer]counts, 1) // most clients have the same answer
	clients := make([]publish.Client, len(polls))
	for i := range polls {
		clients[i] = s.client(&polls[i], cache)
		clients[i].Unasked = unasked[polls[i].Key]
		if filter != nil {
			s.countOnly(&clients[i], &polls[i], filter)
		}
	}
	return clients
}

// countOnly counts the resources of a poll with matching names.
func (s *fetcher) countOnly(c *publish.Client, p *poll.Poll, filter func(name string) bool) {
	c.Resources, c.Synced, c.Stale, c.Error = 0, 0, 0, 0
	for _, r := range s.polledResources(p) {
		name, _, _ := strings.Cut(r.key, separator)
		if !filter(name) {
			continue
		}
		c.Resources++
		switch r.describe(p).State {
		case Accepted:
			c.Synced++
		case Refused:
			c.Error++
		default:
			c.Stale++
		}
	}
}

// choiceOfAnswer determines how far behind a client is that accepted an answer.
type choiceOfAnswer struct {
	answer *poll.Answer
	choice string
}

// counts are the numbers of a poll's resources, and of those that have changed.
type counts struct{ resources, changed int }

func (s *fetcher) client(p *poll.Poll, cache map[choiceOfAnswer]counts) publish.Client {
	c := publish.Client{
		ID: p.ID, TypeURL: p.TypeURL, Connected: p.Connected,
		Resources: len(p.Served.Keys), LastAck: p.LastAck, LastError: p.LastError,
		Poll: &publish.Poll{Protocol: p.Protocol, Time: p.Time, Served: p.Served.Version, Held: p.Held},
	}
	switch p.State {
	case poll.Outstanding:
		c.Stale = c.Resources
	case poll.Refused:
		c.Error = c.Resources
	default:
		key := choiceOfAnswer{p.Served, p.Choice}
		n, cached := cache[key]
		if !cached {
			for _, r := range s.polledResources(p) {
				if n.resources++; r.changed() {
					n.changed++
				}
			}
			cache[key] = n
		}
		c.Resources, c.Stale, c.Synced = n.resources, n.changed, n.resources-n.changed
	}
	return c
}

// polledResource is a resource that a client polls.
type polledResource struct {
	key    string
	served uint64 // the version of the client's answer; 0: its absence
	latest *frame
	added  bool // since the client's answer
}

func (r *polledResource) changed() bool { return r.served != versionOf(r.latest) }

// polledResources returns the resources of a poll, by name. A poll of everything includes those
// published since.
func (s *fetcher) polledResources(p *poll.Poll) []polledResource {
	keys := p.Served.Keys
	if p.All {
		keys = nil
	}
	found := s.published.find(s.published.table(p.TypeURL), keys, p.Choice)
	if p.All {
		return resourcesOfAll(p.Served, found.slots)
	}
	resources := make([]polledResource, len(keys))
	for i, key := range keys {
		resources[i] = polledResource{key: key, served: p.Served.Versions[i], latest: found.slots[i].latest()}
	}
	return resources
}

func resourcesOfAll(answer *poll.Answer, slots []*slot) []polledResource {
	frames := make(map[string]*frame, len(slots))
	for _, slot := range slots {
		if f := slot.latest(); f != nil {
			frames[slot.name] = f
		}
	}
	resources := make([]polledResource, 0, len(slots))
	for i, key := range answer.Keys {
		resources = append(resources, polledResource{key: key, served: answer.Versions[i], latest: frames[key]})
		delete(frames, key)
	}
	for _, key := range slices.Sorted(maps.Keys(frames)) {
		resources = append(resources, polledResource{key: key, latest: frames[key], added: true})
	}
	return resources
}

// subscribers returns the clients that poll.
func (s *fetcher) subscribers() []Subscriber {
	byClient := map[poll.Client][]poll.Poll{}
	for _, p := range s.polls.All(time.Now()) {
		byClient[p.Client] = append(byClient[p.Client], p)
	}
	subscribers := make([]Subscriber, 0, len(byClient))
	for key, polls := range byClient {
		subscribers = append(subscribers, Subscriber{
			Node: polls[0].Node, Service: key.Protocol, Connected: polls[0].Connected,
			resources: func() []Resource { return s.resources(polls) },
		})
	}
	return subscribers
}

// resources returns the resources that a client polls. If a resource is in several lists, the
// latest poll counts.
func (s *fetcher) resources(polls []poll.Poll) []Resource {
	type identity struct{ typeURL, key string }
	byIdentity := map[identity]Resource{}
	for i := range polls {
		p := &polls[i]
		for _, r := range s.polledResources(p) {
			byIdentity[identity{p.TypeURL, r.key}] = r.describe(p)
		}
	}
	ordered := slices.SortedFunc(maps.Keys(byIdentity), func(a, b identity) int {
		if a.typeURL != b.typeURL {
			if a.typeURL == s.published.clusters.typeURL {
				return -1
			}
			return 1
		}
		return strings.Compare(a.key, b.key)
	})
	resources := make([]Resource, len(ordered))
	for i, key := range ordered {
		resources[i] = byIdentity[key]
	}
	return resources
}

// describe returns the client's state of the resource.
func (r *polledResource) describe(p *poll.Poll) Resource {
	name, choice, located := strings.Cut(r.key, separator)
	if !located {
		choice = p.Choice
	}
	held, _ := p.Accepted.VersionOf(r.key)
	zone, _ := zoneOf(choice)
	described := Resource{
		TypeURL: p.TypeURL, Name: name, Zone: zone, Exists: r.latest != nil,
		Holds: held != 0, Version: showVersion(r.served), Sent: p.Sent.UTC(),
		frame: withVersion([]*frame{r.latest}, r.served),
	}
	switch {
	case r.added:
		described.State = NotSent
	case p.State == poll.Outstanding:
		described.State = Outstanding
	case p.State == poll.Refused:
		described.State = Refused
	case r.changed():
		described.State = Outdated
	default:
		described.State = Accepted
	}
	if p.Refusal == nil {
		return described
	}
	if version, named := p.Refusal.Answer.VersionOf(r.key); named {
		described.Refusal = &Refusal{
			Text: p.Refusal.Text, Time: p.Refusal.Time.UTC(), Version: showVersion(version),
			frame: withVersion([]*frame{r.latest}, version),
		}
	}
	return described
}
