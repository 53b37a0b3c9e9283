package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// Answer is what is known of a name. It is immutable.
type Answer struct {
	Addresses []netip.Addr // the first is that of a LOGICAL_DNS cluster
	Known     bool         // there was an answer or a failure, or the wait is over
	Problem   string       // why the last lookup gave no addresses; empty if it did
	IgnoreNew bool         // some that DNS gives no longer are healthy, so new ones can wait for a verdict
}

// Rewriter translates the sets of one source. It is pure.
type Rewriter struct {
	out *source.Set
	by  map[string]rewritten // clusters with names, by name

	// Complete reports whether each cluster of a set once had its addresses.
	Complete bool
}

// rewritten is a cluster, what was known, and what it became.
type rewritten struct {
	from    *source.Cluster
	answers []Answer
	out     *source.Cluster // nil while its names are not known
}

// Questions returns what the clusters of a set need to know, and the names of the clusters
// that need it.
func Questions(set *source.Set) (all []Question, clusters map[Question][]string) {
	clusters = map[Question][]string{}
	for _, c := range set.Clusters {
		for _, q := range questions(c) {
			if clusters[q] == nil {
				all = append(all, q)
			}
			clusters[q] = append(clusters[q], c.Name)
		}
	}
	return all, clusters
}

// Take returns a set with addresses in place of the names. Until all were known once, it
// is one whose source has not answered.
func (r *Rewriter) Take(set *source.Set, answer func(Question) Answer) *source.Set {
	next := &source.Set{Source: set.Source, Problems: slices.Clip(set.Problems), Awaited: set.Awaited, Unread: set.Unread}
	by, complete := map[string]rewritten{}, true
	next.Clusters = make([]*source.Cluster, 0, len(set.Clusters))
	for _, c := range set.Clusters {
		all := questions(c)
		if len(all) == 0 {
			next.Clusters = append(next.Clusters, c)
			continue
		}
		one, known := r.rewrite(c, all, answer)
		complete = complete && known
		if by[c.Name] = one; one.out != nil {
			next.Clusters = append(next.Clusters, one.out)
		}
		for i, a := range one.answers {
			if a.Problem != "" {
				next.Problems = append(next.Problems, unresolved(c, all[i], a))
			}
		}
	}
	r.by = by
	r.Complete = r.Complete || complete && set.Answered()
	if !r.Complete && !complete && !next.Unread {
		next.Awaited = true
	}
	return r.handOn(set, next)
}

// rewrite translates one cluster, if everything is known.
func (r *Rewriter) rewrite(c *source.Cluster, all []Question, answer func(Question) Answer) (one rewritten, known bool) {
	before := r.by[c.Name]
	one = rewritten{from: c, answers: make([]Answer, len(all))}
	by, known := make(map[string]Answer, len(all)), true
	for i, q := range all {
		one.answers[i] = answer(q)
		by[q.Host] = one.answers[i]
		known = known && one.answers[i].Known
	}
	switch {
	case !known:
		one.out = before.out
	case before.out != nil && before.from == c && slices.EqualFunc(before.answers, one.answers, Answer.equal):
		one.out = before.out
	default:
		one.out = resolved(c, by, all[0].Keep)
	}
	return one, known
}

func (a Answer) equal(other Answer) bool {
	return a.Known == other.Known && a.IgnoreNew == other.IgnoreNew && slices.Equal(a.Addresses, other.Addresses)
}

// handOn returns the set itself if nothing in it was translated, and the one before if
// nothing has changed since.
func (r *Rewriter) handOn(set, next *source.Set) *source.Set {
	if len(r.by) == 0 {
		r.out = set
		return set
	}
	last := r.out
	if last == nil || last.Awaited != next.Awaited || last.Unread != next.Unread ||
		!slices.Equal(last.Clusters, next.Clusters) || !slices.Equal(last.Problems, next.Problems) {
		r.out = next
	}
	return r.out
}

func unresolved(c *source.Cluster, q Question, a Answer) source.Problem {
	message := fmt.Sprintf("its name %q cannot be resolved: %s", q.Host, a.Problem)
	if len(a.Addresses) > 0 {
		message += " (its last addresses stay in use)"
	}
	return source.Problem{File: c.File, Line: c.Line, Resource: c.Name, Message: message}
}

// resolved makes an EDS cluster of one with names. single says that it has one address.
func resolved(c *source.Cluster, by map[string]Answer, single bool) *source.Cluster {
	config := proto.CloneOf(c.Config)
	config.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	config.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}

	a := c.Assignment.Message()
	a.ClusterName = c.ServiceName
	for _, group := range a.GetEndpoints() {
		var all []*endpointv3.LbEndpoint
		taken := map[string]*endpointv3.LbEndpoint{}
		for _, e := range group.GetLbEndpoints() {
			for _, each := range endpointsOf(e, single, by) {
				at := each.GetEndpoint().GetAddress().GetSocketAddress()
				key := fmt.Sprint(at.GetAddress(), " ", at.GetPortValue())
				if at != nil && taken[key] != nil { // an Envoy that resolves has it twice, by EDS once
					source.AddWeight(taken[key], each)
					continue
				}
				taken[key] = each
				all = append(all, each)
			}
		}
		group.LbEndpoints = all
	}
	out := *c
	out.Config, out.Assignment = config, source.EncodeAssignment(a)
	out.Names, out.IgnoreNew = namesOf(by), false
	for _, a := range by {
		out.IgnoreNew = out.IgnoreNew || a.IgnoreNew
	}
	return &out
}

// namesOf says which names a cluster is resolved from.
func namesOf(by map[string]Answer) string {
	all := make([]string, 0, len(by))
	for name := range by {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// endpointsOf makes an endpoint for each address of a name. One that has an address
// already stays.
func endpointsOf(e *endpointv3.LbEndpoint, single bool, by map[string]Answer) []*endpointv3.LbEndpoint {
	if !isName(e.GetEndpoint().GetAddress()) {
		return []*endpointv3.LbEndpoint{e}
	}
	name := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
	addresses := by[hostOf(name)].Addresses
	if single && len(addresses) > 1 {
		addresses = addresses[:1]
	}
	all := make([]*endpointv3.LbEndpoint, len(addresses))
	for i, address := range addresses {
		one := proto.CloneOf(e)
		at := one.GetEndpoint()
		if at.Hostname == "" {
			at.Hostname = strings.TrimSuffix(name, ".")
		}
		at.Address.Address.(*corev3.Address_SocketAddress).SocketAddress.Address = address.String() //nolint:forcetypeassert // only these are names
		all[i] = one
	}
	return all
}
