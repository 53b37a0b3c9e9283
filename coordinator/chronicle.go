package coordinator

import (
	"fmt"
	"strings"
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/fleet"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/store"
)

const (
	// maxClusterEvents limits the events that one change of the clusters adds to the history. One more
	// event counts the rest.
	maxClusterEvents = 100

	// maxNamedEndpoints limits the endpoints that an event names.
	maxNamedEndpoints = 5
)

// eventStore stores events.
type eventStore interface {
	AppendEvents([]store.Event)
	KnownCluster(name string) bool
}

// chronicle adds events to the history, beside the transitions of the recorder. It never waits.
type chronicle struct{ history eventStore }

func (c chronicle) observe(now time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.CheckerJoined:
		c.addJoin(now, &e.Checker)
	case machine.FleetChanged:
		c.addFleetEvents(now, e.Events)
	case machine.VotesJudged:
		c.addFindings(now, e.Effects)
	case machine.ClustersChanged:
		c.addClusterEvents(now, &e)
	case machine.Logged:
		c.addOrders(now, e.Entry)
		if found := store.EventsOf(e.Entry); len(found) > 0 {
			c.history.AppendEvents(found)
		}
	}
}

func (c chronicle) add(e store.Event) { c.history.AppendEvents([]store.Event{e}) }

// addJoin adds the connection of a checker.
func (c chronicle) addJoin(now time.Time, k *health.Checker) {
	c.add(store.Event{Time: now, Kind: storev1.EventKind_CHECKER_JOINED, Checker: k.ID, Locality: k.Locality, Text: "connected, " + k.Version})
}

// addFleetEvents adds losses, silences and returns of checkers.
func (c chronicle) addFleetEvents(now time.Time, events []fleet.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case fleet.Lost:
			c.add(checkerEvent(now, storev1.EventKind_CHECKER_LOST, e, "disconnected; its seats are kept for the grace period"))
		case fleet.NewcomerLost:
			c.add(checkerEvent(now, storev1.EventKind_CHECKER_LOST, e, "disconnected; it was on probation and had no seats"))
		case fleet.FellSilent:
			text := "connected, but reports nothing of its specifier: it may have rejected it; look at its hds_delegate.errors"
			if e.Stopped {
				text = "connected, but has stopped reporting"
			}
			c.add(checkerEvent(now, storev1.EventKind_CHECKER_SILENT, e, text))
		case fleet.ReportsAgain:
			c.add(checkerEvent(now, storev1.EventKind_CHECKER_REPORTS, e, "reports again, after "+e.Lasted.Round(time.Millisecond).String()))
		case fleet.NoCheckers:
			c.add(store.Event{Time: now, Kind: storev1.EventKind_NO_CHECKERS, Text: "no checker is connected: nothing is checked, and health stays what it was last"})
		case fleet.NoCheckersOver:
			c.add(store.Event{Time: now, Kind: storev1.EventKind_NO_CHECKERS_OVER, Text: "a checker is connected again, after " + e.Lasted.Round(time.Millisecond).String()})
		}
	}
}

// checkerEvent returns an event about one checker.
func checkerEvent(now time.Time, kind store.EventKind, e *fleet.Event, text string) store.Event {
	return store.Event{Time: now, Kind: kind, Checker: e.Checkers[0], Locality: e.Locality, Text: text}
}

// addFindings adds the checkers and paths that hdsd begins or ceases to doubt, and blind checkers.
func (c chronicle) addFindings(now time.Time, e *aggregate.Effects) {
	for i := range e.Doubts {
		d := &e.Doubts[i]
		event := store.Event{Time: now, Checker: d.Checker, Text: d.Reason}
		switch {
		case d.Checker != "" && d.Doubted:
			event.Kind = storev1.EventKind_CHECKER_DOUBTED
		case d.Checker != "":
			event.Kind, event.Text = storev1.EventKind_CHECKER_BELIEVED, "no longer doubted"
		case d.Doubted:
			event.Kind, event.Text = storev1.EventKind_PATH_DOUBTED, fmt.Sprintf("from %s to %s: %s", d.From, d.To, d.Reason)
			event.Locality = parseZone(d.To)
		default:
			event.Kind, event.Text = storev1.EventKind_PATH_BELIEVED, fmt.Sprintf("from %s to %s: no longer doubted", d.From, d.To)
			event.Locality = parseZone(d.To)
		}
		c.add(event)
	}
	for i := range e.Blindness {
		b := &e.Blindness[i]
		event := store.Event{Time: now, Kind: storev1.EventKind_CHECKER_SEES, Checker: b.Checker, Text: b.Reason}
		if b.Blind {
			event.Kind = storev1.EventKind_CHECKER_BLIND
		}
		c.add(event)
	}
}

// parseZone parses a zone of the form "region/zone".
func parseZone(text string) health.Locality {
	region, zone, _ := strings.Cut(text, "/")
	return health.Locality{Region: region, Zone: zone}
}

// addOrders adds the orders of operators in an entry of the log.
func (c chronicle) addOrders(now time.Time, entry *log.Entry) {
	if entry.Operator != nil {
		now = entry.Operator.Time
	}
	if f := entry.Freeze; f != nil && f.After != nil {
		c.add(store.Event{Time: now, Kind: storev1.EventKind_FROZEN, Author: f.By, Text: f.After.Reason})
	} else if f != nil {
		c.add(store.Event{Time: now, Kind: storev1.EventKind_UNFROZEN, Author: f.By, Text: "was frozen: " + f.Before.Reason})
	}
	for i := range entry.Overrides {
		c.addOverride(now, &entry.Overrides[i])
	}
	t := entry.Trust
	if t == nil {
		return
	}
	event := store.Event{Time: now, Kind: storev1.EventKind_CHECKER_DISTRUSTED, Checker: t.Checker, Author: t.By}
	switch {
	case t.After == nil:
		event.Kind = storev1.EventKind_CHECKER_TRUST_CLEARED
	case t.After.Level == log.Trusted:
		event.Kind, event.Text = storev1.EventKind_CHECKER_TRUSTED, t.After.Reason
	default:
		event.Text = t.After.Reason
	}
	c.add(event)
}

// addOverride adds an override that begins or ends.
func (c chronicle) addOverride(now time.Time, o *log.OverrideChange) {
	scope := &o.Override.Scope
	event := store.Event{
		Time: now, Kind: storev1.EventKind_OVERRIDE_SET, Cluster: scope.Cluster, Address: scope.Address, Locality: scope.Locality, Author: o.By,
		Text: overrideKinds[o.Override.Status] + ": " + o.Override.Reason,
	}
	switch o.Kind {
	case log.Cleared:
		event.Kind = storev1.EventKind_OVERRIDE_CLEARED
	case log.Expired:
		event.Kind = storev1.EventKind_OVERRIDE_EXPIRED
	}
	c.add(event)
}

// addClusterEvents adds changes of the clusters. During the start of hdsd, a cluster is new only if the
// history does not know it.
func (c chronicle) addClusterEvents(now time.Time, e *machine.ClustersChanged) {
	var events []store.Event
	for _, name := range e.Removed {
		if old := e.Previous[name]; old != nil {
			events = append(events, store.Event{
				Time: now, Kind: storev1.EventKind_CLUSTER_REMOVED, Cluster: name,
				Text: fmt.Sprintf("no longer in source %s; it had %s", old.Source.Source, endpointsText(len(old.Endpoints), nil)),
			})
		}
	}
	for _, k := range e.Changed {
		old := e.Previous[k.Source.Name]
		switch {
		case old != nil:
			events = append(events, endpointEvents(now, old, k)...)
		case e.Conclusive || !c.history.KnownCluster(k.Source.Name):
			events = append(events, store.Event{
				Time: now, Kind: storev1.EventKind_CLUSTER_ADDED, Cluster: k.Source.Name,
				Text: fmt.Sprintf("from source %s, with %s", k.Source.Source, endpointsText(len(k.Endpoints), nil)),
			})
		}
		if e.Conclusive {
			events = append(events, quarantineEvents(now, old, k)...)
		}
	}
	if rest := len(events) - maxClusterEvents; rest > 0 {
		events[maxClusterEvents] = store.Event{Time: now, Kind: events[maxClusterEvents].Kind, Whole: true, Text: fmt.Sprintf("%d more such changes at the same time", rest)}
		events = events[:maxClusterEvents+1]
	}
	c.history.AppendEvents(events)
}

// endpointEvents returns events for the endpoints that a cluster gained and lost. Both versions of the
// cluster have their endpoints in the order of the keys.
func endpointEvents(now time.Time, old, k *catalog.Cluster) (events []store.Event) {
	var added, removed []health.Endpoint
	before, after := old.Endpoints, k.Endpoints
	for len(before)+len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		case before[0].Hash() != after[0].Hash():
			order = before[0].Key().Compare(after[0].Key())
		}
		if order < 0 {
			removed = append(removed, before[0].Key())
		} else if order > 0 {
			added = append(added, after[0].Key())
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
	for _, change := range []struct {
		kind      store.EventKind
		endpoints []health.Endpoint
	}{{storev1.EventKind_ENDPOINTS_REMOVED, removed}, {storev1.EventKind_ENDPOINTS_ADDED, added}} {
		if len(change.endpoints) == 0 {
			continue
		}
		e := store.Event{Time: now, Kind: change.kind, Cluster: k.Source.Name, Text: "by source " + k.Source.Source + ": " + endpointsText(len(change.endpoints), change.endpoints)}
		if len(change.endpoints) == 1 {
			e.Address, e.Locality = change.endpoints[0].Address, change.endpoints[0].Locality
		}
		events = append(events, e)
	}
	return events
}

// endpointsText returns a number of endpoints as text, with the addresses of the first ones.
func endpointsText(count int, named []health.Endpoint) string {
	text := fmt.Sprintf("%d endpoints", count)
	if count == 1 {
		text = "1 endpoint"
	}
	if len(named) == 0 {
		return text
	}
	addresses := make([]string, min(len(named), maxNamedEndpoints))
	for i := range addresses {
		addresses[i] = named[i].Address
	}
	if text += ": " + strings.Join(addresses, ", "); len(named) > maxNamedEndpoints {
		text += ", …"
	}
	return text
}

// rejections returns the exclusions of a cluster, and the rejection of its latest version if there is one.
func rejections(k *catalog.Cluster) []specifier.Exclusion {
	if k == nil {
		return nil
	}
	found := k.Exclusions()
	if k.Rejected != "" {
		found = append(found, specifier.Exclusion{Reason: k.Rejected + " (the last valid version stays in use)"})
	}
	return found
}

// quarantineEvents returns events for the rejections of a cluster that begin and end.
func quarantineEvents(now time.Time, old, k *catalog.Cluster) (events []store.Event) {
	before, after := rejections(old), rejections(k)
	if len(before)+len(after) == 0 {
		return nil
	}
	addresses := func(list []specifier.Exclusion) map[string]bool {
		set := make(map[string]bool, len(list))
		for i := range list {
			set[list[i].Address] = true
		}
		return set
	}
	previous, current := addresses(before), addresses(after)
	for _, e := range after {
		if !previous[e.Address] {
			events = append(events, store.Event{Time: now, Kind: storev1.EventKind_QUARANTINED, Cluster: k.Source.Name, Address: e.Address, Text: e.Reason})
		}
	}
	for _, e := range before {
		if !current[e.Address] {
			events = append(events, store.Event{Time: now, Kind: storev1.EventKind_QUARANTINE_OVER, Cluster: k.Source.Name, Address: e.Address, Text: "was: " + e.Reason})
		}
	}
	return events
}
