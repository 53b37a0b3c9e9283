package eds

import (
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/eds/poll"
)

// clients returns one Client for every list of names that is polled, the latest poll
// last.
func (s *fetcher) clients(only func(name string) bool) []Client {
	polls := s.polls.All(time.Now())
	behind := make(map[choiceOfAnswer]counts, 1) // most clients were given the same
	all := make([]Client, len(polls))
	for i := range polls {
		all[i] = s.client(&polls[i], behind)
		if only != nil {
			s.countOnly(&all[i], &polls[i], only)
		}
	}
	return all
}

// countOnly counts the resources of a poll that have certain names.
func (s *fetcher) countOnly(c *Client, p *poll.Poll, only func(name string) bool) {
	c.Resources, c.Synced, c.Stale, c.Error = 0, 0, 0, 0
	for _, r := range s.polledResources(p) {
		name, _, _ := strings.Cut(r.key, separator)
		if !only(name) {
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

func (s *fetcher) client(p *poll.Poll, behind map[choiceOfAnswer]counts) Client {
	c := Client{
		ID: p.ID, TypeURL: p.TypeURL, Connected: p.Connected,
		Resources: len(p.Given.Keys), Unasked: p.Unasked, LastAck: p.LastAck, LastError: p.LastError,
		Poll: &Poll{By: p.By, Time: p.Time, Given: p.Given.Version, Held: p.Held},
	}
	switch p.State {
	case poll.Outstanding:
		c.Stale = c.Resources
	case poll.Refused:
		c.Error = c.Resources
	default:
		key := choiceOfAnswer{p.Given, p.Choice}
		n, known := behind[key]
		if !known {
			for _, r := range s.polledResources(p) {
				if n.resources++; r.changed() {
					n.changed++
				}
			}
			behind[key] = n
		}
		c.Resources, c.Stale, c.Synced = n.resources, n.changed, n.resources-n.changed
	}
	return c
}

// polledResource is a resource that a client polls.
type polledResource struct {
	key    string
	given  uint64 // the version that the client was given; 0: its absence
	latest *frame
	added  bool // since the client was given an answer
}

func (r *polledResource) changed() bool { return r.given != versionOf(r.latest) }

// polledResources returns the resources of a poll, by name. Where all are polled, they
// include those published since.
func (s *fetcher) polledResources(p *poll.Poll) []polledResource {
	keys := p.Given.Keys
	if p.All {
		keys = nil
	}
	found := s.published.find(s.published.table(p.TypeURL), keys, p.Choice)
	if p.All {
		return resourcesOfAll(p.Given, found.slots)
	}
	all := make([]polledResource, len(keys))
	for i, key := range keys {
		all[i] = polledResource{key: key, given: p.Given.Versions[i], latest: found.slots[i].latest()}
	}
	return all
}

func resourcesOfAll(given *poll.Answer, slots []*slot) []polledResource {
	frames := make(map[string]*frame, len(slots))
	for _, slot := range slots {
		if f := slot.latest(); f != nil {
			frames[slot.name] = f
		}
	}
	all := make([]polledResource, 0, len(slots))
	for i, key := range given.Keys {
		all = append(all, polledResource{key: key, given: given.Versions[i], latest: frames[key]})
		delete(frames, key)
	}
	for _, key := range slices.Sorted(maps.Keys(frames)) {
		all = append(all, polledResource{key: key, latest: frames[key], added: true})
	}
	return all
}

// subscribers returns the clients that poll.
func (s *fetcher) subscribers() []Subscriber {
	of := map[poll.Client][]poll.Poll{}
	for _, p := range s.polls.All(time.Now()) {
		of[p.Client] = append(of[p.Client], p)
	}
	all := make([]Subscriber, 0, len(of))
	for key, polls := range of {
		all = append(all, Subscriber{
			Node: polls[0].Node, Service: key.By, Connected: polls[0].Connected,
			resources: func() []Resource { return s.resources(polls) },
		})
	}
	return all
}

// resources returns the resources that a client polls. Where a resource is in several
// lists, the latest poll counts.
func (s *fetcher) resources(polls []poll.Poll) []Resource {
	type identity struct{ typeURL, key string }
	all := map[identity]Resource{}
	for i := range polls {
		p := &polls[i]
		for _, r := range s.polledResources(p) {
			all[identity{p.TypeURL, r.key}] = r.describe(p)
		}
	}
	ordered := slices.SortedFunc(maps.Keys(all), func(a, b identity) int {
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
		resources[i] = all[key]
	}
	return resources
}

// describe returns how far the resource has come to the client.
func (r *polledResource) describe(p *poll.Poll) Resource {
	name, choice, located := strings.Cut(r.key, separator)
	if !located {
		choice = p.Choice
	}
	held, _ := p.Accepted.Of(r.key)
	zone, _ := zoneOf(choice)
	described := Resource{
		TypeURL: p.TypeURL, Name: name, Zone: zone, Exists: r.latest != nil,
		Holds: held != 0, Version: showVersion(r.given), Sent: p.Sent.UTC(),
		frame: withVersion([]*frame{r.latest}, r.given),
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
	if version, about := p.Refusal.Answer.Of(r.key); about {
		described.Refusal = &Refusal{
			Text: p.Refusal.Text, Time: p.Refusal.Time.UTC(), Version: showVersion(version),
			frame: withVersion([]*frame{r.latest}, version),
		}
	}
	return described
}
