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
	"hdsd/machine"
	"hdsd/ruling/decision"
	"hdsd/store"
)

const (
	// chronicled is how many clusters, and how many exclusions, one change of the sources
	// adds to the history one by one.
	chronicled = 100

	// namedEndpoints is how many endpoints an event names.
	namedEndpoints = 5
)

// chronicler keeps events beside changes of health.
type chronicler interface {
	AppendEvents([]store.Event)
	KnownCluster(name string) bool
}

// chronicle adds to the history what happens beside changes of health. It never waits.
type chronicle struct{ history chronicler }

func (c chronicle) observe(now time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.Joined:
		c.joined(now, &e.Checker)
	case machine.FleetChanged:
		c.follow(now, e.Events)
	case machine.Judged:
		c.judged(now, e.Effects)
	case machine.ClustersChanged:
		c.changed(now, &e)
	case machine.Decided:
		c.decided(now, e.Decision)
	}
}

func (c chronicle) add(e store.Event) { c.history.AppendEvents([]store.Event{e}) }

// joined takes note of a checker that connects.
func (c chronicle) joined(now time.Time, k *health.Checker) {
	c.add(store.Event{Time: now, Kind: storev1.EventKind_CHECKER_JOINED, Checker: k.ID, Locality: k.Locality, Text: "connected, " + k.Version})
}

// follow takes note of what the fleet says.
func (c chronicle) follow(now time.Time, all []fleet.Event) {
	for i := range all {
		switch e := &all[i]; e.Kind {
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

// checkerEvent returns an event of one checker.
func checkerEvent(now time.Time, kind store.EventKind, e *fleet.Event, text string) store.Event {
	return store.Event{Time: now, Kind: kind, Checker: e.Checkers[0], Locality: e.Locality, Text: text}
}

// judged takes note of who is believed.
func (c chronicle) judged(now time.Time, e *aggregate.Effects) {
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
			event.Locality = zoneOf(d.To)
		default:
			event.Kind, event.Text = storev1.EventKind_PATH_BELIEVED, fmt.Sprintf("from %s to %s: no longer doubted", d.From, d.To)
			event.Locality = zoneOf(d.To)
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

// zoneOf reads a zone that is written "region/zone".
func zoneOf(text string) health.Locality {
	region, zone, _ := strings.Cut(text, "/")
	return health.Locality{Region: region, Zone: zone}
}

// decided takes note of what operators decided.
func (c chronicle) decided(now time.Time, next *decision.Decision) {
	if f := next.Freeze; f != nil && f.After != nil {
		c.add(store.Event{Time: now, Kind: storev1.EventKind_FROZEN, Author: f.By, Text: f.After.Reason})
	} else if f != nil {
		c.add(store.Event{Time: now, Kind: storev1.EventKind_UNFROZEN, Author: f.By, Text: "was frozen: " + f.Before.Reason})
	}
	for i := range next.Overrides {
		c.override(now, &next.Overrides[i])
	}
	t := next.Trust
	if t == nil {
		return
	}
	event := store.Event{Time: now, Kind: storev1.EventKind_CHECKER_DISTRUSTED, Checker: t.Checker, Author: t.By}
	switch {
	case t.After == nil:
		event.Kind = storev1.EventKind_CHECKER_TRUST_CLEARED
	case t.After.Level == store.Trusted:
		event.Kind, event.Text = storev1.EventKind_CHECKER_TRUSTED, t.After.Reason
	default:
		event.Text = t.After.Reason
	}
	c.add(event)
}

func (c chronicle) override(now time.Time, o *decision.OverrideChange) {
	scope := &o.Override.Scope
	event := store.Event{
		Time: now, Kind: storev1.EventKind_OVERRIDE_SET, Cluster: scope.Cluster, Address: scope.Address, Locality: scope.Locality, Author: o.By,
		Text: overrideKinds[o.Override.Status] + ": " + o.Override.Reason,
	}
	switch o.Kind {
	case decision.Cleared:
		event.Kind = storev1.EventKind_OVERRIDE_CLEARED
	case decision.Expired:
		event.Kind = storev1.EventKind_OVERRIDE_EXPIRED
	}
	c.add(event)
}

// changed takes note of what sources changed. While hdsd starts, only clusters that were
// never known are new.
func (c chronicle) changed(now time.Time, e *machine.ClustersChanged) {
	var all []store.Event
	for _, name := range e.Removed {
		if old := e.Before[name]; old != nil {
			all = append(all, store.Event{
				Time: now, Kind: storev1.EventKind_CLUSTER_REMOVED, Cluster: name,
				Text: fmt.Sprintf("no longer in source %s; it had %s", old.Source.Source, endpointsText(len(old.Endpoints), nil)),
			})
		}
	}
	for _, k := range e.Changed {
		old := e.Before[k.Source.Name]
		switch {
		case old != nil:
			all = append(all, endpointEvents(now, old, k)...)
		case e.Conclusive || !c.history.KnownCluster(k.Source.Name):
			all = append(all, store.Event{
				Time: now, Kind: storev1.EventKind_CLUSTER_ADDED, Cluster: k.Source.Name,
				Text: fmt.Sprintf("from source %s, with %s", k.Source.Source, endpointsText(len(k.Endpoints), nil)),
			})
		}
		if e.Conclusive {
			all = append(all, quarantineEvents(now, old, k)...)
		}
	}
	if over := len(all) - chronicled; over > 0 {
		all[chronicled] = store.Event{Time: now, Kind: all[chronicled].Kind, Whole: true, Text: fmt.Sprintf("%d more such changes at the same time", over)}
		all = all[:chronicled+1]
	}
	c.history.AppendEvents(all)
}

// endpointEvents says which endpoints a cluster got and lost. Both lists are in the order of
// their keys.
func endpointEvents(now time.Time, old, k *catalog.Cluster) (all []store.Event) {
	var added, removed []health.Endpoint
	a, b := old.Endpoints, k.Endpoints
	for len(a)+len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		case a[0].Hash() != b[0].Hash():
			order = a[0].Key().Compare(b[0].Key())
		}
		if order < 0 {
			removed = append(removed, a[0].Key())
		} else if order > 0 {
			added = append(added, b[0].Key())
		}
		if order <= 0 {
			a = a[1:]
		}
		if order >= 0 {
			b = b[1:]
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
		all = append(all, e)
	}
	return all
}

// endpointsText counts endpoints, and names the first of them.
func endpointsText(count int, of []health.Endpoint) string {
	text := fmt.Sprintf("%d endpoints", count)
	if count == 1 {
		text = "1 endpoint"
	}
	if len(of) == 0 {
		return text
	}
	names := make([]string, min(len(of), namedEndpoints))
	for i := range names {
		names[i] = of[i].Address
	}
	if text += ": " + strings.Join(names, ", "); len(of) > namedEndpoints {
		text += ", …"
	}
	return text
}

// rejections lists the exclusions of a cluster, and its latest version if hdsd rejects that.
func rejections(k *catalog.Cluster) []specifier.Exclusion {
	if k == nil {
		return nil
	}
	all := k.Exclusions()
	if k.Rejected != "" {
		all = append(all, specifier.Exclusion{Reason: k.Rejected + " (the last valid version stays in use)"})
	}
	return all
}

// quarantineEvents returns the rejections of a cluster that begin and end.
func quarantineEvents(now time.Time, old, k *catalog.Cluster) (all []store.Event) {
	before, after := rejections(old), rejections(k)
	if len(before)+len(after) == 0 {
		return nil
	}
	reasons := func(of []specifier.Exclusion) map[string]string {
		byAddress := map[string]string{}
		for _, e := range of {
			byAddress[e.Address] = e.Reason
		}
		return byAddress
	}
	was, is := reasons(before), reasons(after)
	for _, e := range after {
		if _, ok := was[e.Address]; !ok {
			all = append(all, store.Event{Time: now, Kind: storev1.EventKind_QUARANTINED, Cluster: k.Source.Name, Address: e.Address, Text: e.Reason})
		}
	}
	for _, e := range before {
		if _, ok := is[e.Address]; !ok {
			all = append(all, store.Event{Time: now, Kind: storev1.EventKind_QUARANTINE_OVER, Cluster: k.Source.Name, Address: e.Address, Text: "was: " + e.Reason})
		}
	}
	return all
}
