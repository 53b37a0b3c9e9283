package coordinator

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// mostOverrides is how many there can be.
const mostOverrides = 10_000

// override puts one in force, for all that it is for at once.
func (c *core) override(asked store.Override, now time.Time) (set, replaced *override, err error) {
	if err := c.overridable(&asked.Scope); err != nil {
		return nil, nil, err
	}
	if len(c.overrides.all) >= mostOverrides && c.overrides.all[asked.Scope] == nil {
		return nil, nil, status.Errorf(codes.FailedPrecondition,
			"there are %d overrides already, which is the most: clear some, or have one for a whole cluster or locality", mostOverrides)
	}
	asked.Since, asked.Until = now.UTC().Round(0), asked.Until.UTC().Round(0)
	set = &override{Override: asked}
	replaced = c.overrides.put(set)
	c.history.SaveOverrides(map[health.Endpoint]*store.Override{asked.Scope: &set.Override})
	c.tellOverride("override_set", set, set.Author)
	c.cover(&asked.Scope, now)
	c.overrule(now, c.within(&asked.Scope), "")
	return set, replaced, nil
}

// cover has what is not checked in a scope follow its override.
func (c *core) cover(scope *health.Endpoint, now time.Time) {
	e := &edit{now: now, services: map[string]bool{}}
	for k := range c.clustersOf(scope) {
		if len(k.Excluded) > 0 {
			c.hold(k, e)
			e.services[k.Source.ServiceName] = true
		}
	}
	c.publishEdit(e)
}

// clear ends overrides: the one for exactly a scope, or all within it.
func (c *core) clear(scope health.Endpoint, all bool, author string, now time.Time) ([]*override, error) {
	var gone []*override
	if !all {
		if c.overrides.all[scope] == nil {
			return nil, status.Error(codes.NotFound, "there is no override for exactly this: hdsd override list shows those that there are")
		}
		gone = []*override{c.overrides.take(scope)}
	} else {
		for of := range c.overrides.all {
			if covers(&scope, &of) {
				gone = append(gone, c.overrides.take(of))
			}
		}
	}
	for _, o := range gone {
		c.tellOverride("override_cleared", o, author)
	}
	c.end(gone, "cleared by "+author, now)
	return gone, nil
}

// expire ends what has come to its end, also while hdsd was down; not before the
// sources were read.
func (c *core) expire(now time.Time) {
	if !c.fleet.Begun() {
		return
	}
	gone := c.overrides.expired(now)
	for _, o := range gone {
		c.tellOverride("override_expired", o, "the clock")
	}
	c.end(gone, "expired", now)
}

// tellOverride logs what becomes of an override, and by whom.
func (c *core) tellOverride(event string, o *override, by string) {
	until := ""
	if !o.Until.IsZero() {
		until = o.Until.Format(time.RFC3339)
	}
	c.log.Warn().Str("event", event).Str("kind", overrideKinds[o.Status]).Str("cluster", o.Scope.Cluster).Str("address", o.Scope.Address).
		Str("region", o.Scope.Locality.Region).Str("zone", o.Scope.Locality.Zone).Str("sub_zone", o.Scope.Locality.SubZone).
		Str("author", o.Author).Str("reason", o.Reason).Time("since", o.Since).Str("until", until).Str("by", by).Msg("override of the votes")
}

// end has overrides that were taken out end for all that they decided.
func (c *core) end(gone []*override, how string, now time.Time) {
	if len(gone) == 0 {
		return
	}
	ended := make(map[health.Endpoint]*store.Override, len(gone))
	for _, o := range gone {
		ended[o.Scope] = nil
	}
	c.history.SaveOverrides(ended)
	var ids []health.EndpointID
	if len(gone) == 1 {
		ids = c.within(&gone[0].Scope)
	} else {
		for id := range c.table.rows {
			if o := c.table.rows[id].overridden(); o != nil && c.overrides.all[o.Scope] != o {
				ids = append(ids, health.EndpointID(id))
			}
		}
	}
	c.overrule(now, ids, how)
}

// within gives the endpoints of a scope that have, or held, a verdict.
func (c *core) within(scope *health.Endpoint) (ids []health.EndpointID) {
	if k := c.clusters[scope.Cluster]; k != nil {
		for i := range k.Endpoints {
			if id, ok := c.idOf(&k.Endpoints[i]); ok && covers(scope, &k.Endpoints[i].Key) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for id := range c.table.rows {
		if row := &c.table.rows[id]; row.cluster != nil {
			if key := row.key(); covers(scope, &key) {
				ids = append(ids, health.EndpointID(id))
			}
		}
	}
	return ids
}

// overridable tells why nothing would come of an override.
func (c *core) overridable(scope *health.Endpoint) error {
	if scope.Cluster != "" && c.clusters[scope.Cluster] == nil {
		return fmt.Errorf("%w %q", api.ErrUnknownCluster, scope.Cluster)
	}
	var not error
	for k := range c.clustersOf(scope) {
		for i := range k.Endpoints {
			e := &k.Endpoints[i]
			if !covers(scope, &e.Key) {
				continue
			}
			if overridable(k, e) {
				return nil
			}
			not = status.Errorf(codes.FailedPrecondition, "%s %s is published as its source has it, and can be drained there only: %s", k.Source.Name, e.Key.Address, e.Reason)
		}
	}
	if not == nil {
		not = status.Error(codes.NotFound, "there is no such endpoint: hdsd endpoints lists those that there are, with their localities")
	}
	return not
}

// clustersOf gives those that a scope may be about.
func (c *core) clustersOf(scope *health.Endpoint) iter.Seq[*catalog.Cluster] {
	if scope.Cluster == "" {
		return maps.Values(c.clusters)
	}
	return func(yield func(*catalog.Cluster) bool) {
		if k := c.clusters[scope.Cluster]; k != nil {
			yield(k)
		}
	}
}

// overridable tells whether an override can be published: of an endpoint that
// is not checked, too, where the others are.
func overridable(k *catalog.Cluster, e *catalog.Endpoint) bool {
	return k.IsChecked() && (e.Checked != none || e.InAssignment)
}
